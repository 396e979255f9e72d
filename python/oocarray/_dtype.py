"""NumPy's data types and the library's element types.

A type that the library has a name for is recorded by it ("f8" for float64), so that C++ programs open the file
as what it is.  Any other type of fixed size is recorded as that many bytes ("struct24"), with its description
as .npy files have it in the attribute ``dtype`` of the array.  docs/disk-format.md has this as an interface: `ooc import`
and `ooc export` read and write the same.
"""

from __future__ import annotations

import ast
from typing import Any, Mapping, Optional, Tuple

import numpy as np

ATTRIBUTE = "dtype"

_largest_element = 1 << 16
_named = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "f16", "c8", "c16", "c32"}
_long_doubles = {"f16", "c32"}  # those of x86
_has_long_doubles = np.finfo(np.longdouble).nmant == 63


def _require_long_doubles(name: str) -> None:
    if name in _long_doubles and not _has_long_doubles:
        raise TypeError(
            f"elements of type {name} are long doubles of x86 in a store, and this processor has others: "
            "store them as float64, or convert them on the machine that wrote them"
        )


def _of_others(dtype: np.dtype) -> Optional[np.dtype]:
    """The type, or that of a field, that a package other than NumPy has made, as ml_dtypes' bfloat16."""
    if dtype.subdtype is not None:
        return _of_others(dtype.subdtype[0])
    fields: Mapping[str, Any] = dtype.fields or {}
    return dtype if dtype.isbuiltin == 2 else next(filter(None, (_of_others(f[0]) for f in fields.values())), None)


def is_named(dtype: np.dtype) -> bool:
    """Whether the library has a name for it, so that the attribute ``dtype`` is the user's own."""
    return f"{dtype.kind}{dtype.itemsize}" in _named and dtype.isnative and dtype.isbuiltin != 2


def element_of(dtype: np.dtype) -> Tuple[str, int, Optional[str]]:
    """Name and bytes of an element, and the attribute that its type needs, if it does."""
    if dtype.hasobject:
        raise TypeError(
            f"elements of type {dtype} are Python objects, which have no bytes to store: give the array a type "
            "of fixed size first"
        )
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        raise TypeError(f"elements of type {dtype} are arrays: append {shape} to the shape, and use {base}")
    if not 0 < dtype.itemsize <= _largest_element:
        raise TypeError(
            f"elements of type {dtype!r} have {dtype.itemsize} bytes: 1 to {_largest_element} are possible"
        )
    foreign = _of_others(dtype)
    if foreign is not None:
        raise TypeError(
            f"elements of type {foreign} are none of NumPy's, and no file says what they are ({foreign.type.__module__} does): "
            f"store their bytes, a.view('u{foreign.itemsize}'), and take a view of that type of the array"
        )
    if is_named(dtype):
        name = f"{dtype.kind}{dtype.itemsize}"
        _require_long_doubles(name)
        return name, dtype.itemsize, None
    try:
        description = np.lib.format.dtype_to_descr(dtype)
        if np.lib.format.descr_to_dtype(description) != dtype:
            raise ValueError("its fields overlap or are out of order")
    except ValueError as why:
        raise TypeError(f"elements of type {dtype} cannot be described in a file: {why}") from None
    return f"struct{dtype.itemsize}", dtype.itemsize, repr(description)


def dtype_of(path: str, name: str, size: int, attributes: Mapping[str, str]) -> np.dtype:
    """The type of the elements of an array in a store."""
    if name in _named:
        _require_long_doubles(name)
        return np.dtype(name)
    described = attributes.get(ATTRIBUTE)
    if described is None:
        return np.dtype(f"V{size}")
    try:
        literal: Any = ast.literal_eval(described)
        dtype = np.lib.format.descr_to_dtype(literal)
    except (ValueError, SyntaxError, TypeError) as why:
        raise TypeError(
            f"array '{path}': its attribute '{ATTRIBUTE}' is {described!r}, which describes no type ({why}): "
            f"set it right, or remove it to see the elements as {size} bytes"
        ) from None
    if dtype.itemsize != size or dtype.hasobject:
        raise TypeError(
            f"array '{path}': its attribute '{ATTRIBUTE}' describes elements of {dtype.itemsize} bytes, and the "
            f"file holds elements of {size}: set it right, or remove it to see the elements as bytes"
        )
    return dtype
