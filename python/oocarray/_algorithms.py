"""Algorithms that go over arrays beyond memory in as few passes as possible.

A NumPy function on a whole `Array` moves blocks in the order in which it happens to touch them.  The functions here
move each byte as often as docs/algorithms.md of the project says, mostly once, with all processors, and without the
interpreter's lock (GIL) unless a function of the program runs.

All take these keywords:

threads : int
    Threads that compute; 0: one for each processor.
memory : int or str
    The part of the budget that may be used for buffers; 0: all that it can spare.
mark : bool
    While an array that is written holds neither its old nor its new elements, its file says so: opening it raises
    OSError (EBUSY), unless ``unfinished=True``, after a process died or an exception came in between.  At the end what
    was written is durable.  False: neither.
progress : callable
    ``progress(done, total)`` in bytes, now and then, in the thread that has called.  What it raises ends the algorithm.

KeyboardInterrupt, and what a function of the program raises, end the algorithm and come out of the call.  An array
that was being written is then neither old nor new, and marked.  Where ranks share an array the calls are collective,
and Ctrl-C waits for their end.  No other thread may use the arrays meanwhile.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._array import Array
from ._errors import BudgetTooSmall, Busy
from ._numbers import count, counts, flag, parse_bytes, small_count
from ._runtime import runtime
from ._view import View

Statistics = Dict[str, int]
Arrays = Union[Array, Tuple[Array, ...]]

Conversions = Mapping[str, Callable[[Any, str], Any]]  # of a value, and what it is called

_common: Conversions = {"threads": small_count, "memory": parse_bytes, "mark": flag, "progress": lambda f, _: f}
_numbers = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"}


def _options(given: Dict[str, Any], possible: Conversions = _common) -> Dict[str, Any]:
    for name in given:
        if name not in possible:
            raise TypeError(f"'{name}' is no keyword of this call; there are: {', '.join(possible)}")
    return {name: possible[name](value, name) for name, value in given.items()}


def _checked(a: Any, what: str = "an oocarray.Array") -> Array:
    if not isinstance(a, Array):
        raise TypeError(f"{type(a).__name__} is not {what}: arrays in memory are NumPy's own business")
    return a


def _alike(arrays: Sequence[Array]) -> None:
    """Of one shape, and their dimensions in one order."""
    first = _checked(arrays[0])
    for a in arrays[1:]:
        if _checked(a).shape != first.shape:
            raise ValueError(f"array '{first.path}' has the shape {first.shape}, and array '{a.path}' {a.shape}")
        if a.ndim > 1 and a._order != first._order:
            raise ValueError(
                f"of the arrays '{first.path}' and '{a.path}' one lies in Fortran's order and the other does not: "
                "oocarray.copy() one of them first"
            )


def _of_row_major_order(a: Array, what: str) -> None:
    if a._order == -1:
        raise ValueError(f"array '{a.path}' lies in Fortran's order, and {what} goes in C's: oocarray.copy() it first")


def _writable(a: Array) -> Array:
    if not a.writable:
        raise ValueError(f"array '{a.path}' is open for reading only: open it with mode='r+'")
    return a


# --- copies


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
        threads, memory, mark, progress; see this module.

    Bytes move from file to file: afterwards no block of `b` is in memory, unless the types differ.  Returns what was
    done: passes, memory, bytes_read, bytes_written.
    """
    given = _options(options)
    _writable(_checked(b))
    lower, upper = _checked(a)._box(box)
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
        threads, memory, mark, progress; see this module.
    """
    given = _options(options)
    order = [operator.index(k) for k in (reversed(range(_checked(a).ndim)) if axes is None else axes)]
    order = [k + a.ndim if k < 0 else k for k in order]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"axes={axes!r} is no permutation of the {a.ndim} dimensions of array '{a.path}'")
    target = _writable(a if b is None else _checked(b))
    shape = tuple(a.shape[k] for k in order)
    if b is None and (a.ndim != 2 or order != [1, 0] or a.shape[0] != a.shape[1]):
        raise ValueError(f"array '{a.path}' of shape {a.shape} is no square matrix: transpose it to another array")
    if target.shape != shape:
        raise ValueError(f"array '{target.path}' has the shape {target.shape}; the transposition of '{a.path}' has {shape}")
    if target.dtype != a.dtype:
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}, and array '{target.path}' of {target.dtype}")
    nothing = [0] * a.ndim
    return _move(a, target, nothing, nothing, shape, order, True, given)


def _box_of(view: View) -> Optional[Tuple[Array, List[int], List[int]]]:
    """The array of a view, its first element there, and of each dimension which one it is; None where it is no box."""
    arrays = [a for a in list(runtime()._arrays.values()) if not a.closed and a._core.same(view._keeper)]
    if not arrays or arrays[0].layout != "right" or arrays[0].ndim != view.ndim or arrays[0].dtype != view.dtype:
        return None
    a, whole = arrays[0], arrays[0]._view()
    axes: List[int] = []
    for stride in view.strides:
        free = [d for d in builtins.range(a.ndim) if d not in axes and whole.strides[d] == stride]
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
    found = _box_of(view) if view._keeper is not None else None
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


# --- order


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
        _of_row_major_order(a, "a sequence of all elements")
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
        threads, memory, mark, progress; see this module.

    Returns what was done: passes, memory, bytes_read, bytes_written, runs, merged, temporary_bytes.
    """
    given = _options(options)
    fields, _ = _order_of(_checked(a), key, axis)
    target = _writable(a if out is None else _checked(out))
    if target.dtype != a.dtype:
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}, and array '{target.path}' of {target.dtype}")
    if target.size != a.size:
        raise ValueError(f"array '{a.path}' has {a.size} elements, and array '{target.path}' {target.size}")
    if target.ndim > 1:
        _of_row_major_order(target, "a sequence of all elements")
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
    given = _options(options)
    fields, _ = _order_of(_checked(a), key, axis)
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
    given = _options(options)
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r}: choose 'left' or 'right'")
    fields, dtype = _order_of(_checked(a), key, axis)
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


