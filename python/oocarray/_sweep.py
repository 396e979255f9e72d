"""Stencils.  See `oocarray._algorithms`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._algorithms import Arrays, Conversions, alike, common, in_c_order, options_of, writable
from ._numbers import count, counts

if TYPE_CHECKING:
    from ._array import Array

_of_sweeps: Conversions = {
    **{name: how for name, how in common.items() if name != "memory"}, "fuse": count, "width": count, "piece": count,
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
    threads, mark, progress
        See this module.

    Returns what was done: steps, passes, fuse, parts, memory, bytes_read, bytes_written, and with `reduce` values: those of
    the steps after which `after` is called, or would be.
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
        writable(t)
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
