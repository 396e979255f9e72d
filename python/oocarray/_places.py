"""Where an array is, so that another process, or another part of this one, opens it for reading; so arrays are pickled."""

from __future__ import annotations

import copyreg
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

from . import _runtime, _sharing
from ._array import Array
from ._errors import TypeMismatch
from ._open_file import open_file
from ._store import Store, open_store, path_text


class Place(NamedTuple):
    """What `opened` opens it by."""

    url: str
    key: str  #: the file of `open_store`'s `key`
    path: str
    options: Dict[str, Any]
    raw: Optional[Tuple[Any, ...]]  #: of a file in place, which has nothing else


def place_of(array: Array) -> Place:
    options = {"layout": "tiled", "tile": array.chunks} if array.layout == "tiled" else {}
    if array.store is None:
        return Place("", "", "", options, array._raw)
    return Place(array.store.url, array.store._key, array.current_path, options, None)


def opened(place: Place) -> Array:
    """The array there, where it is open in this process; else one that is opened for reading."""
    with _runtime._lock:  # two who look for one array open it once
        if place.raw is not None:
            found = next((a for a in _runtime.open_arrays() if a._raw == place.raw), None)
            return _open_in_place(*place.raw, **place.options) if found is None else found
        store = store_at(place.url, place.key)
        found = _at(store.uuid, place.path)
        return store.open(place.path, "r", **place.options) if found is None else found


def _at(uuid: str, path: str) -> Optional[Array]:
    for renamed in (False, True):  # mostly it has its path still, and only that array is asked
        for core in _sharing.open_at(uuid, path_text(path), renamed):
            found = next((a for a in _runtime.open_arrays() if a._core.same(core)), None)
            if found is not None:
                return found
    return None


def _open_in_place(
    path: str, dtype: Any, shape: Tuple[int, ...], place: Union[int, str], order: str, dataset: Optional[str], **options: Any
) -> Array:
    """What `open_file` has found, in another process or again: where the file tells what it holds, it must be that still."""
    if dataset is None:
        return open_file(path, dtype=dtype, shape=shape, offset=int(place), order=order, **options)
    a = open_file(path, dataset=dataset or None, **options)
    if (a.dtype, a.shape) == (dtype, shape):
        return a
    now = f"{a.dtype} and the shape {a.shape}"
    a.close()
    raise TypeMismatch(f"'{path}' has changed since an array in it was opened: elements were {dtype}, the shape {shape}; they are {now}")


def store_at(url: str, key: str = "") -> Store:
    """The store of an array that is open here, or one that is opened."""
    for array in _runtime.open_arrays():
        if array.store is not None and (array.store.url, array.store._key) == (url, key):
            return array.store
    return open_store(url, create=False, key=key)


def _pickled(array: Array) -> Any:
    if array.closed:
        raise TypeError(f"array '{array.path}' has been closed: pickle it while it is open")
    if array.writable:
        raise TypeError(
            f"array '{array.current_path}' is open for writing, and whoever unpickles it would not see what is written: "
            "close it, open it with mode='r', and pickle that; or pickle a[...], which copies the elements"
        )
    return opened, (place_of(array),)


copyreg.pickle(Array, _pickled)
copyreg.pickle(Store, lambda store: (store_at, (store.url, store._key)))
