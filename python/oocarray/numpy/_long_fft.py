"""Transforms of a line that memory has no room for.

``ooc::fft`` (oocarray/algorithm/fft.hpp) makes them in two passes.  A length that is no product of two lengths that fit into
memory is made a convolution of a length that is (Bluestein: *A linear filtering approach to the computation of the discrete
Fourier transform*, IEEE Trans. AU 1970).
"""

from __future__ import annotations

import numpy as np

from .._errors import BudgetTooSmall
from .._product import engine
from .._runtime import runtime
from . import _evaluation
from ._nodes import Elementwise, Generated, Joined, Node, Seen, Stored, indices
from ._scratch import scratch


#: Of the types that are transformed as they are.
_results = {np.dtype(x): np.dtype(y) for x, y in (("f4", "c8"), ("c8", "c8"), ("f8", "c16"), ("c16", "c16"))}


def longest_line() -> int:
    """Elements that are transformed by NumPy, with the lines beside them."""
    return runtime().memory // (16 * 16)


def transformed(node: Node, sign: int, scale: float = 1.0) -> Node:
    """The sum of x[j] exp(sign 2 pi i j k / n), times `scale`, of a node of one dimension."""
    if node.dtype not in _results:
        node = Elementwise(np.asarray, [node], np.complex128 if node.dtype.kind == "c" else np.float64)
    dtype, source = _results[node.dtype], _evaluation.stored(node)
    made = scratch(node.shape, dtype)
    try:
        engine("fft")(source._core, made._core, sign > 0, scale, {"mark": False})
    except BudgetTooSmall:
        if node.shape[0] & (node.shape[0] - 1) == 0:
            raise  # no length is easier than a power of two
        del made  # and its room
        return _by_convolution(Stored(source), sign, scale, dtype)
    return Stored(made)


def _by_convolution(node: Node, sign: int, scale: float, dtype: np.dtype) -> Node:
    n = node.shape[0]
    m = 1 << (2 * n - 2).bit_length()

    def chirp(of: int, r: np.ndarray) -> np.ndarray:
        return np.exp(of * 1j * np.pi / n * ((r * r) % (2 * n)))  # r * r stays exact for lines of 3e9 elements

    line = Generated((n,), np.complex128, lambda r: chirp(sign, indices(r[0])))
    nothing = Generated((m - n,), np.complex128, lambda r: 0)
    padded = Joined([Elementwise(np.multiply, [node, line], np.complex128), nothing], 0, np.complex128)
    around = Generated(
        (m,), np.complex128,
        lambda r: (lambda j: np.where((j < n) | (j > m - n), chirp(-sign, np.minimum(j, m - j)), 0))(indices(r[0])),
    )
    product = Elementwise(np.multiply, [transformed(padded, -1), transformed(around, -1)], np.complex128)
    convolved = Seen(transformed(product, 1, scale / m), (n,), [(range(n), 0)])
    return Elementwise(np.multiply, [convolved, line], dtype)
