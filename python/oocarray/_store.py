"""Stores: where arrays are kept."""

from __future__ import annotations

import dataclasses
import errno
import os
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np

from . import _core, _opening
from ._array import Array
from ._attributes import Attributes
from ._commit import Commit, described
from ._dtype import dtype_of
from ._numbers import Shape, parse_bytes, seconds, small_count

Path = Union[str, "os.PathLike[str]"]
schemes = ("local:", "ooc:", "rados:")  #: what the URLs of stores begin with


def path_text(path: Path) -> Any:
    """A path as the compiled module takes it; what stands for bytes that are no text become these bytes again."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise TypeError(f"{path!r} is no path in a store: give a text, as 'runs/a'")
    return text if text.isprintable() else text.encode("utf-8", "surrogateescape")


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is at a path of a store."""

    path: str
    folder: bool
    size: int  #: bytes; files only
    shape: Tuple[int, ...]  #: () for what is no array
    dtype: Optional[np.dtype]  #: None for what is no array
    tile: Tuple[int, ...]  #: shape of the tiles of the file; () where it is row-major
    owner: int
    group: int
    mode: int
    created_ns: int
    changed_ns: int
    attributes: Dict[str, str]  #: as texts; see `Attributes`
    last_commit: Optional[Commit]  #: of an array with commits, which is shown as of that
    codec: str  #: how it is packed, as in "shuffle+zstd:3/524288"; empty: it is not
    packed_size: int  #: bytes that it takes then

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def _entry(d: Dict[str, Any]) -> Entry:
    dtype = None
    if d["shape"]:
        dtype = dtype_of(d["path"], d["element_type"], d["element_size"], d["attributes"])
    return Entry(
        dtype=dtype,
        **{**{k: d[k] for k in (f.name for f in dataclasses.fields(Entry)) if k != "dtype"},
           "last_commit": described(d["last_commit"])},
    )


