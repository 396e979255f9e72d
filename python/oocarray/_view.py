"""NumPy arrays that refer to the memory of an out-of-core array."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _pending

_bounce_bytes = 4 << 20


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, View) else x


class View(np.ndarray):
    """A `numpy.ndarray` whose elements are in an `Array`; what ``a[...]`` gives.

    It differs from its base class where NumPy would hand the memory to the operating system, which cannot read
    it before it is loaded: `tofile`, `dump` and pickling copy through ordinary memory.  An assignment to its elements, and a
    ufunc with it as ``out=``, as in ``view += 1``, first computes results that need the old ones.  Results of arithmetic
    are plain arrays.  ``np.asarray(view)`` is a plain array in the same memory.
    """

    _keeper: Any = None  # of the memory; None: an ordinary array that has come out of a view

    def __array_finalize__(self, obj: Any) -> None:
        keeper = getattr(obj, "_keeper", None)
        self._keeper = keeper if keeper is not None and np.may_share_memory(self, obj) else None

    @property
    def _core(self) -> Any:
        return self._keeper

    def _about_to_change(self) -> None:
        if _pending.results and self._keeper is not None:
            _pending.before_change(self)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
        out = named.get("out")
        out = () if out is None else out if isinstance(out, tuple) else (out,)  # Numba's ufuncs hand on no tuple
        if any(getattr(type(x), "__array_ufunc__", None) not in _of_numpy for x in (*inputs, *out)):
            return NotImplemented
        for target in (*out, *inputs[: method == "at"]):
            if isinstance(target, View):
                target._about_to_change()
        named = {name: _plain(x) for name, x in named.items()}
        if out:
            named["out"] = tuple(map(_plain, out))
        made = getattr(ufunc, method)(*map(_plain, inputs), **named)
        if len(out) <= 1:
            return out[0] if out else made
        return tuple(m if o is None else o for o, m in zip(out, made))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._about_to_change()
        super().__setitem__(index, value)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        if array is self or type(self) is not View:
            return array
        if array.shape == ():
            return array[()]
        return array.view(np.ndarray)

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        if type(part) is View and part._keeper is None:  # a copy, as fancy indexing makes
            return part.view(np.ndarray)
        return part

    def _pieces(self) -> Any:
        """Copies of the elements in C order, each small enough to be nothing beside the budget."""
        for piece in np.nditer(
            self,
            flags=["external_loop", "buffered", "zerosize_ok"],
            buffersize=max(_bounce_bytes // max(self.itemsize, 1), 1),
            order="C",
        ):
            yield np.array(piece, copy=True, subok=False)

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """As `numpy.ndarray.tofile`; binary data go through a copy of some MiB."""
        if self._keeper is None or sep != "":
            np.asarray(self).tofile(fid, sep, format)
        elif hasattr(fid, "write"):
            for piece in self._pieces():
                piece.tofile(fid)
        else:
            with open(fid, "wb") as file:
                for piece in self._pieces():
                    piece.tofile(file)

    def __reduce__(self) -> Any:
        return np.array(self, copy=True, subok=False).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.array(self, copy=True, subok=False).__reduce_ex__(protocol)


#: What types have that leave ufuncs to NumPy.
_of_numpy = (None, np.ndarray.__array_ufunc__, View.__array_ufunc__)
