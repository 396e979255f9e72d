"""Communicators of mpi4py, for arrays that ranks share."""

from __future__ import annotations

from typing import Any


def group_of(comm: Any, deadline: float = 0.0) -> Any:
    """The ranks of a communicator of mpi4py; collective over it.

    Raises ImportError where this installation of oocarray knows no MPI, or another one than mpi4py, and TypeError
    for what is no communicator.
    """
    try:
        from mpi4py import MPI
    except ImportError as e:
        raise ImportError("comm= takes a communicator of mpi4py, which is not installed: pip install mpi4py") from e
    if not isinstance(comm, MPI.Comm):
        raise TypeError(f"comm={comm!r} is no communicator of mpi4py, as MPI.COMM_WORLD is one")
    if comm == MPI.COMM_NULL:
        raise ValueError("comm is MPI.COMM_NULL: a rank that is in no communicator opens no array with it")
    try:
        from . import _mpi  # type: ignore[attr-defined]
    except ImportError as e:
        raise ImportError(
            f"this installation of oocarray knows no MPI ({e}): where MPI is installed (Debian: libopenmpi-dev), build it "
            "with `pip install --no-binary oocarray ./python` from a checkout"
        ) from e
    ours, theirs = _mpi.library_version(), MPI.Get_library_version()
    if _mpi.handle_bytes != MPI._sizeof(MPI.Comm) or ours.rstrip("\0 \n") != theirs.rstrip("\0 \n"):
        raise ImportError(
            f"oocarray was built with another MPI than mpi4py uses: '{ours}' and '{theirs}'; build both with the same"
        )
    return _mpi.group(MPI._addressof(comm), deadline)