class Store:
    """A name space of arrays and files; `open_store` makes one.

    Paths are texts with '/' between names, relative to the root, which is "".  A store is a handle that any
    thread may use, and needs no closing.
    """

    def __init__(self, core: Any, key: str = "") -> None:
        self._core = core
        self._key = key  #: as given to `open_store`

    @property
    def url(self) -> str:
        """What `open_store` opens it by, also in another process."""
        return self._core.url()

    @property
    def uuid(self) -> str:
        """The identity of the store, made with it."""
        return self._core.uuid()

    @property
    def nodes(self) -> int:
        """How many I/O nodes it has: folders of an embedded store, I/O servers of a served one."""
        return self._core.nodes()

    @property
    def stats(self) -> Dict[str, int]:
        """What passed its nodes since it was opened here."""
        return self._core.stats()

    # --- names

    def list(self, folder: Path = "") -> List[Entry]:
        """The entries of a folder by name, or the one entry of a file."""
        return [_entry(e) for e in self._core.list(path_text(folder))]

    def exists(self, path: Path) -> bool:
        """Whether there is a file or folder at a path."""
        return self._core.exists(path_text(path))

    def entry(self, path: Path) -> Entry:
        """What is at a path.  Raises FileNotFoundError."""
        return _entry(self._core.entry(path_text(path)))

    def remove(self, path: Path, *, recursive: bool = False) -> None:
        """Removes a file with its data, or an empty folder; `recursive`: with everything below.

        Raises Busy for a file that somebody has open for writing.
        """
        if recursive:
            self._core.remove_all(path_text(path))
        else:
            self._core.remove(path_text(path))

    def rename(self, old: Path, new: Path) -> None:
        """Gives a file or folder another path; replaces nothing (FileExistsError)."""
        self._core.rename(path_text(old), path_text(new))

    def mkdir(self, path: Path, *, parents: bool = False, mode: int = 0o755) -> None:
        """Makes a folder; `parents`: those above, too, and one that exists is no error."""
        self._core.mkdir(path_text(path), parents, small_count(mode, "mode"))

    def snapshot(self, *paths: Path, name: str, copy: bool = False) -> List[str]:
        """Keeps what arrays with commits have in their last one, all as at one moment; returns the paths.

        Each is kept as an array ``path@name`` without commits that is there to be read.  It shares the space of what stays
        as it is, and programs go on writing and committing meanwhile.  Its attribute ``ooc.snapshot_of`` says what it is of,
        ``ooc.commit.KEY`` what was given with the commit.  It is durable when this returns.

        Raises ValueError for what has no commit, FileExistsError, Busy where commits follow one another too fast, and
        OSError where a node's file system shares no space between files, as XFS and btrfs do: with `copy` they are copied.
        """
        return self._core.snapshot([path_text(p) for p in paths], name, copy)

    def pack(self, path: Path, *, codec: str = "zstd", shuffle: bool = True, chunk: Union[int, str] = 0) -> int:
        """Packs an array that is finished; returns the bytes that it takes now.

        Every program reads it as before, unpacked as it is touched, and none writes it until `unpack`.  Who reads it
        meanwhile reads on.  Where packing makes it no shorter nothing changes.

        `codec`: zstd (levels 1 to 22; 3), lz4 or gzip (1 to 9; 3), as in "zstd:9".  `shuffle`: first the first bytes of
        all elements of a chunk, then the second ones, which makes most numbers shorter.  `chunk`: what is packed together
        (512 KiB, more for large arrays).

        Raises ValueError for what is no array or has commits, and for a codec that is not there, Busy where somebody has it
        open for writing, PermissionError.  It is durable when this returns.
        """
        return self._core.pack(path_text(path), codec, bool(shuffle), parse_bytes(chunk, "chunk"))

    def unpack(self, path: Path) -> None:
        """Makes a packed array one that can be written, under the conditions of `pack`."""
        self._core.unpack(path_text(path))

    def attributes(self, path: Path = "") -> Attributes:
        """The attributes of a file, a folder, or the store itself; changing them changes the store."""
        self._core.attributes(path_text(path))  # raises for what is not there
        return Attributes(self._core, path_text(path))

    # --- arrays

    def create(self, path: Path, shape: Shape, dtype: Any = np.float64, **options: Any) -> Array:
        """Makes an array; see `oocarray.create`."""
        return _opening.made(self, path_text(path), "create", shape, dtype, options)

    def create_or_open(self, path: Path, shape: Shape, dtype: Any = np.float64, **options: Any) -> Array:
        """Opens an array, or makes it; see `oocarray.create_or_open`."""
        return _opening.made(self, path_text(path), "create_or_open", shape, dtype, options)

    def open(self, path: Path, mode: str = "r+", **options: Any) -> Array:
        """Opens an array; see `oocarray.open`."""
        return _opening.opened(self, path_text(path), mode, options)

    def __contains__(self, path: Path) -> bool:
        return self.exists(path)

    def keys(self) -> List[str]:
        """The paths of all arrays, in the folders too."""
        found: List[str] = []
        folders: List[str] = [""]
        while folders:
            for e in self.list(folders.pop()):
                if e.folder:
                    folders.append(e.path)
                elif e.shape:
                    found.append(e.path)
        return sorted(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, path: Path) -> Array:
        """The array with a path, as `open` gives it; one that is packed is opened for reading."""
        try:
            return self.open(path)
        except FileNotFoundError as why:
            raise KeyError(str(why)) from why
        except OSError as why:
            if why.errno != errno.EROFS or not self.entry(path).codec:
                raise
            return self.open(path, "r")

    def __repr__(self) -> str:
        return f"<oocarray.Store '{self.url}', {self.nodes} I/O nodes>"


