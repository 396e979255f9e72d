"""Arrays that need not exist yet: what gives the elements of any part of them.

A *node* knows a shape and a type, and gives its elements by a `range` of each dimension, as an array of NumPy.  What it
is made of are other nodes, its *inputs*: a node says which ranges of them a part of its own needs, and makes the part of
theirs.  So a part of ``(a - m) / s`` is made of the same parts of its arrays, with nothing of the size of the whole.
Leaves are arrays in memory (`Held`), arrays of a store (`Stored`), and what a formula gives (`Generated`).

A node whose elements have been computed is *settled*: it hands on those of another one from then on, and lets go of its
inputs.  Another thread may do that at any time, so whoever computes a part keeps what `Node.begun` gave.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .._errors import BudgetTooSmall
from .._pieces import errors_as_here

if TYPE_CHECKING:
    from .._array import Array

Shape = Tuple[int, ...]
Ranges = Tuple[range, ...]
Wanted = List[Tuple["Node", Ranges]]


def all_of(shape: Shape) -> Ranges:
    return tuple(range(n) for n in shape)


def lengths(ranges: Ranges) -> Shape:
    return tuple(len(r) for r in ranges)


def indices(r: range) -> np.ndarray:
    return np.arange(r.start, r.stop, r.step, dtype=np.int64)


def within(base: range, r: range) -> range:
    """The elements `r` of `base`: ``base[r[0]]`` and so on."""
    if len(r) == 0:
        return range(0)
    first, step = base.start + r.start * base.step, base.step * r.step
    return range(first, first + len(r) * step, step)


def key_of(ranges: Ranges) -> Any:
    """The index of NumPy for them, which gives an array even where there are no dimensions."""

    def one(r: range) -> slice:
        if len(r) == 0:
            return slice(0, 0)
        stop = r.start + len(r) * r.step
        return slice(r.start, stop if stop >= 0 else None, r.step)

    return (*(one(r) for r in ranges), ...)


class Node:
    """See the module."""

    __slots__ = ("shape", "dtype", "inputs", "settled", "__weakref__")

    goes_over_columns = False  #: it asks for parts in an order that suits the inputs, whatever that of their axes

    def __init__(self, shape: Shape, dtype: np.dtype, inputs: Sequence["Node"] = ()) -> None:
        self.shape, self.dtype, self.inputs = shape, np.dtype(dtype), tuple(inputs)
        self.settled: Optional[Node] = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def now(self) -> "Node":
        """What gives the elements: this one, or what it has been settled to."""
        node = self
        while node.settled is not None:
            node = node.settled
        return node

    def begun(self) -> Tuple["Node", Tuple["Node", ...]]:
        """What gives the elements, and its inputs, whatever it is settled to from now on."""
        while True:
            node = self.now()
            inputs = node.inputs
            if node.settled is None:  # so they were all there: `settle` takes them away afterwards
                return node, inputs

    def settle(self, node: "Node") -> None:
        self.settled = node
        self.inputs = ()

    def leaves(self) -> Iterator["Node"]:
        node, inputs = self.begun()
        if not inputs:
            yield node
        for i in inputs:
            yield from i.leaves()

    def wants(self, ranges: Ranges, inputs: Tuple["Node", ...]) -> Wanted:
        """The parts of its inputs that a part of it is made of."""
        return []

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        """The part, of what it wanted."""
        raise NotImplementedError

    def part(self, ranges: Ranges) -> np.ndarray:
        """The elements; it may be a view of what is held."""
        node, inputs = self.begun()
        return node.make(ranges, [n.part(r) for n, r in node.wants(ranges, inputs)])

    def stored_parts(self, ranges: Ranges) -> Iterator[Tuple["Stored", Ranges]]:
        """What of arrays in stores the part is made of."""
        node, inputs = self.begun()
        if isinstance(node, Stored):
            yield node, ranges
        for n, r in node.wants(ranges, inputs):
            yield from n.stored_parts(r)


class Held(Node):
    """An array in memory, which nobody changes; one that the program may change is copied where others keep the node."""

    __slots__ = ("values", "is_programs")

    def __init__(self, values: np.ndarray, is_programs: bool = False) -> None:
        super().__init__(values.shape, values.dtype)
        self.values, self.is_programs = values, is_programs

    def keep(self) -> None:
        """It will be needed later."""
        if self.is_programs:
            self.values, self.is_programs = np.array(self.values, subok=False), False

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        return self.values[key_of(ranges)]


class Stored(Node):
    """An array of a store, or its elements in C's order in another shape."""

    __slots__ = ("array",)

    def __init__(self, array: "Array", shape: Optional[Shape] = None) -> None:
        super().__init__(array.shape if shape is None else shape, array.dtype)
        self.array = array

    def whole(self) -> np.ndarray:
        """All elements, in the array's memory."""
        view = self.array._view()
        return np.asarray(view if self.shape == view.shape else view.reshape(self.shape))

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        if self.array.layout == "tiled":
            return np.asarray(self.array.read(key_of(ranges)))
        return self.whole()[key_of(ranges)]

    def box(self, ranges: Ranges) -> Optional[Tuple[List[int], List[int]]]:
        """The least box of the array with these elements; None where there is none."""
        if any(len(r) == 0 for r in ranges):
            return None
        first, last = [min(r[0], r[-1]) for r in ranges], [max(r[0], r[-1]) for r in ranges]
        if self.shape != self.array.shape:
            ends = [int(np.ravel_multi_index(at, self.shape)) for at in (first, last)]
            first, last = ([int(i) for i in np.unravel_index(e, self.array.shape)] for e in ends)
            split = next((d for d, (lo, up) in enumerate(zip(first, last)) if lo != up), len(first))
            first[split + 1 :] = [0] * len(first[split + 1 :])
            last[split + 1 :] = [n - 1 for n in self.array.shape[split + 1 :]]
        order = self.array._order
        return first[::order], [i + 1 for i in last][::order]


