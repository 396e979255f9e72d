"""Stores: where arrays are kept."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, MutableMapping, Optional, Tuple, Union

import numpy as np

from . import _attributes, _core
from ._dtype import dtype_of
from ._numbers import parse_bytes, seconds, small_count

if TYPE_CHECKING:
    from ._array import Array

Shape = Union[int, Tuple[int, ...], List[int]]
Path = Union[str, "os.PathLike[str]"]


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
        **{k: d[k] for k in (f.name for f in dataclasses.fields(Entry)) if k != "dtype"},
    )


class Attributes(MutableMapping):
    """The attributes of a file, a folder or the root of a store, by name, as a `dict` that is kept there.

    A value is a text, a number, an array of numbers, or a list of texts.  The store keeps texts, and in the attribute
    ``hdf5.types``, which is not shown, what others were.  Who sets values that are no texts must be alone in doing so.
    """

    def __init__(self, core: Any, path: str) -> None:
        self._core = core  #: of a store
        self._path = path

    def texts(self) -> Dict[str, str]:
        """What the store keeps."""
        return self._core.attributes(self._path)

    def __getitem__(self, key: str) -> Any:
        return _attributes.typed(self.texts())[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"attributes are named by texts, not {type(key).__name__}")
        try:
            text, kind = _attributes.text_of(value)
        except (TypeError, ValueError) as why:
            raise TypeError(f"attribute '{key}': {why}; convert it, as with json.dumps()") from None
        self._core.set_attribute(self._path, key, text)
        self._note(key, kind)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._core.remove_attribute(self._path, key)
        self._note(key, "")

    def _note(self, key: str, kind: str) -> None:
        """The type of a value; "" for a text."""
        texts = self.texts()
        noted = _attributes.with_type(texts, key, kind)
        if noted is None:
            if _attributes.TYPES in texts:
                self._core.remove_attribute(self._path, _attributes.TYPES)
        elif noted != texts.get(_attributes.TYPES):
            self._core.set_attribute(self._path, _attributes.TYPES, noted)

    def __iter__(self) -> Iterator[str]:
        return iter(_attributes.typed(self.texts()))

    def __len__(self) -> int:
        return len(_attributes.typed(self.texts()))

    def __repr__(self) -> str:
        return f"Attributes({_attributes.typed(self.texts())!r})"


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

    def attributes(self, path: Path = "") -> Attributes:
        """The attributes of a file, a folder, or the store itself; changing them changes the store."""
        self._core.attributes(path_text(path))  # raises for what is not there
        return Attributes(self._core, path_text(path))

    # --- arrays

    def create(self, path: Path, shape: Shape, dtype: Any = np.float64, **options: Any) -> "Array":
        """Makes an array; see `oocarray.create`."""
        from ._array import create

        return create(self, path, shape, dtype, **options)

    def create_or_open(self, path: Path, shape: Shape, dtype: Any = np.float64, **options: Any) -> "Array":
        """Opens an array, or makes it; see `oocarray.create_or_open`."""
        from ._array import create_or_open

        return create_or_open(self, path, shape, dtype, **options)

    def open(self, path: Path, mode: str = "r+", **options: Any) -> "Array":
        """Opens an array; see `oocarray.open`."""
        from ._array import open as open_array

        return open_array(self, path, mode, **options)

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

    def __getitem__(self, path: Path) -> "Array":
        """The array with a path, as `open` gives it."""
        try:
            return self.open(path)
        except FileNotFoundError as why:
            raise KeyError(str(why)) from why

    def __reduce__(self) -> Any:
        from ._places import store_at

        return store_at, (self.url, self._key)

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
    of = url if isinstance(url, str) else "local:" + os.fspath(url)
    return Store(
        _core.open_store(
            of, create, small_count(workers, "workers"), parse_bytes(staging, "staging"), seconds(deadline, "deadline"), key
        ),
        key,
    )
