"""Least squares of matrices that have too many columns for `_tall`, of any shape and rank.

The columns are mixed by a random orthogonal matrix M, two rounds of signs and a Hartley or Fourier transform.  Then QR without
pivoting shows the rank: A M = Q R, and the rows of R become as small as the singular values do.  That is the factorisation of
Becker, Folberth and Grigori: *URV factorization with random orthogonal system mixing* (arXiv 1703.02499, 2017), after Demmel,
Dumitriu and Holtz: *Fast linear algebra is stable* (Numer. Math. 2007).  So each element of A is read about as often as for QR.

Where the rank is k, the k columns in front may nearly depend on each other, as any square matrix of random numbers may.  Then
the first rows after row k have rounding errors that are some thousand times as large as others.  So all is computed in double
precision, as NumPy does, and rows that are little more than negligible are so where a wide gap lies before them.

With k rows of R that count, the first k columns of A M give one solution of many.  Where there are more columns, the shortest
one is what the rows of R span of it, and that takes QR of their adjoint.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from .._runtime import runtime
from . import _evaluation
from ._creation import triu
from ._deferred import deferred
from ._elementwise import conj  # type: ignore[attr-defined]
from ._factors import QR, columns_of
from ._manipulation import matrix_transpose
from ._nodes import Node, Ranges, Stored
from ._scratch import scratch


_rounding_grows = 1e4
_wide_gap = 1e3


class _Mixing:
    """M, the same at each call."""

    def __init__(self, columns: int, dtype: np.dtype) -> None:
        random = np.random.default_rng(columns)
        self._signs = [(random.integers(0, 2, columns) * 2 - 1).astype(np.int8) for _ in range(2)]
        self._dtype = dtype

    def _transform(self, lines: np.ndarray) -> np.ndarray:
        made = np.fft.fft(lines, norm="ortho")
        return np.asarray(made if self._dtype.kind == "c" else made.real - made.imag).astype(self._dtype, copy=False)

    def rows(self, a: np.ndarray) -> np.ndarray:
        """Rows of A M."""
        for signs in self._signs:
            a = self._transform(a * signs)
        return a

    def vectors(self, y: np.ndarray) -> np.ndarray:
        """M y for each row y: the transforms are symmetric."""
        for signs in reversed(self._signs):
            y = signs * self._transform(y)
        return y.astype(self._dtype, copy=False)


def _sizes_of_rows(factors: Stored) -> np.ndarray:
    """The norms of the rows of R: columns of the array, as far as they are on or left of its diagonal."""
    count = min(factors.shape)
    squares = np.zeros(count)

    def work(box: Ranges) -> Tuple[range, np.ndarray]:
        columns, rows = box
        with np.errstate(over="ignore", invalid="ignore"):
            counted = np.abs(_evaluation.values_of(factors, box)).astype(np.float64) ** 2
        return rows, np.where(np.asarray(rows) <= np.asarray(columns)[:, None], counted, 0).sum(0)

    boxes = [b for b in _evaluation.boxes_of(factors, (), 3) if b[1].start < count and b[1].start <= b[0][-1]]
    for rows, found in _evaluation.over(boxes, [factors], work):
        squares[rows.start : rows.stop] += found[: count - rows.start]
    return np.sqrt(squares)


def solve(matrix: Node, sides: Node, rcond: Optional[float]) -> Tuple[Any, np.ndarray, int]:
    """The shortest x of the least |A x - b| for each column b of `sides`, the squares of these (where they are not known to
    be 0), and the rank: rows of R that are more than `rcond` of the largest one, by default the precision of the elements times
    the longer extent.
    """
    rows, columns = matrix.shape
    dtype = np.dtype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
    mixing = _Mixing(columns, dtype)
    mixed = _evaluation.by_line(matrix, (1,), mixing.rows, matrix.shape, dtype)
    factors = columns_of(Stored(mixed))
    del mixed
    first = QR(factors)
    sizes = _sizes_of_rows(Stored(factors))
    if not np.all(np.isfinite(sizes)):
        raise np.linalg.LinAlgError("least squares of a matrix that has elements which are no numbers, or too large")
    if rcond is None:
        rcond = float(np.finfo(matrix.dtype).eps) * max(rows, columns)
    rank = _rank(sizes, rcond)
    second = _span(factors, rank) if 0 < rank < columns else None

    count = sides.shape[1]
    at_once = max(1, runtime().memory // 16 // (max(rows, columns) * dtype.itemsize))
    result: Any = np.empty((columns, count), matrix.dtype)
    if result.nbytes > runtime().memory // 8:
        result = scratch((columns, count), matrix.dtype)
    rest: List[np.ndarray] = []
    for start in range(0, count, at_once):
        some = range(start, min(start + at_once, count))
        values = _evaluation.held(deferred(sides)[:, some.start : some.stop]._node)
        lines = values.T.astype(dtype, order="C")
        first.solve(lines, rank)
        rest.append(np.sum(np.abs(lines[:, rank:]) ** 2, axis=1))
        y = np.zeros((len(some), columns), dtype)
        y[:, :rank] = lines[:, :rank]
        if second is not None:
            second.times_adjoint(y)
            y[:, rank:] = 0
            second.times_q(y)
        x = mixing.vectors(y).T.astype(matrix.dtype)
        if isinstance(result, np.ndarray):
            result[:, some.start : some.stop] = x
        else:
            _evaluation.put(np.ascontiguousarray(x), result, (range(columns), some))
    known = rank == columns and rows > columns
    squares = np.concatenate(rest) if known and rest else np.empty(0)
    return result, squares.astype(np.empty(0, matrix.dtype).real.dtype), rank


def _rank(sizes: np.ndarray, rcond: float) -> int:
    """How many rows of R count, of these norms."""

    def above(least: float) -> int:
        counting = np.flatnonzero(sizes > least)
        return int(counting[-1]) + 1 if len(counting) else 0

    negligible = rcond * float(np.max(sizes, initial=0))
    rank, surely = above(negligible), above(_rounding_grows * negligible)
    gap = 0 < surely < rank and sizes[surely - 1] > _wide_gap * np.max(sizes[surely:rank])
    return surely if gap else rank


def _span(factors: Any, rank: int) -> QR:
    """QR of the adjoint of the first rows of R."""
    r = triu(matrix_transpose(deferred(Stored(factors))[:, :rank]))
    return QR(_evaluation.stored(conj(r)._node))
