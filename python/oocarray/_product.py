"""Products of matrices.  See `oocarray._algorithms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._algorithms import checked, in_c_order, options_of, writable

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
        threads, memory, mark, progress; see `oocarray._algorithms`.

    Returns `out`.  Bytes move past the blocks: an array `out` is not in memory afterwards.
    """
    given = options_of(options)
    multiply = engine("multiply")
    checked(a)
    if a.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(f"array '{a.path}' has elements of type {a.dtype}; products are of float32, float64, complex64, complex128")
    if isinstance(b, _core.ArrayBase):
        b = checked(b)
        writable(checked(out, "an oocarray.Array as out= where b is one"))
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
        multiply(a._core, b._core, out._core, given)
        return out
    if a.ndim != 2:
        raise ValueError(f"array '{a.path}' has {a.ndim} dimensions, and a matrix two")
    in_c_order(a, "a product with vectors")
    x = np.ascontiguousarray(b, a.dtype)
    if x.ndim not in (1, 2) or x.shape[0] != a.shape[1]:
        raise ValueError(f"array '{a.path}' has the shape {a.shape}, which takes {a.shape[1]} rows, not {x.shape}")
    shape = (a.shape[0],) + x.shape[1:]
    y = np.empty(shape, a.dtype) if out is None else out
    if not isinstance(y, np.ndarray) or y.shape != shape or y.dtype != a.dtype or not y.flags.c_contiguous:
        raise ValueError(f"out= is to be a C-contiguous numpy.ndarray of shape {shape} and type {a.dtype}")
    if not y.flags.writeable:
        raise ValueError("out= cannot be written")
    multiply(a._core, x.reshape(len(x), -1), y.reshape(len(y), -1), given)
    return y
