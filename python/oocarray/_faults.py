"""Keeps the library's handlers of SIGSEGV and SIGBUS in front of Python's, and the two signals unblocked.

An element that is not in memory is loaded when its touch faults, by a handler of SIGSEGV or SIGBUS.  `faulthandler.enable`
installs another one in front, which takes such a touch for a crash, and `faulthandler.disable` may take ours away.
Importing the package therefore wraps the two, so that ours is put in front again; a real crash is then passed on to
faulthandler, and reported.  A thread that blocks the signals with `signal.pthread_sigmask` would end the process with its
next touch: that is wrapped, too.  Any view that is made puts ours in front, whatever else has been installed, and has
threads of C extensions that block the signals unblock them.
"""

from __future__ import annotations

import faulthandler
import functools
import signal
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
    for module, name in ((faulthandler, "enable"), (faulthandler, "disable"), (signal, "pthread_sigmask")):
        call = getattr(module, name)
        if not getattr(call, "reclaims", False):
            setattr(module, name, _reclaiming(call))
