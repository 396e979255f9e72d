"""Goes over nodes in boxes, of which memory has room for several.

The boxes of one call follow each other in C's order.  A pool of threads computes them; what they need of stores is
fetched ahead of them, and pinned while they use it, so that a block that cannot be read is an exception.  Within a box,
functions run over pieces that fit into a processor's cache, so their temporaries are no larger.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
import os
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, TypeVar

import numpy as np

from .._array import Array
from .._errors import BudgetTooSmall
from .._pieces import errors_as_here, pieces
from .._runtime import runtime
from ._nodes import Held, Later, Node, Ranges, Seen, Shape, Stored, all_of, key_of, lengths
from ._scratch import scratch

cache_bytes = 256 << 10  #: of a piece
_most_box_bytes = 16 << 20
_threads = min(8, os.cpu_count() or 1)

Result = TypeVar("Result")


def most_bytes(arrays: int) -> int:
    """Of a box, where each of so many arrays has a part of its size."""
    return max(4096, min(_most_box_bytes, runtime().memory // (2 * (_threads + 1) * max(1, arrays))))


def cut(box: Ranges, itemsize: int, most: int, whole: Sequence[int] = ()) -> Iterator[Ranges]:
    """A box in parts of at most `most` bytes, in C's order, that are not cut along the axes `whole`."""
    grain = [max(1, len(r)) if d in whole else 1 for d, r in enumerate(box)]
    for part in pieces(tuple(slice(0, len(r)) for r in box), max(1, itemsize), grain, most):
        yield tuple(r[p] for r, p in zip(box, part))


def within_box(part: Ranges, box: Ranges) -> Ranges:
    """Where a part of a box is in it."""
    return tuple(range(p.start - b.start, p.stop - b.start) for p, b in zip(part, box))


def box_bytes(node: Node, more: int = 1) -> int:
    """Of a node that is read, beside so many arrays `more` of its shape."""
    return most_bytes(len({id(leaf) for leaf in ready(node).leaves() if isinstance(leaf, Stored)}) + more)


def boxes_of(node: Node, whole: Sequence[int] = (), more: int = 1) -> Iterator[Ranges]:
    return cut(all_of(node.shape), node.dtype.itemsize, box_bytes(node, more), whole)


def over(
    boxes: Iterable[Ranges],
    nodes: Sequence[Node],
    work: Callable[[Ranges], Result],
    at: Callable[[Ranges], Sequence[Ranges]] = itertools.repeat,  # type: ignore[assignment]
) -> Iterator[Result]:
    """What `work` gives for each box, in their order; what the nodes have in it, or at(box), is in memory meanwhile."""
    for node in nodes:
        ready(node)
    errors = errors_as_here()

    def on(box: Ranges) -> Result:
        with errors(), contextlib.ExitStack() as held:
            for node, part in zip(nodes, at(box)):
                for leaf, ranges in node.stored_parts(part):
                    _pin(leaf, ranges, held)
            return work(box)

    todo, running = iter(boxes), collections.deque()  # type: ignore[var-annotated]
    pool = concurrent.futures.ThreadPoolExecutor(_threads)
    try:
        while True:
            for box in itertools.islice(todo, _threads + 1 - len(running)):
                for node, part in zip(nodes, at(box)):
                    for leaf, ranges in node.stored_parts(part):
                        if (of_leaf := leaf.box(ranges)) is not None:
                            leaf.array._core.prefetch(*of_leaf)
                running.append(pool.submit(on, box))
            if not running:
                return
            yield running.popleft().result()
    finally:
        for job in running:
            job.cancel()
        pool.shutdown()


def _pin(leaf: Stored, ranges: Ranges, held: contextlib.ExitStack, write: bool = False) -> None:
    box = leaf.box(ranges)
    if box is None or leaf.array.layout == "tiled":
        return
    with contextlib.suppress(BudgetTooSmall):  # then they come when they are touched
        held.callback(leaf.array._core.pin(*box, write).release)


@contextlib.contextmanager
def _place(into: Stored, ranges: Ranges) -> Iterator[np.ndarray]:
    """Elements of an array, to be written: in its memory, and pinned there as far as the budget has room for that."""
    with contextlib.ExitStack() as held:
        _pin(into, ranges, held, write=True)
        yield into.whole()[key_of(ranges)]


