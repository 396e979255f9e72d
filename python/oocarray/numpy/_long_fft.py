"""Transforms of a line that memory has no room for: the six steps of Bailey (*FFTs in external or hierarchical memory*, J. of
Supercomputing 1990).

With n = n1 n2, the line is a matrix of n1 rows.  It is transposed, rows of n1 are transformed and multiplied by twiddle factors,
it is transposed, rows of n2 are transformed, and it is transposed again: each step is one reading and one writing.  A length that
has no two such factors is made a convolution of a length that has (Bluestein: *A linear filtering approach to the computation of
the discrete Fourier transform*, IEEE Trans. AU 1970).
"""

from __future__ import annotations

import math
from typing import Optional, Tuple

import numpy as np

from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred
from ._manipulation import permute_dims, reshape, seen_in_order
from ._nodes import Elementwise, Generated, Joined, Node, Ranges, Seen, Stored, indices


def longest_line() -> int:
    """Elements that are transformed in memory."""
    return runtime().memory // (16 * 16)


def _factors(n: int) -> Optional[Tuple[int, int]]:
    first = next((k for k in range(math.isqrt(n), 0, -1) if n % k == 0), 1)
    return (first, n // first) if n // first <= longest_line() else None


def _rows(node: Node, sign: int) -> Node:
    """Each row transformed."""
    f = np.fft.fft if sign < 0 else lambda v, axis: np.fft.ifft(v, axis=axis) * v.shape[axis]
    return Stored(_evaluation.by_line(node, (1,), lambda v: f(v, axis=1), node.shape, np.complex128))


def transformed(node: Node, sign: int) -> Node:
    """The sum of x[j] exp(sign 2 pi i j k / n), of a node of one dimension."""
    n = node.shape[0]
    factors = _factors(n)
    if factors is None:
        return _by_convolution(node, sign)
    n1, n2 = factors
    x = reshape(Deferred(node), (n1, n2))
    rows = _rows(permute_dims(x, (1, 0))._node.now(), sign)  # of j2, by k1

    def twiddle(r: Ranges) -> np.ndarray:
        return np.exp(sign * 2j * np.pi / n * ((indices(r[0])[:, None] * indices(r[1])) % n))

    turned = seen_in_order(rows, (1, 0))
    columns = _rows(Elementwise(np.multiply, [turned, Generated((n1, n2), np.complex128, twiddle)], np.complex128), sign)
    natural = permute_dims(Deferred(columns), (1, 0))  # of k1, by k2
    return reshape(natural, (-1,))._node.now()


def _by_convolution(node: Node, sign: int) -> Node:
    n = node.shape[0]
    m = 1 << (2 * n - 2).bit_length()
    if _factors(m) is None:
        raise NotImplementedError(
            f"a line of {n} elements cannot be transformed in this budget: give the runtime {m >> 20} MiB of memory or more"
        )

    def chirp(of: int, r: np.ndarray) -> np.ndarray:
        return np.exp(of * 1j * np.pi / n * ((r * r) % (2 * n)))  # r * r stays exact for lines of 3e9 elements

    line = Generated((n,), np.complex128, lambda r: chirp(sign, indices(r[0])))
    nothing = Generated((m - n,), np.complex128, lambda r: 0)
    padded = Joined([Elementwise(np.multiply, [node, line], np.complex128), nothing], 0, np.complex128)
    around = Generated(
        (m,), np.complex128,
        lambda r: (lambda j: np.where((j < n) | (j > m - n), chirp(-sign, np.minimum(j, m - j)), 0))(indices(r[0])),
    )
    kernel = transformed(Stored(_evaluation.stored(around)), -1)
    spectrum = transformed(Stored(_evaluation.stored(padded)), -1)
    product = Stored(_evaluation.stored(Elementwise(np.multiply, [spectrum, kernel], np.complex128)))
    convolved = Seen(transformed(product, 1), (n,), [(range(n), 0)])
    return Elementwise(lambda v, c: v * c / m, [convolved, line], np.complex128)
