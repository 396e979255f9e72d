"""Fourier transforms: see the extension ``fft`` of the array API standard.

A transform along an axis of which memory has room for whole lines is one pass.  A longer line is transformed in two passes on the
disk.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional, Sequence

import numpy as np

from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred, elementwise, is_small, node_of
from ._dtypes import check_device
from ._long_fft import longest_line, transformed
from ._manipulation import axes_of, axis_of, moveaxis, reshape, roll, stack
from ._nodes import Elementwise, Generated, Held, Joined, Node, Seen, Stored, indices

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq",
    "rfftn",
]


def _single(dtype: np.dtype) -> Any:
    return dtype in (np.dtype(np.float32), np.dtype(np.complex64))


def _numbers(x: Any, name: str) -> Node:
    node = node_of(x)
    if node.dtype.kind not in "iufc":
        raise TypeError(f"{name}() is not defined for elements of type {node.dtype}")
    return node


def _along(x: Any, function: Callable[..., Any], lines: Sequence[int], /, **named: Any) -> Deferred:
    """A transform of NumPy's over boxes with whole lines."""
    node = _numbers(x, function.__name__)

    def f(v: np.ndarray) -> Any:
        made = function(v, **named)
        if _single(node.dtype):  # NumPy 1 computes in double precision
            made = made.astype(np.complex64 if made.dtype.kind == "c" else np.float32, copy=False)
        return made

    if is_small(node):
        return deferred(Held(np.asarray(f(_evaluation.held(node)))))
    of_one = np.asarray(f(np.zeros([n if d in lines else 1 for d, n in enumerate(node.shape)], node.dtype)))
    shape = tuple(of_one.shape[d] if d in lines else n for d, n in enumerate(node.shape))
    return deferred(Stored(_evaluation.by_line(node, lines, f, shape, of_one.dtype)))


def _one_axis(name: str) -> Callable[..., Deferred]:
    function = getattr(np.fft, name)

    def call(x: Any, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Deferred:
        node = _numbers(x, name)
        a = axis_of(axis, len(node.shape))
        if node.shape[a] > longest_line() and not is_small(node):
            return _of_long_lines(name, x, n, a, norm)
        last = len(node.shape) - 1
        if a != last and not is_small(node) and node.nbytes > runtime().memory // 2:  # columns: short runs
            return moveaxis(call(moveaxis(x, a, -1), n=n, axis=-1, norm=norm), -1, a)
        return _along(x, function, (a,), n=n, axis=a, norm=norm)

    return call


def _of_long_lines(name: str, x: Any, n: Optional[int], a: int, norm: str) -> Deferred:
    """Line by line, where memory has no room for one; see `_long_fft`."""
    node = node_of(x)
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"norm={norm!r}: choose 'backward', 'ortho' or 'forward'")
    lines = reshape(moveaxis(x, a, -1), (-1, node.shape[a]))
    rest = node.shape[:a] + node.shape[a + 1 :]
    if lines.shape[0] == 1:
        made = _long_line(name, reshape(x, (-1,))._node.now(), n, norm)
        return moveaxis(reshape(made, (*rest, made.shape[0])), -1, a)
    each = [_long_line(name, lines[i, :]._node.now(), n, norm) for i in range(lines.shape[0])]
    return moveaxis(reshape(stack(each), (*rest, each[0].shape[0])), -1, a)


