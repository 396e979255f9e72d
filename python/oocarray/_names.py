"""The names of `numpy.ndarray` on arrays.

Reductions, sorts and copies of large arrays go to `oocarray.numpy`, reductions of all elements of small ones, too: each block
is read once, nothing of the size of the array is made in ordinary memory, and a block that cannot be read is an exception.  All
else is what ``a[...]`` has by that name, and what makes a copy there (`flatten`, `tobytes`, `tolist`) makes it in ordinary
memory, beside the budget.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import _core, _pending
from ._numbers import bytes_text
from ._view import View

if TYPE_CHECKING:
    from ._array import Array

#: Not these: what hands the memory itself on, which the kernel cannot read.
_not_here = {"base", "ctypes", "data", "setflags"}
names = frozenset(n for n in dir(np.ndarray) if not n.startswith("_")) - _not_here


def plain(x: Any) -> Any:
    """The view of an array; anything else as it is."""
    return cast("Array", x)._view() if isinstance(x, _core.ArrayBase) else x


#: Methods that change the array.
_changing = {"byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "sort"}


def about_to_change(x: Any) -> None:
    """What has not been computed yet and needs the elements as they are is computed, if this is an array or a view of one."""
    if isinstance(x, View):
        x._about_to_change()
    elif isinstance(x, _core.ArrayBase):
        _pending.before_change(cast("Array", x))


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
        from .numpy import _functions

        large = _functions.method(a, name, arguments, named)
        if large is not NotImplemented:
            return large
        for target in (a if name in _changing else None, named.get("out"), *arguments):
            about_to_change(target)
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