class Generated(Node):
    """What a function gives for the ranges, as the numbers of an interval."""

    __slots__ = ("formula",)

    def __init__(self, shape: Shape, dtype: Any, formula: Callable[[Ranges], Any]) -> None:
        super().__init__(shape, dtype)
        self.formula = formula

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        return np.broadcast_to(np.asarray(self.formula(ranges), self.dtype), lengths(ranges))


class Lost(Node):
    """What could not be computed, and cannot be any more: whoever asks for elements gets the exception that said so."""

    __slots__ = ("error",)

    def __init__(self, shape: Shape, dtype: Any, error: Exception) -> None:
        super().__init__(shape, dtype)
        self.error = error

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Wanted:
        raise self.error.with_traceback(None)  # what its frames refer to need not live


class Elementwise(Node):
    """A function of NumPy's kind over inputs that are broadcast."""

    __slots__ = ("function", "errors")

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Node], dtype: Any) -> None:
        super().__init__(np.broadcast_shapes(*(i.shape for i in inputs)), dtype, inputs)
        self.function, self.errors = function, errors_as_here()

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Wanted:
        def of(node: Node) -> Ranges:
            mine = ranges[len(ranges) - len(node.shape) :]
            return tuple(range(1) if n == 1 else r for n, r in zip(node.shape, mine))

        return [(i, of(i)) for i in inputs]

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        with self.errors():
            made = np.asarray(self.function(*parts)).astype(self.dtype, copy=False)
        shape = lengths(ranges)
        return made if made.shape == shape else np.broadcast_to(made, shape)


class Later(Node):
    """What a call makes of its inputs as a whole when the first elements are needed."""

    __slots__ = ("made",)

    def __init__(self, shape: Shape, dtype: Any, inputs: Sequence[Node], made: Callable[[], Node]) -> None:
        super().__init__(shape, dtype, inputs)
        self.made = made

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Wanted:
        self.settle(self.made())
        return [(self, ranges)]

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        return parts[0]


class Seen(Node):
    """Elements of another node in other places: slices, axes in another order, axes more or less, broadcast.

    For each dimension of the source, `places` has its elements, in the order in which they are seen, and the dimension
    that they are seen in; None for a single one, which is seen in none.
    """

    __slots__ = ("places", "source_shape")

    def __init__(self, source: Node, shape: Shape, places: Sequence[Tuple[range, Optional[int]]]) -> None:
        super().__init__(shape, source.dtype, (source,))
        self.places, self.source_shape = tuple(places), source.shape

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Wanted:
        return [(inputs[0], tuple(base if d is None else within(base, ranges[d]) for base, d in self.places))]

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        part = parts[0][(*(0 if d is None else slice(None) for _, d in self.places), ...)]
        seen = [d for _, d in self.places if d is not None]
        part = part.transpose(sorted(range(len(seen)), key=seen.__getitem__))
        part = part[(*(slice(None) if d in seen else None for d in range(len(self.shape))), ...)]
        return np.broadcast_to(part, lengths(ranges))

    def sees_all(self) -> bool:
        """Whether it is the source as it is."""
        source = self.source_shape
        return self.shape == source and all(p == (range(n), d) for p, (d, n) in zip(self.places, enumerate(source)))

    def sees_all_turned(self) -> bool:
        """Whether it is the source with its axes in another order, and nothing else."""
        return len(self.shape) == len(self.source_shape) and all(
            d is not None and base == range(n) for (base, d), n in zip(self.places, self.source_shape)
        )

    def turns(self) -> bool:
        """Whether the order of the axes is another one."""
        seen = [d for _, d in self.places if d is not None]
        return seen != sorted(seen)


