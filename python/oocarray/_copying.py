"""What copies from and to other formats have in common: pieces of bounded size, and names until they are complete."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from ._array import Array, Box, create
from ._errors import BudgetTooSmall
from ._runtime import runtime
from ._store import Store, open_store

Progress = Callable[[int, int], None]


def most_piece_bytes() -> int:
    """A useful size beside the budget."""
    return min(64 << 20, runtime().memory // 16)


def pieces(grain: Sequence[int], box: Box, itemsize: int) -> Iterator[Box]:
    """The box in parts that share no chunk, as many chunks in each as are of a useful size beside the budget."""
    most = most_piece_bytes()
    step = list(grain)
    for d in reversed(range(len(step))):
        extent = box[d].stop - box[d].start
        fits = max(1, most // max(1, int(np.prod(step)) * itemsize))
        step[d] *= min(fits, -(-extent // step[d]) + 1)
        if step[d] < extent:
            break
    starts = [range(b.start // s * s, b.stop, s) for b, s in zip(box, step)]
    for at in itertools.product(*starts):
        yield tuple(slice(max(i, b.start), min(i + s, b.stop)) for i, s, b in zip(at, step, box))


def whole(box: Optional[Any], shape: Tuple[int, ...], name: str) -> Box:
    keys = (slice(None),) * len(shape) if box is None else box if isinstance(box, tuple) else (box,)
    keys += (slice(None),) * (len(shape) - len(keys))
    if len(keys) > len(shape):
        raise IndexError(f"{name} has {len(shape)} dimensions, and the box {len(keys)}: leave {len(keys) - len(shape)} out")
    out = []
    for d, (k, n) in enumerate(zip(keys, shape)):
        if not isinstance(k, slice) or k.step not in (None, 1):
            raise IndexError(f"{name}: a box has slices of step 1, not {k!r} (dimension {d})")
        lower, upper = k.start or 0, n if k.stop is None else k.stop
        if not 0 <= lower < upper <= n:
            raise IndexError(f"{name}: {lower}:{upper} is no part of dimension {d}, which has {n} elements")
        out.append(slice(lower, upper))
    return tuple(out)


def copied(array: Array, key: Tuple[Any, ...]) -> np.ndarray:
    """What slices and integers name, in ordinary memory.

    A block that cannot be read raises IntegrityError or OSError, where a touch of it would end the process, if the key takes
    a good part of its blocks, which are then brought in whole.
    """
    boxes = []
    for k, n in zip(key, array.shape):
        at = range(*k.indices(n)) if isinstance(k, slice) else (k % n,)
        boxes.append(slice(min(at), max(at) + 1) if at else slice(0, 0))
    with contextlib.ExitStack() as held:
        if _wants_whole_blocks(array, boxes):
            with contextlib.suppress(BudgetTooSmall):
                held.enter_context(array.pin(tuple(boxes)))
        return np.array(array[key], subok=False)


def _wants_whole_blocks(array: Array, boxes: Sequence[slice]) -> bool:
    """Whether a box is at least a quarter of the blocks that it lies in, and a small part of the budget."""
    extents = [b.stop - b.start for b in boxes]
    run = array.itemsize  # bytes that follow each other
    for n, extent in zip(reversed(array.shape), reversed(extents)):
        run *= extent
        if extent < n:
            break
    bytes_ = int(np.prod(extents)) * array.itemsize
    if not 0 < bytes_ <= runtime().memory // 4:
        return False
    blocks = (bytes_ // run) * (run // array.block_bytes + 2)
    return min(blocks * array.block_bytes, array.nbytes) <= 4 * bytes_


def passing_name(name: str) -> str:
    """What it is called until it is complete: a name has at most 255 bytes."""
    begin = name.encode(errors="surrogateescape")[:200].decode(errors="ignore")
    return f"{begin}.part-{secrets.token_hex(6)}"


def free_in(store: Union[Store, str], path: str, options: Dict[str, Any]) -> Store:
    """The store; raises FileExistsError where the path is taken and may not be replaced."""
    store = open_store(store) if isinstance(store, str) else store
    if store.exists(path) and not options.get("replace"):
        raise FileExistsError(f"'{path}' exists already: take another name, remove it first, or give replace=True")
    return store


def make_filled(
    store: Store, path: str, shape: Tuple[int, ...], dtype: np.dtype, options: Dict[str, Any],
    fill: Callable[[Array], Dict[str, str]],
) -> Array:  # fmt: skip
    """An array that has its name when `fill` has filled it, and returned its attributes; nothing where that raises."""
    replace = bool(options.pop("replace", False))
    folder, slash, last = path.rstrip("/").rpartition("/")
    passing = f"{folder}{slash}.{passing_name(last)}"
    a = create(store, passing, shape, dtype, **options)
    try:
        for key, text in fill(a).items():
            a._core.set_attribute(key, text)
        opening = {k: v for k, v in options.items() if k in ("block", "layout", "shared", "wait_for_writer")}
        a.close()
        if replace and store.exists(path):
            store.remove(path)
        store.rename(passing, path)
    except BaseException:
        if not a.closed:
            a.invalidate(discard=True)
            a.close()
        store.remove(passing)
        raise
    return store.open(path, **opening)
