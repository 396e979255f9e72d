"""The arrays of the namespace."""

from __future__ import annotations

import operator
import threading
from typing import TYPE_CHECKING, Any, List, Optional, Tuple, Union

import numpy as np

from .. import _core, _pending
from .._array import Array
from .._attributes import Attributes
from .._numbers import bytes_text
from .._movement import box_of_view
from .._runtime import runtime
from .._view import View
from . import _evaluation
from ._nodes import Elementwise, Held, Lost, Node, Seen, Shape, Stored

if TYPE_CHECKING:
    from .._runtime import Runtime
    from .._store import Store

_lock = threading.RLock()
_numpy_knows_versions = tuple(int(n) for n in np.__version__.split(".")[:2]) >= (2, 1)  #: of DLPack


def is_small(node: Node) -> bool:
    """Whether a result is kept in ordinary memory."""
    return node.shape == () or node.nbytes <= runtime().small or 0 in node.shape


class Deferred(Array):
    """An array of the namespace `oocarray.numpy`: what its functions take and give.

    A result of up to ``Runtime(small=...)`` bytes is computed at once, and is in ordinary memory.  A larger one is
    computed when its elements are needed, box by box, together with all that it is made of: ``(a - m) / s`` reads `a` once
    and writes one array.  Reductions, printing of elements, ``float(x)`` and `numpy.asarray` need them; so does any call
    of this package that takes an `Array`, because a `Deferred` is one: its elements are then in a scratch array, which
    has no name and goes with the last that refers to it (see `oocarray.Runtime`).

    Where ``x[...]``, ``x += y`` or a call of the package changes an array, results that need it as it was are computed
    before, and so they are where a view is assigned to (``a[0][:] = 1``) or is the ``out`` of a ufunc (``a[0] += 1``).  Other
    changes of a view (``a[0].sort()``, of ``np.asarray(a)``, by compiled code) are not noticed: call `compute` before.

    Threads: several may use one; each result is computed by one of them, on all processors.
    """

    _raw = None
    _held_by = None

    def __init__(self, node: Node) -> None:
        object.__setattr__(self, "_node", node)

    # --- what Array is made of

    _node: Node

    def _array(self) -> Array:
        """Its elements as an array of a store, which is made where there is none."""
        with _lock:
            now = self._node.now()
            if not (isinstance(now, Stored) and now.shape == now.array.shape):
                stored = Stored(_evaluation.stored(now))
                if isinstance(now, Stored):  # others who see it in another shape still share its memory
                    self._node = stored
                else:
                    now.settle(stored)
                _pending.done(self)
                now = stored
            return now.array

    def _settle(self) -> Node:
        """Computes it, where it has not been; returns what holds it."""
        with _lock:
            now = self._node.now()
            if not isinstance(now, (Held, Stored)):
                made: Node = Held(_evaluation.held(now)) if is_small(now) else Stored(_evaluation.stored(now))
                now.settle(made)
                now = made
            _pending.done(self)
            return now

    def _lose(self, error: Exception) -> None:
        """It cannot be computed, and what it needs is about to change: who asks for its elements gets that exception."""
        with _lock:
            now = self._node.now()
            now.settle(Lost(now.shape, now.dtype, error.with_traceback(None)))
            _pending.done(self)

    def _needs(self, array: Union[Array, View]) -> bool:
        now = array._node.now() if isinstance(array, Deferred) else None
        if isinstance(now, Held):
            return self._is_of(now)
        core = (array._holder() if isinstance(array, Deferred) else array)._core  # first: what is pending is a leaf then
        return any(isinstance(leaf, Stored) and leaf.array._core.same(core) for leaf in self._node.leaves())

    def _is_of(self, node: Held) -> bool:
        """Whether it is to be made of what this node has in memory."""
        return any(isinstance(leaf, Held) and np.may_share_memory(leaf.values, node.values) for leaf in self._node.leaves())

    def _values(self, node: Held) -> np.ndarray:
        """For the program, which may change them: what is not computed yet keeps its own."""
        if node.is_programs:
            return node.values
        with _lock:
            if not node.is_programs:
                if _pending.anything_needs(node):
                    node = Held(np.array(node.values, subok=False))
                    object.__setattr__(self, "_node", node)
                node.is_programs = True
            return node.values

    @property
    def _core(self) -> Any:  # type: ignore[override]
        return self._array()._core

    @property
    def _dtype(self) -> np.dtype:  # type: ignore[override]
        return self._node.dtype

    def _holder(self) -> Array:
        """The array with its elements, in whatever shape: of facts that are the same in all."""
        now = self._node.now()
        return now.array if isinstance(now, Stored) else self._array()

    @property
    def path(self) -> str:
        """That of the array which holds its elements."""
        return self._holder().path

    @property
    def _order(self) -> int:  # type: ignore[override]
        return self._holder()._order

    @property
    def _tiled(self) -> bool:  # type: ignore[override]
        return self._holder()._tiled

    @property
    def _of_ranks(self) -> bool:  # type: ignore[override]
        now = self._node.now()
        return isinstance(now, Stored) and now.array._of_ranks

    @property
    def _store(self) -> "Optional[Store]":  # type: ignore[override]
        return self._holder()._store

    @property
    def _runtime(self) -> "Runtime":  # type: ignore[override]
        return runtime()

    @property
    def _swaps(self) -> Any:  # type: ignore[override]
        return self._array()._swaps

    @property
    def _attributes(self) -> Attributes:  # type: ignore[override]
        return self._array()._attributes

    # --- facts

    @property  # type: ignore[misc]
    def shape(self) -> Shape:  # type: ignore[override]
        """Its extents."""
        return self._node.shape

    @property
    def device(self) -> str:  # type: ignore[override]
        """Always "cpu"."""
        return "cpu"

    @property
    def writable(self) -> bool:
        """False for one that stands for an array that is open for reading."""
        now = self._node.now()
        return not isinstance(now, Stored) or now.array.writable

    @property
    def is_computed(self) -> bool:
        """Whether its elements are there: in memory, or in a store."""
        return isinstance(self._node.now(), (Held, Stored))

    def compute(self) -> "Deferred":
        """Computes its elements now, where that has not been done; returns itself."""
        self._settle()
        return self

    # --- elements

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:  # type: ignore[override]
        now = self._settle()
        if not isinstance(now, Held):
            whole = now.whole() if isinstance(now, Stored) and now.array.layout == "right" else _evaluation.held(now)
        else:
            whole = self._values(now)
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"elements are of type {self.dtype}; {dtype} needs a copy")
            return np.array(whole, dtype=dtype)
        return np.array(whole) if copy else whole

    def _view(self) -> Any:
        now = self._node.now()
        return self._values(now) if isinstance(now, Held) else self._holder()._view().reshape(self.shape)

    def __getitem__(self, key: Any) -> "Deferred":
        from ._indexing import taken

        return taken(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ._indexing import assign

        assign(self, key, value)

    def _one(self, kind: str) -> Any:
        if self.shape != ():
            raise TypeError(f"{kind}() is of an array without dimensions, not of one of shape {self.shape}")
        now = self._settle()
        return now.values[()] if isinstance(now, Held) else self.__array__()[()]

    def __bool__(self) -> bool:
        return bool(self._one("bool"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __float__(self) -> float:
        return float(self._one("float"))

    def __complex__(self) -> complex:
        return complex(self._one("complex"))

    def __index__(self) -> int:
        return operator.index(self._one("index"))

    def __len__(self) -> int:
        if self.shape == ():
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        from ._elementwise import ufunc_result
        from ._reductions import any as any_

        return bool(any_(ufunc_result(np.equal, (self, value), {})))

    # --- others

    def __getattr__(self, name: str) -> Any:
        from ._functions import attribute_of_deferred

        found = attribute_of_deferred(self, name) if not name.startswith("_") else NotImplemented
        return super().__getattr__(name) if found is NotImplemented else found

    def to_device(self, device: str, /, *, stream: Any = None) -> "Deferred":
        """Itself: there is no device but "cpu"."""
        if device != "cpu":
            raise ValueError(f"device {device!r}: arrays are on 'cpu'")
        if stream is not None:
            raise ValueError("streams are of other devices than 'cpu'")
        return self

    def __dlpack__(  # type: ignore[override]
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None
    ) -> Any:
        """See the array API standard."""
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"device {dl_device}: arrays are on the CPU, (1, 0)")
        values = self.__array__(copy=copy)
        if _numpy_knows_versions:
            return values.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        return (values if values.flags.writeable else values.copy()).__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Tuple[int, int]:  # type: ignore[override]
        return (1, 0)

    def close(self) -> None:
        """Lets go of its elements; an array of the program that it stands for is closed."""
        now = self._node.now()
        if isinstance(now, Stored):
            now.array.close()

    @property
    def closed(self) -> bool:
        """Whether the array that holds its elements has been closed."""
        now = self._node.now()
        return isinstance(now, Stored) and now.array.closed

    def __repr__(self) -> str:
        now = self._node.now()
        if isinstance(now, Held):
            return "oocarray.numpy." + repr(now.values).replace("\n", "\n" + " " * len("oocarray.numpy."))
        state = f"in '{now.array.path}'" if isinstance(now, Stored) else "not computed yet"
        return f"<oocarray.numpy array of shape {self.shape}, {self.dtype}, {bytes_text(self.nbytes)}, {state}>"

    _repr_html_ = None  # type: ignore[assignment]


def deferred(node: Node) -> Deferred:
    """A node as an array; one that is small is computed."""
    result = Deferred(node)
    if not result.is_computed:
        if is_small(node):
            result._settle()
        else:
            for leaf in node.leaves():
                if isinstance(leaf, Held):
                    leaf.keep()
            _pending.add(result)
    return result


def node_of(x: Any) -> Node:
    """Of what a function of the namespace was given."""
    if isinstance(x, Deferred):
        return x._node.now()
    if isinstance(x, _core.ArrayBase):
        return Stored(x)  # type: ignore[arg-type]
    if isinstance(x, (np.ndarray, np.generic)):
        of_array = _node_of_view(x) if isinstance(x, View) and x.nbytes > runtime().small else None
        return of_array or Held(np.asarray(x), is_programs=True)
    raise TypeError(f"{type(x).__name__} is no array: asarray() makes one of it")


def _node_of_view(view: View) -> Optional[Node]:
    """Of a large view the elements of its array, where it is a box of it; a copy of it would be as large."""
    found = box_of_view(view) if view._keeper is not None else None
    if found is None:
        return None
    array, lower, axes = found
    places: List[Tuple[range, Optional[int]]] = [(range(lo, lo + 1), None) for lo in lower]
    for k, (d, n) in enumerate(zip(axes, view.shape)):
        places[d] = (range(lower[d], lower[d] + n), k)
    return Seen(Stored(array), view.shape, places)


def has_own_rules(kind: Any) -> bool:
    """Whether a type that is neither NumPy's nor one of this package says itself what functions of it give."""
    if issubclass(kind, (_core.ArrayBase, View)) or kind is np.ndarray:
        return False
    if issubclass(kind, np.ndarray) and kind.__array_priority__ > 0:
        return True  # masked arrays and matrices, which NumPy's functions keep
    return any(
        getattr(kind, rule, None) not in (None, getattr(np.ndarray, rule)) for rule in ("__array_ufunc__", "__array_function__")
    )


def in_memory(x: Any, function: str) -> np.ndarray:
    """All elements in ordinary memory, for functions that need them at once, where that is at most half of the budget."""
    node = node_of(x)
    most = runtime().memory // 2
    if node.nbytes > most:
        what = function if " " in function else f"{function}()"
        raise NotImplementedError(
            f"{what} takes all of an array into memory: {bytes_text(node.nbytes)} are more than half of the budget, "
            f"{bytes_text(most)}: give the runtime more memory, or take it in parts"
        )
    return _evaluation.held(node)


def elementwise(f: Any, inputs: Any, dtype: Any) -> Deferred:
    return deferred(Elementwise(f, inputs, dtype))
