"""Rows that change places.

What knows sequences but not arrays swaps by ``x[i], x[j] = x[j], x[i]``: `random.shuffle`, and NumPy's `shuffle` of what
is no `ndarray`.  Both rows on the right are views, so the first assignment overwrites what the second one would copy,
and a row is lost.  An array therefore recognises the two assignments and makes them a swap: the second one would
change nothing otherwise, because the two rows are equal then.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, List, Optional, Tuple

import numpy as np

if TYPE_CHECKING:
    from ._view import View


Place = Tuple[int, Tuple[int, ...], Tuple[int, ...]]


def _place(a: np.ndarray) -> Place:
    """Where the elements are in memory."""
    return a.__array_interface__["data"][0], a.shape, a.strides


class Swaps:
    """Of one array.  A swap is recognised where no other thread takes rows meanwhile."""

    def __init__(self) -> None:
        self._taken: List["weakref.ref[View]"] = []  #: the rows that were taken last, at most two
        #: Of a swap whose first assignment has been made: the view of the row that was overwritten, what was in it, and
        #: where it is to go.
        self._half: Optional[Tuple["weakref.ref[View]", np.ndarray, Place]] = None

    def took(self, row: "View") -> None:
        """``x[i]`` has made this view."""
        self._taken = [*self._taken[-1:], weakref.ref(row)]

    def to_write(self, target: np.ndarray, value: "View") -> np.ndarray:
        """What ``x[i] = value`` is to write to the row `target`."""
        half, self._half = self._half, None
        rows = [row for row in (taken() for taken in self._taken) if row is not None]
        if not any(row is value for row in rows):
            return value
        if half is not None and half[0]() is value and half[2] == _place(target):
            # Unless somebody has changed one of the two rows in between.
            return half[1] if value.tobytes() == target.tobytes() else value
        for row in rows:
            if row is not value and _place(row) == _place(target):
                self._half = weakref.ref(row), np.array(target, copy=True, subok=False), _place(value)
        return value
