"""Factorisations of matrices that memory has no room for, by the engine of `ooc::lu` and its like.

The engine takes the columns of a matrix as the rows of an array.  So a matrix is transposed into a scratch array, which takes
the place of a copy; a Hermitian one is as good as transposed.  Right-hand sides are rows, too.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

from .._array import Array
from .._movement import transpose
from .._product import engine
from .._runtime import runtime
from . import _evaluation
from ._manipulation import seen_in_order
from ._nodes import Elementwise, Held, Later, Node, Stored
from ._scratch import scratch

_options: Dict[str, Any] = {"mark": False}
_nothing = np.empty(0)


def is_large(node: Node) -> bool:
    """Whether this is the way to factorise a matrix: memory has no room for it beside what LAPACK takes."""
    return len(node.shape) == 2 and node.dtype.kind in "fc" and node.dtype.itemsize >= 4 and node.nbytes > runtime().memory // 8


def _turned(node: Node) -> Node:
    return seen_in_order(node, (1, 0))


def _lines(node: Node, copy: bool) -> Array:
    """The rows of a matrix as those of an array; `copy`: a new one."""
    a = _evaluation.stored(node)
    if a._order == 1 and not copy:
        return a
    lines = scratch(node.shape, node.dtype)
    transpose(a, lines, (0, 1), mark=False)
    return lines


def columns_of(node: Node) -> Array:
    """The columns of a matrix as the rows of a new array."""
    a = _evaluation.stored(node)
    lines = scratch(node.shape[::-1], node.dtype)
    transpose(a, lines, (1, 0), mark=False)
    return lines


def _identity(rows: int, columns: int, dtype: np.dtype) -> Array:
    """Where there is nothing, arrays are zero."""
    a = scratch((rows, columns), dtype)
    for k in range(0, rows, 1024):
        places = np.arange(k, min(k + 1024, rows))
        a.scatter((places, places), np.ones(len(places), dtype))
    return a


def cholesky(node: Node, upper: bool) -> Node:
    a = _lines(node, copy=False)
    factor = scratch(node.shape, node.dtype)
    engine("factorise")("cholesky", a._core, factor._core, _nothing, _options)
    if upper:
        return Stored(factor)
    turned = _turned(Stored(factor))
    return Elementwise(np.conj, [turned], node.dtype) if node.dtype.kind == "c" else turned


class LU:
    """P A = L U with partial pivoting."""

    def __init__(self, node: Node) -> None:
        self._factors = columns_of(node)
        self._pivots = np.empty(node.shape[0], np.uint64)
        engine("factorise")("lu", self._factors._core, self._factors._core, self._pivots, _options)

    def solve(self, b: Node) -> Node:
        """For each column of `b`; a vector is one."""
        columns = b if len(b.shape) == 2 else None
        if columns is not None and columns.nbytes > runtime().memory // 8:
            found: Any = columns_of(columns)
            self._use(found._core)
            return _turned(Stored(found))
        held = _evaluation.held(b).astype(self._factors.dtype)
        lines = np.array(held.T, order="C", ndmin=2)
        self._use(lines)
        return Held(np.ascontiguousarray(lines.T).reshape(held.shape))

    def inverse(self) -> Node:
        lines = _identity(len(self._pivots), len(self._pivots), self._factors.dtype)
        self._use(lines._core)
        return _turned(Stored(lines))

    def _use(self, lines: Any) -> None:
        engine("use_factors")("lu", self._factors._core, self._pivots, lines, "solution", _options)

    def determinant(self) -> Tuple[Any, Any]:
        """Its sign, and the logarithm of its absolute value."""
        places = np.arange(len(self._pivots))
        diagonal = self._factors.gather((places, places))
        sizes = np.abs(diagonal)
        if not np.all(sizes != 0):
            return diagonal.dtype.type(0), sizes.dtype.type(-np.inf)
        exchanges = int(np.count_nonzero(self._pivots != places.astype(np.uint64)))
        sign = np.prod(diagonal / sizes) * (-1) ** (exchanges % 2)
        return diagonal.dtype.type(sign), sizes.dtype.type(np.sum(np.log(sizes), dtype=np.float64))


class QR:
    """Q R of the matrix whose columns are the rows of an array, which takes both."""

    def __init__(self, lines: Array) -> None:
        columns, rows = lines.shape
        self.factors = lines
        self._tau = np.empty(min(rows, columns), lines.dtype)
        engine("factorise")("qr", lines._core, lines._core, self._tau, _options)

    def solve(self, lines: Any, columns: int) -> None:
        """Least squares by so many columns, from the first on: x is in front, and what remains of Q* b behind it."""
        engine("use_factors")("qr", self.factors._core, self._tau[:columns], lines, "solution", _options)

    def times_q(self, lines: Any) -> None:
        engine("use_factors")("qr", self.factors._core, self._tau, lines, "product with Q", _options)

    def times_adjoint(self, lines: Any) -> None:
        engine("use_factors")("qr", self.factors._core, self._tau, lines, "product with the adjoint of Q", _options)


def qr(node: Node) -> Tuple[Node, Node]:
    """Q, which is computed when its elements are needed, and R with something below its diagonal."""
    rows, columns = node.shape
    both = min(rows, columns)
    found = QR(columns_of(node))

    def q() -> Node:
        lines = _identity(both, rows, node.dtype)
        found.times_q(lines._core)
        return _turned(Stored(lines))

    return Later((rows, both), node.dtype, [Stored(found.factors)], q), _turned(Stored(found.factors))
