"""Arrays larger than memory."""

from __future__ import annotations

import contextlib
import operator
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core, _elements, _names, _sharing
from ._comm import group_of
from ._dtype import ATTRIBUTE, dtype_of, element_of
from ._errors import Busy, TypeMismatch
from ._numbers import count, counts, flag, parse_bytes, seconds, shape_of, small_count
from ._rows import Swaps
from ._runtime import runtime
from ._store import Attributes, Shape, Store, open_store, path_text
from ._view import View

Box = Tuple[slice, ...]


class Array(_core.ArrayBase, np.lib.mixins.NDArrayOperatorsMixin):
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
    `sum`, `min`, `max`, `mean`, `var`, `std`, `any`, `all`, `argmin` and `argmax` of all elements are passes in bounded
    memory, as those of this package.  All else is what ``a[...]`` has: a view of the array's memory, or a copy in
    ordinary memory, beside the budget, where NumPy makes one.

    The operating system cannot read memory that is not loaded: ``file.write(a)`` raises, and calls such as
    ``socket.send(a[0])`` fail with EFAULT.  Give them memory that is pinned: ``with a.pin(np.s_[0]) as row: ...``.
    `numpy.save`, `tofile`, `fromfile` and pickling of ``a[...]`` work, and `oocarray.to_hdf5` instead of h5py's own.
    """

    def __init__(
        self,
        core: Any,
        store: Optional[Store],
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
        self._raw: Any = None  #: of a file in place: how to open it elsewhere, see _open_file.open_raw()
        self._inode: Any = None  #: of a file in place
        self._order = -1 if reverse else 1  #: of dimensions here, beside those of `core`
        self._runtime = runtime()
        self._swaps = Swaps()
        path = core.path()
        self._attributes = Attributes(_OfArray(core), path)
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
        n = 1
        for k in self.shape:
            n *= k
        return n

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
    def store(self) -> Optional[Store]:
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
        part = self._view()[index]
        if type(part) is View and isinstance(index, (int, np.integer)):
            self._swaps.took(part)
        return part

    def __setitem__(self, index: Any, value: Any) -> None:
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
        from ._algorithms import copy_of_view

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

    def __copy__(self) -> np.ndarray:  # type: ignore[override]
        """The elements, in ordinary memory."""
        return np.array(self._view(), subok=False)

    def __deepcopy__(self, memo: Any) -> np.ndarray:  # type: ignore[override]
        return self.__copy__()

    def __dlpack__(self, **options: Any) -> Any:
        return np.asarray(self._view()).__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:  # type: ignore[override]
        return np.asarray(self._view()).__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:  # type: ignore[override]
        view = self._view()
        if dtype is not None and np.dtype(dtype) != self._dtype:
            if copy is False:
                raise ValueError(f"array '{self.path}' has elements of type {self._dtype}; {dtype} needs a copy")
            return np.array(view, dtype=dtype, subok=False)
        return np.array(view, subok=False) if copy else view

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **arguments: Any) -> Any:
        out = arguments.get("out")
        out = () if out is None else out if isinstance(out, tuple) else (out,)  # Numba's ufuncs hand on no tuple
        if out:
            arguments["out"] = tuple(_plain(o) for o in out)
        if "where" in arguments:
            arguments["where"] = _plain(arguments["where"])
        result = getattr(ufunc, method)(*(_plain(i) for i in inputs), **arguments)
        if not out:
            return result
        if len(out) == 1:
            return out[0]
        return tuple(made if o is None else o for o, made in zip(out, result))

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        result = function(*_plain_within(arguments), **_plain_within(named))
        out = named.get("out")
        return out if isinstance(out, Array) else result

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self._view())  # of several elements NumPy raises ValueError

    def __contains__(self, value: Any) -> bool:
        return value in self._view()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view())

    def __reduce__(self) -> Any:
        from ._places import opened, place_of

        if self.closed:
            raise TypeError(f"array '{self.path}' has been closed: pickle it while it is open")
        if self.writable:
            raise TypeError(
                f"array '{self.current_path}' is open for writing, and whoever unpickles it would not see what is written: "
                "close it, open it with mode='r', and pickle that; or pickle a[...], which copies the elements"
            )
        return opened, (place_of(self),)

    # --- many elements by their indices

    def gather(self, indices: Any) -> np.ndarray:
        """The elements with these indices, as ``a[...][indices]`` for a tuple, and as `numpy.take` for an array.

        ::

            x = a.gather((rows, columns))
            x = a.gather(numbers)            # in C's order

        Of blocks that are not in memory only these elements are transferred, in long lists, and the blocks stay out: it
        is for touches that no order could foresee.

        Parameters
        ----------
        indices : tuple of array_like, or array_like
            Integers: an array for each dimension, or the elements' numbers in C's order.

        Raises
        ------
        IndexError
        BudgetTooSmall, OSError
        """
        return _elements.gather(self, indices)

    def scatter(self, indices: Any, values: Any) -> None:
        """Gives the elements with these indices the values; of an element that is named twice the last one.

        Indices are as for `gather`; `values` have their shape, or one that NumPy broadcasts to it.
        """
        _elements.scatter(self, indices, values)

    def accumulate(self, indices: Any, values: Any, ufunc: np.ufunc = np.add) -> None:
        """As ``ufunc.at``: adds each value to its element, as often as the element is named.

        `ufunc` is `numpy.add`, `numpy.minimum` or `numpy.maximum`.  Any number of threads may accumulate at once.
        """
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
        from ._raw_bytes import to_file

        to_file(self, fid, box)

    def fromfile(self, fid: Any, *, box: Any = None) -> None:
        """Sets the elements, in C's order, from the bytes of a file.

        ::

            with open("a.raw", "rb") as f:
                f.seek(512)
                a.fromfile(f, box=np.s_[:100])

        `fid` is a path, or whatever has ``readinto``, which is read from where it stands.  Raises EOFError if it ends too
        early.
        """
        from ._raw_bytes import from_file

        from_file(self, fid, box)

    # --- hints

    def _box(self, key: Any) -> Tuple[List[int], List[int]]:
        """The box that slices of step 1 and integers name."""
        shape = self.shape
        keys = key if isinstance(key, tuple) else (key,)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = keys[:at] + (slice(None),) * (len(shape) + 1 - len(keys)) + keys[at + 1 :]
        if len(keys) > len(shape):
            raise IndexError(f"array '{self.path}' has {len(shape)} dimensions, and the box {len(keys)}")
        lower, upper = [0] * len(shape), list(shape)
        for d, k in enumerate(keys):
            if isinstance(k, slice):
                first, last, step = k.indices(shape[d])
                if step != 1:
                    raise IndexError(f"array '{self.path}': a box has slices of step 1, not {step}")
                lower[d], upper[d] = first, max(first, last)
            else:
                i = operator.index(k)
                if not -shape[d] <= i < shape[d]:
                    raise IndexError(f"array '{self.path}': index {i} is outside the extent {shape[d]}")
                lower[d] = i % shape[d]
                upper[d] = lower[d] + 1
        return lower, upper

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

    def _bring_in(self, box: Any) -> None:
        """Raises what is wrong with a box that will be touched now: the touch could not, and would end the process."""
        try:
            lower, upper = self._core_box(box)
        except (IndexError, TypeError):  # another index than a box
            return
        items = self.itemsize
        for lo, up in zip(lower, upper):
            items *= up - lo
        if items <= self._runtime.memory // 4:  # else it would not stay until it is touched
            self._core.bring_in(lower, upper)

    def advise(self, pattern: str) -> None:
        """"sequential": read ahead from the first touch on; "random": never; "automatic": as it turns out."""
        self._core.advise(pattern)

    @contextlib.contextmanager
    def pin(self, box: Any = ..., *, write: bool = False) -> Iterator[np.ndarray]:
        """Keeps a box in memory, for system calls, MPI and devices; gives it as a NumPy array.

        ::

            with a.pin(np.s_[0:100]) as rows:
                sock.sendall(rows)
            with a.pin(np.s_[0:100], write=True) as rows:
                file.readinto(rows)

        After the block the array that it gave is as any other view.  Raises BudgetTooSmall for a box that memory
        has no room for.
        """
        if not isinstance(box, tuple):
            box = (box,)
        lower, upper = self._core_box(box)
        whole = np.asarray(self._view())
        guard = self._core.pin(lower, upper, write)
        try:
            part = whole[box if Ellipsis in box else (*box, ...)]  # with ... one element is an array, too
            if not write:
                part = part.view()
                part.flags.writeable = False
            yield part
        finally:
            guard.release()

    def tiles(self, *, write: bool = False, ahead: int = 2) -> Iterator[Tuple[Box, np.ndarray]]:
        """The array tile by tile, in the order in which they are stored: pairs of a box and a NumPy array.

        With layout "tiled" a tile is a block, else a band of whole rows of about a block.  The next `ahead` tiles
        are fetched before their turn.  A tile that cannot be read raises IntegrityError or OSError; a touch of it would
        end the process.  ::

            for box, t in a.tiles(write=True):
                np.sqrt(t, out=t)
        """
        if write and not self.writable:
            raise ValueError(f"array '{self.path}' is open for reading only: open it with mode='r+'")
        ahead = count(ahead, "ahead")
        for k in range(1, ahead + 1):
            self._core.prefetch_tile(k)
        for k in range(self._core.tiles()):
            lower, upper, tile = self._core.tile(k, self._dtype, write)
            if not write:
                tile.flags.writeable = False
            if self._order == -1:
                tile = tile.T
            yield tuple(slice(lo, up) for lo, up in zip(lower, upper))[:: self._order], tile
            del tile
            self._core.prefetch_tile(k + 1 + ahead)

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
        """This rank's part of the rows, which the library chose: ``for i in range(...)``, ``a[a.local_rows]``.

        Without ``comm=`` it is all of them.
        """
        return slice(*self._core.local_rows())

    def invalidate(self, *, discard: bool = False) -> None:
        """Drops all blocks from memory; raises Dirty where some are modified, unless `discard`."""
        self._core.invalidate(discard)

    def resize(self, shape: Union[int, Sequence[int]]) -> None:  # type: ignore[override]
        """Changes the shape, or with a number its first extent, up to `max_extents`.  What is new has the fill value.

        Other extents than the first can change where the array was created with ``order="tiled"`` and `max_extents`.
        Views keep the shape that they had.  Raises BufferError while there are views, for a smaller extent, and with
        layout "right" for any change of another extent than the first, because elements then come to other places in
        memory.
        """
        extents = shape_of(shape)
        self._core.resize(extents + self.shape[1:] if np.ndim(shape) == 0 else extents)

    def close(self) -> None:
        """Writes back, and lets go of the file and the memory.  With ``comm=`` a collective call.

        Raises BufferError while NumPy arrays refer to the memory, and whatever `writeback` raises: the array is
        then still open.  Closing twice does nothing.  Where the array has been opened once more, it stays open there.
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
            f"{_bytes(self.nbytes)} in blocks of {_bytes(self.block_bytes)}{tiled}{access}>"
        )


    def _repr_html_(self) -> str:
        return _names.html(self)


