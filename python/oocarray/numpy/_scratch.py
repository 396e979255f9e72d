"""Arrays for results: in a store, without a name, and gone when nothing refers to them any more."""

from __future__ import annotations

import os
import stat
import uuid
from typing import Optional

import numpy as np

from .. import _opening
from .._array import Array
from .._attributes import Attributes, InMemory
from .._errors import InvalidRequest, NotAStore
from .._runtime import open_arrays, runtime
from .._store import Store, open_store
from ._nodes import Shape


def _beside() -> Optional[Store]:
    """The store of the first array that this process may write."""
    return next((a.store for a in open_arrays() if a.writable and a.store is not None and not a._of_ranks), None)


def _own() -> Store:
    """A store of this user, where there is none to be beside; what processes left there that have died goes now."""
    folder = f"/var/tmp/oocarray-scratch-{os.getuid()}"  # /tmp is often memory
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        there = os.lstat(folder)
        if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o022:
            raise NotAStore(
                f"'{folder}', where results go, is not this user's alone: say where else, as Runtime(scratch='local:/disk/scratch')"
            ) from None
    # One worker for each 16 MiB: its transfer buffers are part of the budget.
    memory = runtime().memory
    staging = max(64 << 10, min(256 << 10, memory >> 4) // (64 << 10) * (64 << 10))
    return open_store("local:" + folder, workers=1 if memory < 32 << 20 else 0, staging=staging)


def store() -> Store:
    """Where results go."""
    rt = runtime()
    beside = None if rt._scratch_url else _beside()
    if beside is not None:
        return beside
    if rt._scratch is None:
        rt._scratch = open_store(rt._scratch_url) if rt._scratch_url else _own()
    return rt._scratch


def scratch(shape: Shape, dtype: np.dtype) -> Array:
    """A new array there.  Raises OSError (ENOSPC) where the store has no room for it."""
    if dtype.kind == "O":
        raise InvalidRequest("elements that are Python objects have no place in a store")
    array = _opening.made(store(), f".scratch-{uuid.uuid4().hex}", "create", shape, dtype, {"temporary": True})
    array._attributes = Attributes(InMemory(), array.path)  # there is no name that the store could keep them under
    return array
