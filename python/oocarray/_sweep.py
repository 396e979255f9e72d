"""Stencils, and functions of elements with their neighbours.  See `oocarray._algorithms`."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import math
import operator
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._algorithms import Arrays, Conversions, alike, checked, in_c_order, options_of, progress_of, reporting, writable
from ._errors import BudgetTooSmall
from ._numbers import count, counts
from ._pieces import errors_as_here, most_piece_bytes, pieces
from ._runtime import runtime

if TYPE_CHECKING:
    from ._array import Array

_of_sweeps: Conversions = {
    **{name: how for name, how in reporting.items() if name != "memory"}, "fuse": count, "width": count, "piece": count,
    "commit_every": count, "steps_before": count,
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
    commit_every : int
        Commit the arrays that are written after so many passes, and after the last one (`commit`); 0: not at all.  The
        commit's attribute ``steps`` is `steps_before` and the steps done since.
    steps_before : int
        Those that earlier sweeps have done.
    threads, mark, progress, plan
        See this module.

    Returns what was done: steps, passes, fuse, parts, memory, bytes_read, bytes_written, over_bound, and with `reduce`
    values: those of the steps after which `after` is called, or would be.
    """
    given = options_of(options, _of_sweeps)
    given["piece"] = given.get("piece") or 32768
    fields = a if isinstance(a, tuple) else (a,)
    targets = fields if to is None else to if isinstance(to, tuple) else (to,)
    everything = [*fields, *targets, *coefficients]
    alike(everything)
    n = fields[0].ndim
    for x in everything:
        if n > 1:
            in_c_order(x, "a sweep")
        if x.layout != "right":
            raise ValueError(f"array '{x.path}' lies in memory in tiles, and a sweep goes row by row: open it with layout='right'")
    if [x.dtype for x in fields] != [x.dtype for x in targets]:
        raise TypeError("the arrays that are read and those that are written have not the same types")
    for t in targets:
        writable(t, given)
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


