"""Keeps the library's handlers of SIGSEGV and SIGBUS in front of Python's.

An element that is not in memory is loaded when its touch faults, by a handler of SIGSEGV or SIGBUS.  `faulthandler.enable`
installs another one in front, which takes such a touch for a crash, and `faulthandler.disable` may take ours away.
Importing the package therefore wraps the two, so that ours is put in front again; a real crash is then passed on to
faulthandler, and reported.  Any view that is made puts ours in front, too, whatever else has been installed.
"""

from __future__ import annotations

import faulthandler
import functools
from typing import Any, Callable

from . import _runtime


def _reclaiming(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        try:
            return call(*arguments, **named)
        finally:
            _runtime.reclaim_faults()

    wrapper.__dict__["reclaims"] = True
    return wrapper


def install() -> None:
    for name in ("enable", "disable"):
        call = getattr(faulthandler, name)
        if not getattr(call, "reclaims", False):
            setattr(faulthandler, name, _reclaiming(call))
