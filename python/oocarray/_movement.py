"""Copies and transpositions, from file to file.  See `oocarray._algorithms`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _core
from ._algorithms import Statistics, checked, options_of, reporting, writable
from ._errors import BudgetTooSmall, Busy
from ._numbers import counts
from ._passes import transform
from ._runtime import open_arrays
from ._view import View

if TYPE_CHECKING:
    from ._array import Array


def _dimension(a: Array, d: int) -> int:
    """Of NumPy's for the library's, and the other way round."""
    return d if a._order == 1 else a.ndim - 1 - d


def _move(
    a: Array, b: Array, lower: Sequence[int], at: Sequence[int], extents: Sequence[int], axes: Sequence[int],
    transposed: bool, options: Dict[str, Any],
) -> Statistics:
    """Element at + d of b becomes element lower + s of a, where d[k] = s[axes[k]]."""
    dimensions = range(a.ndim)
    of_b = [_dimension(b, k) for k in dimensions]
    return _core.move_box(
        a._core, b._core, transposed,
        [lower[_dimension(a, k)] for k in dimensions],
        [at[d] for d in of_b],
        [extents[d] for d in of_b],
        [_dimension(a, axes[d]) for d in of_b],
        options,
    )


def copy(
    a: Array, b: Array, *, box: Any = ..., at: Optional[Sequence[int]] = None, casting: str = "same_kind", **options: Any
) -> Statistics:
    """Copies array `a`, or a box of it, to array `b`.

    ::

        oocarray.copy(a, b)                                        # layouts, tiles and types may differ
        oocarray.copy(a, b, box=np.s_[0:100, 0:100], at=(50, 50))

    Parameters
    ----------
    a, b : Array
    box : optional
        The part of `a`, as an index with slices of step 1.
    at : tuple of int
        Where its first element comes to lie in `b`; the first place there without it.
    casting : str
        As for `numpy.copyto`, where the types differ: such a copy is of whole arrays of one shape.
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.

    Bytes move from file to file: afterwards no block of `b` is in memory, unless the types differ.  Returns what was
    done: passes, memory, bytes_read, bytes_written, over_bound.
    """
    given = options_of(options, reporting)
    writable(checked(b), given)
    lower, upper = checked(a)._box(box)
    extents = [u - lo for lo, u in zip(lower, upper)]
    if a.ndim != b.ndim:
        raise ValueError(f"array '{a.path}' has {a.ndim} dimensions, and array '{b.path}' {b.ndim}")
    if a.dtype != b.dtype:
        if at is not None or tuple(extents) != b.shape or a.shape != b.shape:
            raise TypeError(
                f"array '{a.path}' has elements of type {a.dtype}, and array '{b.path}' of {b.dtype}: a copy that converts "
                "is of whole arrays of one shape"
            )
        if not np.can_cast(a.dtype, b.dtype, casting):  # type: ignore[arg-type]
            raise TypeError(f"{a.dtype} cannot be cast to {b.dtype} with casting='{casting}'")
        return transform(lambda x, out: np.copyto(out, x, casting=casting), a, out=b, **options)  # type: ignore[arg-type]
    if box is ... and at is None and a.shape != b.shape:
        raise ValueError(f"array '{a.path}' has the shape {a.shape}, and array '{b.path}' {b.shape}")
    place = (0,) * b.ndim if at is None else counts(at, "at")
    if len(place) != b.ndim:
        raise ValueError(f"at={at!r}: array '{b.path}' has {b.ndim} dimensions")
    return _move(a, b, lower, place, extents, range(a.ndim), False, given)


def transpose(a: Array, b: Optional[Array] = None, axes: Optional[Sequence[int]] = None, **options: Any) -> Statistics:
    """Makes `b` the transposition of `a`: ``b[...] = numpy.transpose(a, axes)``; without `b`, `a` that of itself.

    Parameters
    ----------
    a, b : Array
        Of one type.  `a` is a square matrix where there is no `b`.
    axes : tuple of int
        Dimension k of `b` is dimension ``axes[k]`` of `a`; all in reverse order without it.
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.
    """
    given = options_of(options, reporting)
    order = [operator.index(k) for k in (reversed(range(checked(a).ndim)) if axes is None else axes)]
    order = [k + a.ndim if k < 0 else k for k in order]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"axes={axes!r} is no permutation of the {a.ndim} dimensions of array '{a.path}'")
    target = writable(a if b is None else checked(b), given)
    shape = tuple(a.shape[k] for k in order)
    if b is None and (a.ndim != 2 or order != [1, 0] or a.shape[0] != a.shape[1]):
        raise ValueError(f"array '{a.path}' of shape {a.shape} is no square matrix: transpose it to another array")
    if target.shape != shape:
        raise ValueError(f"array '{target.path}' has the shape {target.shape}; the transposition of '{a.path}' has {shape}")
    if target.dtype != a.dtype:
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}, and array '{target.path}' of {target.dtype}")
    nothing = [0] * a.ndim
    return _move(a, target, nothing, nothing, shape, order, True, given)


def box_of_view(view: View) -> Optional[Tuple[Array, List[int], List[int]]]:
    """The array of a view, its first element there, and of each dimension which one it is; None where it is no box."""
    arrays = [a for a in open_arrays() if a._core.same(view._keeper)]
    if not arrays or arrays[0].layout != "right" or arrays[0].ndim != view.ndim or arrays[0].dtype != view.dtype:
        return None
    a, whole = arrays[0], arrays[0]._view()
    axes: List[int] = []
    for stride in view.strides:
        free = [d for d in range(a.ndim) if d not in axes and whole.strides[d] == stride]
        if not free:
            return None
        axes.append(free[0])
    left = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    lower = [0] * a.ndim
    for d in sorted(axes, key=lambda d: -whole.strides[d]):
        lower[d], left = divmod(left, whole.strides[d])
    inside = all(lower[d] + n <= a.shape[d] for d, n in zip(axes, view.shape))
    return (a, lower, axes) if left == 0 and inside else None


def copy_of_view(b: Array, index: Any, view: View) -> bool:
    """Does ``b[index] = view`` where that is a transposition from one array to another; False where it is not."""
    found = box_of_view(view) if view._keeper is not None else None
    if found is None or found[2] == sorted(found[2]):
        return False
    a, lower, axes = found
    if a._of_ranks or b._of_ranks or a._core.same(b._core) or not b.writable or (a.dtype, a.ndim) != (b.dtype, b.ndim):
        return False
    try:
        at, end = b._box(index)
        if tuple(up - lo for lo, up in zip(at, end)) != view.shape:
            return False
        _move(a, b, lower, at, view.shape, axes, True, {"mark": False})
    except (IndexError, TypeError, BudgetTooSmall, Busy):  # NumPy knows more indices, and needs less
        return False
    return True
