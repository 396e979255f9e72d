"""Elements in other places: see the array API standard.

Results are made when their elements are needed; as part of a larger expression they take no room.
"""

from __future__ import annotations

import math
import operator
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred, in_memory, is_small, node_of
from ._dtypes import cast, common_type
from ._nodes import Held, Joined, Node, Seen, Shape, Stored, Taken

Axes = Union[int, Sequence[int]]


_axis_error: Any = getattr(np, "exceptions", np).AxisError  #: an IndexError and a ValueError


def axis_of(axis: Any, ndim: int) -> int:
    a = operator.index(axis)
    if not -ndim <= a < ndim:
        raise _axis_error(a, ndim)
    return a % ndim


def axes_of(axis: Any, ndim: int) -> Tuple[int, ...]:
    """All of them for None."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis_of(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis={axis!r} names one twice")
    return axes


def seen_in_order(node: Node, order: Sequence[int]) -> Node:
    """Dimension k is dimension ``order[k]`` of the node."""
    places = [(range(n), order.index(d)) for d, n in enumerate(node.shape)]
    return Seen(node, tuple(node.shape[d] for d in order), places)


def broadcast_shapes(*shapes: Any) -> Shape:
    """See the array API standard."""
    if any(n is None for shape in shapes for n in shape):
        raise ValueError("extents that are not known yet cannot be broadcast")
    return np.broadcast_shapes(*(tuple(s) for s in shapes))


def broadcast_to(x: Any, /, shape: Sequence[int]) -> Deferred:
    """See the array API standard."""
    node, to = node_of(x), tuple(operator.index(n) for n in shape)
    if np.broadcast_shapes(node.shape, to) != to:
        raise ValueError(f"an array of shape {node.shape} cannot be broadcast to {to}")
    more = len(to) - len(node.shape)
    places: List[Tuple[range, Optional[int]]] = [
        (range(n), more + d) if n == to[more + d] else (range(1), None) for d, n in enumerate(node.shape)
    ]
    return deferred(Seen(node, to, places))


def broadcast_arrays(*arrays: Any) -> Tuple[Deferred, ...]:
    """See the array API standard."""
    shape = np.broadcast_shapes(*(node_of(a).shape for a in arrays))
    return tuple(broadcast_to(a, shape) for a in arrays)


def expand_dims(x: Any, /, axis: Axes = 0) -> Deferred:
    """See the array API standard."""
    node = node_of(x)
    many = axis if isinstance(axis, (tuple, list)) else (axis,)
    new = axes_of(tuple(many), len(node.shape) + len(many))
    old = [d for d in range(len(node.shape) + len(many)) if d not in new]
    shape = [1] * (len(node.shape) + len(many))
    for d, n in zip(old, node.shape):
        shape[d] = n
    return deferred(Seen(node, tuple(shape), [(range(n), d) for n, d in zip(node.shape, old)]))


def squeeze(x: Any, /, axis: Axes) -> Deferred:
    """See the array API standard."""
    node = node_of(x)
    gone = axes_of(axis if isinstance(axis, (tuple, list)) else (axis,), len(node.shape))
    for d in gone:
        if node.shape[d] != 1:
            raise ValueError(f"dimension {d} has the extent {node.shape[d]}, and only extents of 1 can be left out")
    left = [d for d in range(len(node.shape)) if d not in gone]
    places = [(range(n), left.index(d) if d in left else None) for d, n in enumerate(node.shape)]
    return deferred(Seen(node, tuple(node.shape[d] for d in left), places))


def permute_dims(x: Any, /, axes: Sequence[int]) -> Deferred:
    """See the array API standard.  What memory has no room for is transposed on the disk where its elements are needed."""
    node = node_of(x)
    order = axes_of(tuple(axes), len(node.shape))
    if len(order) != len(node.shape):
        raise ValueError(f"axes={axes!r} is no permutation of {len(node.shape)} dimensions")
    if order == tuple(range(len(order))):
        return x if isinstance(x, Deferred) else Deferred(node)
    return deferred(seen_in_order(node, order))


def matrix_transpose(x: Any, /) -> Deferred:
    """See the array API standard."""
    ndim = len(node_of(x).shape)
    if ndim < 2:
        raise ValueError(f"an array of {ndim} dimensions is no matrix")
    return permute_dims(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def moveaxis(x: Any, source: Axes, destination: Axes, /) -> Deferred:
    """See the array API standard."""
    ndim = len(node_of(x).shape)
    from_, to = (axes_of(a if isinstance(a, (tuple, list)) else (a,), ndim) for a in (source, destination))
    if len(from_) != len(to):
        raise ValueError(f"{len(from_)} axes cannot become {len(to)}")
    order = [d for d in range(ndim) if d not in from_]
    for d, at in sorted(zip(from_, to), key=lambda pair: pair[1]):
        order.insert(at, d)
    return permute_dims(x, order)


def flip(x: Any, /, *, axis: Optional[Axes] = None) -> Deferred:
    """See the array API standard."""
    node = node_of(x)
    turned = axes_of(axis, len(node.shape))
    places = [(range(n)[::-1] if d in turned else range(n), d) for d, n in enumerate(node.shape)]
    return deferred(Seen(node, node.shape, places))


def slab(node: Node, axis: int, r: range) -> Node:
    """The part with these indices of one axis."""
    shape = node.shape[:axis] + (len(r),) + node.shape[axis + 1 :]
    return Seen(node, shape, [(r if d == axis else range(n), d) for d, n in enumerate(node.shape)])


def roll(x: Any, /, shift: Axes, *, axis: Optional[Axes] = None) -> Deferred:
    """See the array API standard."""
    node = node_of(x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), node.shape)
    axes = [axis_of(a, len(node.shape)) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    shifts: List[Any] = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"{len(shifts)} shifts are not one for each of {len(axes)} axes")
    for a, s in zip(axes, shifts):
        n = node.shape[a]
        by = operator.index(s) % n if n else 0
        if by:
            node = Joined([slab(node, a, range(n - by, n)), slab(node, a, range(n - by))], a, node.dtype)
    return deferred(Seen(node, node.shape, [(range(n), d) for d, n in enumerate(node.shape)]))


def reshape(x: Any, /, shape: Sequence[int], *, copy: Optional[bool] = None) -> Deferred:
    """See the array API standard; the elements follow each other in C's order.

    What lies in a store in that order is not copied: an assignment to the result changes `x`, too, as with NumPy.
    """
    node = node_of(x)
    size, wanted = math.prod(node.shape), [operator.index(n) for n in ((shape,) if isinstance(shape, int) else shape)]
    if wanted.count(-1) == 1:
        known = -math.prod(wanted)
        wanted[wanted.index(-1)] = size // known if known else 0
    if any(n < 0 for n in wanted) or math.prod(wanted) != size:
        raise ValueError(f"an array of shape {node.shape} has no shape {tuple(shape)}: it has {size} elements")
    to = tuple(wanted)
    if isinstance(node, Held):
        values = node.values.reshape(to)
        return Deferred(Held(values.copy()) if copy else Held(values, node.is_programs))
    if to == node.shape:
        return deferred(Seen(node, to, [(range(n), d) for d, n in enumerate(to)])) if copy else deferred(node)
    if isinstance(node, Stored):  # in another shape already, perhaps
        array = node.array
    else:
        array = (x if isinstance(x, Deferred) else Deferred(node))._array()
    if array._order != 1 or array.layout != "right":
        if copy is False:
            raise ValueError(f"array '{array.path}' does not lie in C's order: copy=False cannot be")
        array = Deferred(Seen(node, node.shape, [(range(n), d) for d, n in enumerate(node.shape)]))._array()
    result: Node = Stored(array, to)
    return deferred(Seen(result, to, [(range(n), d) for d, n in enumerate(to)]) if copy else result)


def _joined(nodes: List[Node], axis: int) -> Deferred:
    common = common_type(*nodes)
    return deferred(Joined([cast(n, common) for n in nodes], axis, common))


def concat(arrays: Any, /, *, axis: Optional[int] = 0) -> Deferred:
    """See the array API standard."""
    nodes = [node_of(a if axis is not None else reshape(a, (-1,))) for a in arrays]
    if not nodes:
        raise ValueError("concat() needs an array")
    a = axis_of(0 if axis is None else axis, len(nodes[0].shape))
    rests = {n.shape[:a] + n.shape[a + 1 :] if len(n.shape) == len(nodes[0].shape) else None for n in nodes}
    if len(rests) > 1:
        raise ValueError(f"arrays of the shapes {', '.join(str(n.shape) for n in nodes)} cannot be joined along axis {a}")
    return _joined(nodes, a)


def stack(arrays: Any, /, *, axis: int = 0) -> Deferred:
    """See the array API standard."""
    shapes = {node_of(a).shape for a in arrays}
    if len(shapes) != 1:
        raise ValueError(f"stack() needs arrays of one shape, not of {sorted(shapes)}")
    return concat([expand_dims(a, axis=axis) for a in arrays], axis=axis)


def unstack(x: Any, /, *, axis: int = 0) -> Tuple[Deferred, ...]:
    """See the array API standard."""
    node = node_of(x)
    a = axis_of(axis, len(node.shape))
    return tuple(squeeze(Deferred(slab(node, a, range(i, i + 1))), axis=a) for i in range(node.shape[a]))


def repeat(x: Any, repeats: Any, /, *, axis: Optional[int] = None) -> Deferred:
    """See the array API standard."""
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    node = node_of(x)
    a = axis_of(axis, len(node.shape))
    counts = repeats if isinstance(repeats, int) else in_memory(repeats, "repeat")
    return deferred(Taken(node, a, np.repeat(np.arange(node.shape[a]), counts)))


def tile(x: Any, repetitions: Sequence[int], /) -> Deferred:
    """See the array API standard."""
    node = node_of(x)
    times = (1,) * (len(node.shape) - len(repetitions)) + tuple(repetitions)
    more = len(times) - len(node.shape)
    node = Seen(node, (1,) * more + node.shape, [(range(n), more + d) for d, n in enumerate(node.shape)])
    for d, t in enumerate(times):
        if t == 0:
            node = slab(node, d, range(0))
        elif t > 1:
            node = Joined([node] * t, d, node.dtype)
    return deferred(node)


def diagonal_of(x: Any, offset: int, function: str) -> Deferred:
    """Of the last two dimensions."""
    node = node_of(x)
    if len(node.shape) == 2 and not is_small(node):
        rows, columns = node.shape
        at = np.arange(max(0, -offset), max(0, min(rows, columns - offset)))
        if at.nbytes * 4 <= runtime().memory:
            return deferred(Held(_evaluation.stored(node).gather((at, at + offset))))
    return deferred(Held(np.ascontiguousarray(np.diagonal(in_memory(x, function), offset, -2, -1))))