def open_store(
    url: Path,
    *,
    create: bool = True,
    workers: int = 0,
    staging: Union[int, str] = "256KiB",
    deadline: float = 0.0,
    key: str = "",
) -> Store:
    """Opens the store at a URL.

    Parameters
    ----------
    url : str or path
        ``local:/disk1,/disk2``: embedded, one folder for each I/O node.  ``ooc://host:7420``: on servers.  A path
        (`pathlib.Path`) is the folder of an embedded store.
    create : bool
        Whether to make a store where the folders are missing or empty.
    workers : int
        Threads for each node of an embedded store; 0: chosen from the number of nodes.
    staging : int or str
        Bytes of transfer buffer for each of these threads, which the runtime's budget counts.
    deadline : float
        Served stores: seconds for which a call may go without word from its server; 0: 30 s.
    key : str
        Served stores: the file with the cluster key.

    Raises
    ------
    NotAStore
        For a folder that holds something else, and for a URL that cannot be read.
    """
    of = url if isinstance(url, str) else "local:" + re.sub("[%,?&]", lambda c: f"%{ord(c[0]):02X}", os.fsdecode(url))
    return Store(
        _core.open_store(
            path_text(of), create, small_count(workers, "workers"), parse_bytes(staging, "staging"), seconds(deadline, "deadline"), key
        ),
        key,
    )


def store_of(store: Union[Store, Path]) -> Store:
    return store if isinstance(store, Store) else open_store(store)


def create(store: Union[Store, Path], path: Path, shape: Shape, dtype: Any = np.float64, **options: Any) -> Array:
    """Makes an array, and the folders above it.

    Parameters
    ----------
    store : Store, str or path
        A store, its URL, or its folder.
    path : str or path
        The path in the store.
    shape : int or tuple of int
        1 to 8 extents, of which only the first may be 0.
    dtype
        Any NumPy type of fixed size without Python objects, structured ones included.
    fill
        The value of elements that were never written; zeros without it.
    order : "row_major" or "tiled"
        How elements lie in the file.
    layout : "right" or "tiled"
        How they lie in memory; an array in tiles has no ``a[...]`` and is used through `Array.tiles`.
    tile : tuple of int
        The shape of a tile, for either.
    block : int or str
        Bytes in a block, as 1048576 or "1MiB": a multiple of 4 KiB.
    max_extents : sequence of int
        How far `Array.resize` may grow each extent; 0, or no number, stands for the present extent.  Other extents
        than the first need ``order="tiled"``; the file is then sparse.
    commits : bool
        Keep the last commit beside what is written since, which takes twice the space; see `commit`.
    temporary : bool
        Room for a result: the array has no name for others, nothing is written back when it closes, and it goes with this
        object, or after the death of the process when the store is opened again.
    replace : bool
        Whether to remove what has this path.
    sparse : bool
        Do not reserve the space on disk now.
    shared : bool
        Several processes write different elements at the same time.
    wait_for_writer : float
        For how many seconds to wait for another process that has the file open for writing.
    nodes, stripe : int
        How many I/O nodes the file is dealt out over, and the bytes of a stripe.
    permissions : int
        As in POSIX: 0o644.
    comm : mpi4py.MPI.Comm
        The ranks that share the array.  Each of them makes this call, as those of `Array.sync`, `Array.resize` and
        `Array.close`, in the same order.
    deadline : float
        With `comm`: for how many seconds a rank waits for the others in one call; 0: as OOC_COLLECTIVE_DEADLINE says, else 600.

    Raises
    ------
    FileExistsError
        If there is something, and not `replace`.
    InvalidRequest, TypeError, BudgetTooSmall, OSError
    """
    return store_of(store).create(path, shape, dtype, **options)


def create_or_open(
    store: Union[Store, Path], path: Path, shape: Shape, dtype: Any = np.float64, **options: Any
) -> Array:
    """Opens an array for reading and writing, or makes it where there is none.

    Parameters are those of `create`.  Raises TypeMismatch, with what differs, where the file holds other elements
    or has another shape.
    """
    return store_of(store).create_or_open(path, shape, dtype, **options)


def open(store: Union[Store, Path], path: Path, mode: str = "r+", **options: Any) -> Array:
    """Opens an array; shape and type of its elements are those recorded.

    One that is open in this process in the same mode is given once more; see `Array`.

    Parameters
    ----------
    mode : "r" or "r+"
        Reading only, or reading and writing.
    store, path, layout, tile, block, shared, wait_for_writer, comm, deadline
        As for `create`.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
    Busy
        If it is open in this process in another mode or otherwise laid out, or for writing in another process.
    TypeMismatch
        If the file is no array.
    """
    _opening.check_mode(mode)  # before a store is made
    return store_of(store).open(path, mode, **options)
