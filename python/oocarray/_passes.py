"""Functions of the program over all elements, and reductions.  See `oocarray._algorithms`."""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from . import _core
from ._algorithms import Arrays, Statistics, alike, checked, in_c_order, numbers, options_of, reporting, writable

if TYPE_CHECKING:
    from ._array import Array


def transform(f: Callable[..., Any], *inputs: Array, out: Arrays, **options: Any) -> Statistics:
    """Calls ``f(x, y, ..., out=z)`` for contiguous pieces of the arrays, as NumPy arrays of one dimension.

    ::

        oocarray.transform(np.multiply, a, b, out=c)
        oocarray.transform(lambda x, out: np.clip(x, 0, 1, out=out), a, out=a)
        oocarray.transform(np.divmod, a, b, out=(quotient, remainder))

    Parameters
    ----------
    f : callable
        A ufunc, or what takes its arguments: it gives each element of `out` a value.  Several threads call it at once, for
        pieces in any order; what it keeps of a piece must be a copy.
    *inputs : Array
    out : Array or tuple of Array
        May be one of the inputs.  All have one shape.
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.

    Each array is read once, or written once; what is overwritten is not read.  Reading and waiting for a disk need no GIL.
    NumPy's ufuncs let go of it while they compute, so threads help; so does Numba with ``nogil=True``.
    """
    given = options_of(options, reporting)
    outs = out if isinstance(out, tuple) else (out,)
    alike([*inputs, *outs])
    for o in outs:
        writable(o, given)
    n = len(inputs)

    def call(_: int, pieces: List[np.ndarray]) -> None:
        f(*pieces[:n], out=tuple(pieces[n:]) if isinstance(out, tuple) else pieces[n])

    arrays = [(a._core, a.dtype, not any(a is o for o in outs), False) for a in inputs]
    arrays += [(o._core, o.dtype, any(a is o for a in inputs), True) for o in outs]
    return _core.pass_("transformation", arrays, call, False, given)


def for_each(f: Callable[..., Any], a: Arrays, *inputs: Array, **options: Any) -> Statistics:
    """Calls ``f(x, y, ...)`` for contiguous pieces of the arrays, as NumPy arrays of one dimension.

    `f` may change the pieces of `a`, which is one array or a tuple of them; `inputs` are only read.  All else is as for
    `transform`.
    """
    given = options_of(options, reporting)
    changed = a if isinstance(a, tuple) else (a,)
    alike([*changed, *inputs])
    for c in changed:
        writable(c, given)
    arrays = [(c._core, c.dtype, True, True) for c in changed] + [(i._core, i.dtype, True, False) for i in inputs]
    return _core.pass_("pass", arrays, lambda _, pieces: f(*pieces), False, given)


_without_python: Dict[np.ufunc, str] = {np.add: "add", np.minimum: "minimum", np.maximum: "maximum"}


def over_pieces(a: Array, f: Callable[[np.ndarray], Any], options: Optional[Dict[str, Any]] = None) -> List[Any]:
    """What `f` gives for contiguous pieces of an array that cover it, in the order in which they lie in memory."""
    found: Dict[int, List[Any]] = {}
    _core.pass_(
        "reduction", [(a._core, a.dtype, True, False)],
        lambda piece, pieces: found.setdefault(piece, []).append(f(pieces[0])), True, options or {},
    )
    return [value for piece in sorted(found) for value in found[piece]]


def reduce(ufunc: np.ufunc, a: Array, *, dtype: Any = None, **options: Any) -> Any:
    """As ``ufunc.reduce`` over all elements: ``oocarray.reduce(np.multiply, a)``.

    The operation is associative and commutative, as those of NumPy's ufuncs that can be reduced are.  Numbers are put
    together in a tree whose shape depends on their count alone, so the result is the same on any number of threads, and rounding
    errors stay small.  add, minimum and maximum of numbers run without the GIL, and add floats in double precision.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Of two arguments.
    a : Array
    dtype
        In which to compute; NumPy's choice without it.
    **options
        threads, memory, mark, progress; see `oocarray._algorithms`.
    """
    given = options_of(options)
    checked(a)
    if not isinstance(ufunc, np.ufunc) or (ufunc.nin, ufunc.nout) != (2, 1):
        raise TypeError(f"{ufunc} is no ufunc of two arguments, as numpy.multiply is one")
    if a.size == 0:  # what NumPy says of no elements
        return ufunc.reduce(np.empty(0, a.dtype), dtype=dtype)
    how = _without_python.get(ufunc)
    if how and dtype is None and a._core.element_type() in numbers and (how == "add" or a.dtype.kind != "c"):
        of = ufunc.reduce(np.zeros(1, a.dtype)).dtype
        return of.type(_core.reduce(a._core, how, given))
    if a._of_ranks:
        raise TypeError(f"array '{a.path}' is shared by ranks, which add, minimum and maximum of numbers know of; not {ufunc}")
    half = dtype is None and a.dtype == np.float16 and ufunc in (np.add, np.multiply)
    level = over_pieces(a, lambda x: ufunc.reduce(x, dtype=np.float32 if half else dtype), given)
    while len(level) > 1:
        level = [ufunc(*level[k : k + 2]) if k + 1 < len(level) else level[k] for k in range(0, len(level), 2)]
    return np.float16(level[0]) if half else level[0]


