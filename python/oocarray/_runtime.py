"""The runtime of the process: its memory budget."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Dict, List, Optional, Union

from . import _core
from ._errors import Busy
from ._numbers import bytes_text, parse_bytes, seconds, small_count

if TYPE_CHECKING:
    from ._array import Array
    from ._store import Store

_lock = threading.RLock()
_current: Optional["Runtime"] = None


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # a thread that the child has not may have held it


os.register_at_fork(after_in_child=_after_fork)


class Runtime:
    """The memory budget of the process, and the threads that move blocks.

    There is at most one in a process, and none in a child that was forked while its parent had one.  The first `create` or `open` makes one of 512 MiB, or of what the
    environment variable ``OOC_MEMORY`` says, unless the program has made its own::

        with oocarray.Runtime(memory="4GiB"):
            ...

    The budget counts the blocks of all arrays and the transfer buffers of the stores.  It does not count NumPy's
    own arrays, as the result of ``a + 1``: use ``out=``.

    Parameters
    ----------
    memory : int or str
        The budget: bytes, or a text such as "512MiB".
    block : int or str
        Bytes in a block of an array that names no size itself; 0: 2 MiB, or less where the budget is small.
    read_ahead : int
        How many blocks may be read ahead; 0: chosen from the budget; 1: none.
    end_deadline : float
        For how many seconds the end of the process waits for modified blocks.
    scratch : str
        The URL of the store for results of `oocarray.numpy` that are too large for ordinary memory.  Without it, it is what
        ``OOC_SCRATCH`` says, else the store of the first array that is open for writing, else one in /var/tmp.
    small : int or str
        Up to how many bytes such a result is kept in ordinary memory; a 64th of the budget, and at most 16 MiB, without it.

    Raises
    ------
    Busy
        If there is a runtime already, or was one in the parent of a forked child.
    BudgetTooSmall
        If the budget cannot hold a few blocks.
    """

    def __init__(
        self,
        memory: Union[int, str] = "512MiB",
        *,
        block: Union[int, str] = 0,
        read_ahead: int = 0,
        end_deadline: float = 30.0,
        scratch: str = "",
        small: Union[None, int, str] = None,
    ) -> None:
        global _current
        with _lock:
            _core.check_process()
            if _current is not None:
                raise Busy(
                    f"there is a runtime of {bytes_text(_current.memory)} already, and a process has one: make it "
                    "before the first array, or close() the other one first (see oocarray.runtime())"
                )
            self._process = os.getpid()
            self._memory = parse_bytes(memory, "memory")
            self._small = min(16 << 20, self._memory // 64) if small is None else parse_bytes(small, "small")
            self._core = _core.Runtime(  # last of what may raise: it would stay, and a process has one
                self._memory, parse_bytes(block, "block"), small_count(read_ahead, "read_ahead"),
                seconds(end_deadline, "end_deadline"), False,
            )
            self._scratch_url = scratch or os.environ.get("OOC_SCRATCH", "")
            self._scratch: "Optional[Store]" = None  #: once there has been a result for it
            self._arrays: "weakref.WeakValueDictionary[int, Array]" = weakref.WeakValueDictionary()
            _current = self
        of_child = sys.modules.get("multiprocessing.process")
        if of_child is not None and of_child.parent_process() is not None:  # such a process ends without exit()
            from multiprocessing.util import Finalize

            Finalize(self, _write_back, args=(self._arrays,), exitpriority=0)

    @property
    def memory(self) -> int:
        """The budget in bytes, as it was given."""
        return self._memory

    @property
    def small(self) -> int:
        """Up to how many bytes a result of `oocarray.numpy` is kept in ordinary memory."""
        return self._small

    @property
    def closed(self) -> bool:
        """Whether `close` has ended it."""
        return self._core.closed()

    @property
    def stats(self) -> Dict[str, float]:
        """What the runtime did since it was made: faults, bytes read and written, waits."""
        return self._core.stats()

    def report(self) -> str:
        """A page of text: what the program has read, written and waited for since the runtime was made, and for each array
        the same, in which order its blocks were touched, and what would make that faster, where something is known.

        ``OOC_REPORT=1`` in the environment writes it to standard error at the end, ``OOC_REPORT=FILE`` to the end of a file;
        ``OOC_PROGRESS=SECONDS`` shows a line on standard error so often while the program runs.
        """
        return self._core.report()

    def close(self) -> None:
        """Closes all arrays, and ends the runtime.  Another one may then be made.

        Raises BufferError, and leaves the rest open, if NumPy arrays still refer to the memory of an array.
        """
        global _current
        with _lock:
            if self.closed:
                return
            for array in list(self._arrays.values()):
                array.close()
            for core in _core.open_arrays():  # which only views refer to any more
                core.close()
            self._scratch = None
            self._core.close()
            if _current is self:
                _current = None

    def __enter__(self) -> "Runtime":
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        if value is None:
            self.close()
            return
        try:
            self.close()
        except BufferError:
            pass  # the frames of the exception keep views alive, and the exception says more

    def __repr__(self) -> str:
        if self.closed:
            return "<oocarray.Runtime, closed>"
        s = self.stats
        return (
            f"<oocarray.Runtime of {bytes_text(self.memory)}, {bytes_text(int(s['resident_bytes']))} in use, "
            f"{len(self._arrays)} arrays>"
        )


def _write_back(arrays: "weakref.WeakValueDictionary[int, Array]") -> None:
    for array in list(arrays.values()):
        if not array.closed and array.writable:
            array.writeback()


def reclaim_faults() -> None:
    """Puts the library's handlers of SIGSEGV and SIGBUS in front again.

    For programs in which another library has installed a handler of its own after the first array was opened, as PETSc
    does when it is initialised: such a handler takes the touch of elements that are not in memory for a crash.  Whatever
    is no such touch is passed on to it.  Making a view (``a[:1]``) does the same; so do `faulthandler.enable` and
    `faulthandler.disable`.  In a forked child, and without a runtime, it does nothing.
    """
    current = _current
    if current is not None and not current.closed and os.getpid() == current._process:
        current._core.reclaim_faults()


def open_arrays() -> "List[Array]":
    """Those of the process; makes no runtime."""
    return [] if _current is None else [a for a in list(_current._arrays.values()) if not a.closed]


def runtime() -> Runtime:
    """The runtime of the process; makes one where there is none."""
    with _lock:
        return _current if _current is not None else Runtime(os.environ.get("OOC_MEMORY", "512MiB"))
