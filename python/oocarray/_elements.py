"""Many elements of an array, by their indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Tuple

import numpy as np

from . import _core

if TYPE_CHECKING:
    from ._array import Array


def numbers_of(array: "Array", indices: Any) -> Tuple[np.ndarray, Tuple[int, ...]]:
    """The elements' numbers in the order in which the library counts them, and the shape of `indices`."""
    if not isinstance(indices, tuple):
        numbers = _within(array, indices, array.size, "")
        if array._order == 1:
            return np.ascontiguousarray(numbers, np.uintp), numbers.shape
        indices = np.unravel_index(numbers, array.shape)
    if len(indices) != array.ndim:
        raise IndexError(f"array '{array.path}' has {array.ndim} dimensions, and the index {len(indices)}")
    each = [_within(array, i, n, f" of dimension {d}") for d, (i, n) in enumerate(zip(indices, array.shape))]
    each = list(np.broadcast_arrays(*each))
    order = array._order
    numbers = np.ravel_multi_index(each[::order], array.shape[::order])
    return np.ascontiguousarray(numbers, np.uintp), each[0].shape


def _within(array: "Array", indices: Any, extent: int, what: str) -> np.ndarray:
    i = np.asarray(indices)
    if i.size == 0:
        i = i.astype(np.int64)
    if i.dtype.kind not in "iu":
        raise IndexError(f"array '{array.path}': indices are integers, not {i.dtype}")
    outside = (i < -extent) | (i >= extent)
    if np.any(outside):
        raise IndexError(f"array '{array.path}': index {i[outside].flat[0]} is outside the extent {extent}{what}")
    i = i.astype(np.int64)  # an extent may be beyond a smaller type
    return np.where(i < 0, i + extent, i)


def values_for(array: "Array", values: Any, shape: Tuple[int, ...]) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values), shape), array.dtype)


def gather(array: "Array", indices: Any) -> np.ndarray:
    numbers, shape = numbers_of(array, indices)
    out = np.empty(shape, array.dtype)
    _core.gather(array._core, numbers.ravel(), out.reshape(-1))
    return out


def scatter(array: "Array", indices: Any, values: Any) -> None:
    numbers, shape = numbers_of(array, indices)
    _core.scatter(array._core, numbers.ravel(), values_for(array, values, shape))


def accumulate(array: "Array", indices: Any, values: Any, ufunc: np.ufunc) -> None:
    if ufunc not in (np.add, np.minimum, np.maximum):
        raise TypeError(f"{ufunc} cannot be accumulated: choose numpy.add, numpy.minimum or numpy.maximum")
    if array.dtype.kind == "b":
        raise TypeError(f"array '{array.path}' is of truth values, which are not added up: scatter() them")
    numbers, shape = numbers_of(array, indices)
    _core.accumulate(array._core, numbers.ravel(), values_for(array, values, shape), ufunc.__name__)