def sum(a: Array, **options: Any) -> Any:
    """The sum of all elements, as `numpy.sum` has it: integers in 64 bits.  See `reduce`."""
    return reduce(np.add, a, **options)


def min(a: Array, **options: Any) -> Any:
    """The least element, or NaN where there is one.  See `reduce`."""
    return reduce(np.minimum, a, **options)


def max(a: Array, **options: Any) -> Any:
    """The greatest element, or NaN where there is one.  See `reduce`."""
    return reduce(np.maximum, a, **options)


def count_nonzero(a: Array, f: Optional[Callable[[np.ndarray], Any]] = None, **options: Any) -> int:
    """As `numpy.count_nonzero`, in one pass: how many elements are not zero; with `f`, for how many it gives something else.

    ::

        oocarray.count_nonzero(a, lambda x: x > 0)      # numpy.count_nonzero(a > 0), which has a truth value for each element

    Parameters
    ----------
    a : Array
    f : callable
        Is called as that of `for_each`, and gives an array of the shape of its piece.
    **options
        threads, memory, mark, progress; see `oocarray._algorithms`.
    """
    given = options_of(options)
    if checked(a)._of_ranks:
        raise TypeError(f"array '{a.path}' is shared by ranks: each counts its own, np.count_nonzero(a[a.local_rows])")

    def counted(x: np.ndarray) -> int:
        found = np.asarray(x if f is None else f(x))
        if found.shape != x.shape:
            raise ValueError(f"the function gives something of the shape {found.shape} for a piece of the shape {x.shape}")
        return int(np.count_nonzero(found))

    return builtins.sum(over_pieces(a, counted, given))


def vdot(a: Array, b: Array, **options: Any) -> Any:
    """As `numpy.vdot`: the sum of ``conj(x) * y`` over all elements, of integers in 64 bits."""
    given = options_of(options)
    alike([a, b])
    if a.dtype != b.dtype or a._core.element_type() not in numbers:
        raise TypeError(f"the arrays '{a.path}' and '{b.path}' of types {a.dtype} and {b.dtype} are not numbers of one type")
    of = np.add.reduce(np.zeros(1, a.dtype)).dtype
    return of.type(_core.inner(a._core, b._core, given))


def cumsum(a: Array, out: Optional[Array] = None, **options: Any) -> Statistics:
    """Makes `out` the sums up to each element, ``numpy.cumsum(a)``; without `out`, `a` itself.

    Parameters
    ----------
    a : Array
        Of numbers; the elements of several dimensions follow each other in C's order.
    out : Array
        Of the same shape, and of the type of `a`, or the one in which `numpy.sum` adds it up: 64 bits for integers, float64 for
        float32, complex128 for complex64.
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.
    """
    given = options_of(options, reporting)
    target = a if out is None else out
    alike([a, target])
    if a.ndim > 1:
        in_c_order(a, "the sum up to each element")
    wide = np.dtype({"f": np.float64, "c": np.complex128, "i": np.int64, "b": np.int64}.get(a.dtype.kind, np.uint64))
    if a._core.element_type() not in numbers or target.dtype not in (a.dtype, wide) or target.dtype.kind == "b":
        raise TypeError(f"sums of array '{a.path}' of type {a.dtype} are of that type or of {wide}, not of {target.dtype}")
    return _core.cumulative_sum(a._core, writable(target, given)._core, given)


def histogram(
    a: Array, bins: Any = 10, range: Optional[Tuple[float, float]] = None, **options: Any
) -> Tuple[np.ndarray, np.ndarray]:
    """As `numpy.histogram`: how many elements are in each bin, and the edges of the bins.

    Parameters
    ----------
    a : Array
        Of numbers, real ones.
    bins : int or sequence
        How many of one width, or their edges, ascending.
    range : (float, float)
        Where bins of one width begin and end; without it, the least and the greatest element, for which the array is read
        twice more.
    **options
        threads, memory, mark, progress; see `oocarray._algorithms`.
    """
    given = options_of(options)
    checked(a)
    if np.ndim(bins) == 0:
        n = operator.index(bins)
        if n < 1:
            raise ValueError(f"bins={n} is not 1 or more")
        lower, upper = (min(a, **options), max(a, **options)) if range is None else range
        lower, upper = float(lower), float(upper)
        if not (np.isfinite(lower) and np.isfinite(upper) and lower <= upper):
            raise ValueError(f"the range from {lower} to {upper} is not finite, or it descends: say range=(from, to)")
        if lower == upper:
            lower, upper = lower - 0.5, upper + 0.5
        edges = np.linspace(lower, upper, n + 1)
    else:
        edges = np.asarray(bins, np.float64)
        if edges.ndim != 1 or len(edges) < 2 or not np.all(edges[:-1] <= edges[1:]):
            raise ValueError("bins are a number, or two edges and more that ascend")
    counts = _core.histogram(a._core, edges.tolist(), np.ndim(bins) == 0, given)
    return np.array(counts, np.int64), edges