def put(values: np.ndarray, into: Array, ranges: Ranges) -> None:
    """Writes elements that are there."""
    with _place(Stored(into), ranges) as part:
        part[...] = values


def ready(node: Node) -> Node:
    """Makes what is made as a whole, and transposes what would be read in another order than that in which it lies, where
    it does not fit into memory; returns what gives the elements."""
    now, inputs = node.begun()
    if isinstance(now, Later):
        now.settle(now.made())
    elif isinstance(now, Seen) and now.turns() and _is_large_and_stored(inputs[0]):
        now.settle(_transposed(now, inputs[0]))
    elif not now.goes_over_columns:
        for i in inputs:
            ready(i)
    return node.now()


def _is_large_and_stored(node: Node) -> bool:
    return node.nbytes > runtime().memory // 4 and any(isinstance(leaf, (Stored, Later)) for leaf in node.leaves())


def _transposed(seen: Seen, source: Node) -> Node:
    from .._movement import transpose

    order = [d for _, d in seen.places if d is not None]
    straight = Seen(
        source, tuple(len(base) for base, d in seen.places if d is not None),
        [(base, None if d is None else order.index(d)) for base, d in seen.places],
    )
    a = stored(source if straight.sees_all() else straight)
    axes = sorted(range(len(order)), key=order.__getitem__)
    b = scratch(tuple(a.shape[k] for k in axes), a.dtype)
    transpose(a, b, axes, mark=False)
    if b.shape == seen.shape:
        return Stored(b)
    return Seen(Stored(b), seen.shape, [(range(n), d) for n, d in zip(b.shape, sorted(order))])


def fill(target: np.ndarray, node: Node, box: Ranges) -> None:
    """Computes a box of a node into memory."""
    if not node.now().inputs:
        target[...] = node.part(box)
        return
    for piece in cut(box, node.dtype.itemsize, cache_bytes):
        target[key_of(within_box(piece, box))] = node.part(piece)


def values_of(node: Node, box: Ranges) -> np.ndarray:
    """A box of a node to read: what is held or stored is not copied, and is there as long as the box is pinned."""
    if not node.now().inputs:
        return node.part(box)
    values = np.empty(lengths(box), node.dtype)
    fill(values, node, box)
    return values


def stored(node: Node, into: Optional[Array] = None) -> Array:
    """All elements of a node as an array: its own where it is one, else `into`, or a new one."""
    now = ready(node)
    if into is None and isinstance(now, Stored) and now.shape == now.array.shape:
        return now.array
    target = scratch(node.shape, node.dtype) if into is None else into
    target.overwrite()

    def work(box: Ranges) -> None:
        with _place(Stored(target), box) as part:
            fill(part, node, box)

    for _ in over(boxes_of(node), [node], work):
        pass
    return target


def write(node: Node, into: Stored, places: Callable[[Ranges], Ranges]) -> None:
    """Computes a node into elements that an array has: those of a box go to the places of the box."""

    def work(box: Ranges) -> None:
        with _place(into, places(box)) as part:
            fill(part.reshape(lengths(box)), node, box)

    for _ in over(boxes_of(node), [node], work):
        pass


def held(node: Node) -> np.ndarray:
    """All elements in ordinary memory."""
    now = ready(node)
    if isinstance(now, Held):
        return now.values
    values = np.empty(node.shape, node.dtype)
    for box in over(boxes_of(node), [node], lambda box: fill(values[key_of(box)], node, box)):
        pass
    return values


def by_line(
    node: Node, axes: Sequence[int], f: Callable[[np.ndarray], Any], shape: Shape, dtype: Any
) -> Array:
    """``f`` of boxes that are not cut along `axes`, whose extents are those of `shape` in what it gives."""
    target = scratch(shape, np.dtype(dtype))
    target.overwrite()

    def work(box: Ranges) -> None:
        to = tuple(range(n) if d in axes else r for d, (r, n) in enumerate(zip(box, shape)))
        with _place(Stored(target), to) as part:
            part[...] = f(values_of(node, box))

    for _ in over(boxes_of(node, axes, 3), [node], work):
        pass
    return target
