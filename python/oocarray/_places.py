"""Where an array is, so that another process, or another part of this one, opens it for reading."""

from __future__ import annotations

from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from . import _runtime
from ._array import Array, open as open_array
from ._open_file import open_raw
from ._store import Store, open_store


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
            found = next((a for a in _open_arrays() if a._raw == place.raw), None)
            return open_raw(*place.raw, **place.options) if found is None else found
        store = store_at(place.url, place.key)
        there = [a for a in _open_arrays() if a.store is not None and a.store.uuid == store.uuid]
        there.sort(key=lambda a: a.path != place.path)  # any other has been renamed to it
        found = next((a for a in there if _is_at(a, place)), None)
        return open_array(store, place.path, "r", **place.options) if found is None else found


def store_at(url: str, key: str = "") -> Store:
    """The store of an array that is open here, or one that is opened."""
    for array in _open_arrays():
        if array.store is not None and (array.store.url, array.store._key) == (url, key):
            return array.store
    return open_store(url, create=False, key=key)


def _open_arrays() -> Iterator[Array]:
    current = _runtime._current
    return (a for a in list(current._arrays.values() if current is not None else ()) if not a.closed)


def _is_at(array: Array, place: Place) -> bool:
    try:
        return array.current_path == place.path
    except OSError:  # it has been removed, and what is there now is another one
        return False
