"""A backend of xarray: ``xarray.open_dataset("local:/data", engine="oocarray")``.

The arrays of a folder of the store (`group`; without one the root) are the variables, by name.  The attribute
``dimensions`` of an array names its dimensions, as a list in JSON: '["time", "x"]'; `set_dimensions` sets it.  The other
attributes of arrays and of the folder are attributes of variables and of the dataset, with the types that they had
where they were imported from.  xarray decodes them as it does those of a NetCDF file: packed numbers, missing values,
times, texts and coordinates, by ``mask_and_scale``, ``decode_times`` and its other keywords.

A file of NetCDF-4 or HDF5, or a Zarr group, is opened with ``engine="oocarray"``, too: another engine of xarray (netcdf4,
h5netcdf, zarr) reads what it says, and its numbers are read in place, as `open_file` does, unpacked on all processors in
the memory budget; what cannot be read so is read by that engine.

`xarray.open_datatree` opens the folders of a store below as well.  A dataset can be pickled: another process opens the arrays by
the store's URL, for reading.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Union

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.backends.common import AbstractDataStore
from xarray.backends.store import StoreBackendEntrypoint
from xarray.core import indexing

from ._array import Array
from ._attributes import dimensions_of, values_of, with_dimensions
from ._in_place.xarray_files import FileStore
from ._places import Place, opened, place_of, store_at
from ._store import Entry, Store, schemes


def set_dimensions(array: Array, names: Sequence[str]) -> None:
    """Names the dimensions of an array, for xarray."""
    if len(names) != array.ndim:
        raise ValueError(f"array '{array.path}' has {array.ndim} dimensions, and {len(names)} are named")
    array.attributes.update(with_dimensions({}, names))


class _LazyArray(BackendArray):
    """An array that is open until `close`; and again from the next use on, here or in another process."""

    def __init__(self, array: Array, is_scalar: bool) -> None:
        self._place = place_of(array)
        self._array: Optional[Array] = array
        self.shape = () if is_scalar else array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        # A list of indices reads the range that they span: their blocks are read whole in any case.
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._copied)

    def _copied(self, key: Any) -> np.ndarray:
        array = self._array
        if array is None or array.closed:
            array = self._array = opened(self._place)
        return np.asarray(array.read(key if self.shape else 0))

    def close(self) -> None:
        """Closes the array, unless something else refers to it."""
        try:
            if self._array is not None and not self._array.closed:
                self._place = place_of(self._array)  # it may have been renamed
        except OSError:
            pass  # or removed: the next use says so
        self._array = None

    def __getstate__(self) -> Dict[str, Any]:
        array = self._array
        if array is not None and not array.closed:
            if array.writable:
                array.writeback()
            self._place = place_of(array)
        return {**self.__dict__, "_array": None}


class _Folder(AbstractDataStore):
    """A folder of a store, as xarray decodes it."""

    __slots__ = ("_attributes", "_lazy", "_unlimited", "_variables")

    def __init__(self, store: Store, path: str, dropped: Set[str]) -> None:
        texts = store.attributes(path).texts()
        # What begins so says how this store keeps its files (`ooc.drained`), and goes into no file.
        self._attributes = {k: _plain(v) for k, v in values_of(texts).items() if not k.startswith("ooc.")}
        self._lazy: List[_LazyArray] = []
        self._unlimited: Set[str] = set()
        self._variables: Dict[str, xr.Variable] = {}
        try:
            for entry in store.list(path):
                if entry.shape and entry.name not in dropped:
                    self._variables[entry.name] = self._variable(store.url, store._key, entry)
        except BaseException:
            self.close()
            raise

    def _variable(self, url: str, key: str, entry: Entry) -> xr.Variable:
        named = dimensions_of(entry.path, entry.shape, entry.attributes)
        names = [f"{entry.name}_{k}" for k in range(len(entry.shape))] if named is None else named
        lazy = _LazyArray(opened(Place(url, key, entry.path, {}, None)), named == [])
        self._lazy.append(lazy)
        assert lazy._array is not None
        self._unlimited |= {d for d, n, most in zip(names, entry.shape, lazy._array.max_extents) if most > n}
        attributes = {k: _plain(v) for k, v in values_of(entry.attributes, entry.dtype).items()}
        encoding = {"preferred_chunks": dict(zip(names, lazy._array.chunks))}
        return xr.Variable(names, indexing.LazilyIndexedArray(lazy), attributes, encoding)

    def get_variables(self) -> Dict[str, xr.Variable]:
        return self._variables

    def get_attrs(self) -> Dict[str, Any]:
        return self._attributes

    def get_encoding(self) -> Dict[str, Any]:
        return {"unlimited_dims": self._unlimited}

    def close(self) -> None:
        for lazy in self._lazy:
            lazy.close()


def _plain(value: Any) -> Any:
    """As NetCDF's libraries give it, which know no difference between a value and a list of one."""
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.reshape(())[()]
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _url_of(given: Any) -> Optional[str]:
    """None: it is no store."""
    text = os.fspath(given) if isinstance(given, (str, os.PathLike)) else ""
    if isinstance(text, str) and "/local:" in text:  # open_mfdataset() takes it for a file below this folder
        text = text[text.index("/local:") + 1 :]
    return text if isinstance(text, str) and text.startswith(schemes) else None


