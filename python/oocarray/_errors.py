"""What the library raises.

Failures that the operating system has a number for are the exceptions that Python has for them
(FileNotFoundError, FileExistsError, PermissionError, OSError with ``errno``).  All others are `Error`, and also
the built-in exception that fits.  The text names the thing, the limit and the remedy.
"""

from __future__ import annotations

import errno
import re

import numpy as np


class Error(Exception):
    """Base of what is raised for failures that have no errno."""


class InvalidRequest(Error, ValueError):
    """A malformed box, shape or option; nothing was done."""


class TypeMismatch(Error, TypeError):
    """The file holds elements of another type, or another shape, than was asked for."""


class NotAStore(Error):
    """The folder or URL is not a store, or not this one."""


class IntegrityError(Error, OSError):
    """Stored bytes are not what was written."""


class BudgetTooSmall(Error, MemoryError):
    """The memory budget cannot hold what was asked for."""


class Dirty(Error):
    """The operation would lose modified data that are not written back."""


class Busy(Error):
    """The thing is pinned, open elsewhere, or otherwise in use."""


class Closed(Error, ValueError):
    """The array, store or runtime has been closed."""


class Conflict(Error):
    """Ranks have accessed the same elements without a sync() in between, or did not make the same call."""


class Singular(Error, np.linalg.LinAlgError):
    """A matrix is singular, or not positive definite."""


# By the values of ooc::errc.
_classes = {
    1: InvalidRequest,
    2: TypeMismatch,
    3: NotAStore,
    4: IntegrityError,
    5: IntegrityError,
    6: BudgetTooSmall,
    7: Dirty,
    8: Busy,
    9: Closed,
    10: Conflict,
    11: Conflict,
    13: Singular,
}


# The library's messages name the remedy as C++ programs write it.
_spellings = [
    ("open it with ooc::open, create it with", "open it with open(), create it with"),
    ("open it for reading only, with ooc::open_read_only", "open it with mode='r'"),
    ("open it with ooc::open_read_only", "open it with mode='r'"),
    ("open it with ooc::open", "open it with mode='r+'"),
    ("options.unfinished = ooc::open_unfinished", "unfinished=True"),
    ("options.order = ooc::file_order::tiled", "order='tiled'"),
    ("ooc::file_order::tiled", "order='tiled'"),
    (".order = ooc::index_order::column_major", "order='F'"),
    (".order = ooc::index_order::row_major", "order='C'"),
    ("options.replace = true", "replace=True"),
    ("options.shared = true", "shared=True"),
    ("options.group", "comm="),
    ("invalidate(ooc::discard)", "invalidate(discard=True)"),
    ("memory_layout::right", "layout='right'"),
    ("layout_tiled", "layout='tiled'"),
    ("ooc::create_or_open", "create_or_open()"),
]
_patterns = [
    (re.compile(r"runtime_options::(\w+)"), r"Runtime(\1=...)"),
    (re.compile(r"store_options::(\w+)"), r"open_store(\1=...)"),
    (re.compile(r"\b(options\.|ooc::)"), ""),
]


def make(category: str, value: int, what: str) -> BaseException:
    """The exception for an error code of the library; called by the compiled module."""
    for cpp, python in _spellings:
        what = what.replace(cpp, python)
    for pattern, python in _patterns:
        what = pattern.sub(python, what)
    if category == "errno":
        return MemoryError(what) if value == errno.ENOMEM else OSError(value, what)
    return _classes.get(value, Error)(what)
