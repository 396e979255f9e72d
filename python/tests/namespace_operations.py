"""Random calls of oocarray.numpy beside the same of NumPy, on arrays beyond the budget and small ones."""

import numpy as np

import oocarray as ooc
import oocarray.numpy as xp

TYPES = ["f8", "f4", "i4", "u1", "c16", "?"]


def values(rng, shape, dtype):
    """With few different numbers, so that there are equal ones."""
    v = rng.integers(-9, 10, shape) if dtype != "u1" and dtype != "?" else rng.integers(0, 2 if dtype == "?" else 9, shape)
    return (v + (1j * rng.integers(-3, 3, shape) if dtype == "c16" else 0)).astype(dtype)


def arrays(store, rng, shape, dtype, name):
    """The same elements here and there: in rows or tiles, open for writing or made in memory."""
    p = values(rng, shape, dtype)
    kind = rng.integers(3)
    if kind == 2:
        return xp.asarray(p), p
    options = {"order": "tiled"} if kind == 1 else {}
    a = store.create(name, shape, dtype, **options)
    a.write(..., p)
    return xp.asarray(a), p


def axis_of(rng, p):
    return None if rng.integers(3) == 0 else int(rng.integers(-p.ndim, p.ndim))


def key_of(rng, p):
    """Slices of any step, integers, None and '...'."""
    keys = []
    for n in p.shape:
        if rng.integers(4) == 0 and n:
            keys.append(int(rng.integers(-n, n)))
        else:
            lower, upper = (int(rng.integers(-n - 1, n + 2)) for _ in range(2))
            keys.append(slice(lower, upper, [None, 1, 2, -1, -3][int(rng.integers(5))]))
    if rng.integers(3) == 0:
        keys.insert(int(rng.integers(len(keys) + 1)), None)
    if rng.integers(3) == 0 and len(keys) > 1:
        at = int(rng.integers(len(keys)))
        keys[at:] = [...]
    return tuple(keys)


def unary(rng, x, p):
    if p.dtype == bool:
        return xp.logical_not(x), ~p
    f, g = [(xp.negative, np.negative), (xp.square, np.square), (xp.abs, np.abs), (xp.conj, np.conj)][int(rng.integers(4))]
    return f(x), g(p)


def with_number(rng, x, p):
    if p.dtype == bool:
        return x ^ True, p ^ True
    n = int(rng.integers(1, 5))
    return [lambda v: v + n, lambda v: n * v, lambda v: v - n][(i := int(rng.integers(3)))](x), (
        [lambda v: v + n, lambda v: n * v, lambda v: v - n][i](p).astype(p.dtype)
    )


def with_vector(rng, x, p):
    if p.dtype == bool or p.ndim == 0:
        return x, p
    v = values(rng, p.shape[-1:], "i4" if p.dtype.kind in "i" else "f4" if p.dtype.kind == "f" else "u1").astype(p.dtype)
    return x * xp.asarray(v), p * v


def with_itself(rng, x, p):
    if p.dtype == bool:
        return xp.logical_or(x, xp.flip(x)), p | np.flip(p)
    return x + xp.flip(x), p + np.flip(p)


def sliced(rng, x, p):
    key = key_of(rng, p)
    return x[key], p[key]


def turned(rng, x, p):
    order = [int(k) for k in rng.permutation(p.ndim)]
    return xp.permute_dims(x, order), p.transpose(order)


def rolled(rng, x, p):
    axis, by = axis_of(rng, p) if p.ndim else None, int(rng.integers(-5, 9))
    return xp.roll(x, by, axis=axis), np.roll(p, by, axis=axis)


def joined(rng, x, p):
    axis = int(rng.integers(p.ndim)) if p.ndim else 0
    if p.ndim == 0 or p.size > 400_000:
        return x, p
    return xp.concat([x, x[::-1, ...]], axis=axis), np.concatenate([p, p[::-1]], axis=axis)


def reshaped(rng, x, p):
    return (xp.reshape(x, (-1,)), p.reshape(-1)) if rng.integers(2) else (xp.reshape(x, p.shape[::-1]), p.reshape(p.shape[::-1]))


def sorted_(rng, x, p):
    if p.dtype.kind == "c" or p.ndim == 0:
        return x, p
    axis = int(rng.integers(-p.ndim, p.ndim))
    down = bool(rng.integers(2))
    if down:  # NaN come last
        return xp.sort(x, axis=axis, descending=True), -np.sort(-p, axis=axis) if p.dtype.kind == "f" else ~np.sort(~p, axis=axis)
    return xp.sort(x, axis=axis), np.sort(p, axis=axis)


def argsorted(rng, x, p):
    if p.dtype.kind == "c" or p.ndim == 0:
        return x, p
    axis = int(rng.integers(-p.ndim, p.ndim))
    return xp.argsort(x, axis=axis), np.argsort(p, axis=axis, kind="stable")