class _OfArray:
    """The attributes of an open array, wherever it has been renamed to, as those of a path of a store."""

    def __init__(self, core: Any) -> None:
        self._array = core

    def attributes(self, path: str) -> Dict[str, str]:
        return self._array.attributes()

    def set_attribute(self, path: str, key: str, value: str) -> None:
        self._array.set_attribute(key, value)

    def remove_attribute(self, path: str, key: str) -> None:
        self._array.remove_attribute(key)


def _bytes(n: int) -> str:
    size, unit = float(n), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


def _plain(x: Any) -> Any:
    return x._view() if isinstance(x, Array) else x


def _plain_within(x: Any) -> Any:
    if isinstance(x, Array):
        return x._view()
    if type(x) in (list, tuple):
        return type(x)(_plain_within(i) for i in x)
    if type(x) is dict:
        return {k: _plain_within(v) for k, v in x.items()}
    return x



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
    "replace": flag,
    "permissions": small_count,
    "shared": flag,
    "wait_for_writer": seconds,
    "unfinished": flag,
    "comm": None,
    "deadline": seconds,
}


def _core_options(given: Mapping[str, Any], dtype: Optional[np.dtype]) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for name, value in given.items():
        if name not in _options:
            raise TypeError(f"'{name}' is no option of an array; there are: {', '.join(_options)}")
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
                if dtype is None:
                    raise TypeError("fill is for new arrays")
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