def map_overlap(
    f: Callable[[np.ndarray], Any],
    a: Array,
    out: Optional[Array] = None,
    *,
    depth: Union[int, Sequence[int]],
    boundary: Any = "none",
    dtype: Any = None,
    threads: int = 0,
    progress: Any = None,
) -> Array:
    """Calls `f` for parts of an array that overlap, and puts what it gives for each part in its place: filters, moving windows.

    ::

        from scipy import ndimage

        smooth = oocarray.map_overlap(lambda x: ndimage.gaussian_filter(x, 2), a, depth=8)
        oocarray.map_overlap(lambda x: ndimage.median_filter(x, (1, 5, 5)), a, out=b, depth=(0, 2, 2))

    ``f(x)`` is given a part with `depth` more elements on both sides of each dimension, as a NumPy array of its own, and
    gives an array of the same shape, of which what is more is dropped.  So the result is that of ``f(a[...])`` where an
    element of it depends on elements at most `depth` away.  `a` is read once, with the overlaps, and the result is written
    once.  As `dask.array.map_overlap`.

    Parameters
    ----------
    f : callable
        Several threads call it at once.
    a : Array
    out : Array
        Another one, of the same shape; without it a scratch array of `dtype`, or of that of `a`.
    depth : int or tuple of int
        For each dimension.
    boundary : "none", "reflect", "nearest", "periodic", or a number
        What is beyond the ends: nothing, so that parts there are smaller and `f` decides; the elements in reverse, the last
        one first; the last one; those of the other end; a number.
    threads : int
        Threads that call `f`; 0: one for each processor.
    progress : callable or True
        See `oocarray._algorithms`.

    Raises
    ------
    ValueError
        For an `out` of another shape, or that is `a`, and where `f` gives another shape than it was given.
    BudgetTooSmall
        Where a part with its overlap takes more than a quarter of the budget.
    """
    around = _depth_of(depth, checked(a).shape)
    if not (boundary in ("none", "reflect", "nearest", "periodic") if isinstance(boundary, str) else np.isscalar(boundary)):
        raise ValueError(f"boundary={boundary!r}: 'none', 'reflect', 'nearest', 'periodic', or a number")
    target = _target_of(a, out, dtype)
    workers = threads or os.cpu_count() or 1
    parts = list(pieces(tuple(slice(0, n) for n in a.shape), a.itemsize, most=max(1, most_piece_bytes() // workers)))
    _check_room(a, parts, around, workers)

    errors = errors_as_here()

    def one(box: Tuple[slice, ...]) -> int:
        x, inner = _with_overlap(a, box, around, boundary)
        with errors():
            result = np.asarray(f(x))
        if result.shape != x.shape:
            raise ValueError(f"map_overlap: the function was given the shape {x.shape}, and gave {result.shape}")
        target.write(box, result[inner])
        return math.prod(b.stop - b.start for b in box) * a.itemsize

    tell, done = progress_of(progress), 0
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        waiting: collections.deque = collections.deque()
        try:
            for box in parts:
                if len(waiting) > workers:
                    done += waiting.popleft().result()
                    if tell is not None:
                        tell(done, a.nbytes)
                waiting.append(pool.submit(one, box))
            while waiting:
                done += waiting.popleft().result()
                if tell is not None:
                    tell(done, a.nbytes)
        finally:
            for future in waiting:
                future.cancel()
    return target


def _depth_of(depth: Any, shape: Tuple[int, ...]) -> Tuple[int, ...]:
    around = (depth,) * len(shape) if np.ndim(depth) == 0 else tuple(depth)
    if len(around) != len(shape) or any(operator.index(d) < 0 or d >= n for d, n in zip(around, shape) if d != 0):
        raise ValueError(f"depth={depth!r} of an array of shape {shape}: a number for each dimension, smaller than its extent")
    return tuple(operator.index(d) for d in around)


def _target_of(a: Array, out: Optional[Array], dtype: Any) -> Array:
    if out is None:
        from .numpy._scratch import scratch

        return scratch(a.shape, np.dtype(a.dtype if dtype is None else dtype))
    if checked(out)._core.same(a._core):
        raise ValueError(f"map_overlap of array '{a.path}' cannot write to itself: neighbours would be read that are changed already")
    if out.shape != a.shape:
        raise ValueError(f"array '{a.path}' has the shape {a.shape}, and array '{out.path}' {out.shape}")
    return writable(out)


def _check_room(a: Array, parts: Sequence[Any], around: Sequence[int], workers: int) -> None:
    largest = max((math.prod(b.stop - b.start + 2 * d for b, d in zip(box, around)) for box in parts), default=0) * a.itemsize
    if largest * workers > runtime().memory // 4:
        raise BudgetTooSmall(
            f"map_overlap of array '{a.path}': a part with its overlap takes {largest} bytes, in each of {workers} threads, and a "
            f"quarter of the budget is {runtime().memory // 4}: take a larger budget, fewer threads, or a smaller depth"
        )


def _with_overlap(a: Array, box: Tuple[slice, ...], around: Sequence[int], boundary: Any) -> Tuple[np.ndarray, Tuple[slice, ...]]:
    """The part with what is around it, and where it is in there."""
    wanted = [(b.start - d, b.stop + d) for b, d in zip(box, around)]
    if boundary == "periodic":
        x = _wrapped(a, wanted)
        return x, tuple(slice(d, d + b.stop - b.start) for b, d in zip(box, around))
    there = tuple(slice(max(0, low), min(n, high)) for (low, high), n in zip(wanted, a.shape))
    x = a.read(there)
    if boundary == "none":
        return x, tuple(slice(b.start - t.start, b.stop - t.start) for b, t in zip(box, there))
    beyond = [(t.start - low, high - t.stop) for (low, high), t in zip(wanted, there)]
    if boundary == "reflect":
        x = np.pad(x, beyond, "symmetric")
    elif boundary == "nearest":
        x = np.pad(x, beyond, "edge")
    else:
        x = np.pad(x, beyond, constant_values=boundary)
    return x, tuple(slice(d, d + b.stop - b.start) for b, d in zip(box, around))


def _wrapped(a: Array, wanted: Sequence[Tuple[int, int]]) -> np.ndarray:
    """Elements with indices that may be beyond the ends, where those of the other end are."""
    runs = []
    for (low, high), n in zip(wanted, a.shape):
        cuts = [low, *(c for c in (0, n) if low < c < high), high]
        runs.append([(i, slice(i % n, i % n + j - i)) for i, j in zip(cuts, cuts[1:])])
    x = np.empty([high - low for low, high in wanted], a.dtype)
    for run in itertools.product(*runs):
        at = tuple(slice(i - low, i - low + s.stop - s.start) for (i, s), (low, _) in zip(run, wanted))
        x[at] = a.read(tuple(s for _, s in run))
    return x
