"""What `_core.open_file` is told of elements that lie in files of another format."""

from __future__ import annotations

import hashlib
import os
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

Numbers = Any  #: an array of 64-bit numbers


def absolute(path: str) -> str:
    """`os.path.abspath` but for "..", which behind a symbolic link leads elsewhere than the text says."""
    return "/" + "/".join(part for part in os.path.join(os.getcwd(), path).split("/") if part not in ("", "."))


class Files(NamedTuple):
    """Chunks that lie in files of their own, or in shards; `oocarray/file_chunks.hpp` has the details."""

    names: str = ""  #: what the name of each begins with
    separator: str = "/"  #: between the numbers that follow
    shard: Tuple[int, ...] = ()  #: how many chunks a shard has along each dimension; empty: a chunk is a whole file
    index_first: bool = False  #: of a shard
    index_summed: bool = True
    paths: Sequence[str] = ()  #: instead, of files with names of their own
    states: Numbers = np.zeros((0, 2), np.uint64)  #: bytes and time of change of each of these
    file_of: Sequence[int] = ()  #: of each chunk, row-major, the number of its file in `paths`

    def key(self) -> bytes:
        """The same for the same files, whatever symbolic links lead to them."""
        folder, name = os.path.split(self.names)
        said = repr(self._replace(names=os.path.join(os.path.realpath(folder), name), states=None, file_of=()))
        return said.encode() + self.states.tobytes() + np.array(self.file_of, np.uint32).tobytes()


class Packing(NamedTuple):
    """How a filter packs what is written; `oocarray/file_chunks.hpp` has the details."""

    level: int = 1
    checksum: bool = False
    codec: str = "lz4"  #: of Blosc, as what follows
    shuffle: int = 1  #: 0: not, 1: by bytes, 2: by bits
    element: int = 0  #: bytes; 0: those of an element
    block: int = 0  #: bytes; 0: its library chooses


class Chunks(NamedTuple):
    dataset: str
    shape: Tuple[int, ...]  #: of a chunk
    filters: List[str]  #: in the order in which they were applied
    fill: bytes  #: an element where no chunk was written
    table: Numbers  #: offset, bytes and filter mask, row-major over the chunks
    order: Tuple[int, ...] = ()  #: of the dimensions, as a chunk stores them; empty: as they are
    files: Optional[Files] = None  #: none: all are in the file that is opened
    packing: Sequence[Packing] = ()  #: of each filter, where the array is written to
    parameters: Sequence[Sequence[int]] = ()  #: of each filter what unpacking needs to know, where that is any
    fill_is_undefined: bool = False  #: what is written is stored, also where it is the fill value

    def key(self) -> bytes:
        """The same for the same chunks of a file: its name and `dataset` do not tell, as links lead from both to others."""
        said = hashlib.sha256(repr(self._replace(table=None, files=None)).encode())
        said.update(np.asarray(self.table).tobytes())
        said.update(b"" if self.files is None else self.files.key())
        return said.digest()

    def for_core(self) -> Tuple[Any, ...]:
        """With names as the bytes that they are, which need be no text."""
        files: Optional[Tuple[Any, ...]] = None
        if self.files is not None:
            files = (os.fsencode(self.files.names), *self.files[1:5], [os.fsencode(p) for p in self.files.paths], *self.files[6:])
        return (os.fsencode(self.dataset), *self[1:6], files, *self[7:])


class Place(NamedTuple):
    """Where the elements of a dataset lie."""

    dtype: np.dtype
    shape: Tuple[int, ...]
    path: str  #: of the file that holds them, which an external link may lead to, or that describes them
    descriptor: int  #: of that file, for the caller to close
    offset: int
    chunks: Optional[Chunks]  #: instead of one piece at `offset`
    again: Optional[Tuple[str, str]] = None  #: path and dataset to find it by
