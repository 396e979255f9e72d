"""Sorting, and what goes by an order.  See `oocarray._algorithms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._algorithms import Statistics, checked, in_c_order, options_of, reporting, writable

if TYPE_CHECKING:
    from ._array import Array


def _numbers_in(dtype: np.dtype, offset: int, path: str) -> Iterator[Tuple[str, int, int]]:
    """Kind, offset and size of all that is compared, first things first."""
    if dtype.names:
        for name in dtype.names:
            inner, at = dtype.fields[name][:2]  # type: ignore[index]
            yield from _numbers_in(inner, offset + at, path)
    elif dtype.subdtype:
        inner, shape = dtype.subdtype
        for k in range(int(np.prod(shape))):
            yield from _numbers_in(inner, offset + k * inner.itemsize, path)
    elif dtype.kind not in "biufcMmSU" or not dtype.isnative:
        why = "in the other byte order" if not dtype.isnative else "without an order"
        raise TypeError(f"array '{path}' cannot be sorted by values of type {dtype}, which are {why}: convert it first")
    else:
        yield dtype.kind, offset, dtype.itemsize


def _order_of(a: Array, key: Union[None, str, Sequence[str]], axis: Optional[int]) -> Tuple[List[Any], np.dtype]:
    """What elements are compared by, and the type of a key."""
    if a.ndim > 1:
        if axis is not None:
            raise ValueError(
                f"array '{a.path}' has {a.ndim} dimensions: axis=None takes its elements as one sequence in C's order; rows "
                "are sorted with numpy, tile by tile"
            )
        in_c_order(a, "a sequence of all elements")
    elif axis not in (None, -1, 0):
        raise ValueError(f"array '{a.path}' has one dimension: there is no axis {axis}")
    dtype = a.dtype
    if key is None:
        return [(kind, at, at, size) for kind, at, size in _numbers_in(dtype, 0, a.path)], dtype
    names = [key] if isinstance(key, str) else list(key)
    for name in names:
        if not dtype.names or name not in dtype.names:
            raise ValueError(f"array '{a.path}' has elements of type {dtype}, which have no field '{name}'")
    inner = [dtype.fields[name] for name in names]  # type: ignore[index]
    of_key = inner[0][0] if isinstance(key, str) else np.dtype([(n, f[0]) for n, f in zip(names, inner)])
    fields = []
    for name, (t, at, *_) in zip(names, inner):
        begin = 0 if isinstance(key, str) else of_key.fields[name][1]  # type: ignore[index]
        fields += [(kind, o, o - at + begin, size) for kind, o, size in _numbers_in(t, at, a.path)]
    return fields, of_key


def sort(
    a: Array,
    out: Optional[Array] = None,
    *,
    axis: Optional[int] = -1,
    key: Union[None, str, Sequence[str]] = None,
    descending: bool = False,
    **options: Any,
) -> Statistics:
    """Sorts `a` in place, or into `out`; `a` is then only read.

    ::

        oocarray.sort(a)
        oocarray.sort(events, key="time")
        oocarray.sort(events, by_energy, key=["energy", "time"], descending=True)

    A merge sort: the array is read and written twice, or once where it fits into memory.  Of equal elements the order
    stays.  NaN and NaT come last.  Numbers of up to 8 bytes are sorted by radix, everything else by comparisons.  What does
    not fit into memory takes as much room in the store meanwhile.

    Parameters
    ----------
    a, out : Array
        Of one dimension, or ``axis=None``: the elements of several as one sequence in C's order.
    key : str or sequence of str
        Of records: the fields that they are sorted by.  Without it all of them, first fields first.
    descending : bool
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.

    Returns what was done: passes, memory, bytes_read, bytes_written, over_bound, runs, merged, temporary_bytes.
    """
    given = options_of(options, reporting)
    fields, _ = _order_of(checked(a), key, axis)
    target = writable(a if out is None else checked(out), given)
    if target.dtype != a.dtype:
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}, and array '{target.path}' of {target.dtype}")
    if target.size != a.size:
        raise ValueError(f"array '{a.path}' has {a.size} elements, and array '{target.path}' {target.size}")
    if target.ndim > 1:
        in_c_order(target, "a sequence of all elements")
    return _core.sort(a._core, target._core, fields, bool(descending), given)


def is_sorted(
    a: Array,
    *,
    axis: Optional[int] = -1,
    key: Union[None, str, Sequence[str]] = None,
    descending: bool = False,
    **options: Any,
) -> bool:
    """Whether `sort` with these arguments would leave the array as it is.  Reads it once at most."""
    given = options_of(options)
    fields, _ = _order_of(checked(a), key, axis)
    return _core.is_sorted(a._core, fields, bool(descending), given)


def searchsorted(
    a: Array,
    v: Any,
    side: str = "left",
    *,
    axis: Optional[int] = -1,
    key: Union[None, str, Sequence[str]] = None,
    descending: bool = False,
    **options: Any,
) -> Any:
    """As `numpy.searchsorted`: where the values `v` belong in the sorted array `a`.

    Values that belong near each other share what is read: at most the array once, at least 64 KiB for each value.

    Parameters
    ----------
    a : Array
        Sorted as by `sort` with the same `key`, `descending` and `axis`.
    v : array_like
        Values of the type of the elements, or of the key.
    side : "left" or "right"
        Before or behind the elements that are equal.
    """
    given = options_of(options)
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r}: choose 'left' or 'right'")
    fields, dtype = _order_of(checked(a), key, axis)
    values = np.asarray(v)
    if values.dtype != dtype:
        cast = values.astype(dtype)
        if not np.can_cast(values.dtype, dtype) and not np.array_equal(cast, values):
            raise TypeError(f"array '{a.path}' is sorted by values of type {dtype}, and v has {values.dtype}: convert it")
        values = cast
    places = np.empty(values.shape, np.int64)
    _core.search(
        a._core, fields, bool(descending), values.tobytes(), dtype.itemsize, side == "right", places.reshape(-1), given
    )
    return places[()].astype(np.intp)