# --- passes


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
        threads, memory, mark, progress; see this module.

    Each array is read once, or written once; what is overwritten is not read.  Reading and waiting for a disk need no GIL.
    NumPy's ufuncs let go of it while they compute, so threads help; so does Numba with ``nogil=True``.
    """
    outs = out if isinstance(out, tuple) else (out,)
    _alike([*inputs, *outs])
    for o in outs:
        _writable(o)
    n = len(inputs)

    def call(_: int, pieces: List[np.ndarray]) -> None:
        f(*pieces[:n], out=tuple(pieces[n:]) if isinstance(out, tuple) else pieces[n])

    arrays = [(a._core, a.dtype, not any(a is o for o in outs), False) for a in inputs]
    arrays += [(o._core, o.dtype, any(a is o for a in inputs), True) for o in outs]
    return _core.pass_("transformation", arrays, call, False, _options(options))


def for_each(f: Callable[..., Any], a: Arrays, *inputs: Array, **options: Any) -> Statistics:
    """Calls ``f(x, y, ...)`` for contiguous pieces of the arrays, as NumPy arrays of one dimension.

    `f` may change the pieces of `a`, which is one array or a tuple of them; `inputs` are only read.  All else is as for
    `transform`.
    """
    changed = a if isinstance(a, tuple) else (a,)
    _alike([*changed, *inputs])
    for c in changed:
        _writable(c)
    arrays = [(c._core, c.dtype, True, True) for c in changed] + [(i._core, i.dtype, True, False) for i in inputs]
    return _core.pass_("pass", arrays, lambda _, pieces: f(*pieces), False, _options(options))


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
        threads, memory, mark, progress; see this module.
    """
    given = _options(options)
    _checked(a)
    if not isinstance(ufunc, np.ufunc) or (ufunc.nin, ufunc.nout) != (2, 1):
        raise TypeError(f"{ufunc} is no ufunc of two arguments, as numpy.multiply is one")
    how = _without_python.get(ufunc)
    if how and dtype is None and a._core.element_type() in _numbers and (how == "add" or a.dtype.kind != "c"):
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


def vdot(a: Array, b: Array, **options: Any) -> Any:
    """As `numpy.vdot`: the sum of ``conj(x) * y`` over all elements, of integers in 64 bits."""
    given = _options(options)
    _alike([a, b])
    if a.dtype != b.dtype or a._core.element_type() not in _numbers:
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
        threads, memory, mark, progress; see this module.
    """
    given = _options(options)
    target = a if out is None else out
    _alike([a, target])
    if a.ndim > 1:
        _of_row_major_order(a, "the sum up to each element")
    wide = np.dtype({"f": np.float64, "c": np.complex128, "i": np.int64, "b": np.int64}.get(a.dtype.kind, np.uint64))
    if a._core.element_type() not in _numbers or target.dtype not in (a.dtype, wide) or target.dtype.kind == "b":
        raise TypeError(f"sums of array '{a.path}' of type {a.dtype} are of that type or of {wide}, not of {target.dtype}")
    return _core.cumulative_sum(a._core, _writable(target)._core, given)


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
        threads, memory, mark, progress; see this module.
    """
    given = _options(options)
    _checked(a)
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


# --- matrices


