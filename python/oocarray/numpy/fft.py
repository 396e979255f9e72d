"""Fourier transforms: see the extension ``fft`` of the array API standard.

A transform along an axis of which memory has room for whole lines is one pass; a longer line is refused.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from .._numbers import bytes_text
from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred, elementwise, is_small, node_of
from ._dtypes import check_device
from ._manipulation import axes_of, axis_of, moveaxis, roll
from ._nodes import Generated, Held, Node, Stored

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq",
    "rfftn",
]


def _single(dtype: np.dtype) -> Any:
    return dtype in (np.dtype(np.float32), np.dtype(np.complex64))


def _along(x: Any, function: Callable[..., Any], lines: Sequence[int], /, **named: Any) -> Deferred:
    """A transform of NumPy's over boxes with whole lines."""
    node = node_of(x)
    if node.dtype.kind not in "iufc":
        raise TypeError(f"{function.__name__}() is not defined for elements of type {node.dtype}")

    def f(v: np.ndarray) -> Any:
        made = function(v, **named)
        if _single(node.dtype):  # NumPy 1 computes in double precision
            made = made.astype(np.complex64 if made.dtype.kind == "c" else np.float32, copy=False)
        return made

    if is_small(node):
        return deferred(Held(np.asarray(f(_evaluation.held(node)))))
    line = int(np.prod([node.shape[a] for a in lines], dtype=np.int64)) * 16
    if line > runtime().memory // 16:
        raise NotImplementedError(
            f"{function.__name__}() of lines of {bytes_text(line)}: those of up to a 16th of the budget, "
            f"{bytes_text(runtime().memory // 16)}, are transformed: give the runtime more memory"
        )
    of_one = np.asarray(f(np.zeros([n if d in lines else 1 for d, n in enumerate(node.shape)], node.dtype)))
    shape = tuple(of_one.shape[d] if d in lines else n for d, n in enumerate(node.shape))
    return deferred(Stored(_evaluation.by_line(node, lines, f, shape, of_one.dtype)))


def _one_axis(name: str) -> Callable[..., Deferred]:
    function = getattr(np.fft, name)

    def call(x: Any, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Deferred:
        node = node_of(x)
        a = axis_of(axis, len(node.shape))
        last = len(node.shape) - 1
        if a != last and not is_small(node) and node.nbytes > runtime().memory // 2:  # columns: short runs
            return moveaxis(call(moveaxis(x, a, -1), n=n, axis=-1, norm=norm), -1, a)
        return _along(x, function, (a,), n=n, axis=a, norm=norm)

    return call


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
        return _along(x, function, over, s=s, axes=over, norm=norm)

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
