"""NumPy's functions over arrays larger than memory: the Python array API standard.

::

    import oocarray as ooc
    import oocarray.numpy as xp

    a = ooc.open("local:/var/tmp/plate", "a")      # larger than memory
    x = xp.asarray(a)
    y = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)
    print(xp.max(y))                               # three passes over `a`, and nothing written
    y.compute()                                    # a scratch array beside it

Functions take an `oocarray.Array`, arrays of NumPy and what other functions here have given, and give a `Deferred`, which is
an `Array`, too.  No result takes more memory than the runtime's budget: small ones (``Runtime(small=...)``) are in ordinary
memory, larger ones are in *scratch arrays* in a store (``Runtime(scratch=URL)``), and elementwise functions, slices and other
orders of axes are computed only where their elements are needed, in one pass.  Reductions, sorts, transforms and products
run when they are called.  A function that needs all of an array in memory refuses more than half of the budget.

The names are those of https://data-apis.org/array-api, of version 2025.12; `__array_api_version__` says so.
"""

from math import e, inf, nan, pi

from . import _operators, fft, linalg
from ._creation import (
    arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu,
    zeros, zeros_like,
)
from ._deferred import Deferred
from ._dtypes import (
    __array_namespace_info__, astype, bool, can_cast, complex64, complex128, finfo, float32, float64, iinfo, int8, int16,
    int32, int64, isdtype, result_type, uint8, uint16, uint32, uint64,
)
from ._elementwise import *  # noqa: F401,F403
from ._elementwise import names as _elementwise_names
from ._indexing import nonzero, take, take_along_axis
from ._manipulation import (
    broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, matrix_transpose, moveaxis, permute_dims,
    repeat, reshape, roll, squeeze, stack, tile, unstack,
)
from ._ordering import argsort, isin, searchsorted, sort, unique_all, unique_counts, unique_inverse, unique_values
from ._quantiles import median, quantile
from ._reductions import (
    all, any, argmax, argmin, count_nonzero, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var,
)
from .linalg import matmul, tensordot, vecdot

newaxis = None
__array_api_version__ = "2025.12"

_operators.install()

__all__ = [
    *_elementwise_names,
    "Deferred", "__array_api_version__", "__array_namespace_info__", "all", "any", "arange", "argmax", "argmin", "argsort",
    "asarray", "astype", "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "complex128",
    "complex64", "concat", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "e", "empty", "empty_like",
    "expand_dims", "eye", "fft", "finfo", "flip", "float32", "float64", "from_dlpack", "full", "full_like", "iinfo", "inf",
    "int16", "int32", "int64", "int8", "isdtype", "isin", "linalg", "linspace", "matmul", "matrix_transpose", "max", "mean", "median",
    "meshgrid", "min", "moveaxis", "nan", "newaxis", "nonzero", "ones", "ones_like", "permute_dims", "pi", "prod", "quantile", "repeat",
    "reshape", "result_type", "roll", "searchsorted", "sort", "squeeze", "stack", "std", "sum", "take", "take_along_axis",
    "tensordot", "tile", "tril", "triu", "uint16", "uint32", "uint64", "uint8", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "var", "vecdot", "zeros", "zeros_like",
]