class Joined(Node):
    """Nodes one behind the other along an axis."""

    __slots__ = ("axis", "begins")

    def __init__(self, inputs: Sequence[Node], axis: int, dtype: Any) -> None:
        self.axis = axis
        self.begins = np.cumsum([0] + [i.shape[axis] for i in inputs]).tolist()
        shape = inputs[0].shape
        super().__init__(shape[:axis] + (self.begins[-1],) + shape[axis + 1 :], dtype, inputs)

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Wanted:
        r = ranges[self.axis]
        found = []
        for k, node in enumerate(inputs):
            mine = _between(r, self.begins[k], self.begins[k + 1])
            if len(mine):
                found.append((mine, (node, ranges[: self.axis] + (_moved(mine, -self.begins[k]),) + ranges[self.axis + 1 :])))
        found.sort(key=lambda f: f[0][0] * (1 if r.step > 0 else -1))
        return [w for _, w in found]

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        if not parts:
            return np.empty(lengths(ranges), self.dtype)
        return np.concatenate([p.astype(self.dtype, copy=False) for p in parts], axis=self.axis)


def _moved(r: range, by: int) -> range:
    return range(r.start + by, r.stop + by, r.step)


def _between(r: range, lower: int, upper: int) -> range:
    """The elements of `r` from `lower` on that are below `upper`."""
    if r.step < 0:
        return _between(r[::-1], lower, upper)[::-1]
    first = max(0, -(-(lower - r.start) // r.step))
    last = max(first, -(-(upper - r.start) // r.step))
    return r[first:last]


class Taken(Node):
    """Slabs of another node along an axis, by their numbers in memory."""

    __slots__ = ("axis", "numbers")

    def __init__(self, source: Node, axis: int, numbers: np.ndarray) -> None:
        shape = source.shape
        super().__init__(shape[:axis] + (len(numbers),) + shape[axis + 1 :], source.dtype, (source,))
        self.axis, self.numbers = axis, numbers

    def _numbers(self, ranges: Ranges) -> np.ndarray:
        return self.numbers[key_of((ranges[self.axis],))[0]]

    def _runs(self, ranges: Ranges) -> List[range]:
        """What is read: numbers that follow each other closely are one range."""
        wanted = np.unique(self._numbers(ranges))
        if len(wanted) == 0:
            return []
        cuts = np.flatnonzero(np.diff(wanted) > 8) + 1
        return [range(int(run[0]), int(run[-1]) + 1) for run in np.split(wanted, cuts)]

    def _is_scattered(self, source: "Stored", ranges: Ranges, runs: List[range]) -> bool:
        """Whether single elements are read past the blocks: where these would hold little else."""
        if source.array.layout == "tiled" or source.array._order != 1:
            return False
        slab = math.prod(lengths(ranges)) // max(1, len(ranges[self.axis])) * self.dtype.itemsize
        return slab < source.array.block_bytes // 4 and len(runs) > 4

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Wanted:
        runs, source = self._runs(ranges), inputs[0].now()
        if isinstance(source, Stored) and self._is_scattered(source, ranges, runs):
            shape = lengths(ranges)
            return [(Generated(shape, self.dtype, lambda _: self._gathered(source, ranges)), all_of(shape))]
        before, behind = ranges[: self.axis], ranges[self.axis + 1 :]
        return [(source, before + (run,) + behind) for run in runs]

    def _gathered(self, source: "Stored", ranges: Ranges) -> np.ndarray:
        numbers = self._numbers(ranges)
        at = np.ix_(*(numbers if d == self.axis else indices(r) for d, r in enumerate(ranges)))
        place = np.ravel_multi_index(at, source.shape)
        try:
            return np.asarray(source.array.gather(place))
        except BudgetTooSmall:  # others have pinned it: the elements come when they are touched
            return np.asarray(source.whole().reshape(-1)[place])

    def make(self, ranges: Ranges, parts: List[np.ndarray]) -> np.ndarray:
        runs = self._runs(ranges)
        if not runs:
            return np.empty(lengths(ranges), self.dtype)
        if len(parts) < len(runs):  # it has been gathered
            return parts[0]
        found = np.searchsorted(np.concatenate([indices(run) for run in runs]), self._numbers(ranges))
        return np.take(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=self.axis), found, axis=self.axis)
