"""What copies from and to other formats have in common: pieces of bounded size, and names until they are complete."""

from __future__ import annotations

import math
import secrets
from typing import Any, Callable, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from ._array import Array
from ._index import Box
from ._pieces import pieces
from ._store import Store, open_store
from ._transfer import promised

Progress = Callable[[int, int], None]


def copy_in(
    array: Array, part: Box, grain: Sequence[int], read: Callable[[Box], np.ndarray], progress: Optional[Progress]
) -> None:
    """Fills an array with the part of something in grains, of which `read` gives pieces."""
    done = 0
    with promised(array, ...):
        for piece in pieces(part, array.itemsize, grain):
            values = read(piece)
            array.write(tuple(slice(p.start - b.start, p.stop - b.start) for p, b in zip(piece, part)) or 0, values)
            done += values.nbytes
            if progress is not None:
                progress(done, array.nbytes)


def copy_out(
    array: Array, part: Box, grain: Sequence[int], write: Callable[[Box, np.ndarray], None], progress: Optional[Progress]
) -> None:
    """Gives pieces of the part of an array to `write`, with their place in something in grains that begins with it."""
    shape = tuple(b.stop - b.start for b in part)
    total, done = math.prod(shape) * array.itemsize, 0
    for piece in pieces(tuple(slice(0, n) for n in shape), array.itemsize, grain):
        values = array.read(tuple(slice(p.start + b.start, p.stop + b.start) for p, b in zip(piece, part)))
        write(piece, values)
        done += values.nbytes
        if progress is not None:
            progress(done, total)


def passing_name(name: str) -> str:
    """What it is called until it is complete: a name has at most 255 bytes."""
    begin = name.encode(errors="surrogateescape")[:200].decode(errors="ignore")
    return f"{begin}.part-{secrets.token_hex(6)}"


def free_in(store: Union[Store, str], path: str, options: Dict[str, Any]) -> Store:
    """The store; raises FileExistsError where the path is taken and may not be replaced."""
    store = open_store(store) if isinstance(store, str) else store
    if store.exists(path) and not options.get("replace"):
        raise FileExistsError(f"'{path}' exists already: take another name, remove it first, or give replace=True")
    return store


def make_filled(
    store: Store, path: str, shape: Tuple[int, ...], dtype: np.dtype, options: Dict[str, Any],
    fill: Callable[[Array], Dict[str, str]],
) -> Array:  # fmt: skip
    """An array that has its name when `fill` has filled it, and returned its attributes; nothing where that raises."""
    replace = bool(options.pop("replace", False))
    folder, slash, last = path.rstrip("/").rpartition("/")
    passing = f"{folder}{slash}.{passing_name(last)}"
    a = store.create(passing, shape, dtype, **options)
    try:
        for key, text in fill(a).items():
            a._core.set_attribute(key, text)
        opening = {k: v for k, v in options.items() if k in ("block", "layout", "shared", "wait_for_writer")}
        a.close()
        if replace and store.exists(path):
            store.remove(path)
        store.rename(passing, path)
    except BaseException:
        if not a.closed:
            a.invalidate(discard=True)
            a.close()
        store.remove(passing)
        raise
    return store.open(path, **opening)