def _long_line(name: str, node: Node, n: Optional[int], norm: str) -> Deferred:
    to_real, of_real = name in ("irfft", "hfft"), name in ("rfft", "ihfft")
    size = n if n is not None else 2 * (node.shape[0] - 1) if to_real else node.shape[0]
    if size < 1:
        raise ValueError(f"n={size}: a transform has one element at least")
    given = size // 2 + 1 if to_real else size
    line = node if given >= node.shape[0] else Seen(node, (given,), [(range(given), 0)])
    if given > node.shape[0]:
        line = Joined([line, Generated((given - node.shape[0],), node.dtype, lambda r: 0)], 0, node.dtype)
    if to_real:  # the other half is that of a line of real numbers
        rest = range(1, size - given + 1)[::-1]
        line = Joined([line, Elementwise(np.conj, [Seen(line, (len(rest),), [(rest, 0)])], node.dtype)], 0, node.dtype)
        ends = [0, size // 2] if size % 2 == 0 else [0]  # of which no imaginary part counts
        line = Elementwise(_without_imaginary(ends), [line, Generated((size,), np.int64, lambda r: indices(r[0]))], node.dtype)
    inverse = name in ("ifft", "irfft", "ihfft")
    scale = {"backward": 1 / size if inverse else 1.0, "ortho": size**-0.5, "forward": 1.0 if inverse else 1 / size}[norm]
    made = transformed(line, 1 if inverse else -1, scale)
    if to_real:
        return elementwise(np.real, [made], np.float32 if _single(node.dtype) else np.float64)
    if of_real:
        made = Seen(made, (size // 2 + 1,), [(range(size // 2 + 1), 0)])
    return deferred(made)


def _without_imaginary(ends: Sequence[int]) -> Callable[..., Any]:
    return lambda v, at: np.where(np.isin(at, ends), v.real, v)


def _axis_by_axis(name: str, x: Any, lengths: Dict[int, Optional[int]], norm: str) -> Deferred:
    """`lengths`: of each axis; the last one is that of real numbers."""
    whole = {"rfft": fft, "irfft": ifft}.get(name)  # type: ignore[name-defined]
    last = next(reversed(lengths)) if whole else -1
    if name == "rfft":
        x = rfft(x, n=lengths[last], axis=last, norm=norm)  # type: ignore[name-defined]
    for a, n in lengths.items():
        if a != last:
            x = (whole or globals()[name])(x, n=n, axis=a, norm=norm)
    if name == "irfft":
        x = irfft(x, n=lengths[last], axis=last, norm=norm)  # type: ignore[name-defined]
    return x


def _many_axes(name: str) -> Callable[..., Deferred]:
    function = getattr(np.fft, name)

    def call(
        x: Any, /, *, s: Optional[Sequence[int]] = None, axes: Optional[Sequence[int]] = None, norm: str = "backward"
    ) -> Deferred:
        ndim = len(node_of(x).shape)
        if axes is None:
            over = tuple(range(ndim) if s is None else range(ndim - len(s), ndim))
        else:
            over = axes_of(tuple(axes), ndim)
        node = node_of(x)
        if is_small(node) or math.prod(node.shape[a] for a in over) <= longest_line():
            return _along(x, function, over, s=s, axes=over, norm=norm)
        of_axis = {a: n for a, n in zip(over, s if s is not None else [None] * len(over))}
        return _axis_by_axis(name[:-1], x, of_axis, norm)

    return call


for _name in __all__:
    if "shift" in _name or "freq" in _name:
        continue
    _made = (_many_axes if _name.endswith("n") else _one_axis)(_name)
    _made.__name__ = _made.__qualname__ = _name
    _made.__doc__ = f"{_name}(): see the array API standard."
    globals()[_name] = _made


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See the array API standard."""
    check_device(device)
    return deferred(Held(np.fft.fftfreq(n, d).astype(np.float64 if dtype is None else dtype)))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See the array API standard."""
    check_device(device)
    return deferred(Held(np.fft.rfftfreq(n, d).astype(np.float64 if dtype is None else dtype)))


def fftshift(x: Any, /, *, axes: Any = None) -> Deferred:
    """See the array API standard."""
    shape = node_of(x).shape
    over = axes_of(axes, len(shape))
    return roll(x, tuple(shape[a] // 2 for a in over), axis=over)


def ifftshift(x: Any, /, *, axes: Any = None) -> Deferred:
    """See the array API standard."""
    shape = node_of(x).shape
    over = axes_of(axes, len(shape))
    return roll(x, tuple(-(shape[a] // 2) for a in over), axis=over)
