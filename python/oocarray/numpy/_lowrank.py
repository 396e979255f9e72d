"""The largest singular values of a matrix of any shape, by random projection.

Halko, Martinsson and Tropp: *Finding structure with randomness* (SIAM Review 2011).  The matrix A is read in bands of rows, and each
reading multiplies by AᴴA: a band gives its part of Aᴴ(A Z) while it is in memory, where the usual method reads A and then Aᴴ.
Z, an orthonormal basis of what is to become the rows of Vᴴ, is in memory.  A last reading gives A Z, whose SVD is that of a tall
matrix.  So q power iterations take q + 1 readings.

Where the columns' means are to be removed, the first reading finds them: its product is corrected, which loses digits where
means are large, and only decides where the iteration starts.  Later readings subtract them from the elements.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from .._errors import BudgetTooSmall
from .._runtime import runtime
from . import _evaluation, _tall
from ._nodes import Held, Node, Ranges, Stored
from ._scratch import scratch


def svd(node: Node, k: int, power: int, more: int, center: bool, rng: np.random.Generator) -> Tuple[Node, np.ndarray, np.ndarray]:
    """U, S and Vh of rank k; `power` >= 1."""
    rows, columns = node.shape
    width = min(k + more, rows, columns)
    z = rng.standard_normal((columns, width)).astype(node.dtype)
    if node.dtype.kind == "c":
        z = z + 1j * rng.standard_normal((columns, width)).astype(z.real.dtype)
    bands = _bands(node, z)
    mean: Optional[np.ndarray] = None
    for turn in range(power):
        product, sums = _product(node, bands, z, mean, center and turn == 0)
        if center and turn == 0:
            mean = (sums / rows).astype(node.dtype)
            product -= rows * np.outer(mean.conj(), mean @ z)
        z = np.linalg.qr(product)[0]
    u, s, vh = _svd_of_projected(_projected(node, bands, z, mean))
    return u, s, vh @ z.conj().T


def _bands(node: Node, z: np.ndarray) -> List[Ranges]:
    rows, columns = node.shape
    if z.nbytes > runtime().memory // 16:
        raise BudgetTooSmall(
            f"svd_compressed() of a matrix of shape {node.shape} keeps {z.shape[1]} vectors of {columns} elements in memory for each "
            f"thread, {z.nbytes} bytes: that is more than a 16th of the budget; give the runtime more memory"
        )
    height = max(1, _evaluation.box_bytes(node, 2) // (columns * node.dtype.itemsize))
    return [(range(i, min(i + height, rows)), range(columns)) for i in range(0, rows, height)]


def _values(node: Node, band: Ranges, mean: Optional[np.ndarray]) -> np.ndarray:
    values = _evaluation.values_of(node, band)
    return values if mean is None else values - mean


def _product(
    node: Node, bands: List[Ranges], z: np.ndarray, mean: Optional[np.ndarray], sums: bool
) -> Tuple[np.ndarray, np.ndarray]:
    """AᴴA z, and the sums of the columns of A where they are asked for."""

    def work(band: Ranges) -> Tuple[np.ndarray, Any]:
        values = _values(node, band, mean)
        wide = np.complex128 if values.dtype.kind == "c" else np.float64
        # Not values.conj().T: that would be a copy of the band.
        return (values.T @ (values @ z).conj()).conj(), np.sum(values, axis=0, dtype=wide) if sums else 0

    product, total = np.zeros_like(z), 0
    for part, of_columns in _evaluation.over(bands, [node], work):
        product += part
        total = total + of_columns
    return product, np.asarray(total)


def _projected(node: Node, bands: List[Ranges], z: np.ndarray, mean: Optional[np.ndarray]) -> Node:
    """A z."""
    shape = (node.shape[0], z.shape[1])
    small = shape[0] * shape[1] * z.itemsize <= runtime().memory // 8
    target: Any = np.empty(shape, z.dtype) if small else scratch(shape, z.dtype)

    def work(band: Ranges) -> Tuple[Ranges, np.ndarray]:
        return (band[0], range(shape[1])), _values(node, band, mean) @ z

    for at, part in _evaluation.over(bands, [node], work):
        if small:
            target[at[0].start : at[0].stop] = part
        else:
            _evaluation.put(part, target, at)
    return Held(target) if small else Stored(target)


def _svd_of_projected(projected: Node) -> Tuple[Node, np.ndarray, np.ndarray]:
    if _tall.is_tall(projected):
        return _tall.svd(projected)
    u, s, vh = np.linalg.svd(_evaluation.held(projected), full_matrices=False)
    return Held(u), s, vh
