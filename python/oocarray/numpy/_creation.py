"""Arrays that are made anew."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple, Union

import numpy as np

from .. import _core
from .._numbers import shape_of
from ._deferred import Deferred, deferred, elementwise, node_of
from ._dtypes import check_device
from ._manipulation import broadcast_to, expand_dims
from ._nodes import Generated, Held, Ranges, indices

Number = Union[bool, int, float, complex]


def _nested(obj: Any) -> Any:
    """Lists of arrays as lists of NumPy's."""
    if isinstance(obj, (list, tuple)):
        return [_nested(o) for o in obj]
    return np.asarray(obj) if isinstance(obj, _core.ArrayBase) else obj


def asarray(obj: Any, /, *, dtype: Any = None, device: Optional[str] = None, copy: Optional[bool] = None) -> Deferred:
    """An array of the namespace: of an `oocarray.Array`, which it then stands for, of NumPy's, of lists and numbers.

    Without ``copy=True`` an `oocarray.Array` keeps its memory: what is assigned to the result it has as well.
    """
    check_device(device)
    if not isinstance(obj, (_core.ArrayBase, np.ndarray, np.generic)):
        if copy is False and not hasattr(obj, "__array__") and not hasattr(obj, "__buffer__"):
            try:
                memoryview(obj)
            except TypeError:
                raise ValueError(f"{type(obj).__name__} has no memory to share: copy=False cannot be") from None
        values = np.array(_nested(obj), dtype) if isinstance(obj, (list, tuple)) else np.asarray(obj, dtype)
        if dtype is None and isinstance(obj, int) and values.dtype.kind not in "bi":
            raise OverflowError(f"{obj} is no number of type int64")
        return Deferred(Held(values, is_programs=not isinstance(obj, (list, tuple))))
    node = node_of(obj)
    to = node.dtype if dtype is None else np.dtype(dtype)
    if node.dtype == to and not copy:
        return obj if isinstance(obj, Deferred) else Deferred(node)
    if copy is False:
        raise ValueError(f"elements are of type {node.dtype}; {to} needs a copy")
    if isinstance(node, Held):
        return Deferred(Held(node.values.astype(to)))
    return elementwise(lambda v: v.astype(to), [node], to)


def from_dlpack(x: Any, /, *, device: Optional[str] = None, copy: Optional[bool] = None) -> Deferred:
    """See the array API standard."""
    check_device(device)
    if isinstance(x, _core.ArrayBase):
        return asarray(x, copy=copy)
    values = np.from_dlpack(x)
    return Deferred(Held(np.array(values)) if copy else Held(values, is_programs=True))


def _filled(shape: Any, value: Any, dtype: np.dtype) -> Deferred:
    one = np.asarray(value, dtype)
    return deferred(Generated(shape_of(shape), dtype, lambda _: one))


def full(
    shape: Any, fill_value: Any, *, dtype: Any = None, device: Optional[str] = None
) -> Deferred:
    """See the array API standard; a large one takes no room until it is changed."""
    check_device(device)
    value = np.asarray(fill_value)
    return _filled(shape, value, value.dtype if dtype is None else np.dtype(dtype))