def matmul(a: Array, b: Any, out: Any = None, **options: Any) -> Any:
    """The product of two matrices, ``numpy.matmul(a, b, out)``, through Eigen.

    ::

        oocarray.matmul(a, b, c)            # three arrays
        y = oocarray.matmul(a, x)           # a vector, or the columns of a matrix, in memory

    Parameters
    ----------
    a : Array
        float32, float64, complex64 or complex128, of two dimensions.
    b : Array or array_like
    out : Array or numpy.ndarray
        Not `a` or `b`.  Where `b` is in memory so is it; without it, it is made.
    **options
        threads, memory, mark, progress; see this module.

    Returns `out`.  Bytes move past the blocks: an array `out` is not in memory afterwards.
    """
    given = _options(options)
    if not hasattr(_core, "multiply"):
        raise ImportError(
            "this installation of oocarray was built without Eigen (Debian: libeigen3-dev): install it, and build the "
            "package again"
        )
    _checked(a)
    if a.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}; products are of float32, float64, complex64, complex128")
    if isinstance(b, Array):
        _writable(_checked(out, "an oocarray.Array as out= where b is one"))
        arrays = [a, b, out]
        for x in arrays:
            if x.ndim != 2:
                raise ValueError(f"array '{x.path}' has {x.ndim} dimensions, and a matrix two")
            if x.dtype != a.dtype:
                raise TypeError(f"array '{x.path}' has elements of type {x.dtype}, and array '{a.path}' of {a.dtype}")
        if {x._order for x in arrays} == {-1}:
            a, b = b, a  # the library knows all of them transposed
        elif {x._order for x in arrays} != {1}:
            raise ValueError("some of the matrices lie in Fortran's order: oocarray.copy() those first")
        _core.multiply(a._core, b._core, out._core, given)
        return out
    if a.ndim != 2:
        raise ValueError(f"array '{a.path}' has {a.ndim} dimensions, and a matrix two")
    _of_row_major_order(a, "a product with vectors")
    x = np.ascontiguousarray(b, a.dtype)
    if x.ndim not in (1, 2) or x.shape[0] != a.shape[1]:
        raise ValueError(f"array '{a.path}' has the shape {a.shape}, which takes {a.shape[1]} rows, not {x.shape}")
    shape = (a.shape[0],) + x.shape[1:]
    y = np.empty(shape, a.dtype) if out is None else out
    if not isinstance(y, np.ndarray) or y.shape != shape or y.dtype != a.dtype or not y.flags.c_contiguous:
        raise ValueError(f"out= is to be a C-contiguous numpy.ndarray of shape {shape} and type {a.dtype}")
    if not y.flags.writeable:
        raise ValueError("out= cannot be written")
    _core.multiply(a._core, x.reshape(len(x), -1), y.reshape(len(y), -1), given)
    return y


# --- stencils

_of_sweeps: Conversions = {
    **{name: how for name, how in _common.items() if name != "memory"}, "fuse": count, "width": count, "piece": count,
}


