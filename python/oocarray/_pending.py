"""Results that have not been computed yet, and what they will be computed from.

Whoever changes an array by a call of the package says so here first, and results that need its elements as they are now
are computed before.  So does a view (`_view`) of assignments and ufuncs; what else changes its memory is not seen.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Dict, Union

if TYPE_CHECKING:
    from ._array import Array
    from ._view import View

results: "Dict[int, weakref.ref[Any]]" = {}


def add(result: Any) -> None:
    number = id(result)
    results[number] = weakref.ref(result, lambda _: results.pop(number, None))


def done(result: Any) -> None:
    results.pop(id(result), None)


def before_change(array: "Union[Array, View]") -> None:
    """Computes all that need what the array holds; one that cannot be computed keeps the exception, and the change goes on."""
    for ref in list(results.values()) if results else ():
        result = ref()
        if result is not None and result._needs(array):
            try:
                result._settle()
            except Exception as error:
                result._lose(error)


def anything_needs(node: Any) -> bool:
    """Whether a result is to be made of what a node has in memory."""
    return any(result is not None and result._is_of(node) for result in (ref() for ref in list(results.values())))
