"""The operators of arrays of the namespace, and what they have by name."""

from __future__ import annotations

from typing import Any, Callable, Dict

from .. import _core
from . import _elementwise, _manipulation, linalg
from ._deferred import Deferred, has_own_rules
from ._dtypes import is_scalar
from ._indexing import replace

import numpy as np

_binary: Dict[str, str] = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_compared: Dict[str, str] = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}
_unary: Dict[str, str] = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}


def _is_operand(other: Any) -> Any:
    known = is_scalar(other) or isinstance(other, (_core.ArrayBase, np.ndarray, np.generic))
    return known and not has_own_rules(type(other))


def _checked_number(x: Deferred, other: Any) -> None:
    """A number of Python must have a value in the type of the array."""
    kind = x.dtype.kind
    if isinstance(other, bool):
        fits = kind == "b"
    elif isinstance(other, int):
        fits = kind in "iufc"
    elif isinstance(other, float):
        fits = kind in "fc"
    else:
        fits = not isinstance(other, complex) or kind in "fc"
    if not fits:
        raise TypeError(f"{other!r} is no number of type {x.dtype}")


def _operator(function: Callable[..., Any], compares: bool = False) -> Callable[..., Any]:
    def call(self: Deferred, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        if not compares:
            _checked_number(self, other)
        return function(self, other)

    return call


def _turned(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Deferred, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        _checked_number(self, other)
        return function(other, self)

    return call


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Deferred, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        _checked_number(self, other)
        return replace(self, function(self, other))

    return call


def _transposed(self: Deferred) -> Deferred:
    """The transposition of a matrix."""
    if self.ndim != 2:
        raise ValueError(f"T is of two dimensions, and not of {self.ndim}: take mT or permute_dims()")
    return _manipulation.matrix_transpose(self)


def namespace(api_version: Any = None) -> Any:
    """The module `oocarray.numpy`; see the array API standard."""
    from oocarray import numpy

    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"version {api_version!r} of the array API is not known here; {numpy.__array_api_version__} is")
    return numpy


def install() -> None:
    """Gives `Deferred` its operators."""
    of: Any = Deferred
    for name, function in _unary.items():
        setattr(of, f"__{name}__", lambda self, f=getattr(_elementwise, function): f(self))
    for name, function in _compared.items():
        setattr(of, f"__{name}__", _operator(getattr(_elementwise, function), compares=True))
    for name, function in _binary.items():
        f = getattr(_elementwise, function)
        setattr(of, f"__{name}__", _operator(f))
        setattr(of, f"__r{name}__", _turned(f))
        setattr(of, f"__i{name}__", _in_place(f))
    of.__matmul__ = _operator(linalg.matmul)
    of.__rmatmul__ = _turned(linalg.matmul)
    of.__imatmul__ = _in_place(linalg.matmul)
    of.__hash__ = None
    of.T, of.mT = property(_transposed), property(lambda self: _manipulation.matrix_transpose(self))
