"""Algorithms that go over arrays beyond memory in as few passes as possible.

A NumPy function on a whole `Array` moves blocks in the order in which it happens to touch them.  The functions here
move each byte as often as docs/algorithms.md of the project says, mostly once, with all processors, and without the
interpreter's lock (GIL) unless a function of the program runs.

All take these keywords:

threads : int
    Threads that compute; 0: one for each processor.
memory : int or str
    The part of the budget that may be used for buffers; 0: all that it can spare.
mark : bool
    While an array that is written holds neither its old nor its new elements, its file says so: opening it raises
    OSError (EBUSY), unless ``unfinished=True``, after a process died or an exception came in between.  At the end what
    was written is durable.  False: neither.
progress : callable or True
    ``progress(done, total)`` in bytes, now and then, in the thread that has called.  What it raises ends the algorithm.
    True: a bar of tqdm, where that is installed, else a percentage on standard error.

Those that report what they did (`Statistics`: passes, memory, bytes_read, bytes_written, and over_bound, which is the bytes
in units of what no algorithm for this can do without) also take

plan : bool
    True: report what would be done now, and do nothing; see docs/algorithms.md of the project.

KeyboardInterrupt, and what a function of the program raises, end the algorithm and come out of the call.  An array
that was being written is then neither old nor new, and marked.  Where ranks share an array the calls are collective,
and Ctrl-C waits for their end.  No other thread may use the arrays meanwhile.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Sequence, Tuple, Union, cast

from . import _core, _pending
from ._numbers import flag, parse_bytes, small_count

if TYPE_CHECKING:
    from ._array import Array

Statistics = Dict[str, Any]
Arrays = Union["Array", Tuple["Array", ...]]

Conversions = Mapping[str, Callable[[Any, str], Any]]  # of a value, and what it is called


class _Bar:
    """Shows how far a call has come."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._percent = -1

    def __call__(self, done: int, total: int) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._show_percent(done, total)
            return
        if self._bar is None:
            self._bar = tqdm(total=total, unit="B", unit_scale=True)
        self._bar.update(done - self._bar.n)
        if done >= total:
            self._bar.close()

    def _show_percent(self, done: int, total: int) -> None:
        percent = 100 * done // max(total, 1)
        if percent != self._percent:
            self._percent = percent
            print(f"\r{percent} %", end="\n" if done >= total else "", file=sys.stderr, flush=True)


def progress_of(f: Any, name: str = "progress") -> Any:
    """What a call is given as `progress`, as a function; None: nobody wants to know."""
    if f is True:
        return _Bar()
    if f is None or f is False:
        return None
    if not callable(f):
        raise TypeError(f"{name}={f!r}: a function of the bytes done and the bytes there are, or True for a bar")
    return f


common: Conversions = {"threads": small_count, "memory": parse_bytes, "mark": flag, "progress": progress_of}
reporting: Conversions = {**common, "plan": flag}
numbers = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"}


def options_of(given: Dict[str, Any], possible: Conversions = common) -> Dict[str, Any]:
    for name in given:
        if name not in possible:
            raise TypeError(f"'{name}' is no keyword of this call; there are: {', '.join(possible)}")
    return {name: possible[name](value, name) for name, value in given.items()}


def checked(a: Any, what: str = "an oocarray.Array") -> "Array":
    if not isinstance(a, _core.ArrayBase):
        raise TypeError(f"{type(a).__name__} is not {what}: arrays in memory are NumPy's own business")
    return cast("Array", a)


def alike(arrays: Sequence["Array"]) -> None:
    """Of one shape, and their dimensions in one order."""
    first = checked(arrays[0])
    for a in arrays[1:]:
        if checked(a).shape != first.shape:
            raise ValueError(f"array '{first.path}' has the shape {first.shape}, and array '{a.path}' {a.shape}")
        if a.ndim > 1 and a._order != first._order:
            raise ValueError(
                f"of the arrays '{first.path}' and '{a.path}' one lies in Fortran's order and the other does not: "
                "oocarray.copy() one of them first"
            )


def in_c_order(a: "Array", what: str) -> None:
    if a._order == -1:
        raise ValueError(f"array '{a.path}' lies in Fortran's order, and {what} goes in C's: oocarray.copy() it first")


def writable(a: "Array", options: Mapping[str, Any] = {}) -> "Array":
    """An array that is about to be written, unless the options ask for a plan."""
    if not a.writable:
        raise ValueError(f"array '{a.path}' is open for reading only: open it with mode='r+'")
    if not options.get("plan"):
        _pending.before_change(a)
    return a