def _store_of(store: Union[Store, str, "os.PathLike[str]"]) -> Store:
    return store if isinstance(store, Store) else open_store(store)


def _make(
    store: Union[Store, str, "os.PathLike[str]"], path: Union[str, "os.PathLike[str]"], how: str, shape: Shape, dtype: Any, options: Mapping[str, Any]
) -> Array:
    of = _store_of(store)
    t = np.dtype(dtype)
    name, size, description = element_of(t)
    core_options = _core_options(options, t)
    extents = shape_of(shape)
    if how == "create_or_open":
        there = _sharing.open_already(of.uuid, path_text(path), True, core_options)
        if there is not None:
            if (there.element_type(), there.element_size(), there.shape()) != (name, size, extents):
                raise TypeMismatch(
                    f"array '{there.path()}' is open in this process, with elements of type {there.element_type()} and "
                    f"the shape {there.shape()}; asked for were {name} and {extents}"
                )
            return _array(there, of, core_options, description, keep=True)
    core = _made(of, path, how, name, size, extents, core_options)
    return _array(core, of, core_options, description)


def _made(of: Store, path: Any, how: str, name: str, size: int, shape: Tuple[int, ...], options: Mapping[str, Any]) -> Any:
    at = path_text(path)
    try:
        return _core.make(runtime()._core, of._core, at, how, name, size, shape, options)
    except Busy as busy:
        why = _sharing.in_use(busy, of.uuid, at)
    raise why


