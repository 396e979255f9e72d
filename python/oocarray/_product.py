"""Products of matrices.  See `oocarray._algorithms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Tuple

import numpy as np

from . import _core
from ._algorithms import checked, in_c_order, options_of, reporting, writable

if TYPE_CHECKING:
    from ._array import Array


def engine(name: str) -> Any:
    """A function of the compiled module that needs Eigen."""
    if not hasattr(_core, name):
        raise ImportError(
            "this installation of oocarray was built without Eigen (Debian: libeigen3-dev): install it, and build the "
            "package again"
        )
    return getattr(_core, name)


def _result(out: Any, shape: Tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Where vectors in memory come to lie."""
    y = np.empty(shape, dtype) if out is None else out
    if not isinstance(y, np.ndarray) or y.shape != shape or y.dtype != dtype or not y.flags.c_contiguous:
        raise ValueError(f"out= is to be a C-contiguous numpy.ndarray of shape {shape} and type {dtype}")
    if not y.flags.writeable:
        raise ValueError("out= cannot be written")
    return y


def matmul(a: Array, b: Any, out: Any = None, **options: Any) -> Any:
    """The product of two matrices, ``numpy.matmul(a, b, out)``, through Eigen.

    ::

        oocarray.matmul(a, b, c)            # three arrays
        y = oocarray.matmul(a, x)           # a vector, or the columns of a matrix, in memory

    Parameters
    ----------
    a : Array
        float32, float64, complex64 or complex128, of two dimensions.
    b : Array or array_like
    out : Array or numpy.ndarray
        Not `a` or `b`.  Where `b` is in memory so is it; without it, it is made.
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.

    Returns `out`, or what was planned.  Bytes move past the blocks: an array `out` is not in memory afterwards.
    """
    given = options_of(options, reporting)
    multiply = engine("multiply")
    checked(a)
    if a.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}; products are of float32, float64, complex64, complex128")
    if isinstance(b, _core.ArrayBase):
        b = checked(b)
        writable(checked(out, "an oocarray.Array as out= where b is one"), given)
        arrays = [a, b, out]
        for x in arrays:
            if x.ndim != 2:
                raise ValueError(f"array '{x.path}' has {x.ndim} dimensions, and a matrix two")
            if x.dtype != a.dtype:
                raise TypeError(f"array '{x.path}' has elements of type {x.dtype}, and array '{a.path}' of {a.dtype}")
        if {x._order for x in arrays} == {-1}:
            a, b = b, a  # the library knows all of them transposed
        elif {x._order for x in arrays} != {1}:
            raise ValueError("some of the matrices lie in Fortran's order: oocarray.copy() those first")
        planned = multiply(a._core, b._core, out._core, given)
        return planned if given.get("plan") else out
    if a.ndim != 2:
        raise ValueError(f"array '{a.path}' has {a.ndim} dimensions, and a matrix two")
    in_c_order(a, "a product with vectors")
    x = np.ascontiguousarray(b, a.dtype)
    if x.ndim not in (1, 2) or x.shape[0] != a.shape[1]:
        raise ValueError(f"array '{a.path}' has the shape {a.shape}, which takes {a.shape[1]} rows, not {x.shape}")
    shape = (a.shape[0],) + x.shape[1:]
    y = _result(out, shape, a.dtype)
    planned = multiply(a._core, x.reshape(len(x), -1), y.reshape(len(y), -1), given)
    return planned if given.get("plan") else y


def csr_matmul(data: Array, indices: Array, indptr: Array, x: Any, out: Any = None, **options: Any) -> Any:
    """The product of a sparse matrix in three arrays, as SciPy's ``csr_array((data, indices, indptr)) @ x``.

    ::

        y = oocarray.csr_matmul(data, indices, indptr, x)
        a = scipy.sparse.linalg.LinearOperator((m, n), matvec=lambda x: oocarray.csr_matmul(data, indices, indptr, x))

    The elements are read once, in their order, by all threads; `x` and the result are in memory, beside the budget.

    Parameters
    ----------
    data : Array
        The elements, row after row: float32, float64, complex64 or complex128, of one dimension.
    indices : Array
        The column of each element; int32 or int64.
    indptr : Array
        Where each row begins in `data`, and at last the number of elements; int32 or int64.
    x : array_like
        A vector with an element for each column of the matrix, or a matrix whose columns are vectors.
    out : numpy.ndarray
        C-contiguous; without it, it is made.
    **options
        threads, memory, mark, progress, plan; see `oocarray._algorithms`.

    Returns `out`, or what was planned.
    """
    given = options_of(options, reporting)
    for a in (data, indices, indptr):
        if checked(a).ndim != 1:
            raise ValueError(f"array '{a.path}' has {a.ndim} dimensions; the parts of a sparse matrix have one")
    if data.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(f"array '{data.path}' has elements of type {data.dtype}; products are of float32, float64, complex64, complex128")
    for a in (indices, indptr):
        if a.dtype not in (np.int32, np.int64):
            raise TypeError(f"array '{a.path}' has elements of type {a.dtype}; columns and rows are numbered by int32 or int64")
    if indptr.size == 0:
        raise ValueError(f"array '{indptr.path}' has no elements, and the beginnings of rows at least one: 0")
    v = np.ascontiguousarray(x, data.dtype)
    if v.ndim not in (1, 2) or v.size == 0:
        raise ValueError(f"x has the shape {v.shape}; it is a vector, or a matrix whose columns are vectors")
    shape = (indptr.size - 1,) + v.shape[1:]
    y = _result(out, shape, data.dtype)
    planned = _core.multiply_sparse(data._core, indices._core, indptr._core, v, y, given)
    return planned if given.get("plan") else y
