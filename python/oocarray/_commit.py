"""Commits: the last consistent state of several arrays."""

from __future__ import annotations

import contextlib
import datetime
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional

from . import _core
from ._attributes import texts_of, values_of

if TYPE_CHECKING:
    from ._array import Array


class Commit(NamedTuple):
    """The last commit of an array."""

    number: int  #: from 1; 0: nothing was committed since the array was made
    time: datetime.datetime  #: when, in UTC, by the clock of who made it
    attributes: Dict[str, Any]  #: what was given with it


def described(found: Any) -> Optional[Commit]:
    """`found`: as the compiled module gives it."""
    if found is None:
        return None
    number, nanoseconds, texts = found
    since = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return Commit(number, since + datetime.timedelta(microseconds=nanoseconds // 1000), values_of(texts))


def commit(*arrays: Array, **attributes: Any) -> None:
    """Makes the present elements, shapes and attributes of all these arrays their last commit, in one step.

    ::

        u = store.create("u", shape, commits=True)
        v = store.create("v", shape, commits=True)
        ...
        ooc.commit(u, v, step=1200)

    When it returns, it is durable.  If a process is killed or the power fails, at any moment, then all the arrays are at
    that commit, or all are at the one before.  Who opens them for writing begins at the last commit, and who opens them
    for reading sees it.  An array with commits takes twice its space.

    Parameters
    ----------
    arrays : Array
        Of one store, made with ``commits=True``, and open for writing.  With ``comm=`` it is a collective call.
    attributes
        Texts, numbers and lists of them, which are kept with the commit: see `Array.last_commit`.

    Raises
    ------
    InvalidRequest, TypeError
        Where an array has no commits, is open for reading, or lies in another store.  Nothing was committed then.
    OSError
        As `Array.sync` does.  Nothing was committed, except where it says that nobody knows: reading and writing fail
        then until the arrays are rolled back or opened again.
    """
    left_out: List[str] = []
    texts = texts_of(attributes, left_out)
    if left_out:
        raise TypeError(left_out[0])
    _core.commit([a._core for a in arrays], texts)


@contextlib.contextmanager
def transaction(*arrays: Array, **attributes: Any) -> Iterator[Dict[str, Any]]:
    """Commits the arrays at the end of a `with` block; an exception takes them back to their last commit.

    ::

        with ooc.transaction(u, v) as given:
            u += v
            given["step"] = 1200

    Gives the attributes, which the block may change.  For arguments and exceptions see `commit`.  Views of arrays that
    may be resized must be gone at an exception, see `Array.roll_back`.
    """
    given = dict(attributes)
    try:
        yield given
    except BaseException:
        with contextlib.ExitStack() as all_of_them:  # also where one cannot be
            for a in arrays:
                all_of_them.callback(a.roll_back)
        raise
    commit(*arrays, **given)
