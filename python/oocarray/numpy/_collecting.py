"""Results whose number of elements is known only when they have been found."""

from __future__ import annotations

import math
from typing import Callable, List, Sequence, Tuple

import numpy as np

from .._array import Array
from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred
from ._nodes import Held, Node, Ranges, Seen, Stored
from ._scratch import scratch

Found = Tuple[np.ndarray, ...]


def collected(nodes: Sequence[Node], dtypes: Sequence[np.dtype], find: Callable[..., Found]) -> List[Deferred]:
    """What ``find(box, values, ...)`` finds in the boxes, in C's order: arrays of one dimension, as many as `dtypes`.

    One pass.  What is too much for ordinary memory goes to scratch arrays with room for all elements, and where that was
    much more than was found, from there to smaller ones.
    """
    most = math.prod(nodes[0].shape)
    small = runtime().small
    kept: List[Found] = []
    targets: List[Array] = []
    count = size = 0

    def work(box: Ranges) -> Found:
        return find(box, *(_evaluation.values_of(node, box) for node in nodes))

    boxes = _evaluation.boxes_of(nodes[0], more=len(nodes) + len(dtypes))
    for found in _evaluation.over(boxes, nodes, work):
        size += sum(f.nbytes for f in found)
        kept.append(found)
        if size <= small:
            continue
        if not targets:
            targets = [scratch((most,), t) for t in dtypes]
            for t in targets:
                t.overwrite()
        for one in kept:
            to = range(count, count + len(one[0]))
            for target, values in zip(targets, one):
                _evaluation.put(values, target, (to,))
            count = to.stop
        kept.clear()
    if not targets:
        return [
            deferred(Held(np.concatenate([f[k] for f in kept]) if kept else np.empty(0, t))) for k, t in enumerate(dtypes)
        ]
    results = []
    for target in targets:
        target.clear_overwrite()
        found_of: Node = Seen(Stored(target), (count,), [(range(count), 0)])
        results.append(deferred(Stored(_evaluation.stored(found_of)) if count < most // 2 else found_of))
    return results
