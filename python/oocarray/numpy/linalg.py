"""Linear algebra: see the extension ``linalg`` of the array API standard.

Products of matrices that memory has no room for are one pass, or go through `oocarray.matmul`; tall matrices are factorised by
`_tall`, others by `_factors`.  Eigenvalues, and singular values of matrices that are nearly square, take them into memory,
and refuse what is more than half of the budget.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, Tuple

import numpy as np

from .. import _product
from .._array import Array
from .._runtime import runtime
from . import _evaluation, _factors, _least_squares, _lowrank, _tall
from ._deferred import Deferred, deferred, in_memory, is_small, node_of
from ._dtypes import cast, common_type
from ._creation import triu
from ._elementwise import abs as _abs, conj, multiply, pow as _pow, sqrt, subtract  # type: ignore[attr-defined]
from ._manipulation import axis_of, concat, diagonal_of, expand_dims, matrix_transpose, permute_dims, reshape
from ._nodes import Held, Node, Ranges, Stored, all_of, key_of
from ._reductions import count_nonzero, max as _max, mean, min as _min, sum as _sum
from ._scratch import scratch

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svd_compressed", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]

_Eigen = namedtuple("_Eigen", ["eigenvalues", "eigenvectors"])
_LeastSquares = namedtuple("_LeastSquares", ["x", "residuals", "rank", "s"])
_QR = namedtuple("_QR", ["Q", "R"])
_SlogDet = namedtuple("_SlogDet", ["sign", "logabsdet"])
_SVD = namedtuple("_SVD", ["U", "S", "Vh"])


def _held(values: Any) -> Deferred:
    return deferred(Held(np.asarray(values)))


def _matrices(x: Any, function: str, kinds: str = "fc") -> np.ndarray:
    values = in_memory(x, function)
    if values.ndim < 2:
        raise ValueError(f"{function}() is of matrices, and not of an array of shape {values.shape}")
    if values.dtype.kind not in kinds:
        raise TypeError(f"{function}() is not defined for elements of type {values.dtype}")
    return values


def matmul(x1: Any, x2: Any, /) -> Deferred:
    """See the array API standard.  Two matrices of floats go through `oocarray.matmul` where memory has no room for them."""
    common = common_type(x1, x2)
    if common.kind not in "iufc":
        raise TypeError(f"matmul() is not defined for elements of type {common}")
    a, b = cast(node_of(x1), common), cast(node_of(x2), common)
    if not a.shape or not b.shape:
        raise ValueError("matmul() of an array without dimensions is not defined")
    inner = a.shape[-1], b.shape[-2 if len(b.shape) > 1 else 0]
    if inner[0] != inner[1]:
        raise ValueError(f"matrices of the shapes {a.shape} and {b.shape} have no product")
    large = not (is_small(a) and is_small(b))
    if large and common.kind in "fc" and common.itemsize >= 4 and len(a.shape) == 2 and a.shape[1] > 0:
        return _large_product(a, b)
    return _held(np.matmul(in_memory(Deferred(a), "matmul"), in_memory(Deferred(b), "matmul")))


def _by_inner(a: Node, b: Node) -> Deferred:
    """A product that memory has room for, of matrices that it has none for: one pass over both, along the inner dimension."""
    stored = [leaf for matrix in (a, b) for leaf in matrix.leaves() if isinstance(leaf, Stored)]
    # Of a stored matrix whole blocks come in, which hold more than the columns that are wanted.
    of_rows = [min(leaf.nbytes // max(1, leaf.shape[0]), leaf.array.block_bytes) for leaf in stored]
    height = max(1, _evaluation.most_bytes(3) // max(a.dtype.itemsize * max(a.shape[0], b.shape[1]), *of_rows, 1))
    bands = [(range(i, min(i + height, b.shape[0])),) for i in range(0, b.shape[0], height)]
    product = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    rows, columns = range(a.shape[0]), range(b.shape[1])

    def work(band: Ranges) -> np.ndarray:
        return np.asarray(a.part((rows, *band)) @ b.part((*band, columns)))

    for part in _evaluation.over(bands, [_Bands(a, 1), _Bands(b, 0)], work):
        product += part
    return _held(product)


class _Bands(Node):
    """Of a matrix, what a part of one of its dimensions needs."""

    __slots__ = ("axis",)

    goes_over_columns = True

    def __init__(self, matrix: Node, axis: int) -> None:
        super().__init__((matrix.shape[axis],), matrix.dtype, (matrix,))
        self.axis = axis

    def wants(self, ranges: Ranges, inputs: Tuple[Node, ...]) -> Any:
        other = range(inputs[0].shape[1 - self.axis])
        return [(inputs[0], (other, *ranges) if self.axis else (*ranges, other))]


def _large_product(a: Node, b: Node) -> Deferred:
    if len(b.shape) == 2 and a.shape[0] * b.shape[1] * a.dtype.itemsize <= runtime().memory // 16 and b.nbytes > runtime().small:
        return _by_inner(a, b)
    if b.nbytes <= runtime().memory // 16:
        return _by_rows(a, _evaluation.held(b))
    if len(b.shape) != 2:
        return _held(np.matmul(in_memory(Deferred(a), "matmul"), in_memory(Deferred(b), "matmul")))
    of, with_ = Deferred(a)._array(), Deferred(b)._array()
    if -1 in (of._order, with_._order) or "tiled" in (of.layout, with_.layout):
        return _held(np.matmul(in_memory(Deferred(a), "matmul"), in_memory(Deferred(b), "matmul")))
    target = scratch((a.shape[0], b.shape[1]), a.dtype)
    _product.matmul(of, with_, target, mark=False)
    return deferred(Stored(target))


def _by_rows(a: Node, b: np.ndarray) -> Deferred:
    """A product with what memory has room for, a vector, a matrix or a stack: one pass over `a`, whose rows need not be stored."""
    stack, columns = b.shape[:-2], b.shape[-1:] if b.ndim > 1 else ()
    shape = (*stack, a.shape[0], *columns)
    size = math.prod(shape) * a.dtype.itemsize
    product = np.empty(shape, a.dtype) if size <= runtime().small else scratch(shape, a.dtype)

    def work(box: Ranges) -> Tuple[Ranges, np.ndarray]:
        return box, _evaluation.values_of(a, box) @ b

    for box, part in _evaluation.over(_evaluation.boxes_of(a, (1,), 2), [a], work):
        at = (*all_of(stack), box[0], *all_of(columns))
        if isinstance(product, np.ndarray):
            product[key_of(at)] = part
        else:
            _evaluation.put(part, product, at)
    return _held(product) if isinstance(product, np.ndarray) else deferred(Stored(product))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Deferred:
    """See the array API standard."""
    n1, n2 = len(node_of(x1).shape), len(node_of(x2).shape)
    if isinstance(axes, int):
        of1, of2 = list(range(n1 - axes, n1)), list(range(axes))
    else:
        of1, of2 = [axis_of(a, n1) for a in axes[0]], [axis_of(a, n2) for a in axes[1]]
    left1, left2 = [d for d in range(n1) if d not in of1], [d for d in range(n2) if d not in of2]
    s1, s2 = node_of(x1).shape, node_of(x2).shape
    if [s1[d] for d in of1] != [s2[d] for d in of2]:
        raise ValueError(f"arrays of the shapes {s1} and {s2} have no product over the axes {axes}")
    inner = int(np.prod([s1[d] for d in of1], dtype=np.int64))
    rows, columns = (int(np.prod([s[d] for d in left], dtype=np.int64)) for s, left in ((s1, left1), (s2, left2)))
    a = reshape(permute_dims(x1, (*left1, *of1)), (rows, inner))
    b = reshape(permute_dims(x2, (*of2, *left2)), (inner, columns))
    return reshape(matmul(a, b), tuple(s1[d] for d in left1) + tuple(s2[d] for d in left2))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Deferred:
    """See the array API standard; one pass."""
    common = common_type(x1, x2)
    a, b = node_of(x1), node_of(x2)
    for node in (a, b):
        axis_of(axis, len(node.shape))
    if axis >= 0 and len(a.shape) != len(b.shape):
        raise ValueError(f"axis={axis}: count from the last axis, with a negative number")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vectors of {a.shape[axis]} and {b.shape[axis]} elements have no product")
    product = multiply(conj(Deferred(cast(a, common))), Deferred(cast(b, common)))
    return _sum(product, axis=axis, dtype=common)


def outer(x1: Any, x2: Any, /) -> Deferred:
    """See the array API standard."""
    for x in (x1, x2):
        if len(node_of(x).shape) != 1:
            raise ValueError(f"outer() is of vectors, and not of an array of shape {node_of(x).shape}")
    return multiply(expand_dims(x1, axis=1), expand_dims(x2, axis=0))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Deferred:
    """See the array API standard."""
    a, b = in_memory(x1, "cross"), in_memory(x2, "cross")
    extents = [v.shape[axis_of(axis, v.ndim)] for v in (a, b)]
    if extents != [3, 3]:
        raise ValueError("cross() is of vectors of 3 elements, and not of {} and {}".format(*extents))
    return _held(np.cross(a, b, axis=axis))


def diagonal(x: Any, /, *, offset: int = 0) -> Deferred:
    """See the array API standard."""
    return diagonal_of(x, offset, "diagonal")


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Deferred:
    """See the array API standard."""
    return _sum(diagonal_of(x, offset, "trace"), axis=-1, dtype=dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Deferred:
    """See the array API standard; one pass."""
    size, dtype = _abs(x), _abs(x).dtype
    if ord == 0:
        found = count_nonzero(x, axis=axis, keepdims=keepdims)
        return deferred(cast(found._node.now(), dtype))
    if ord in (np.inf, -np.inf):
        return (_max if ord > 0 else _min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return _sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        # Squares of floats have no room in float32.
        wide = Deferred(cast(size._node.now(), np.result_type(dtype, np.float64)))
        return deferred(cast(sqrt(_sum(multiply(wide, wide), axis=axis, keepdims=keepdims))._node.now(), dtype))
    return _pow(_sum(_pow(size, ord), axis=axis, keepdims=keepdims), 1 / ord)


def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Deferred:
    """See the array API standard; "fro", 1 and inf take one pass."""
    n = len(node_of(x).shape)
    if ord == "fro":
        return vector_norm(x, axis=(n - 2, n - 1), keepdims=keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, other = (n - 2, n - 1) if abs(ord) == 1 else (n - 1, n - 2)
        found = (_max if ord > 0 else _min)(_sum(_abs(x), axis=summed, keepdims=True), axis=other, keepdims=True)
        return found if keepdims else reshape(found, found.shape[:-2])
    return _held(np.linalg.norm(_matrices(x, "matrix_norm"), ord=ord, axis=(-2, -1), keepdims=bool(keepdims)))


def cholesky(x: Any, /, *, upper: Any = False) -> Deferred:
    """See the array API standard.  Of a matrix that memory has no room for, what is above the diagonal is read."""
    if _factors.is_large(node := _square(x, "cholesky")):
        return deferred(_factors.cholesky(node, bool(upper)))
    lower = np.linalg.cholesky(_matrices(x, "cholesky"))
    return _held(np.conj(np.swapaxes(lower, -1, -2)) if upper else lower)


def _square(x: Any, function: str) -> Node:
    node = node_of(x)
    if len(node.shape) < 2 or node.shape[-1] != node.shape[-2]:
        raise ValueError(f"{function}() is of square matrices, and not of an array of shape {node.shape}")
    return node


def det(x: Any, /) -> Deferred:
    """See the array API standard."""
    if _factors.is_large(node := _square(x, "det")):
        sign, log = _factors.LU(node).determinant()
        with np.errstate(over="ignore"):
            return _held(sign * np.exp(log))
    return _held(np.linalg.det(_matrices(x, "det")))


def slogdet(x: Any, /) -> Any:
    """See the array API standard."""
    if _factors.is_large(node := _square(x, "slogdet")):
        return _SlogDet(*map(_held, _factors.LU(node).determinant()))
    return _SlogDet(*map(_held, np.linalg.slogdet(_matrices(x, "slogdet"))))


def _complex(values: np.ndarray) -> np.ndarray:
    return values.astype(np.result_type(values, np.complex64), copy=False)


def eig(x: Any, /) -> Any:
    """See the array API standard."""
    values, vectors = np.linalg.eig(_matrices(x, "eig"))
    return _Eigen(_held(_complex(values)), _held(_complex(vectors)))


def eigvals(x: Any, /) -> Deferred:
    """See the array API standard."""
    return _held(_complex(np.linalg.eigvals(_matrices(x, "eigvals"))))


def eigh(x: Any, /) -> Any:
    """See the array API standard."""
    return _Eigen(*map(_held, np.linalg.eigh(_matrices(x, "eigh"))))


def eigvalsh(x: Any, /) -> Deferred:
    """See the array API standard."""
    return _held(np.linalg.eigvalsh(_matrices(x, "eigvalsh")))


def inv(x: Any, /) -> Deferred:
    """See the array API standard."""
    if _factors.is_large(node := _square(x, "inv")):
        return deferred(_factors.LU(node).inverse())
    return _held(np.linalg.inv(_matrices(x, "inv")))


def lstsq(a: Any, b: Any, /, *, rcond: Any = None) -> Any:
    """Least squares, as `numpy.linalg.lstsq`: the solution, the squares of what is left, the rank, and the singular values of `a`.

    Of a tall matrix, with fewer right-hand sides than it has rows, one reading of both.  The rank is that of R, by its singular
    values, so the solution is the shortest one where it is not full.  Of others that memory has no room for, the rank is by the rows
    of R after a random mixing of the columns, the solution the shortest one as well, and there are no singular values.
    """
    common = common_type(a, b)
    common = common if common.kind in "fc" else np.dtype(np.float64)
    matrix, sides = cast(node_of(a), common), cast(node_of(b), common)
    if len(matrix.shape) != 2 or len(sides.shape) not in (1, 2) or sides.shape[0] != matrix.shape[0]:
        raise ValueError(f"equations of the shape {matrix.shape} have no right-hand sides of the shape {sides.shape}")
    columns = expand_dims(Deferred(sides), axis=1) if len(sides.shape) == 1 else Deferred(sides)
    both = concat([Deferred(matrix), columns], axis=1)._node
    if not _tall.is_tall(both) and _factors.is_large(matrix):
        x, rest, rank = _least_squares.solve(matrix, columns._node, rcond)
        values = Deferred(Stored(x)) if isinstance(x, Array) else _held(x)
        return _LeastSquares(values[:, 0] if len(sides.shape) == 1 else values, _held(rest), rank, _held(np.empty(0, rest.dtype)))
    if not _tall.is_tall(both):
        found = np.linalg.lstsq(_matrices(Deferred(matrix), "lstsq"), in_memory(Deferred(sides), "lstsq"), rcond=rcond)
        return _LeastSquares(_held(found[0]), _held(found[1]), int(found[2]), _held(found[3]))
    n = matrix.shape[1]
    r = _tall.triangle(both)[0]
    least = np.finfo(common).eps * matrix.shape[0] if rcond is None else rcond
    x, _, rank, singular = np.linalg.lstsq(r[:n, :n], r[:n, n:], rcond=least)
    rest = np.sum(np.abs(r[n:, n:]) ** 2, axis=0) if rank == n else np.empty(0, singular.dtype)
    return _LeastSquares(_held(x[:, 0] if len(sides.shape) == 1 else x), _held(rest), int(rank), _held(singular))


def matrix_power(x: Any, n: int, /) -> Deferred:
    """See the array API standard."""
    return _held(np.linalg.matrix_power(_matrices(x, "matrix_power", "iufc"), n))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Deferred:
    """See the array API standard; of a tall or a wide matrix one reading."""
    if len(node_of(x).shape) < 2:
        raise ValueError(f"matrix_rank() is of matrices, and not of an array of shape {node_of(x).shape}")
    singular = _singular_values(x, "matrix_rank")
    if rtol is None:
        rtol = max(node_of(x).shape[-2:]) * np.finfo(singular.dtype).eps
    of = np.asarray(rtol) if isinstance(rtol, (int, float)) else in_memory(rtol, "rtol")
    least = np.max(singular, axis=-1, keepdims=True, initial=0) * of[..., None]
    return _held(np.asarray(np.count_nonzero(singular > least, axis=-1), np.int64))


def pinv(x: Any, /, *, rtol: Any = None) -> Deferred:
    """See the array API standard."""
    values = _matrices(x, "pinv")
    if rtol is None:
        rtol = max(values.shape[-2:]) * np.finfo(values.dtype).eps
    return _held(np.linalg.pinv(values, rtol if isinstance(rtol, (int, float)) else in_memory(rtol, "rtol")))


def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """See the array API standard.  Of a tall matrix R takes one reading, and Q, where it is needed, another one.  Q of others
    that memory has no room for is made, from the reflectors that are kept, when its elements are needed.
    """
    if mode == "reduced" and _tall.is_tall(node_of(x)):
        q, r = _tall.qr(node_of(x))
        return _QR(deferred(q), _held(r))
    if mode == "reduced" and _factors.is_large(node_of(x)):
        q, below = _factors.qr(node_of(x))
        return _QR(deferred(q), triu(Deferred(below)[: q.shape[1], :]))
    how: Any = mode
    return _QR(*map(_held, np.linalg.qr(_matrices(x, "qr"), how)))


def solve(x1: Any, x2: Any, /) -> Deferred:
    """See the array API standard.  A matrix that memory has no room for is read and written once, and its factors are read
    once for each part of `x2` that it has room for.
    """
    if _factors.is_large(node := _square(x1, "solve")):
        vectors = node_of(x2)
        if len(vectors.shape) not in (1, 2) or vectors.shape[0] != node.shape[0]:
            raise ValueError(f"a system of {node.shape[0]} equations has no right-hand sides of the shape {vectors.shape}")
        common = common_type(x1, x2)
        return deferred(_factors.LU(cast(node, common)).solve(cast(vectors, common)))
    a, b = _matrices(x1, "solve"), in_memory(x2, "solve")
    if b.ndim == 1:
        return _held(np.linalg.solve(a, b[:, None])[..., 0])
    return _held(np.linalg.solve(a, b))


def svd(x: Any, /, *, full_matrices: Any = True) -> Any:
    """See the array API standard.  Of a tall or a wide matrix see `qr`, where not all of `U` or `Vh` is asked for."""
    if not full_matrices and _tall.is_tall(node_of(x)):
        u, s, vh = _tall.svd(node_of(x))
        return _SVD(deferred(u), _held(s), _held(vh))
    if not full_matrices and len(node_of(x).shape) == 2 and _tall.is_tall(turned := matrix_transpose(x)._node.now()):
        u, s, vh = _tall.svd(turned)
        return _SVD(_held(vh.T), _held(s), matrix_transpose(Deferred(u)))
    return _SVD(*map(_held, np.linalg.svd(_matrices(x, "svd"), full_matrices=bool(full_matrices))))


def svd_compressed(
    a: Any, k: int, *, n_power_iter: int = 2, n_oversamples: int = 10, center: bool = False, seed: Any = None
) -> Any:
    """The k largest singular values of a matrix of any shape, and their vectors: U, S and Vh, as `svd` has them, within what random
    projection gives (as ``dask.array.linalg.svd_compressed``).

    Parameters
    ----------
    a : a matrix of floats or complex numbers
    k : int
    n_power_iter : int
        At least 1.  Each is one reading of `a`, and one more follows; they make the result more precise where singular
        values decrease slowly.
    n_oversamples : int
        Vectors more that are kept meanwhile; k + n_oversamples of them, as long as the shorter side, are in memory for each thread.
    center : bool
        Of the matrix without the means of its columns, as principal components are: the rows of Vh are these, and
        ``U * S`` are the coordinates of the rows of `a`.
    seed : optional
        As `numpy.random.default_rng` takes it.
    """
    node = node_of(a)
    if len(node.shape) != 2 or 0 in node.shape or node.dtype.kind not in "fc":
        raise ValueError(f"svd_compressed() is of matrices of floats or complex numbers, and not of {node.dtype} of shape {node.shape}")
    if not 1 <= k <= min(node.shape) or n_power_iter < 1 or n_oversamples < 0:
        raise ValueError(
            f"svd_compressed() of a matrix of shape {node.shape} with k={k}, n_power_iter={n_power_iter}, n_oversamples={n_oversamples}: "
            f"k is 1 to {min(node.shape)}, n_power_iter at least 1, n_oversamples at least 0"
        )
    rng = np.random.default_rng(seed)
    if node.shape[0] < node.shape[1]:
        if center:
            x = Deferred(node)
            node = subtract(x, mean(x, axis=0, keepdims=True))._node
        u, s, vh = _lowrank.svd(matrix_transpose(Deferred(node))._node.now(), k, n_power_iter, n_oversamples, False, rng)
        return _SVD(_held(vh[:k].T), _held(s[:k]), matrix_transpose(Deferred(u))[:k, :])
    u, s, vh = _lowrank.svd(node, k, n_power_iter, n_oversamples, center, rng)
    return _SVD(Deferred(u)[:, :k], _held(s[:k]), _held(vh[:k]))


def svdvals(x: Any, /) -> Deferred:
    """See the array API standard; of a tall or a wide matrix one reading."""
    return _held(_singular_values(x, "svdvals"))


def _singular_values(x: Any, function: str) -> np.ndarray:
    node = node_of(x)
    for matrix in [node] if len(node.shape) != 2 else [node, matrix_transpose(x)._node.now()]:
        if _tall.is_tall(matrix):
            return np.linalg.svd(_tall.triangle(matrix)[0], compute_uv=False)
    return np.linalg.svd(_matrices(x, function), compute_uv=False)
