"""Functions of one element of each array: see the array API standard.

What they give is computed together with what it is made of and what is made of it, in one pass.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from . import _evaluation
from ._deferred import Deferred, elementwise, node_of
from ._dtypes import cast, common_type, is_scalar, nodes_of
from ._nodes import Held, Node

Function = Callable[..., Any]


def _unless_whole(f: Function) -> Function:
    """Integers stay as they are."""
    return lambda x: x if x.dtype.kind in "iub" else f(x)


def _sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    with np.errstate(all="ignore"):
        return np.where(size == 0, x.dtype.type(0), x / size)


def _round(x: np.ndarray) -> np.ndarray:
    return np.rint(x)


def _real_or_same(f: Function) -> Function:
    return lambda x: f(x) if x.dtype.kind == "c" else x


_unary: Dict[str, Tuple[Function, str]] = {
    # The function, and the kinds of types that it takes.
    "abs": (np.abs, "iufc"),
    "acos": (np.arccos, "iufc"),
    "acosh": (np.arccosh, "iufc"),
    "asin": (np.arcsin, "iufc"),
    "asinh": (np.arcsinh, "iufc"),
    "atan": (np.arctan, "iufc"),
    "atanh": (np.arctanh, "iufc"),
    "bitwise_invert": (np.invert, "biu"),
    "ceil": (_unless_whole(np.ceil), "iuf"),
    "conj": (np.conj, "iufc"),
    "cos": (np.cos, "iufc"),
    "cosh": (np.cosh, "iufc"),
    "exp": (np.exp, "iufc"),
    "expm1": (np.expm1, "iufc"),
    "floor": (_unless_whole(np.floor), "iuf"),
    "imag": (np.imag, "iufc"),
    "isfinite": (np.isfinite, "iufc"),
    "isinf": (np.isinf, "iufc"),
    "isnan": (np.isnan, "iufc"),
    "log": (np.log, "iufc"),
    "log10": (np.log10, "iufc"),
    "log1p": (np.log1p, "iufc"),
    "log2": (np.log2, "iufc"),
    "logical_not": (np.logical_not, "biufc"),
    "negative": (np.negative, "iufc"),
    "positive": (lambda x: x, "iufc"),
    "real": (_real_or_same(np.real), "iufc"),
    "reciprocal": (np.reciprocal, "iufc"),
    "round": (_unless_whole(_round), "iufc"),
    "sign": (_sign, "iufc"),
    "signbit": (np.signbit, "iuf"),
    "sin": (np.sin, "iufc"),
    "sinh": (np.sinh, "iufc"),
    "sqrt": (np.sqrt, "iufc"),
    "square": (np.square, "iufc"),
    "tan": (np.tan, "iufc"),
    "tanh": (np.tanh, "iufc"),
    "trunc": (_unless_whole(np.trunc), "iuf"),
}

_binary: Dict[str, Tuple[Function, str]] = {
    "add": (np.add, "iufc"),
    "atan2": (np.arctan2, "iuf"),
    "bitwise_and": (np.bitwise_and, "biu"),
    "bitwise_left_shift": (np.left_shift, "iu"),
    "bitwise_or": (np.bitwise_or, "biu"),
    "bitwise_right_shift": (np.right_shift, "iu"),
    "bitwise_xor": (np.bitwise_xor, "biu"),
    "copysign": (np.copysign, "iuf"),
    "divide": (np.true_divide, "iufc"),
    "equal": (np.equal, "biufc"),
    "floor_divide": (np.floor_divide, "iuf"),
    "greater": (np.greater, "biuf"),
    "greater_equal": (np.greater_equal, "biuf"),
    "hypot": (np.hypot, "iuf"),
    "less": (np.less, "biuf"),
    "less_equal": (np.less_equal, "biuf"),
    "logaddexp": (np.logaddexp, "iuf"),
    "logical_and": (np.logical_and, "biufc"),
    "logical_or": (np.logical_or, "biufc"),
    "logical_xor": (np.logical_xor, "biufc"),
    "maximum": (np.maximum, "iuf"),
    "minimum": (np.minimum, "iuf"),
    "multiply": (np.multiply, "iufc"),
    "nextafter": (np.nextafter, "iuf"),
    "not_equal": (np.not_equal, "biufc"),
    "pow": (np.power, "iufc"),
    "remainder": (np.remainder, "iuf"),
    "subtract": (np.subtract, "iufc"),
}


@functools.lru_cache(maxsize=None)
def _type_of_result(name: str, *dtypes: np.dtype) -> np.dtype:
    f = (_unary if len(dtypes) == 1 else _binary)[name][0]
    with np.errstate(all="ignore"):
        return np.asarray(f(*(np.ones(1, d) for d in dtypes))).dtype


def _check(name: str, kinds: str, dtype: np.dtype) -> None:
    if dtype.kind not in kinds:
        raise TypeError(f"{name}() is not defined for elements of type {dtype}")


def _one_argument(name: str) -> Function:
    f, kinds = _unary[name]

    def call(x: Any, /) -> Deferred:
        node = node_of(x)
        _check(name, kinds, node.dtype)
        return elementwise(f, [node], _type_of_result(name, node.dtype))

    return call


def _two_arguments(name: str) -> Function:
    f, kinds = _binary[name]

    def call(x1: Any, x2: Any, /) -> Deferred:
        if is_scalar(x1) and is_scalar(x2):
            raise TypeError(f"{name}() needs an array")
        common = common_type(x1, x2)
        _check(name, kinds, common)
        nodes = [cast(n, common) for n in nodes_of(x1, x2)]
        return elementwise(f, nodes, _type_of_result(name, common, common))

    return call


for _name in (*_unary, *_binary):
    _made = (_one_argument if _name in _unary else _two_arguments)(_name)
    _made.__name__ = _made.__qualname__ = _name
    _made.__doc__ = f"{_name}() of each element: see the array API standard."
    globals()[_name] = _made

names = [*_unary, *_binary, "clip", "where"]


def clip(x: Any, /, min: Any = None, max: Any = None) -> Deferred:
    """See the array API standard; the type is that of `x`."""
    node = node_of(x)
    _check("clip", "iuf", node.dtype)
    bounds = [(b, f) for b, f in ((min, np.maximum), (max, np.minimum)) if b is not None]
    nodes = [node] + [_bound(b, node.dtype) for b, _ in bounds]

    def clipped(v: np.ndarray, *limits: np.ndarray) -> np.ndarray:
        for (_, f), limit in zip(bounds, limits):
            v = f(v, limit)
        return v

    return elementwise(clipped, nodes, node.dtype)


def _bound(bound: Any, dtype: np.dtype) -> Any:
    if is_scalar(bound):
        if dtype.kind in "iu":  # what no element can reach is no bound
            of = np.iinfo(dtype)
            if isinstance(bound, float) and bound != bound:
                raise ValueError("NaN is no bound of integers")
            bound = of.min if bound < of.min else of.max if bound > of.max else bound
        return Held(np.asarray(bound, dtype))
    return cast(node_of(bound), common_type(bound, dtype)) if node_of(bound).dtype != dtype else node_of(bound)


def where(condition: Any, x1: Any, x2: Any, /) -> Deferred:
    """See the array API standard."""
    if node_of(condition).dtype.kind != "b":
        raise TypeError(f"the condition of where() is of type {node_of(condition).dtype}, and not bool")
    common = common_type(x1, x2) if not (is_scalar(x1) and is_scalar(x2)) else np.result_type(type(x1), type(x2))
    nodes = [cast(n, common) for n in nodes_of(x1, x2)]
    return elementwise(np.where, [node_of(condition), *nodes], common)


def ufunc_result(ufunc: np.ufunc, inputs: Any, named: Dict[str, Any]) -> Optional[Deferred]:
    """What a ufunc of NumPy gives for arrays; None where it is no function of elements."""
    if ufunc.nout != 1 or ufunc.signature is not None or not set(named) <= {"dtype", "casting"}:
        return None
    return of_numpy(ufunc, inputs, named)


def of_numpy(function: Function, inputs: Any, named: Dict[str, Any]) -> Optional[Deferred]:
    """What a function of NumPy gives for each element of arrays, numbers and None, by NumPy's own rules of types; None where
    that are objects."""
    arrays = [node_of(x) if hasattr(x, "dtype") else x for x in inputs]
    # Of what has no dimensions the value: NumPy 1 chooses the type by it.
    example = [
        x if not isinstance(x, Node) else np.ones((1,) * len(x.shape), x.dtype) if x.shape else _evaluation.held(x) for x in arrays
    ]
    with np.errstate(all="ignore"):
        dtype = np.asarray(function(*example, **named)).dtype
    if dtype.kind == "O":
        return None

    def f(*parts: np.ndarray) -> Any:
        given = iter(parts)
        return function(*(next(given) if isinstance(x, Node) else x for x in arrays), **named)

    return elementwise(f, [x for x in arrays if isinstance(x, Node)], dtype)