def sweep(
    a: Arrays,
    steps: int,
    kernel: Callable[..., Any],
    *,
    to: Optional[Arrays] = None,
    radius: Union[int, Sequence[int]] = 1,
    periodic: Union[bool, int, Sequence[int]] = (),
    coefficients: Sequence[Array] = (),
    edges: Optional[Callable[..., Any]] = None,
    reduce: Optional[np.ufunc] = None,
    keeps_former: bool = False,
    after: Optional[Callable[..., Any]] = None,
    every: int = 0,
    **options: Any,
) -> Dict[str, Any]:
    """Computes steps of a stencil in place, or from `a` to `to`: several steps in one pass over the disk.

    ::

        def jacobi(out, a):     # rows of a matrix: a[-1] is the row before, a[0] this one, a[1] the next
            out[:] = 0.25 * (a[-1][1:-1] + a[1][1:-1] + a[0][:-2] + a[0][2:])

        oocarray.sweep(plate, 100, jacobi)

    A slab of an array is ``a[i]``: an element, a row, a plane.  ``kernel(out, a)`` computes a part of one slab.  `out` is
    that part, a NumPy array; ``a[d]``, for d from -radius to radius, are the slabs around before the step, each wider than
    `out` by the radius on both sides of each of its dimensions.  Of arrays of one dimension `out` are many elements, and
    ``a[d]`` as many, d places further on.  All are valid during the call only.  The kernel writes all of `out`, and
    reads nothing else that is swept.  Several threads call it at once.  Compiled by Numba (``njit(nogil=True)``) it runs
    as fast as it can.

    Elements within the radius of an end keep their values, unless the dimension is periodic or `edges` sets them.  The
    result is bit by bit that of step after step.

    Parameters
    ----------
    a : Array or tuple of Array
        Of several fields the kernel is called as ``kernel((u1, v1), (u, v))``.
    steps : int
    kernel : callable
    to : Array or tuple of Array
        As many as in `a`, of the same types; without it, `a` is swept in place.  After 0 steps they are copies.
    radius : int or tuple of int
        How far the kernel looks, in each dimension.
    periodic : bool, int or tuple of int
        Dimensions whose ends meet; True: all.
    coefficients : sequence of Array
        Of the same shape, only read; further arguments of the kernel, like `a`.
    edges : callable
        A boundary of the program's own, of two dimensions or more: ``edges(index, out, a)`` is called for each slab of each
        step, once the kernel has computed its inside.  `out` is the whole slab, of which it may write any element, and
        ``a[d]`` are the slabs around, whole, or None beyond an end.  Of several fields both are tuples, and coefficients
        are further arguments.
    reduce : numpy.ufunc
        The kernel returns a number (of one dimension, a number for each element of `out`, or one for all), and ``reduce``
        combines those of one step, ``np.add`` or ``np.maximum`` say, in the order of the slabs: the same bit by bit
        whatever the steps in a pass, threads and (from two dimensions on) ranks; it does depend on `piece`.
    keeps_former : bool
        Of several fields the last one is the first as it was a step before, as an equation of second order in time has
        it.  The kernel reads it where it computes, ``a[0]`` without the border, and is given None to write it to: memory
        holds nearly twice as many steps.
    after : callable
        ``after(step)``, with `reduce` ``after(step, value)``, is called after every `every` steps, and after the last; if it
        returns False the sweep ends there.
    every : int
        Fewer steps than a pass could do cost passes.  0: after the last step only.
    fuse : int
        Steps in one pass at most; 0: as many as memory allows.
    width : int
        Into parts of how many indices of their first dimension slabs are cut; 0: they are where that costs less.
    piece : int
        About how many elements a kernel computes at once; 0: 32768.
    threads, mark, progress
        See this module.

    Returns what was done: steps, passes, fuse, parts, memory, bytes_read, bytes_written, and with `reduce` values: those of
    the steps after which `after` is called, or would be.
    """
    given = _options(options, _of_sweeps)
    given["piece"] = given.get("piece") or 32768
    fields = a if isinstance(a, tuple) else (a,)
    targets = fields if to is None else to if isinstance(to, tuple) else (to,)
    everything = [*fields, *targets, *coefficients]
    _alike(everything)
    n = fields[0].ndim
    for x in everything:
        if n > 1:
            _of_row_major_order(x, "a sweep")
        if x.layout != "right":
            raise ValueError(f"array '{x.path}' lies in memory in tiles, and a sweep goes row by row: open it with layout='right'")
    if [x.dtype for x in fields] != [x.dtype for x in targets]:
        raise TypeError("the arrays that are read and those that are written have not the same types")
    for t in targets:
        _writable(t)
    around = (count(radius, "radius"),) * n if np.ndim(radius) == 0 else counts(radius, "radius")
    if len(around) != n:
        raise ValueError(f"radius={radius!r}: give one number, or one for each of the {n} dimensions")
    if isinstance(periodic, (bool, np.bool_)):
        meet = set(range(n)) if periodic else set()
    else:
        ends = np.atleast_1d(periodic)
        if ends.size and ends.dtype.kind not in "iu":
            raise TypeError(f"periodic={periodic!r}: give True, or whole numbers of dimensions")
        meet = {operator.index(d) for d in ends}
    if not meet <= set(range(n)):
        raise ValueError(f"periodic={periodic!r}: the arrays have the dimensions 0 to {n - 1}")
    if edges is not None and n == 1:
        raise ValueError("edges= is for arrays of two dimensions or more: it would be called for each element")
    if reduce is not None and not (isinstance(reduce, np.ufunc) and reduce.nin == 2 and reduce.nout == 1):
        raise TypeError(f"reduce={reduce!r} is no numpy.ufunc of two arguments, as numpy.add and numpy.maximum are")
    single = not isinstance(a, tuple)
    k = len(fields)

    def call(outs: Tuple[Any, ...], slabs: Tuple[Any, ...]) -> Any:
        return kernel(outs[0], *slabs) if single else kernel(outs, slabs[:k], *slabs[k:])

    def call_edges(index: int, outs: Tuple[Any, ...], slabs: Tuple[Any, ...]) -> None:
        if single:
            edges(index, outs[0], *slabs)  # type: ignore[misc]
        else:
            edges(index, outs, slabs[:k], *slabs[k:])  # type: ignore[misc]

    given["keeps_former"] = keeps_former
    functions = {"kernel": call, "edges": edges and call_edges, "reduce": reduce, "after": after}
    return _core.sweep(
        [x._core for x in fields], [x._core for x in targets], [x._core for x in coefficients],
        [x.dtype for x in [*fields, *coefficients]], list(around), [d in meet for d in range(n)], count(steps, "steps"),
        count(every, "every"), functions, given,
    )