def _folders(store: Store, path: str) -> Iterator[str]:
    yield path
    for entry in store.list(path):
        if entry.folder:
            yield from _folders(store, entry.path)


def _decoded(of: AbstractDataStore, dropped: Any, decoders: Dict[str, Any]) -> xr.Dataset:
    try:
        return StoreBackendEntrypoint().open_dataset(of, drop_variables=dropped, **decoders)
    except BaseException:
        of.close()
        raise


class OocarrayBackend(BackendEntrypoint):
    description = "Arrays in oocarray stores, and in files of NetCDF-4, HDF5 and Zarr in place"
    open_dataset_parameters = (
        "filename_or_obj", "mask_and_scale", "decode_times", "concat_characters", "decode_coords", "drop_variables",
        "use_cftime", "decode_timedelta", "group",
    )  # fmt: skip
    supports_groups = True

    def open_dataset(  # type: ignore[override]
        self,
        filename_or_obj: Any,
        *,
        drop_variables: Union[None, str, Iterable[str]] = None,
        group: Optional[str] = None,
        **decoders: Any,
    ) -> xr.Dataset:
        url = _url_of(filename_or_obj)
        path = (group or "").strip("/")
        if url is not None:
            return self._opened(store_at(url), path, drop_variables, decoders)
        if not isinstance(filename_or_obj, (str, os.PathLike)) or not os.path.exists(filename_or_obj):
            raise ValueError(f"{filename_or_obj!r} is no file, and no URL of a store, which begins with 'local:' or 'ooc:'")
        return _decoded(FileStore(os.fspath(filename_or_obj), path, drop_variables), drop_variables, decoders)

    def _opened(self, store: Store, path: str, dropped: Any, decoders: Dict[str, Any]) -> xr.Dataset:
        names = {dropped} if isinstance(dropped, str) else set(dropped or ())
        return _decoded(_Folder(store, path, names), dropped, decoders)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: Union[None, str, Iterable[str]] = None,
        group: Optional[str] = None,
        **decoders: Any,
    ) -> Dict[str, xr.Dataset]:
        """A dataset for each folder, by its path below `group`."""
        store, top = store_at(_url_of(filename_or_obj) or str(filename_or_obj)), (group or "").strip("/")
        groups: Dict[str, xr.Dataset] = {}
        try:
            for path in _folders(store, top):
                groups["/" + path[len(top) :].lstrip("/")] = self._opened(store, path, drop_variables, decoders)
        except BaseException:
            for dataset in groups.values():
                dataset.close()
            raise
        return groups

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> "xr.DataTree":
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree = xr.DataTree.from_dict(groups)
        for path, dataset in groups.items():
            tree[path].set_close(dataset._close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return _url_of(filename_or_obj) is not None
