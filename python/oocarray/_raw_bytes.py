"""The bytes of arrays to and from files, through ordinary memory, which the system can read and write."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import Any, Iterator

import numpy as np

from ._array import Array, Box
from ._copying import copied, most_piece_bytes, whole


@contextlib.contextmanager
def _opened(file: Any, mode: str) -> Iterator[Any]:
    if isinstance(file, (str, bytes, os.PathLike)):
        with open(file, mode, buffering=0) as opened:
            yield opened
    else:
        yield file


def _in_order(array: Array, box: Any) -> Iterator[Box]:
    """Boxes of bounded size that follow each other in C's order: runs of one dimension, and the later ones whole."""
    part = whole(box, array.shape, f"array '{array.path}'")
    most, bytes_, d = most_piece_bytes(), array.itemsize, array.ndim - 1
    while d > 0 and bytes_ * (part[d].stop - part[d].start) <= most:
        bytes_ *= part[d].stop - part[d].start
        d -= 1
    step = max(1, most // bytes_)
    for at in itertools.product(*(range(b.start, b.stop) for b in part[:d])):
        for i in range(part[d].start, part[d].stop, step):
            yield (*(slice(k, k + 1) for k in at), slice(i, min(i + step, part[d].stop)), *part[d + 1 :])


def _bytes(values: np.ndarray) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def to_file(array: Array, file: Any, box: Any) -> None:
    with _opened(file, "wb") as out:
        for piece in _in_order(array, box):
            left = _bytes(np.ascontiguousarray(copied(array, piece)))
            while left:
                done = out.write(left)
                left = left[len(left) if done is None else done :]


def from_file(array: Array, file: Any, box: Any) -> None:
    if not array.writable:
        raise ValueError(f"array '{array.path}' is open for reading only: open it with mode='r+'")
    done = 0
    with _opened(file, "rb") as source:
        for piece in _in_order(array, box):
            values = np.empty(tuple(b.stop - b.start for b in piece), array.dtype)
            left = _bytes(values)
            while left:
                got = source.readinto(left)
                if not got:
                    size = sum(int(np.prod([b.stop - b.start for b in p])) for p in _in_order(array, box))
                    raise EOFError(
                        f"array '{array.path}': {getattr(source, 'name', source)!r} ends after {done} of "
                        f"{size * array.itemsize} bytes, and the elements up to {piece} have been set"
                    )
                done += got
                left = left[got:]
            array.overwrite(piece)
            array[piece] = values
