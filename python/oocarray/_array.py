"""Arrays larger than memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ContextManager, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _blocks, _core, _elements, _names, _pending, _raw_bytes, _sharing, _transfer
from ._attributes import Attributes, OfArray
from ._commit import Commit, described
from ._dtype import dtype_of
from ._errors import InvalidRequest
from ._index import Box, bounds_of
from ._movement import copy_of_view
from ._numbers import bytes_text, count, shape_of
from ._protocols import Protocols
from ._rows import Swaps
from ._runtime import runtime
from ._view import View

if TYPE_CHECKING:
    from ._store import Store


_of_elements = {tuple, int, *(np.dtype(t).type for t in "bhilqBHILQ")}  #: types of indices that may name one element


class Array(Protocols):
    """An array in a store, whose elements are in memory as far as the budget goes.

    ``a[...]`` with slices and integers is a view: a NumPy array in the array's own memory, without a copy.
    NumPy's functions take an `Array` as an argument and as ``out=``.  A touch of elements that are not in memory
    waits for the disk, whoever touches them: NumPy, Numba, or C code.  While it waits, a loop in NumPy keeps the
    interpreter's lock (GIL), as it does while it computes, so other Python threads wait too.  The calls of this
    class let go of it.

    `create`, `create_or_open` and `open` make one.  It is closed by `close`, at the end of a ``with`` block, or
    when nothing refers to it and its views any more.  Modified blocks are then written back.  Opening an array that is
    open in this process in the same mode gives it once more: both have the same memory, each is closed by itself, and
    with the last one the array.

    What `numpy.ndarray` has by name, an array has too: ``a.T``, ``a.sum()``, ``a.reshape(3, 2)``, ``a.astype("f4")``.
    Reductions of all elements, and of large arrays reductions along axes, sorts, `astype`, `copy` and arithmetic, are those of
    `oocarray.numpy`: small results are NumPy's, large ones arrays in a store.  All else is what ``a[...]`` has: a view of the
    array's memory, or a copy in ordinary memory, beside the budget, where NumPy makes one.

    A touch of elements that cannot be read ends the process; `read` and `write` copy, and raise instead.

    The operating system cannot read memory that is not loaded: ``file.write(a)`` raises, and calls such as
    ``socket.send(a[0])`` fail with EFAULT.  Give them memory that is pinned: ``with a.pin(np.s_[0]) as row: ...``.
    `numpy.save`, `tofile`, `fromfile` and pickling of ``a[...]`` work, and `oocarray.to_hdf5` instead of h5py's own.
    """

    def __init__(
        self,
        core: Any,
        store: "Optional[Store]",
        tiled: bool,
        *,
        dtype: Optional[np.dtype] = None,
        reverse: bool = False,
        of_ranks: bool = False,
    ) -> None:
        self._core = core
        self._store = store
        self._tiled = tiled
        self._of_ranks = of_ranks
        self._raw: Any = None  #: of a file in place: how to open it elsewhere, see _places
        self._held_by: Any = None  #: of a file in place: see _open_file
        self._order = -1 if reverse else 1  #: of dimensions here, beside those of `core`
        self._runtime = runtime()
        self._swaps = Swaps()
        path = core.path()
        self._attributes = Attributes(OfArray(core), path)
        self._dtype = dtype or dtype_of(path, core.element_type(), core.element_size(), self._attributes)
        self._runtime._arrays[id(self)] = self

    # --- facts

    @property  # type: ignore[misc]
    def shape(self) -> Tuple[int, ...]:
        """Its extents, the slowest dimension first (in a file in Fortran's order the fastest)."""
        return self._core.shape()[:: self._order]

    @property
    def dtype(self) -> np.dtype:
        """The type of its elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes in an element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes in all elements, in memory or not."""
        return self.size * self.itemsize

    @property
    def path(self) -> str:
        """Its path in the store when it was opened."""
        return self._core.path()

    @property
    def current_path(self) -> str:
        """Its path in the store now, wherever it has been renamed to: asks the store."""
        return self._core.current_path()

    @property
    def store(self) -> "Optional[Store]":
        """None for a file in place; see `open_file`."""
        return self._store

    @property
    def writable(self) -> bool:
        """Whether it was made, or opened with mode "r+"."""
        return self._core.writable()

    @property
    def closed(self) -> bool:
        """Whether it has been closed, by `close` or with the runtime."""
        return not self._core.is_open()

    @property
    def attributes(self) -> Attributes:
        """Texts by name that are kept with the array."""
        return self._attributes

    @property
    def block_bytes(self) -> int:
        """Bytes in a block, the unit in which data move."""
        return self._core.block_bytes()

    @property
    def max_extents(self) -> Tuple[int, ...]:
        """How far `resize` may go in each dimension."""
        return self._core.max_extents()[:: self._order]

    @property
    def layout(self) -> str:
        """The order of elements in memory: "right" (row-major) or "tiled"."""
        return "tiled" if self._tiled else "right"

    @property
    def dirty_blocks(self) -> int:
        """Blocks that are modified and not yet written back."""
        return self._core.dirty_blocks()

    @property
    def chunks(self) -> Tuple[int, ...]:
        """The shape of a tile of `tiles`: what is best moved at once."""
        return self._core.tile_shape()[:: self._order]

    @property
    def stats(self) -> Dict[str, float]:
        """What the runtime did, for all arrays; see `Runtime.stats`."""
        return self._runtime.stats

    # --- elements

    def _view(self) -> View:
        view = self._core.view(self._dtype).view(View)
        view._keeper = self._core
        return view if self._order == 1 else view.T

    def __getitem__(self, index: Any) -> Any:
        if type(index) in _of_elements and self._order == 1 and self._dtype.kind != "V":
            one = _core.element(self._core, index, self._dtype)
            if one is not None:
                return one
        part = self._view()[index]
        if type(part) is View and isinstance(index, (int, np.integer)):
            self._swaps.took(part)
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
        _pending.before_change(self)
        view = self._view()
        if isinstance(value, Array):
            value = value._view()
        if type(value) is View:
            if isinstance(index, (int, np.integer)) and view.ndim > 1:
                value = self._swaps.to_write(view[index], value)
            elif self._copied_from_view(index, value):
                return
        view[index] = value

    def _copied_from_view(self, index: Any, value: View) -> bool:
        """Whether the library itself has copied a transposed view; in NumPy's order each element is in another block."""
        if value.flags.c_contiguous or value.nbytes < self._runtime.memory // 4:
            return False
        return copy_of_view(self, index, value)

    def __getattr__(self, name: str) -> Any:
        if name in _names.names:
            return _names.attribute(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(
                f"array '{self.path}' has no attribute '{name}': a[...] = value sets elements, and "
                f"a.attributes['{name}'] = text keeps a text with the array"
            )
        object.__setattr__(self, name, value)

    def __dir__(self) -> List[str]:
        return sorted({*object.__dir__(self), *_names.names})

    # --- copies

    def read(self, key: Any = ..., *, out: Optional[np.ndarray] = None) -> Any:
        """A copy of ``a[key]`` in ordinary memory; an element that cannot be read raises, and ends nothing.

        ::

            row = a.read(7)
            a.read(np.s_[0:100, ::2], out=buffer)

        A view waits for its elements where they are touched, and there a block with a wrong checksum, or a disk that
        fails, ends the process.  This call copies piece by piece, with at most some MiB beside the result, and raises
        what is wrong.

        Parameters
        ----------
        key : optional
            Integers, slices of any step, and ``...``; all elements without it.
        out : numpy.ndarray, optional
            Ordinary memory of the shape of ``a[key]``, which is filled and returned.

        Raises
        ------
        IntegrityError, OSError
            For an element that cannot be read; `out` then has some of the elements.
        IndexError
        """
        return _transfer.read(self, key, out)

    def write(self, key: Any, values: Any) -> None:
        """Sets ``a[key] = values`` from ordinary memory; what cannot be done raises, and ends nothing.

        Keys are those of `read`; `values` are cast and broadcast as in an assignment.  Blocks that are written as a
        whole are not read, so they may be damaged.  After an exception some of the elements are set.

        Raises
        ------
        IntegrityError, OSError
            For a block that is written in part and cannot be read, and where memory that is needed is modified and
            cannot be written back, as on a disk that is full.
        IndexError, ValueError, TypeError
        """
        _transfer.write(self, key, values)

    # --- many elements by their indices

    def gather(self, indices: Any) -> np.ndarray:
        """The elements with these indices, as ``a[...][indices]`` for a tuple, and as `numpy.take` for an array.

        ::

            x = a.gather((rows, columns))
            x = a.gather(numbers)            # in C's order

        Of blocks that are not in memory only these elements are transferred, in long lists, and the blocks stay out: it
        is for touches that no order could foresee.  Raises IndexError, BudgetTooSmall and OSError.

        Parameters
        ----------
        indices : tuple of array_like, or array_like
            Integers: an array for each dimension, or the elements' numbers in C's order.
        """
        return _elements.gather(self, indices)

    def scatter(self, indices: Any, values: Any) -> None:
        """Gives the elements with these indices the values; of an element that is named twice the last one.

        Indices are as for `gather`; `values` have their shape, or one that NumPy broadcasts to it.
        """
        _pending.before_change(self)
        _elements.scatter(self, indices, values)

    def accumulate(self, indices: Any, values: Any, ufunc: np.ufunc = np.add) -> None:
        """As ``ufunc.at``: adds each value to its element, as often as the element is named.

        `ufunc` is `numpy.add`, `numpy.minimum` or `numpy.maximum`.  Any number of threads may accumulate at once.
        """
        _pending.before_change(self)
        _elements.accumulate(self, indices, values, ufunc)

    # --- files

    def tofile(self, fid: Any, sep: str = "", format: str = "%s", *, box: Any = None) -> None:
        """Writes the bytes of the elements in C's order, as `numpy.ndarray.tofile`.

        `fid` is a path, or whatever has ``write``; a path is truncated.  The part `box`, slices of step 1, or all of it
        goes through ordinary memory, some MiB at a time.  With `sep` it is text.
        """
        if sep:
            self._view().tofile(fid, sep, format)
            return
        _raw_bytes.to_file(self, fid, box)

    def fromfile(self, fid: Any, *, box: Any = None) -> None:
        """Sets the elements, in C's order, from the bytes of a file.

        ::

            with open("a.raw", "rb") as f:
                f.seek(512)
                a.fromfile(f, box=np.s_[:100])

        `fid` is a path, or whatever has ``readinto``, which is read from where it stands.  Raises EOFError if it ends too
        early.
        """
        _raw_bytes.from_file(self, fid, box)

    # --- hints

    def _box(self, key: Any) -> Tuple[List[int], List[int]]:
        """The box that slices of step 1 and integers name."""
        return bounds_of(key, self.shape, f"array '{self.path}'")

    def _core_box(self, key: Any) -> Tuple[List[int], List[int]]:
        """The same in the order of dimensions that the library knows."""
        lower, upper = self._box(key)
        return lower[:: self._order], upper[:: self._order]

    def overwrite(self, box: Any = ...) -> None:
        """Promises to write every element of a box before any of them is read, so that nothing need be loaded.

        The box is given as an index of slices: ``b.overwrite(np.s_[1:-1, 1:-1])``; without one it is the whole
        array.  Elements that are not written although promised then read as their old values or as zeros.
        """
        self._core.overwrite(*self._core_box(box))

    def clear_overwrite(self) -> None:
        """Takes back the promises that were not used."""
        self._core.clear_overwrite()

    def prefetch(self, box: Any = ...) -> None:
        """Starts reading a box, as much as memory has room for, and returns at once."""
        self._core.prefetch(*self._core_box(box))

    def advise(self, pattern: str) -> None:
        """"sequential": read ahead from the first touch on; "random": never; "automatic": as it turns out."""
        self._core.advise(pattern)

    def pin(self, box: Any = ..., *, write: bool = False) -> ContextManager[np.ndarray]:
        """Keeps a box in memory, for system calls, MPI and devices; gives it as a NumPy array.

        ::

            with a.pin(np.s_[0:100]) as rows:
                sock.sendall(rows)
            with a.pin(np.s_[0:100], write=True) as rows:
                file.readinto(rows)

        After the block the array that it gave is as any other view.  Raises BudgetTooSmall for a box that memory
        has no room for.
        """
        return _blocks.pinned(self, box, write)

    def tiles(self, *, write: bool = False, ahead: int = 2) -> Iterator[Tuple[Box, np.ndarray]]:
        """The array tile by tile, in the order in which they are stored: pairs of a box and a NumPy array.

        With layout "tiled" a tile is a block, else a band of whole rows of about a block.  The next `ahead` tiles
        are fetched before their turn.  A tile that cannot be read raises IntegrityError or OSError; a touch of it would
        end the process.  ::

            for box, t in a.tiles(write=True):
                np.sqrt(t, out=t)
        """
        return _blocks.tiles(self, write, ahead)

    # --- the store

    def writeback(self, *, durable: bool = False) -> None:
        """Returns when the I/O nodes have acknowledged every modified block; `durable`: on stable storage."""
        self._core.writeback(durable)

    def flush(self) -> None:
        """As `writeback`, by the name that `numpy.memmap` has for it."""
        self.writeback()

    def sync(self, *, durable: bool = False) -> None:
        """All ranks see what each has written; `durable`: and it is on stable storage.

        A collective call of an array that was opened with ``comm=``: all ranks make it, from the thread that may call
        MPI.  Each writes back what it has modified, and drops only what others have.  Raises Conflict where the
        ranks make different calls, and OSError (ETIMEDOUT) where one does not come within the ``deadline``.

        The array of one process is written back, as by `writeback`.  Processes without MPI may write different
        elements of an array that each opens with ``shared=True``; `writeback` in one and `invalidate` in another
        then make the writes visible.
        """
        self._core.sync(durable)

    def sync_halo(self, rows: int = 1) -> None:
        """As `sync`, but only of blocks with rows that are at most `rows` from a border between the parts of ranks."""
        self._core.sync_halo(count(rows, "rows"))

    @property
    def local_rows(self) -> slice:
        """This rank's part of the rows, as ``a[a.local_rows]``, which the library chose; without ``comm=`` all of them."""
        return slice(*self._core.local_rows())

    def invalidate(self, *, discard: bool = False) -> None:
        """Drops all blocks from memory; raises Dirty where some are modified, unless `discard`."""
        if discard:
            _pending.before_change(self)
        self._core.invalidate(discard)

    def resize(self, shape: Union[int, Sequence[int]]) -> None:  # type: ignore[override]
        """Changes the shape, or with a number its first extent, up to `max_extents`.  What is new has the fill value.

        Other extents than the first can change where the array was created with ``order="tiled"`` and `max_extents`.
        Views keep the shape that they had.  Raises BufferError while there are views or other threads are in calls, for a
        smaller extent, and with layout "right" for any change of another extent than the first, because elements then come
        to other places in memory.  Meanwhile other threads can neither make views nor call (Busy).
        """
        extents = shape_of(shape)
        _pending.before_change(self)
        self._core.resize(extents + self.shape[1:] if np.ndim(shape) == 0 else extents)

    @property
    def last_commit(self) -> Optional[Commit]:
        """Number, time and attributes of its last commit; None where it was made without ``commits=True``."""
        return described(self._core.last_commit())

    def roll_back(self) -> None:
        """Takes elements, shape and attributes back to the last commit; see `oocarray.commit`.

        Views show what was committed.  Raises BufferError while there are views of an array that may be resized, or that has
        another shape than at its last commit.  With ``comm=`` a collective call.
        """
        _pending.before_change(self)
        self._core.roll_back()

    def pack(self, **options: Any) -> int:
        """Writes back, closes the array and has its store keep it packed, as `Store.pack` does with the same arguments."""
        if self._store is None:
            raise InvalidRequest(f"'{self.path}' is a file in place: only arrays of a store are packed")
        store, path = self._store, self.current_path
        self.close()
        return store.pack(path, **options)

    def close(self) -> None:
        """Writes back, and lets go of the file and the memory.  With ``comm=`` a collective call.

        Raises BufferError while NumPy arrays refer to the memory or other threads are in calls that use it, and whatever
        `writeback` raises: the array is then still open.  Closing twice does nothing.  Where the array has been opened once more, it stays open there.
        """
        if not self.closed and _sharing.shared_by_others(self):
            if self.writable:
                self._core.writeback(False)
            self._core.let_go()
        else:
            self._core.close()

    def __enter__(self) -> "Array":
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if value is None:
            self.close()
            return
        if self._of_ranks:
            self._core.writeback(False)  # not close(): the other ranks do not come
            return
        try:
            self.close()
        except BufferError:
            self._core.writeback(False)  # the frames of the exception keep views alive

    def __repr__(self) -> str:
        if self.closed:
            return f"<oocarray.Array '{self.path}', closed>"
        access = "" if self.writable else ", read-only"
        tiled = ", in tiles" if self._tiled else ""
        where = "in place" if self._store is None else f"in '{self._store.url}'"
        return (
            f"<oocarray.Array '{self.path}' {where}, shape {self.shape}, {self._dtype}, "
            f"{bytes_text(self.nbytes)} in blocks of {bytes_text(self.block_bytes)}{tiled}{access}>"
        )

    def _repr_html_(self) -> str:
        return _names.html(self)
