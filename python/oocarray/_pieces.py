"""Boxes in pieces of a useful size beside the budget, and how threads work on them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Callable, ContextManager, Iterator, List, Optional, Sequence

import numpy as np

from ._index import Box
from ._runtime import runtime


def most_piece_bytes() -> int:
    return min(64 << 20, runtime().memory // 16)


def grown(grain: Sequence[int], extents: Sequence[int], itemsize: int, most: Optional[int] = None) -> List[int]:
    """The shape of as many grains, one after the other in C's order, as are of a useful size, or of `most` bytes; one at least."""
    most, shape = most_piece_bytes() if most is None else most, list(grain)
    for d in reversed(range(len(shape))):
        fits = max(1, most // max(1, math.prod(shape) * itemsize))
        shape[d] *= max(1, min(fits, -(-extents[d] // shape[d])))
        if shape[d] < extents[d]:
            break
    return shape


def pieces(
    box: Box, itemsize: int, grain: Optional[Sequence[int]] = None, most: Optional[int] = None
) -> Iterator[Box]:
    """The box in parts that share no grain, as a chunk of a file; without one, parts that follow each other in C's order."""
    grain = (1,) * len(box) if grain is None else grain
    first = [b.start // g * g for b, g in zip(box, grain)]
    step = grown(grain, [b.stop - f for b, f in zip(box, first)], itemsize, most)
    for at in itertools.product(*(range(f, b.stop, s) for f, b, s in zip(first, box, step))):
        yield tuple(slice(max(i, b.start), min(i + s, b.stop)) for i, s, b in zip(at, step, box))


def errors_as_here() -> Callable[[], ContextManager[Any]]:
    """Has NumPy treat errors of floats (`numpy.errstate`) as where this is called: later, or in another thread."""
    settings: Any = {"call": np.geterrcall(), **np.geterr()}
    return functools.partial(np.errstate, **settings)
