"""QR and SVD of tall matrices, of which memory has room for the square of a row: TSQR.

Demmel, Grigori, Hoemmen and Langou: *Communication-optimal parallel and sequential QR and LU factorizations* (SIAM J. Sci.
Comput. 2012).  Bands of rows are factorised each by itself, and then the triangles R of all of them as one matrix, in the same
way where they are many.  So R takes one reading.  Q is not kept: where its elements are needed, the bands are read and factorised
once more, and multiplied by their parts of the Q of the triangles, which is stable, and takes one reading and one writing.
"""

from __future__ import annotations

from typing import List, Optional, Tuple

import numpy as np

from .._array import Array
from .._runtime import runtime
from . import _evaluation
from ._nodes import Held, Later, Node, Ranges, Stored
from ._scratch import scratch


def is_tall(node: Node) -> bool:
    """Whether this is the way to factorise a matrix."""
    if len(node.shape) != 2 or node.dtype.kind not in "fc" or node.nbytes <= runtime().memory // 8:
        return False
    rows, columns = node.shape
    return rows >= 4 * columns > 0 and 4 * _band_bytes(node) <= runtime().memory


def _band_bytes(node: Node) -> int:
    columns = node.shape[1]
    return max(4 * columns * columns * node.dtype.itemsize, _evaluation.most_bytes(3))


def _bands(node: Node) -> List[Ranges]:
    rows, columns = node.shape
    height = max(4 * columns, _band_bytes(node) // (columns * node.dtype.itemsize))
    starts = range(0, max(1, rows - columns), height)  # the last band has as many rows as columns at least
    ends = [*starts[1:], rows]
    return [(range(i, end), range(columns)) for i, end in zip(starts, ends)]


def triangle(node: Node) -> Tuple[np.ndarray, Node]:
    """R of a tall matrix, and the Q of the triangles of its bands, one below the other."""
    bands, columns = _bands(node), node.shape[1]
    triangles = scratch((len(bands) * columns, columns), node.dtype)
    found = _evaluation.over(bands, [node], lambda box: np.asarray(np.linalg.qr(_evaluation.values_of(node, box), "r")))
    for k, r in enumerate(found):
        _evaluation.put(r, triangles, (range(k * columns, (k + 1) * columns), range(columns)))
    stacked = Stored(triangles)
    if len(bands) > 4 and is_tall(stacked):
        above, below = triangle(stacked)
        return above, Later(stacked.shape, node.dtype, [stacked, below], lambda: Stored(orthonormal(stacked, below)))
    q, last = np.linalg.qr(_evaluation.held(stacked))
    return last, Held(q)


def orthonormal(node: Node, of_triangles: Node, right: Optional[np.ndarray] = None) -> Array:
    """Q of a tall matrix, times `right`, as an array."""
    bands, columns = _bands(node), node.shape[1]
    of_triangles = _evaluation.ready(of_triangles)
    target = scratch((node.shape[0], columns if right is None else right.shape[1]), node.dtype)
    target.overwrite()

    def work(box: Ranges) -> Tuple[Ranges, np.ndarray]:
        k = box[0].start // len(bands[0][0])
        turn = of_triangles.part((range(k * columns, (k + 1) * columns), range(columns)))
        return box, np.linalg.qr(_evaluation.values_of(node, box))[0] @ (turn if right is None else turn @ right)

    for box, q in _evaluation.over(bands, [node], work):
        _evaluation.put(q, target, (box[0], range(target.shape[1])))
    return target


def qr(node: Node) -> Tuple[Node, np.ndarray]:
    """Q, which is computed when its elements are needed, and R."""
    r, of_triangles = triangle(node)
    return Later(node.shape, node.dtype, [node, of_triangles], lambda: Stored(orthonormal(node, of_triangles))), r


def svd(node: Node) -> Tuple[Node, np.ndarray, np.ndarray]:
    """U, which is computed when its elements are needed, S and Vh, by the SVD of R."""
    r, of_triangles = triangle(node)
    u, s, vh = np.linalg.svd(r, full_matrices=False)
    of_u = Later(node.shape, node.dtype, [node, of_triangles], lambda: Stored(orthonormal(node, of_triangles, u)))
    return of_u, s, vh
