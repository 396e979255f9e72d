"""Files of HDF5, NetCDF-4 and Zarr for xarray: what they say by xarray's engine for them, and their elements in place."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Dict, Optional, Tuple

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.backends.common import AbstractDataStore
from xarray.core import indexing

from .._array import Array
from .._errors import TypeMismatch
from .._open_file import open_file
from .zarr import is_zarr


class _OneOpen:
    """The array of one dataset of a file at a time: those in chunks take memory of the budget as long as they are open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()  #: for who uses the array
        self._name = ""
        self._array: Optional[Array] = None

    def array(self, name: str) -> Array:
        """Raises what `open_file` does."""
        if self._array is None or self._array.closed or self._name != name:
            self.close()
            self._array, self._name = open_file(self.path, dataset=name), name
        return self._array

    def close(self) -> None:
        with self.lock:
            if self._array is not None:
                self._array.close()
            self._array = None

    def __reduce__(self) -> Any:
        return _OneOpen, (self.path,)


class _InPlace(BackendArray):
    """A variable whose elements are read in place, or, where that cannot be, as the other engine reads them."""

    def __init__(self, files: _OneOpen, name: str, theirs: xr.Variable) -> None:
        self._files, self._name, self._theirs = files, name, theirs
        self._is_read_by_theirs = False
        self.shape, self.dtype = theirs.shape, theirs.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._copied)

    def _copied(self, key: Tuple[Any, ...]) -> np.ndarray:
        with self._files.lock:
            if not self._is_read_by_theirs:
                try:
                    array = self._files.array(self._name)
                    if array.shape == self.shape:
                        return np.asarray(array.read(key), self.dtype)
                except (TypeMismatch, FileNotFoundError):  # a type, filter or layout that is not read in place
                    pass
                self._is_read_by_theirs = True
        return np.asarray(self._theirs[key].values)


def _is_consolidated(folder: str) -> bool:
    """Whether a group of Zarr says what all in it is, which xarray would look for with a warning."""
    try:
        with open(os.path.join(folder, "zarr.json")) as file:
            return json.load(file).get("consolidated_metadata") is not None
    except OSError:
        return os.path.exists(os.path.join(folder, ".zmetadata"))


class FileStore(AbstractDataStore):
    """A file, or a group of it, that xarray opens by another engine, with elements that are read in place."""

    def __init__(self, path: str, group: str, dropped: Any) -> None:
        engine = "zarr" if is_zarr(path) else None
        options: Dict[str, Any] = {"consolidated": _is_consolidated(os.path.join(path, group))} if engine == "zarr" else {}
        self._theirs = xr.open_dataset(
            path, engine=engine, group=group or None, decode_cf=False, drop_variables=dropped, cache=False, **options
        )
        self._files = _OneOpen(path)
        self._variables = {str(name): self._variable(f"{group}/{name}".lstrip("/"), v) for name, v in self._theirs.variables.items()}

    def _variable(self, name: str, theirs: xr.Variable) -> xr.Variable:
        if theirs.ndim == 0 or 0 in theirs.shape or theirs.dtype.kind not in "biufcSmM":
            return theirs
        lazy = indexing.LazilyIndexedArray(_InPlace(self._files, name, theirs))
        return xr.Variable(theirs.dims, lazy, theirs.attrs, theirs.encoding)

    def get_variables(self) -> Dict[str, xr.Variable]:  # type: ignore[override]
        return self._variables

    def get_attrs(self) -> Dict[str, Any]:  # type: ignore[override]
        return self._theirs.attrs

    def get_encoding(self) -> Dict[str, Any]:
        return {k: v for k, v in self._theirs.encoding.items() if k == "unlimited_dims"}

    def close(self) -> None:
        self._files.close()
        self._theirs.close()
