"""Sums, means, extremes of the values that have the same key, in one reading of both."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ._algorithms import checked, progress_of
from ._array import Array
from ._errors import BudgetTooSmall
from ._pieces import pieces
from ._runtime import runtime

_possible = ("count", "sum", "mean", "var", "std", "min", "max")

Parts = Dict[str, np.ndarray]  #: by what is kept of a group, each with an element for each group; "keys" ascending


def group_by(
    keys: Array, values: Optional[Array] = None, how: Sequence[str] = ("count", "sum", "mean"), *, progress: Any = None
) -> Parts:
    """What the values with the same key have in common: their number, sum, mean, ..., as ``pandas.groupby`` has them.

    ::

        g = oocarray.group_by(station, temperature, ("mean", "max"))
        g["keys"], g["mean"], g["max"]        # NumPy arrays, ascending by key
        oocarray.group_by(station)["count"]

    Both arrays are read once.  What is kept of the groups must fit in a quarter of the budget; nothing else grows with their
    number.

    Parameters
    ----------
    keys : Array
        Of any type that can be sorted.  NaN is a key like others.
    values : Array
        Of numbers, and of the same shape; without it only "count" can be asked for.
    how : sequence of str
        Of "count", "sum", "mean", "var", "std" (of the values as a population, ``ddof=0``), "min", "max".  Sums of integers
        are exact in 64 bits, those of floats are added up in double precision; NaN makes its group NaN.
    progress : callable or True
        See `oocarray._algorithms`.

    Raises
    ------
    BudgetTooSmall
        For too many groups.
    ValueError, TypeError
    """
    wanted = (how,) if isinstance(how, str) else tuple(how)
    if values is None and wanted == ("count", "sum", "mean"):
        wanted = ("count",)
    for name in wanted:
        if name not in _possible:
            raise ValueError(f"how={name!r}: of a group there are {', '.join(_possible)}")
        if values is None and name != "count":
            raise ValueError(f"how={name!r} needs values")
    checked(keys)
    if values is not None:
        if checked(values).shape != keys.shape:
            raise ValueError(f"array '{keys.path}' has the shape {keys.shape}, and array '{values.path}' {values.shape}")
        if values.dtype.kind not in "biufc" or (values.dtype.kind == "c" and {"min", "max"} & set(wanted)):
            raise TypeError(f"array '{values.path}' has elements of type {values.dtype}, which have no {', '.join(wanted)}")
    return _asked(_all_parts(keys, values, wanted, progress_of(progress)), wanted)


def _all_parts(keys: Array, values: Optional[Array], wanted: Sequence[str], tell: Any) -> Parts:
    found: List[Parts] = []
    done, groups = 0, 0
    for box in pieces(tuple(slice(0, n) for n in keys.shape), max(keys.itemsize, values.itemsize if values is not None else 0)):
        k = keys.read(box).ravel()
        found.append(_parts_of(k, None if values is None else values.read(box).ravel(), wanted))
        # What has been found so far is joined when it has doubled: each group is gone over a few times.
        if sum(len(p["keys"]) for p in found) > 2 * groups:
            found = [_joined(found, keys)]
            groups = len(found[0]["keys"])
        done += k.nbytes
        if tell is not None:
            tell(done, keys.nbytes)
    return _joined(found, keys) if found else _parts_of(np.empty(0, keys.dtype), np.empty(0), wanted)


def _first_of_groups(ascending: np.ndarray) -> np.ndarray:
    """Where each group begins, among keys that are in order."""
    other = ascending[1:] != ascending[:-1]
    if ascending.dtype.kind in "fcmM":  # of which some are not equal to themselves
        other &= (ascending[1:] == ascending[1:]) | (ascending[:-1] == ascending[:-1])
    return np.concatenate([[0], np.flatnonzero(other) + 1]) if len(ascending) else np.empty(0, "i8")


def _parts_of(k: np.ndarray, v: Optional[np.ndarray], wanted: Sequence[str]) -> Parts:
    order = np.argsort(k, kind="stable")
    ascending = k[order]
    first = _first_of_groups(ascending)
    parts = {"keys": ascending[first], "count": np.diff(np.append(first, len(k)))}
    if v is None or not len(first):
        return parts
    v = v[order]
    if {"sum", "mean", "var", "std"} & set(wanted):
        parts["sum"] = np.add.reduceat(v, first, dtype=_sum_type(v.dtype))
    if {"var", "std"} & set(wanted):
        parts["mean"] = parts["sum"] / parts["count"]
        off = np.abs(v - np.repeat(parts["mean"], parts["count"])) ** 2
        parts["squares"] = np.add.reduceat(off, first, dtype="f8")
    for name, extreme in (("min", np.minimum), ("max", np.maximum)):
        if name in wanted:
            parts[name] = extreme.reduceat(v, first)
    return parts


def _sum_type(dtype: np.dtype) -> str:
    return {"b": "i8", "i": "i8", "u": "u8", "f": "f8", "c": "c16"}[dtype.kind]


def _joined(found: Sequence[Parts], keys: Array) -> Parts:
    """Groups that are in several parts become one."""
    whole = {name: np.concatenate([p[name] for p in found if name in p]) for name in found[0]}
    kept = sum(a.nbytes for a in whole.values())
    if kept > runtime().memory // 4:
        raise BudgetTooSmall(
            f"group_by of array '{keys.path}': what is kept of {len(whole['keys'])} groups takes {kept} bytes, and a quarter of the "
            f"budget is {runtime().memory // 4}: take a larger budget, or sort both arrays by key and go through them"
        )
    order = np.argsort(whole["keys"], kind="stable")
    whole = {name: a[order] for name, a in whole.items()}
    first = _first_of_groups(whole["keys"])
    joined = {"keys": whole["keys"][first], "count": np.add.reduceat(whole["count"], first) if len(first) else whole["count"]}
    if not len(first):
        return whole
    if "sum" in whole:
        joined["sum"] = np.add.reduceat(whole["sum"], first)
    if "squares" in whole:  # those within the parts, and those of the parts' means (Chan, Golub and LeVeque 1983)
        joined["mean"] = joined["sum"] / joined["count"]
        of_each = np.repeat(joined["mean"], np.diff(np.append(first, len(whole["keys"]))))
        between = whole["count"] * np.abs(whole["mean"] - of_each) ** 2
        joined["squares"] = np.add.reduceat(whole["squares"] + between, first)
    for name, extreme in (("min", np.minimum), ("max", np.maximum)):
        if name in whole:
            joined[name] = extreme.reduceat(whole[name], first)
    return joined


def _asked(parts: Parts, wanted: Sequence[str]) -> Parts:
    out = {"keys": parts["keys"]}
    for name in wanted:
        if name == "mean":
            out[name] = parts["sum"] / parts["count"] if "sum" in parts else np.empty(0)
        elif name in ("var", "std"):
            var = parts["squares"] / parts["count"] if "squares" in parts else np.empty(0)
            out[name] = np.sqrt(var) if name == "std" else var
        else:
            out[name] = parts.get(name, np.empty(0))
    return out
