"""The bytes of arrays to and from files, through ordinary memory, which the system can read and write."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
from typing import TYPE_CHECKING, Any, Iterator, NoReturn

import numpy as np

from ._algorithms import writable
from ._index import part_of
from ._pieces import pieces
from ._transfer import promised

if TYPE_CHECKING:
    from ._array import Array


@contextlib.contextmanager
def _opened(file: Any, mode: str) -> Iterator[Any]:
    if isinstance(file, (str, bytes, os.PathLike)):
        with open(file, mode, buffering=0) as opened:
            yield opened
    else:
        yield file


def _bytes(values: np.ndarray) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _refuse_non_blocking(file: Any) -> NoReturn:
    raise BlockingIOError(
        errno.EAGAIN, f"{getattr(file, 'name', file)!r} is non-blocking and not ready: give a file that waits (os.set_blocking)"
    )


def to_file(array: "Array", file: Any, box: Any) -> None:
    part = part_of(box, array.shape, f"array '{array.path}'")
    with _opened(file, "wb") as out:
        for piece in pieces(part, array.itemsize):
            left = _bytes(array.read(piece))
            while left:
                done = out.write(left)
                if done is None and isinstance(out, io.RawIOBase):
                    _refuse_non_blocking(out)
                left = left[len(left) if done is None else done :]


def from_file(array: "Array", file: Any, box: Any) -> None:
    part = part_of(box, writable(array).shape, f"array '{array.path}'")
    done = 0
    with _opened(file, "rb") as source, promised(array, part):
        for piece in pieces(part, array.itemsize):
            values = np.empty(tuple(b.stop - b.start for b in piece), array.dtype)
            left = _bytes(values)
            while left:
                got = source.readinto(left)
                if got is None:
                    _refuse_non_blocking(source)
                if not got:
                    size = math.prod(b.stop - b.start for b in part)
                    raise EOFError(
                        f"array '{array.path}': {getattr(source, 'name', source)!r} ends after {done} of "
                        f"{size * array.itemsize} bytes, and the elements up to {piece} have been set"
                    )
                done += got
                left = left[got:]
            array.write(piece, values)
