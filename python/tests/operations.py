"""An array beyond the budget and a plain one, to which the same is done."""

import numpy as np

types = ["f8", "f4", "i4", "c8", "u8"]


def shape_of(rng):
    """1 to 4 dimensions, of about 100,000 elements in all."""
    rank = int(rng.integers(1, 5))
    side = 100_000 ** (1 / rank)
    return tuple(max(1, int(side * f)) for f in rng.uniform(0.95, 1.2, rank))


def values(rng, shape, dtype):
    """Small whole numbers, so that sums are exact in any order."""
    v = rng.integers(0, 50, shape)
    return (v + 1j * rng.integers(0, 50, shape) if dtype.kind == "c" else v).astype(dtype)


def index(rng, shape):
    """Slices with steps of either sign, integers and ellipses."""
    keys = []
    for n in shape:
        kind = rng.integers(4)
        a, b = sorted(int(x) for x in rng.integers(0, n + 1, 2))
        if kind == 0:
            keys.append(int(rng.integers(-n, n)))
        elif kind == 1:
            keys.append(slice(a, b, int(rng.integers(1, 4))))
        elif kind == 2:
            keys.append(slice(b - n - 1, None if a == 0 else a - 1, -int(rng.integers(1, 4))))
        else:
            keys.append(slice(None))
    if rng.integers(3) == 0:
        at = int(rng.integers(len(keys)))
        keys[at:] = [Ellipsis]
    return tuple(keys)


def fancy(rng, n):
    return rng.integers(-n, n, int(rng.integers(1, 20)))


def assign(rng, a, p):
    k = index(rng, p.shape)
    new = values(rng, p[k].shape, p.dtype)
    a[k] = new
    p[k] = new


def assign_fancy(rng, a, p):
    k = np.unique(fancy(rng, p.shape[0]) % p.shape[0])
    new = values(rng, p.shape[1:], p.dtype)
    a[k] = new
    p[k] = new


def in_place(rng, a, p):
    k = index(rng, p.shape)
    f = [np.add, np.subtract, np.multiply][int(rng.integers(3))]
    for x in (np.asarray(a), p):
        part = x[k if Ellipsis in k else k + (Ellipsis,)]  # a view, of a single element too
        f(part, p.dtype.type(2), out=part)  # of unsigned elements too, of which one by itself is a scalar
        np.remainder(part.real, part.real.dtype.type(50), out=part.real)


def overlapping(rng, a, p):
    n = int(rng.integers(0, p.shape[0]))
    for x in (np.asarray(a), p):
        x[n:] = x[: x.shape[0] - n]


def overwrite(rng, a, p):
    n = int(rng.integers(0, p.shape[0]))
    new = values(rng, p[n:].shape, p.dtype)
    a.overwrite(np.s_[n:])
    np.asarray(a)[n:] = new
    p[n:] = new


def sort(rng, a, p):
    # Along the rows: down the columns every element is in another block.
    np.asarray(a).sort(axis=-1)
    p.sort(axis=-1)


def reopen(rng, a, p):
    """Sends everything to the store and drops it from memory."""
    a.writeback()
    a.invalidate()


def reduce(rng, a, p):
    f = [np.sum, np.max, np.min, np.count_nonzero, np.argmax, np.any, np.std][int(rng.integers(7))]
    # argmax goes down the columns, where every element is in another block.
    axis = [None, -1 if f is np.argmax else int(rng.integers(p.ndim))][int(rng.integers(2))]
    same(f(a, axis=axis), f(p, axis=axis))


def accumulate(rng, a, p):
    k = index(rng, p.shape)
    same(np.cumsum(a[k]), np.cumsum(p[k]))


def elementwise(rng, a, p):
    f = [np.sqrt, np.square, np.negative, np.conjugate, np.isnan, np.abs][int(rng.integers(6))]
    x = p if p.dtype.kind != "u" else p.astype("f8")
    y = a if p.dtype.kind != "u" else np.asarray(a).astype("f8")
    same(f(y), f(x))


def read(rng, a, p):
    k = index(rng, p.shape)
    same(a[k], p[k])


def read_fancy(rng, a, p):
    k = fancy(rng, p.shape[0])
    same(a[k], p[k])
    mask = rng.integers(0, 2, p.shape).astype(bool)
    same(a[mask], p[mask])


def transpose(rng, a, p):
    rows = slice(max(1, 10_000 // p[0].size))  # as much as fits into memory; more takes minutes
    same(np.ascontiguousarray(a[rows].T), np.ascontiguousarray(p[rows].T))


def product(rng, a, p):
    if p.ndim != 2:
        return
    other = values(rng, (p.shape[1], 3), p.dtype)
    same(np.asarray(a) @ other, p @ other)


changes = [assign, assign_fancy, in_place, overlapping, overwrite, sort, reopen]
looks = [reduce, accumulate, elementwise, read, read_fancy, transpose, product]


def same(x, y):
    """Floats may have been added up in another order, and to a wider type."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        rtol = max(1e-12, 16 * np.finfo(x.dtype).eps)
        assert x.dtype == y.dtype and x.shape == y.shape and np.allclose(x, y, rtol=rtol, atol=0), (x, y)
    else:
        assert np.array_equal(x, y), (x, y)


def compare(store, rng, steps):
    dtype = np.dtype(types[int(rng.integers(len(types)))])
    shape = shape_of(rng)
    print(f"{dtype} {shape}")
    p = values(rng, shape, dtype)
    a = store.create("a", shape, dtype, block=4096 << int(rng.integers(0, 3)), replace=True)
    a[...] = p
    for _ in range(steps):
        f = (changes + looks)[int(rng.integers(len(changes) + len(looks)))]
        f(rng, a, p)
    same(a, p)
    a.close()