def accumulated(rng, x, p):
    if p.ndim == 0 or p.dtype == bool:
        return x, p
    axis = int(rng.integers(p.ndim))
    wide = np.result_type(p, np.float64) if p.dtype.kind in "fc" else p.dtype
    return xp.cumulative_sum(x, axis=axis, dtype=p.dtype), np.cumsum(p, axis=axis, dtype=wide).astype(p.dtype)


def masked(rng, x, p):
    if p.dtype.kind == "c":
        return x[xp.real(x) > 0], p[p.real > 0]
    return x[x > 0], p[p > 0]


def masked_rows(rng, x, p):
    mask = rng.random(p.shape[: max(1, p.ndim - 1)]) < [0.02, 0.5][int(rng.integers(2))] if p.ndim else None
    return (x[xp.asarray(mask)], p[mask]) if p.ndim else (x, p)


def by_indices(rng, x, p):
    """Of all dimensions, or of one beside slices."""
    if p.ndim == 0 or 0 in p.shape:
        return x, p
    shape = [(7,), (3, 5)][int(rng.integers(2))]
    keys = [rng.integers(-n, n, shape) for n in p.shape]
    if rng.integers(2):
        d = int(rng.integers(p.ndim))
        keys = [k if i == d else slice(None) for i, k in enumerate(keys)]
    return x[tuple(xp.asarray(k) if isinstance(k, np.ndarray) else k for k in keys)], p[tuple(keys)]


def taken(rng, x, p):
    if p.ndim == 0 or 0 in p.shape:
        return x, p
    axis = int(rng.integers(p.ndim))
    i = rng.integers(-p.shape[axis], p.shape[axis], int(rng.integers(1, 30)))
    return xp.take(x, xp.asarray(i), axis=axis), np.take(p, i, axis=axis)


def repeated(rng, x, p):
    if p.ndim == 0 or p.size > 400_000:
        return x, p
    axis = int(rng.integers(p.ndim))
    return xp.repeat(x, 2, axis=axis), np.repeat(p, 2, axis=axis)


def assigned(rng, x, p):
    """What depends on the array before keeps what it was."""
    before, q = x + x if p.dtype != bool else xp.logical_not(x), p + p if p.dtype != bool else ~p
    x, p = xp.asarray(x, copy=True), p.copy()
    after = x[...]
    key = key_of(rng, p)
    value = values(rng, np.asarray(p[key]).shape, "?" if p.dtype == bool else "u1").astype(p.dtype)
    x[key] = xp.asarray(value)
    p2 = p.copy()
    p2[key] = value
    same(after, p)
    same(before, q)
    return x, p2


def added_in_place(rng, x, p):
    if p.dtype == bool:
        return x, p
    x = xp.asarray(x, copy=True)
    kept = x * 1
    x += xp.asarray(p[..., ::-1]) if p.ndim else 1
    same(kept, p)
    return x, (p + (p[..., ::-1] if p.ndim else 1)).astype(p.dtype)


STEPS = [
    unary, with_number, with_vector, with_itself, sliced, turned, rolled, joined, reshaped, sorted_, argsorted, accumulated,
    masked, masked_rows, by_indices, taken, repeated, assigned, added_in_place,
]


def reduced(rng, x, p):
    axis, keep = axis_of(rng, p) if p.ndim else None, bool(rng.integers(2))
    if 0 in p.shape:
        return
    for f, g in ((xp.sum, np.sum), (xp.mean, np.mean), (xp.max, np.max), (xp.argmin, np.argmin), (xp.std, np.std),
                 (xp.any, np.any), (xp.count_nonzero, np.count_nonzero), (xp.prod, np.prod)):
        if p.dtype.kind == "c" and f in (xp.max, xp.argmin, xp.std) or f is xp.prod and p.dtype.kind in "fc":
            continue
        if p.dtype == bool and f in (xp.max, xp.argmin, xp.std, xp.mean):
            continue
        same(f(x, axis=axis, keepdims=keep), g(p, axis=axis, keepdims=keep), f.__name__)


def same(x, p, what=""):
    x, p = np.asarray(x), np.asarray(p)
    assert x.shape == p.shape, (what, x.shape, p.shape)
    if p.dtype.kind in "fc":
        single = p.dtype in (np.float32, np.complex64)
        assert np.allclose(x, p, rtol=1e-4 if single else 1e-11, atol=1e-3 if single else 1e-9), (what, x, p)
    else:
        assert np.array_equal(x, p), (what, x, p)


def compare(store, rng, steps, log):
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, {1: 200_000, 2: 500, 3: 60}[dims], dims))
    x, p = arrays(store, rng, shape, TYPES[int(rng.integers(len(TYPES)))], "a")
    log.append(f"{x!r}")
    with np.errstate(all="ignore"):
        for _ in range(steps):
            f = STEPS[int(rng.integers(len(STEPS)))]
            log.append(f"{f.__name__} of {p.shape} {p.dtype}")
            x, p = f(rng, x, p)
            p = np.asarray(p)
            assert (x.shape, x.dtype) == (p.shape, p.dtype), (x, p.shape, p.dtype)
            if rng.integers(3) == 0:
                same(x, p)
            if p.size > 600_000:
                break
        reduced(rng, x, p)
        same(x, p)
