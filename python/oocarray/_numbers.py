"""Numbers that a program gives, of Python or NumPy, as the library takes them; `what` names them in messages."""

from __future__ import annotations

import operator
import re
from typing import Any, List, Tuple, Union

from ._errors import InvalidRequest

Shape = Union[int, Tuple[int, ...], List[int]]

_units = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_most = (1 << 63) - 1
_longest_seconds = 1e9  # 31 years: for ever


def count(value: Any, what: str, most: int = _most) -> int:
    """A whole number from 0 to `most`."""
    if isinstance(value, bool):  # which Python counts with
        raise TypeError(f"{what}={value!r} is no whole number")
    try:
        n = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}={value!r} is no whole number") from None
    if not 0 <= n <= most:
        raise InvalidRequest(f"{what}={n}: give a number from 0 to {most}")
    return n


def small_count(value: Any, what: str) -> int:
    """A whole number of 32 bits."""
    return count(value, what, (1 << 32) - 1)


def counts(values: Any, what: str) -> Tuple[int, ...]:
    """A whole number for each dimension."""
    try:
        numbers = tuple(values)
    except TypeError:
        raise TypeError(f"{what}={values!r}: give a number for each dimension, as ({values!r},)") from None
    try:
        return tuple(count(n, what) for n in numbers)
    except (TypeError, InvalidRequest) as why:
        raise type(why)(f"{why}, in {what}={values!r}") from None


def shape_of(values: Any, what: str = "shape") -> Tuple[int, ...]:
    """Extents; one number is that of one dimension."""
    if isinstance(values, bool):
        return (count(values, what),)
    try:
        one = operator.index(values)
    except TypeError:
        return counts(values, what)
    return (count(one, what),)


def parse_bytes(size: Any, what: str = "size") -> int:
    """The number of bytes in 4096, "4096", "64KiB", "512M" or "1.5GiB"; K, M, G and T are powers of 1024."""
    if not isinstance(size, str):
        try:
            return count(size, what)
        except TypeError as why:
            raise TypeError(f"{why}: write, for example, {what}=4096 or {what}='512MiB'") from None
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", size, re.IGNORECASE)
    if not found:
        raise InvalidRequest(f"{what}='{size}' is no size: write, for example, 512MiB or 2G")
    return count(int(float(found[1]) * _units[found[2].lower()]), what)


def seconds(value: Any, what: str) -> float:
    """A time to wait; infinity is for ever."""
    try:
        s = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what}={value!r} is no number of seconds") from None
    if not s >= 0:
        raise InvalidRequest(f"{what}={s}: give a number of seconds from 0 on")
    return min(s, _longest_seconds)


def flag(value: Any, what: str) -> bool:
    """Whether it is true."""
    return bool(value)


def bytes_text(n: int) -> str:
    """A number of bytes for a person to read."""
    size, unit = float(n), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"
