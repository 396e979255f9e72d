"""Types of elements, and what is known of them."""

from __future__ import annotations

import types
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ._deferred import Deferred, elementwise, node_of
from ._nodes import Elementwise, Held, Node

# Types and not dtypes, as numpy's: ``np.dtype("float64") == None`` is true.
bool = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float32, float64 = np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128

_kinds: Dict[str, Tuple[np.dtype, ...]] = {
    "bool": (np.dtype(bool),),
    "signed integer": tuple(np.dtype(t) for t in (int8, int16, int32, int64)),
    "unsigned integer": tuple(np.dtype(t) for t in (uint8, uint16, uint32, uint64)),
    "real floating": tuple(np.dtype(t) for t in (float32, float64)),
    "complex floating": tuple(np.dtype(t) for t in (complex64, complex128)),
}
_kinds["integral"] = _kinds["signed integer"] + _kinds["unsigned integer"]
_kinds["numeric"] = _kinds["integral"] + _kinds["real floating"] + _kinds["complex floating"]


def dtype_of(x: Any) -> np.dtype:
    return np.dtype(x) if isinstance(x, type) or not hasattr(x, "dtype") else x.dtype


def is_scalar(x: Any) -> Any:
    """Of Python, so that it takes the type of the arrays beside it."""
    return isinstance(x, (int, float, complex)) and not isinstance(x, np.generic)


def _of_scalar(x: Any, beside: np.dtype) -> np.dtype:
    if isinstance(x, type(True)) or beside.kind in "fc" and not (isinstance(x, complex) and beside.kind == "f"):
        return np.dtype("bool") if isinstance(x, type(True)) and beside.kind == "b" else beside
    if isinstance(x, int):
        return np.dtype("int64") if beside.kind == "b" else beside
    if isinstance(x, float):
        return np.dtype("float64")
    return np.dtype("complex64") if beside in (np.float16, np.float32) else np.dtype("complex128")


def common_type(*given: Any) -> np.dtype:
    """The type that arrays and types have in common; a number of Python takes part by its kind."""
    types_ = [dtype_of(x) for x in given if not is_scalar(x)]
    if not types_:
        return np.result_type(*given)
    common = np.result_type(*types_)
    for x in given:
        if is_scalar(x):
            common = np.result_type(common, _of_scalar(x, common))
    return common


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """See the array API standard."""
    if not arrays_and_dtypes:
        raise ValueError("result_type() needs an array or a type")
    return common_type(*arrays_and_dtypes)


def nodes_of(*given: Any) -> List[Node]:
    """Nodes of arrays and numbers, the numbers in the type that arrays beside them give them."""
    common = common_type(*given)

    def one(x: Any) -> Node:
        if not is_scalar(x):
            return node_of(x)
        if isinstance(x, int) and common.kind in "iu" and not np.iinfo(common).min <= x <= np.iinfo(common).max:
            raise OverflowError(f"{x} is no number of type {common}")
        return Held(np.asarray(x, common if np.can_cast(np.result_type(x), common, "unsafe") else None))

    return [one(x) for x in given]


def cast(node: Node, dtype: np.dtype) -> Node:
    if node.dtype == dtype:
        return node
    return Elementwise(lambda x: x.astype(dtype), [node], dtype)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Optional[str] = None) -> Deferred:
    """See the array API standard."""
    check_device(device)
    node, to = node_of(x), np.dtype(dtype)
    if node.dtype == to and not copy:
        return x if isinstance(x, Deferred) else Deferred(node)
    if node.dtype.kind == "c" and to.kind not in "cb":
        raise TypeError(f"{node.dtype} has no value of type {to}: take real() or imag() first")
    return elementwise(lambda v: v.astype(to), [node], to)


def can_cast(from_: Any, to: Any, /) -> Any:
    """See the array API standard."""
    return np.can_cast(dtype_of(from_), dtype_of(to))


def isdtype(dtype: Any, kind: Any) -> Any:
    """See the array API standard."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _kinds:
            raise ValueError(f"{kind!r} is no kind of types; there are: {', '.join(_kinds)}")
        return np.dtype(dtype) in _kinds[kind]
    return np.dtype(dtype) == np.dtype(kind)


def finfo(type: Any, /) -> Any:
    """See the array API standard."""
    of = np.finfo(dtype_of(type))
    return types.SimpleNamespace(
        bits=of.bits, eps=float(of.eps), max=float(of.max), min=float(of.min), smallest_normal=float(of.tiny),
        dtype=np.dtype(of.dtype),
    )


def iinfo(type: Any, /) -> Any:
    """See the array API standard."""
    of = np.iinfo(dtype_of(type))
    return types.SimpleNamespace(bits=of.bits, max=int(of.max), min=int(of.min), dtype=np.dtype(of.dtype))


def check_device(device: Optional[str]) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"device {device!r}: arrays are on 'cpu'")


class _Info:
    """What the namespace can do: see the array API standard."""

    def capabilities(self) -> Dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        return "cpu"

    def default_dtypes(self, *, device: Optional[str] = None) -> Dict[str, np.dtype]:
        check_device(device)
        of = {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}
        return {kind: np.dtype(t) for kind, t in of.items()}

    def dtypes(self, *, device: Optional[str] = None, kind: Any = None) -> Dict[str, np.dtype]:
        check_device(device)
        wanted = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        return {str(d): d for k in wanted for d in _kinds[k]}

    def devices(self) -> Tuple[str, ...]:
        return ("cpu",)


def __array_namespace_info__() -> _Info:
    """See the array API standard."""
    return _Info()
