"""An array that is open already, opened once more.

A process has one cache of a file that is written to.  Whoever opens it again in the same mode is given the array that
there is, in an `Array` of his own: both have the same memory, each is closed by itself, and with the last one the array.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Optional, Tuple, Union

from . import _core
from ._errors import Busy, Closed
from ._runtime import open_arrays
from ._view import View

if TYPE_CHECKING:
    from ._array import Array


def _names(path: Union[str, bytes]) -> List[str]:
    text = path if isinstance(path, str) else path.decode("utf-8", "surrogateescape")
    return [name for name in text.split("/") if name]


def open_at(uuid: str, path: Union[str, bytes], renamed: bool) -> Iterator[Any]:
    """The arrays of a store that are open here and have this path now; `renamed`: those that were opened by another, too.

    The store is asked for the path of each that may be it.
    """
    for core in _core.open_arrays():
        if core.uuid() != uuid or not (renamed or _names(core.path()) == _names(path)):
            continue
        try:
            now = core.current_path()
        except (OSError, Busy, Closed):  # it has been removed, or another thread resizes or closes it
            continue
        if _names(now) == _names(path):
            yield core


def _suits(core: Any, writable: bool, options: Mapping[str, Any]) -> bool:
    """Whether the array is what opening it so would give."""
    tiled = bool(options.get("tiled_memory"))
    return (
        not core.of_ranks()
        and core.writable() == writable
        and core.tiled() == tiled
        and (not writable or core.shared() == bool(options.get("shared")))
        and options.get("block", core.block_bytes()) in (0, core.block_bytes())
        and (not tiled or tuple(options.get("tile", core.tile_shape())) == tuple(core.tile_shape()))
    )


def open_already(
    uuid: str, path: Union[str, bytes], writable: bool, options: Mapping[str, Any], *, renamed: bool = False
) -> Optional[Any]:
    """The array at a path of a store, where it is open here in that mode."""
    if "group" in options:
        return None
    return next((core.again() for core in open_at(uuid, path, renamed) if _suits(core, writable, options)), None)


def file_open_already(contents: Any, held_by: Any, writable: bool, options: Mapping[str, Any]) -> Optional[Any]:
    """The same of a file in place, of which that is to be the contents, with what they are held by."""
    for a in open_arrays():
        if a._raw is None or not _suits(a._core, writable, options) or a._held_by != held_by:
            continue
        _, dtype, shape, place, order, _ = a._raw
        fortran = contents.fortran and len(shape) > 1
        if (dtype, place, order == "F") == (contents.dtype, contents.place(), fortran) and _is_shape(contents, shape):
            return a._core.again()
    return None


def _is_shape(contents: Any, shape: Tuple[int, ...]) -> bool:
    if contents.shape is not None:
        return contents.shape == shape
    return len(shape) == 1 and contents.offset + shape[0] * contents.dtype.itemsize == os.path.getsize(contents.path)


def in_use(busy: Busy, uuid: str, path: Union[str, bytes]) -> Busy:
    """The refusal, with what of this process holds the file."""
    core = next((c for c in open_at(uuid, path, True) if not c.of_ranks()), None)
    return busy if core is None else Busy(f"{busy}; {_holders(core)}")


def _holders(core: Any) -> str:
    arrays = [a for a in open_arrays() if a._core.same(core)]
    views = [o for o in gc.get_objects() if type(o) is View and o._keeper is not None and o._keeper.same(core)]
    parts = [f"{_what(a, 'an Array')}, which close() ends" for a in arrays]
    parts += [f"{_what(v, 'a view')} of shape {v.shape}, which `del` ends" for v in views[:3]]
    if len(views) > 3:
        parts.append(f"{len(views) - 3} more views")
    if not parts and core.exports():
        parts = [f"{core.exports()} NumPy arrays that refer to its memory"]
    mode = "r+" if core.writable() else "r"
    again = f"it is open with mode='{mode}' and block={core.block_bytes()}, so opening it like that gives it once more"
    return f"it is held by {', '.join(parts) or 'a call that is under way'}; {again}"


def _what(thing: Any, kind: str) -> str:
    """With the variable of the main program that it is."""
    program = vars(sys.modules["__main__"])
    names = [name for name, value in list(program.items()) if value is thing and not name.startswith("_")]
    return f"{kind} (`{names[0]}`)" if names else kind


def shared_by_others(array: "Array") -> bool:
    """Whether another `Array` has the same memory."""
    return any(other is not array and other._core.same(array._core) for other in open_arrays())
