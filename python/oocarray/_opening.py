"""Arrays of a store, made and opened; the options of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

import numpy as np

from . import _core, _sharing
from ._array import Array
from ._comm import group_of
from ._dtype import ATTRIBUTE, element_of
from ._errors import Busy, TypeMismatch
from ._numbers import Shape, counts, flag, parse_bytes, seconds, shape_of, small_count
from ._runtime import runtime

if TYPE_CHECKING:
    from ._store import Store

_options = {
    "order": None,
    "layout": None,
    "tile": counts,
    "block": parse_bytes,
    "nodes": small_count,
    "stripe": parse_bytes,
    "fill": None,
    "sparse": flag,
    "max_extents": counts,
    "commits": flag,
    "temporary": flag,
    "replace": flag,
    "permissions": small_count,
    "shared": flag,
    "wait_for_writer": seconds,
    "unfinished": flag,
    "comm": None,
    "deadline": seconds,
}


_of_new = ("order", "nodes", "stripe", "fill", "sparse", "max_extents", "temporary", "replace", "permissions")


def core_options(given: Mapping[str, Any], dtype: Optional[np.dtype]) -> Dict[str, Any]:
    """As the compiled module takes them; `dtype`: of a new array, None for one that is opened."""
    out: Dict[str, Any] = {}
    for name, value in given.items():
        if name not in _options:
            raise TypeError(f"'{name}' is no option of an array; there are: {', '.join(_options)}")
        if dtype is None and name in _of_new and value is not None and (value is not False or name == "fill"):
            raise TypeError(f"{name} is for new arrays, and this one is there: leave {name}= out, or create() one")
        convert = _options[name]
        if name == "order":
            if value not in ("row_major", "tiled"):
                raise ValueError(f"order={value!r}: choose 'row_major' or 'tiled'")
            out["tiled_file"] = value == "tiled"
        elif name == "layout":
            if value not in ("right", "tiled"):
                raise ValueError(f"layout={value!r}: choose 'right' or 'tiled'")
            out["tiled_memory"] = value == "tiled"
        elif name == "fill":
            if value is not None:
                out["fill"] = np.array(value, dtype=dtype).tobytes()
        elif name == "permissions":
            out["mode"] = small_count(value, name)
        elif name == "comm":
            if value is not None:
                out["group"] = group_of(value, seconds(given.get("deadline", 0.0), "deadline"))
        elif name == "deadline":
            if given.get("comm") is None:
                raise TypeError("deadline is how long ranks wait for each other: it needs comm")
        else:
            out[name] = convert(value, name)  # type: ignore[misc]
    return out


def check_mode(mode: str) -> None:
    if mode not in ("r", "r+"):
        raise ValueError(f"mode {mode!r}: choose 'r' or 'r+'")


def made(of: "Store", path: Any, how: str, shape: Shape, dtype: Any, options: Mapping[str, Any]) -> Array:
    """`how`: "create" or "create_or_open"; `path` as the compiled module takes it."""
    t = np.dtype(dtype)
    name, size, description = element_of(t)
    given = core_options(options, t)
    extents = shape_of(shape)
    if how == "create_or_open":
        there = _sharing.open_already(of.uuid, path, True, given)
        if there is not None:
            if (there.element_type(), there.element_size(), there.shape()) != (name, size, extents):
                raise TypeMismatch(
                    f"array '{there.path()}' is open in this process, with elements of type {there.element_type()} and "
                    f"the shape {there.shape()}; asked for were {name} and {extents}"
                )
            return _array(there, of, given, description, keep=True)
    if description is not None and not given.get("temporary"):
        given["attributes"] = {ATTRIBUTE: description}
    core = _core_of(of, path, how, name, size, extents, given)
    return _array(core, of, given, description, of_temporary=t if given.get("temporary") else None)


def opened(of: "Store", path: Any, mode: str, options: Mapping[str, Any]) -> Array:
    check_mode(mode)
    given = core_options(options, None)
    which = of.uuid, path, mode == "r+", given
    there = _sharing.open_already(*which)
    if there is None:
        try:
            core = _core_of(of, path, "read" if mode == "r" else "write", "", 0, (), given)
        except Busy:  # it has been renamed since it was opened, or another thread has opened it now
            there = _sharing.open_already(*which, renamed=True)
            if there is None:
                raise
    return _array(core if there is None else there, of, given, keep=there is not None)


def _core_of(
    of: "Store", path: Any, how: str, name: str, size: int, shape: Tuple[int, ...], options: Mapping[str, Any],
) -> Any:
    try:
        return _core.make(runtime()._core, of._core, path, how, name, size, shape, options)
    except Busy as busy:
        why = _sharing.in_use(busy, of.uuid, path)
    raise why


def _array(
    core: Any, store: "Store", options: Mapping[str, Any], description: Optional[str] = None, keep: bool = False,
    of_temporary: Optional[np.dtype] = None,
) -> Array:
    try:
        if description is not None and of_temporary is None:
            _describe(core, description)
        return Array(core, store, bool(options.get("tiled_memory")), dtype=of_temporary, of_ranks="group" in options)
    except BaseException:
        if not keep:
            core.close()  # not when the exception goes, which keeps it alive
        raise


def _describe(core: Any, description: str) -> None:
    there = core.attributes().get(ATTRIBUTE)
    if there is None:
        core.set_attribute(ATTRIBUTE, description)
    elif there != description:
        raise TypeMismatch(
            f"array '{core.path()}': the file holds elements of type {there}; asked for were {description}"
        )
