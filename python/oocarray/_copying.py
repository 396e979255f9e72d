"""What copies from and to other formats have in common: pieces of bounded size, and names until they are complete."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._algorithms import progress_of
from ._array import Array
from ._attributes import DTYPE, dimensions_of
from ._commit import commit
from ._dtype import is_named
from ._index import Box, part_of
from ._pieces import pieces
from ._store import Path, Store, store_of
from ._transfer import promised

Progress = Union[bool, Callable[[int, int], None]]


def copy_in(
    array: Array, part: Box, grain: Sequence[int], read: Callable[[Box], np.ndarray], progress: Optional[Progress]
) -> None:
    """Fills an array with the part of something in grains, of which `read` gives pieces."""
    done, tell = 0, progress_of(progress)
    with promised(array, ...):
        for piece in pieces(part, array.itemsize, grain):
            values = read(piece)
            array.write(tuple(slice(p.start - b.start, p.stop - b.start) for p, b in zip(piece, part)) or 0, values)
            done += values.nbytes
            if tell is not None:
                tell(done, array.nbytes)


def copy_out(
    array: Array, part: Box, grain: Sequence[int], write: Callable[[Box, np.ndarray], None], progress: Optional[Progress]
) -> None:
    """Gives pieces of the part of an array to `write`, with their place in something in grains that begins with it."""
    shape = tuple(b.stop - b.start for b in part)
    total, done, tell = math.prod(shape) * array.itemsize, 0, progress_of(progress)
    _check_memory(f"the copy of array '{array.path}'", grain, array.itemsize, 0, "choose smaller ones, chunks=")
    for piece in pieces(tuple(slice(0, n) for n in shape), array.itemsize, grain):
        values = array.read(tuple(slice(p.start + b.start, p.stop + b.start) for p, b in zip(piece, part)))
        write(piece, values)
        done += values.nbytes
        if tell is not None:
            tell(done, total)


class Kept(NamedTuple):
    """What a store keeps of an array beside its elements; a file in place has nothing."""

    path: str
    fill: Optional[np.generic]  #: None: zeros
    texts: Dict[str, str]  #: its attributes
    dimensions: Optional[List[str]]


def kept_of(array: Array) -> Kept:
    path, fill, texts = array.current_path, None, {}
    if array.store is not None:
        texts = array.attributes.texts()
        if not array.attributes.without_name:
            fill = array.store._core.entry(path)["fill"]
    return Kept(path, np.frombuffer(fill, array.dtype)[0] if fill else None, texts, dimensions_of(path, array.shape, texts))


def passing_name(name: str) -> str:
    """What it is called until it is complete: a name has at most 255 bytes."""
    begin = name.encode(errors="surrogateescape")[:200].decode(errors="ignore")
    return f"{begin}.part-{secrets.token_hex(6)}"


def take_name(passing: str, path: str) -> None:
    """Gives what is at `passing` the name `path`; what is there goes once that has succeeded."""
    if not os.path.isdir(path):
        os.replace(passing, path)
        return
    old = f"{passing}.old"
    os.rename(path, old)
    try:
        os.rename(passing, path)
    except BaseException:
        os.rename(old, path)
        raise
    remove(old)


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


class Source(NamedTuple):
    """Something whose elements are copied into a store."""

    shape: Tuple[int, ...]
    dtype: np.dtype  #: of the elements there
    fill: Any  #: the value of elements that were never written; None: zeros
    grain: Sequence[int]  #: what is read whole, as a chunk
    smaller: str  #: how such ones become smaller
    read: Callable[[Box], np.ndarray]
    describe: Callable[[], Dict[str, str]]  #: the attributes, when all has been read


def copied(
    source: Source, box: Optional[Any], where: str, store: Store, path: Path,
    progress: Optional[Progress], options: Dict[str, Any],
) -> Array:  # fmt: skip
    """A part of the source as a new array, which has its name when it is complete; `where`: the source in messages."""
    part = part_of(box, source.shape, where)
    copy = math.prod(min(g, b.stop - b.start) for g, b in zip(source.grain, part)) * source.dtype.itemsize
    _check_memory(where, source.grain, source.dtype.itemsize, copy, source.smaller)
    if source.fill is not None and np.array(source.fill, source.dtype).tobytes().strip(b"\0"):
        options.setdefault("fill", source.fill)

    def fill(a: Array) -> Dict[str, str]:
        copy_in(a, part, source.grain, source.read, progress)
        texts = source.describe()
        if not is_named(source.dtype):
            texts.pop(DTYPE, None)  # it is ours
        return texts

    shape = tuple(b.stop - b.start for b in part) or (1,)
    return _make_filled(store, os.fspath(path), shape, source.dtype, options, fill)


def _check_memory(where: str, grain: Sequence[int], itemsize: int, copy: int, remedy: str) -> None:
    """Raises MemoryError where a chunk, packed and unpacked, and the copy of what is wanted of it do not fit."""
    whole = math.prod(grain) * itemsize
    if whole > 1 << 20:
        _core.check_chunk_memory(where, "x".join(map(str, grain)), whole, 2 * whole + copy, remedy)


def free_in(store: Union[Store, Path], path: Path, options: Mapping[str, Any]) -> Store:
    """The store; raises FileExistsError where the path is taken and may not be replaced."""
    for name in ("comm", "temporary"):
        if options.get(name):
            raise TypeError(f"{name}= is not for copies from files: one process copies, and the array has a name when it is complete")
    store = store_of(store)
    if store.exists(path) and not options.get("replace"):
        raise FileExistsError(f"'{path}' exists already: take another name, remove it first, or give replace=True")
    return store


def _make_filled(
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
        if options.get("commits"):
            commit(a)
        opening = {k: v for k, v in options.items() if k in ("block", "layout", "shared", "wait_for_writer")}
        if options.get("layout") == "tiled" and "tile" in options:
            opening["tile"] = options["tile"]
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
