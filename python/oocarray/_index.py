"""Indices of arrays: what they name in each dimension."""

from __future__ import annotations

import operator
from typing import Any, List, Optional, Tuple

import numpy as np

Box = Tuple[slice, ...]


def keys_of(index: Any, shape: Tuple[int, ...], name: str, what: str = "index") -> List[Any]:
    """A slice, or an integer from 0 on, for each dimension; `what` and `name` say in messages what has which."""
    keys = index if isinstance(index, tuple) else (index,)
    gaps = [d for d, k in enumerate(keys) if k is Ellipsis]
    if len(gaps) > 1:
        raise IndexError(f"{name}: the {what} has {len(gaps)} times '...': give it once at most")
    left = len(shape) - len(keys) + len(gaps)
    if left < 0:
        raise IndexError(f"{name} has {len(shape)} dimensions, and the {what} {len(shape) - left}: leave {-left} out")
    gap = gaps[0] if gaps else len(keys)
    keys = keys[:gap] + (slice(None),) * left + keys[gap + 1 :]
    return [k if isinstance(k, slice) else _within(k, n, d, name) for d, (k, n) in enumerate(zip(keys, shape))]


def _within(key: Any, extent: int, d: int, name: str) -> int:
    try:
        i = operator.index(key)
    except TypeError:
        i = None
    if i is None or isinstance(key, (bool, np.bool_)):
        raise IndexError(f"{name}: {type(key).__name__} is no integer and no slice (dimension {d}); gather() takes lists of indices")
    if not -extent <= i < extent:
        raise IndexError(f"{name}: index {i} is outside the extent {extent} of dimension {d}")
    return i % extent


def bounds_of(box: Any, shape: Tuple[int, ...], name: str) -> Tuple[List[int], List[int]]:
    """The first and the last index and one of the box that slices of step 1 and integers name."""
    lower, upper = [], []
    for k, n in zip(keys_of(box, shape, name, "box"), shape):
        if isinstance(k, slice):
            first, last, step = k.indices(n)
            if step != 1:
                raise IndexError(f"{name}: a box has slices of step 1, not {step}")
        else:
            first, last = k, k + 1
        lower.append(first)
        upper.append(max(first, last))
    return lower, upper


def part_of(box: Optional[Any], shape: Tuple[int, ...], name: str) -> Box:
    """A box that has elements, as far as the shape has any, and lies within it: what is to be copied.  All without one."""
    out = []
    for d, (k, n) in enumerate(zip(keys_of(... if box is None else box, shape, name, "box"), shape)):
        if not isinstance(k, slice) or k.step not in (None, 1):
            raise IndexError(f"{name}: a box has slices of step 1, not {k!r} (dimension {d})")
        lower, upper = k.start or 0, n if k.stop is None else k.stop
        if not (0 <= lower < upper <= n or lower == upper == n == 0):
            raise IndexError(f"{name}: {lower}:{upper} is no part of dimension {d}, which has {n} elements")
        out.append(slice(lower, upper))
    return tuple(out)
