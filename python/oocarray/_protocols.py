"""What NumPy and Python call of an array by itself: ufuncs, functions, conversions, iteration, copies."""

from __future__ import annotations

import inspect
from typing import Any, Iterator, Optional, Tuple

import numpy as np

from . import _core
from ._names import about_to_change, plain, plain_within

#: These change what they are given first, by these names.
_changing = {np.copyto: "dst", np.put: "a", np.place: "arr", np.putmask: "a", np.fill_diagonal: "a", np.put_along_axis: "arr"}
#: Where `out` is, of functions that have no signature.
_out_at = {np.dot: 2, np.concatenate: 2}
#: These take a subclass for one that has no rules of its own for what is missing.
_of_plain_arrays = {np.nanmax, np.nanmin}


def _targets(function: Any, arguments: Any, named: Any) -> Tuple[Any, ...]:
    """What a function of NumPy writes to."""
    in_place = function is np.nan_to_num and not (arguments[1] if len(arguments) > 1 else named.get("copy", True))
    if function in _changing or named.get("overwrite_input") or in_place:
        return (arguments[0] if arguments else named.get(_changing.get(function, "a"), named.get("x")),)
    out = named.get("out")
    if function in _out_at and len(arguments) > _out_at[function]:
        out = arguments[_out_at[function]]
    elif out is None and len(arguments) > 2:
        try:
            out = inspect.signature(function).bind(*arguments, **named).arguments.get("out")
        except (TypeError, ValueError):
            return ()
    return out if isinstance(out, tuple) else (out,)


class Protocols(_core.ArrayBase, np.lib.mixins.NDArrayOperatorsMixin):
    """Of `Array`, which has the rest: everything goes to the view of all elements."""

    path: Any
    _dtype: np.dtype
    _view: Any

    def __array_namespace__(self, /, *, api_version: Optional[str] = None) -> Any:
        """The module `oocarray.numpy`; see the array API standard."""
        from .numpy._operators import namespace

        return namespace(api_version)

    def __copy__(self) -> np.ndarray:  # type: ignore[override]
        """The elements, in ordinary memory."""
        return np.array(self._view(), subok=False)

    def __deepcopy__(self, memo: Any) -> np.ndarray:  # type: ignore[override]
        return self.__copy__()

    def __dlpack__(self, **options: Any) -> Any:
        return np.asarray(self._view()).__dlpack__(**options)

    def __dlpack_device__(self) -> Tuple[int, int]:  # type: ignore[override]
        return np.asarray(self._view()).__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:  # type: ignore[override]
        view = self._view()
        if dtype is not None and np.dtype(dtype) != self._dtype:
            if copy is False:
                raise ValueError(f"array '{self.path}' has elements of type {self._dtype}; {dtype} needs a copy")
            return np.array(view, dtype=dtype, subok=False)
        return np.array(view, subok=False) if copy else view

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **arguments: Any) -> Any:
        if arguments.get("out") is None and "where" not in arguments:
            from .numpy import _functions

            large = _functions.ufunc(ufunc, method, inputs, arguments)
            if large is not NotImplemented:
                return large
        out = arguments.get("out")
        out = () if out is None else out if isinstance(out, tuple) else (out,)  # Numba's ufuncs hand on no tuple
        for target in (*out, inputs[0] if method == "at" else None):
            about_to_change(target)
        if out:
            arguments["out"] = tuple(plain(o) for o in out)
        if "where" in arguments:
            arguments["where"] = plain(arguments["where"])
        result = getattr(ufunc, method)(*(plain(i) for i in inputs), **arguments)
        if not out:
            return result
        if len(out) == 1:
            return out[0]
        return tuple(made if o is None else o for o, made in zip(out, result))

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        from .numpy import _functions

        large = _functions.function(function, types, arguments, named)
        if large is not NotImplemented:
            return large
        for target in _targets(function, arguments, named):
            about_to_change(target)
        given, by_name = plain_within(arguments), plain_within(named)
        if function in _of_plain_arrays:
            given = tuple(np.asarray(x) if isinstance(x, np.ndarray) else x for x in given)
            by_name = {k: np.asarray(x) if k == "a" else x for k, x in by_name.items()}
        result = function(*given, **by_name)
        out = named.get("out")
        return out if isinstance(out, _core.ArrayBase) else result

    # NumPy's operators ask a ufunc; of records and texts its arrays compare otherwise.
    def __eq__(self, other: Any) -> Any:
        return self._view() == plain(other) if self._dtype.kind in "VSU" else super().__eq__(other)

    def __ne__(self, other: Any) -> Any:
        return self._view() != plain(other) if self._dtype.kind in "VSU" else super().__ne__(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        return bool(self._view())  # of several elements NumPy raises ValueError

    def __contains__(self, value: Any) -> bool:
        return value in self._view()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._view())
