"""The names of `numpy.ndarray` on arrays.

What goes over all elements and gives one number is a pass of `oocarray._algorithms`: each block is read once, nothing of
the size of the array is made, and a block that cannot be read is an exception.  All else is what ``a[...]`` has by that
name, and what makes a copy there (`astype`, `copy`, `flatten`, `tobytes`, `tolist`, reductions along an axis of what is
computed first) makes it in ordinary memory, beside the budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

import numpy as np

from ._view import View

if TYPE_CHECKING:
    from ._array import Array

#: Not these: what hands the memory itself on, which the kernel cannot read.
_not_here = {"base", "ctypes", "data", "setflags"}
names = frozenset(n for n in dir(np.ndarray) if not n.startswith("_")) - _not_here


def _mean_in_wide(a: "Array") -> Any:
    """The mean, computed in double precision at least."""
    from . import _algorithms

    wide = np.result_type(a.dtype, np.float64)
    return _algorithms.reduce(np.add, a, dtype=None if a.dtype == wide else wide) / a.size


def _mean(a: "Array") -> Any:
    mean = _mean_in_wide(a)
    return a.dtype.type(mean) if a.dtype.kind in "fc" else mean


def _var(a: "Array") -> Any:
    from . import _algorithms

    mean = _mean_in_wide(a)

    def squares(x: np.ndarray) -> Any:
        d = x - mean
        return np.vdot(d, d).real

    var = np.sum(_algorithms.over_pieces(a, squares)) / a.size
    return np.empty(0, a.dtype).real.dtype.type(var) if a.dtype.kind in "fc" else var


def _std(a: "Array") -> Any:
    return np.sqrt(_var(a))


def _first(a: "Array", which: Callable[..., Any]) -> Any:
    """The number of the element that `which` chooses, the first of them."""
    from . import _algorithms

    found: List[Tuple[int, Any]] = []

    def best(x: np.ndarray) -> Tuple[int, int, Any]:
        k = int(which(x))
        return x.size, k, x[k]

    before = 0
    for size, k, value in _algorithms.over_pieces(a, best):
        found.append((before + k, value))
        before += size
    return np.intp(found[int(which(np.array([value for _, value in found])))][0])


def _passes() -> Dict[str, Callable[["Array"], Any]]:
    from . import _algorithms

    return {
        "sum": _algorithms.sum,
        "min": _algorithms.min,
        "max": _algorithms.max,
        "mean": _mean,
        "var": _var,
        "std": _std,
        "any": lambda a: np.bool_(any(_algorithms.over_pieces(a, np.any))),
        "all": lambda a: np.bool_(all(_algorithms.over_pieces(a, np.all))),
        "argmin": lambda a: _first(a, np.argmin),
        "argmax": lambda a: _first(a, np.argmax),
    }


def _can_pass(a: "Array", name: str) -> bool:
    if a._of_ranks or a.dtype.kind not in "biufc":  # a call of one rank would wait for the others
        return False
    in_c_order = a._order == 1 and a.layout == "right"  # so pieces follow each other
    return in_c_order or not name.startswith("arg")


def _plain(x: Any) -> Any:
    """A copy that a view has made is an array like any other."""
    return x.view(np.ndarray) if type(x) is View and x._keeper is None else x


def attribute(a: "Array", name: str) -> Any:
    """What ``a.name`` is for a name of `numpy.ndarray` that `Array` has not itself."""
    here = getattr(np.ndarray, name)
    if not callable(here):
        return _plain(getattr(a._view(), name))

    def call(*arguments: Any, **named: Any) -> Any:
        from ._array import _plain_within

        if not arguments and not named and (one_pass := _passes().get(name)) and _can_pass(a, name):
            return one_pass(a)
        result = _plain(getattr(a._view(), name)(*_plain_within(arguments), **_plain_within(named)))
        return named["out"] if named.get("out") is not None else result

    call.__name__, call.__doc__ = name, here.__doc__
    return call


def html(a: "Array") -> str:
    """A table of what is known of an array, for notebooks."""
    from html import escape

    from ._array import _bytes

    facts = {"path": a.path, "closed": "yes"} if a.closed else {
        "path": a.path, "in": "place" if a.store is None else a.store.url, "shape": str(a.shape), "type": str(a.dtype),
        "size": _bytes(a.nbytes), "blocks": _bytes(a.block_bytes) + (", in tiles" if a.layout == "tiled" else ""),
        "access": "read and write" if a.writable else "read only",
    }
    rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items())
    return f"<table><caption>oocarray.Array</caption>{rows}</table>"
