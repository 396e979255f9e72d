"""A backend of xarray: ``xarray.open_dataset("local:/data", engine="oocarray")``.

The arrays of a folder of the store (`group`; without one the root) are the variables, by name.  The attribute
``dimensions`` of an array names its dimensions, as a list in JSON: '["time", "x"]'; `set_dimensions` sets it.  The other
attributes of arrays and of the folder are attributes of variables and of the dataset.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, List, Optional, Sequence

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from ._array import Array
from ._dtype import ATTRIBUTE as _type
from ._store import open_store

ATTRIBUTE = "dimensions"


def set_dimensions(array: Array, names: Sequence[str]) -> None:
    """Names the dimensions of an array, for xarray."""
    if len(names) != array.ndim:
        raise ValueError(f"array '{array.path}' has {array.ndim} dimensions, and {len(names)} are named")
    array.attributes[ATTRIBUTE] = json.dumps(list(names))


def _dimensions(array: Array, name: str) -> List[str]:
    text = array.attributes.get(ATTRIBUTE)
    if text is None:
        return [f"{name}_{k}" for k in range(array.ndim)]
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or len(names) != array.ndim or not all(isinstance(n, str) for n in names):
        raise ValueError(
            f"array '{array.path}': its attribute '{ATTRIBUTE}' is {text!r}, which is no list of {array.ndim} names in "
            "JSON: set it with oocarray.xarray.set_dimensions()"
        )
    return names


class _LazyArray(BackendArray):
    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        # A list of indices reads the range that they span: their blocks are read whole in any case.
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._copied)

    def _copied(self, key: Any) -> np.ndarray:
        return np.array(self.array[key], subok=False)


class OocarrayBackend(BackendEntrypoint):
    description = "Arrays in oocarray stores"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group")

    def open_dataset(  # type: ignore[override]
        self, filename_or_obj: Any, *, drop_variables: Optional[Iterable[str]] = None, group: str = ""
    ) -> xr.Dataset:
        store = open_store(str(filename_or_obj), create=False)
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        opened: List[Array] = []
        variables = {}
        try:
            for e in store.list(group):
                if not e.shape or e.name in dropped:
                    continue
                array = store.open(e.path, "r")
                opened.append(array)
                dimensions = _dimensions(array, e.name)
                attributes = {k: v for k, v in array.attributes.items() if k not in (ATTRIBUTE, _type)}
                variables[e.name] = xr.Variable(
                    dimensions,
                    indexing.LazilyIndexedArray(_LazyArray(array)),
                    attributes,
                    {"preferred_chunks": dict(zip(dimensions, array.chunks))},
                )
            dataset = xr.Dataset(variables, attrs=dict(store.attributes(group)))
        except BaseException:
            for array in opened:
                array.close()
            raise

        def close() -> None:
            for array in opened:
                array.close()

        dataset.set_close(close)
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return isinstance(filename_or_obj, str) and filename_or_obj.startswith(("local:", "ooc:"))