def _array(
    core: Any, store: Store, options: Mapping[str, Any], description: Optional[str] = None, keep: bool = False
) -> Array:
    try:
        if description is not None:
            _describe(core, description)
        return Array(core, store, bool(options.get("tiled_memory")), of_ranks="group" in options)
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


def create(store: Union[Store, str, "os.PathLike[str]"], path: Union[str, "os.PathLike[str]"], shape: Shape, dtype: Any = np.float64, **options: Any) -> Array:
    """Makes an array, and the folders above it.

    Parameters
    ----------
    store : Store, str or path
        A store, its URL, or its folder.
    path : str or path
        The path in the store.
    shape : int or tuple of int
        1 to 8 extents, none of them 0.
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
    return _make(store, path, "create", shape, dtype, options)


def create_or_open(
    store: Union[Store, str, "os.PathLike[str]"], path: Union[str, "os.PathLike[str]"], shape: Shape, dtype: Any = np.float64, **options: Any
) -> Array:
    """Opens an array for reading and writing, or makes it where there is none.

    Parameters are those of `create`.  Raises TypeMismatch, with what differs, where the file holds other elements
    or has another shape.
    """
    return _make(store, path, "create_or_open", shape, dtype, options)


def open(store: Union[Store, str, "os.PathLike[str]"], path: Union[str, "os.PathLike[str]"], mode: str = "r+", **options: Any) -> Array:
    """Opens an array; shape and type of its elements are those recorded.

    One that is open in this process in the same mode is given once more; see `Array`.

    Parameters
    ----------
    store : Store, str or path
        A store, its URL, or its folder.
    path : str or path
        The path in the store.
    mode : "r" or "r+"
        Reading only, or reading and writing.
    layout, tile, block, shared, wait_for_writer, comm, deadline
        As for `create`.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
    Busy
        If it is open in this process in another mode or otherwise laid out, or for writing in another process.
    TypeMismatch
        If the file is no array.
    """
    if mode not in ("r", "r+"):
        raise ValueError(f"mode {mode!r}: choose 'r' or 'r+'")
    of = _store_of(store)
    core_options = _core_options(options, None)
    which = of.uuid, path_text(path), mode == "r+", core_options
    there = _sharing.open_already(*which)
    if there is None:
        try:
            core = _made(of, path, "read" if mode == "r" else "write", "", 0, (), core_options)
        except Busy:  # it has been renamed since it was opened, or another thread has opened it now
            there = _sharing.open_already(*which, renamed=True)
            if there is None:
                raise
    return _array(core if there is None else there, of, core_options, keep=there is not None)