def zeros(shape: Any, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See `full`."""
    check_device(device)
    return _filled(shape, 0, np.dtype("f8" if dtype is None else dtype))


def ones(shape: Any, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See `full`."""
    check_device(device)
    return _filled(shape, 1, np.dtype("f8" if dtype is None else dtype))


def empty(shape: Any, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """As `zeros`."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See the array API standard."""
    check_device(device)
    node = node_of(x)
    return _filled(node.shape, fill_value, node.dtype if dtype is None else np.dtype(dtype))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See the array API standard."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """See the array API standard."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Optional[str] = None) -> Deferred:
    """As `zeros_like`."""
    return full_like(x, 0, dtype=dtype, device=device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Optional[str] = None
) -> Deferred:
    """See the array API standard."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("step=0 leads nowhere")
    to = np.result_type(start, stop, step) if dtype is None else np.dtype(dtype)
    if dtype is None and to.kind in "iu":
        to = np.dtype("int64")
    n = max(0, math.ceil((stop - start) / step))
    whole = to.kind in "iu" and all(isinstance(v, int) for v in (start, stop, step))

    def formula(ranges: Ranges) -> np.ndarray:
        i = indices(ranges[0])
        return (start + i.astype("O") * step).astype(to) if whole and _is_far(start, n, step) else (start + i * step).astype(to)

    return deferred(Generated((n,), to, formula))


def _is_far(start: int, n: int, step: int) -> bool:
    return max(abs(start), abs(start + n * step)) >= 1 << 62


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Optional[str] = None, endpoint: bool = True
) -> Deferred:
    """See the array API standard."""
    check_device(device)
    complex_ = isinstance(start, complex) or isinstance(stop, complex)
    to = np.dtype(("c16" if complex_ else "f8") if dtype is None else dtype)
    wide = np.result_type(to, np.float64)
    parts = num - 1 if endpoint else num

    def formula(ranges: Ranges) -> np.ndarray:
        i = indices(ranges[0])
        if parts <= 0:
            return np.full(len(i), start, to)
        values = start + i * ((wide.type(stop) - wide.type(start)) / parts)
        if endpoint:
            values = np.where(i == parts, wide.type(stop), values)
        return values.astype(to)

    return deferred(Generated((num,), to, formula))


def eye(
    n_rows: int, n_cols: Optional[int] = None, /, *, k: int = 0, dtype: Any = None, device: Optional[str] = None
) -> Deferred:
    """See the array API standard."""
    check_device(device)
    to = np.dtype("f8" if dtype is None else dtype)
    formula = lambda r: (_behind(r) == _near(k)).astype(to)  # noqa: E731
    return deferred(Generated((n_rows, n_rows if n_cols is None else n_cols), to, formula))


def _behind(ranges: Ranges) -> np.ndarray:
    """How far the column of each element is behind its row."""
    return indices(ranges[1]) - indices(ranges[0])[:, None]


def _near(k: int) -> int:
    """A diagonal; what is beyond all elements need not be a number of 64 bits."""
    return max(-(1 << 62), min(k, 1 << 62))


def _triangle(x: Any, keeps: Any) -> Deferred:
    node = node_of(x)
    if len(node.shape) < 2:
        raise ValueError(f"an array of shape {node.shape} has no triangle: it needs two dimensions")
    zero = node.dtype.type(0)
    mask = Generated(node.shape[-2:], "?", lambda r: keeps(_behind(r)))
    return elementwise(lambda v, m: np.where(m, v, zero), [node, mask], node.dtype)


def tril(x: Any, /, *, k: int = 0) -> Deferred:
    """See the array API standard."""
    return _triangle(x, lambda behind: behind <= _near(k))


def triu(x: Any, /, *, k: int = 0) -> Deferred:
    """See the array API standard."""
    return _triangle(x, lambda behind: behind >= _near(k))


def meshgrid(*arrays: Any, indexing: str = "xy") -> Tuple[Deferred, ...]:
    """See the array API standard; the results take no room."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing={indexing!r}: choose 'xy' or 'ij'")
    nodes = [node_of(a) for a in arrays]
    if len({n.dtype for n in nodes}) > 1:
        raise ValueError(f"the arrays are of several types: {', '.join(str(n.dtype) for n in nodes)}")
    order = list(range(len(nodes)))
    if indexing == "xy" and len(nodes) > 1:
        order[:2] = [1, 0]
    sizes = [math.prod(n.shape) for n in nodes]
    shape = tuple(sizes[k] for k in order)
    results = []
    for k, a in enumerate(arrays):
        d = order.index(k)
        line = a if nodes[k].shape else expand_dims(a, axis=0)
        results.append(broadcast_to(expand_dims(line, axis=tuple(j for j in range(len(nodes)) if j != d)), shape))
    return tuple(results)
