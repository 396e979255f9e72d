"""The names of `numpy.ndarray` on arrays.

What goes over all elements and gives one number is a pass of `oocarray._algorithms`: each block is read once, nothing of
the size of the array is made, and a block that cannot be read is an exception.  All else is what ``a[...]`` has by that
name, and what makes a copy there (`astype`, `copy`, `flatten`, `tobytes`, `tolist`, reductions along an axis of what is
computed first) makes it in ordinary memory, beside the budget.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple, cast

import numpy as np

from . import _core, _passes
from ._numbers import bytes_text
from ._view import View

if TYPE_CHECKING:
    from ._array import Array

#: Not these: what hands the memory itself on, which the kernel cannot read.
_not_here = {"base", "ctypes", "data", "setflags"}
names = frozenset(n for n in dir(np.ndarray) if not n.startswith("_")) - _not_here


def _wide(a: "Array") -> np.dtype:
    """In which to compute: double precision at least."""
    return np.result_type(a.dtype, np.float64)


def _mean_in_wide(a: "Array") -> Any:
    wide = _wide(a)
    return _passes.reduce(np.add, a, dtype=None if a.dtype == wide else wide) / a.size


def _mean(a: "Array") -> Any:
    mean = _mean_in_wide(a)
    return a.dtype.type(mean) if a.dtype.kind in "fc" else mean


def _var(a: "Array") -> Any:
    mean, wide = _mean_in_wide(a), _wide(a)

    def squares(x: np.ndarray) -> Any:
        d = np.subtract(x, mean, dtype=wide)
        return np.vdot(d, d).real

    var = np.sum(_passes.over_pieces(a, squares)) / a.size
    return np.empty(0, a.dtype).real.dtype.type(var) if a.dtype.kind in "fc" else var


def _std(a: "Array") -> Any:
    return np.sqrt(_var(a))


def _first(a: "Array", which: Callable[..., Any]) -> Any:
    """The number of the element that `which` chooses, the first of them."""
    found: List[Tuple[int, Any]] = []

    def best(x: np.ndarray) -> Tuple[int, int, Any]:
        k = int(which(x))
        return x.size, k, x[k]

    before = 0
    for size, k, value in _passes.over_pieces(a, best):
        found.append((before + k, value))
        before += size
    return np.intp(found[int(which(np.array([value for _, value in found])))][0])


_in_one_pass: Dict[str, Callable[["Array"], Any]] = {
    "sum": _passes.sum,
    "min": _passes.min,
    "max": _passes.max,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "any": lambda a: np.bool_(any(_passes.over_pieces(a, np.any))),
    "all": lambda a: np.bool_(all(_passes.over_pieces(a, np.all))),
    "argmin": lambda a: _first(a, np.argmin),
    "argmax": lambda a: _first(a, np.argmax),
}


def _can_pass(a: "Array", name: str) -> bool:
    if a._of_ranks or a.dtype.kind not in "biufc":  # a call of one rank would wait for the others
        return False
    in_c_order = a._order == 1 and a.layout == "right"  # so pieces follow each other
    return in_c_order or not name.startswith("arg")


def plain(x: Any) -> Any:
    """The view of an array; anything else as it is."""
    return cast("Array", x)._view() if isinstance(x, _core.ArrayBase) else x


def plain_within(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(plain_within(i) for i in x)
    if type(x) is dict:
        return {k: plain_within(v) for k, v in x.items()}
    return plain(x)


def _without_keeper(x: Any) -> Any:
    """A copy that a view has made is an array like any other."""
    return x.view(np.ndarray) if type(x) is View and x._keeper is None else x


def attribute(a: "Array", name: str) -> Any:
    """What ``a.name`` is for a name of `numpy.ndarray` that `Array` has not itself."""
    here = getattr(np.ndarray, name)
    if not callable(here):
        return _without_keeper(getattr(a._view(), name))

    def call(*arguments: Any, **named: Any) -> Any:
        if not arguments and not named and (one_pass := _in_one_pass.get(name)) and _can_pass(a, name):
            return one_pass(a)
        from .numpy import _functions

        large = _functions.method(a, name, arguments, named)
        if large is not NotImplemented:
            return large
        result = _without_keeper(getattr(a._view(), name)(*plain_within(arguments), **plain_within(named)))
        return named["out"] if named.get("out") is not None else result

    call.__name__, call.__doc__ = name, here.__doc__
    return call


def html(a: "Array") -> str:
    """A table of what is known of an array, for notebooks."""
    facts = {"path": a.path, "closed": "yes"} if a.closed else {
        "path": a.path, "in": "place" if a.store is None else a.store.url, "shape": str(a.shape), "type": str(a.dtype),
        "size": bytes_text(a.nbytes), "blocks": bytes_text(a.block_bytes) + (", in tiles" if a.layout == "tiled" else ""),
        "access": "read and write" if a.writable else "read only",
    }
    rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts.items())
    return f"<table><caption>oocarray.Array</caption>{rows}</table>"
