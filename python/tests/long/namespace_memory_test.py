"""Each function of oocarray.numpy on arrays of eight times the budget takes at most 64 MiB beside the budget."""

import gc
import math
import pathlib

import numpy as np
import pytest

import oocarray as ooc
import oocarray.numpy as xp

MiB = 1 << 20
BUDGET = 32 * MiB
ROWS, COLUMNS = 8 * BUDGET // 8 // 1024, 1024


def peak():
    """Bytes that were resident at most since forget()."""
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


def forget():
    pathlib.Path("/proc/self/clear_refs").write_text("5")


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    with ooc.Runtime(memory=BUDGET):
        store = ooc.open_store(f"local:{tmp_path_factory.mktemp('s')}/s")
        rng = np.random.default_rng(18)
        a, b = (store.create(name, (ROWS, COLUMNS)) for name in "ab")
        for one in (a, b):
            for first in range(0, ROWS, 1024):
                one.write(slice(first, first + 1024), rng.normal(size=(min(1024, ROWS - first), COLUMNS)))
        assert float(xp.sum(a)) != 0
        gc.collect()
        forget()
        yield a, xp.asarray(a), xp.asarray(b), xp.reshape(xp.asarray(a), (-1,)), peak()
        del a, b, one
        gc.collect()


def in_place(x):
    z = xp.asarray(x, copy=True)
    z += 1
    z[1:, :] = z[:-1, :]
    z[z > 3] = 0.0
    return z


def square(line):
    """As many elements as the array, nearly."""
    n = math.isqrt(ROWS * COLUMNS)
    return xp.reshape(line[: n * n], (n, n))


def positive(line):
    s = square(line)
    return s + s.T + 8 * math.sqrt(s.shape[0]) * xp.eye(s.shape[0])


CALLS = {
    "add": lambda a, x, y, line: x + y,
    "all": lambda a, x, y, line: xp.all(x < 9, axis=0),
    "any": lambda a, x, y, line: xp.any(x > 4),
    "arange": lambda a, x, y, line: xp.sum(xp.arange(ROWS * COLUMNS)),
    "argmax": lambda a, x, y, line: xp.argmax(x, axis=0),
    "argmin": lambda a, x, y, line: xp.argmin(x),
    "argsort": lambda a, x, y, line: xp.argsort(x, axis=1),
    "argsort of a line": lambda a, x, y, line: xp.argsort(line),
    "astype": lambda a, x, y, line: xp.astype(x, xp.float32),
    "broadcast_to": lambda a, x, y, line: xp.max(xp.broadcast_to(x, (2, ROWS, COLUMNS))),
    "clip": lambda a, x, y, line: xp.clip(x, 0.0, 1.0),
    "concat": lambda a, x, y, line: xp.concat([x, y], axis=1),
    "count_nonzero": lambda a, x, y, line: xp.count_nonzero(x > 0, axis=1),
    "cumulative_prod": lambda a, x, y, line: xp.cumulative_prod(x, axis=1),
    "cumulative_sum": lambda a, x, y, line: xp.cumulative_sum(x, axis=0),
    "diff": lambda a, x, y, line: xp.diff(x, axis=0),
    "expand_dims": lambda a, x, y, line: xp.sum(xp.expand_dims(x, axis=1), axis=0),
    "eye": lambda a, x, y, line: xp.sum(xp.eye(8192)),
    "fft.fft": lambda a, x, y, line: xp.fft.fft(x[: ROWS // 2, :], axis=1),
    "fft.fft of columns": lambda a, x, y, line: xp.fft.fft(x[: ROWS // 2, :], axis=0),
    "fft.fft of a line": lambda a, x, y, line: xp.fft.fft(line[: 1 << 21]),
    "fft.rfft": lambda a, x, y, line: xp.fft.rfft(x, axis=1),
    "flip": lambda a, x, y, line: xp.flip(x),
    "full": lambda a, x, y, line: xp.full((ROWS, COLUMNS), 3.0) + 1,
    "in place": lambda a, x, y, line: in_place(x),
    "isin": lambda a, x, y, line: xp.isin(x, xp.asarray([0.0, 1.0])),
    "linalg.cholesky": lambda a, x, y, line: xp.linalg.cholesky(positive(line)),
    "linalg.inv": lambda a, x, y, line: xp.linalg.inv(square(line)),
    "linalg.lstsq": lambda a, x, y, line: xp.linalg.lstsq(xp.reshape(x, (-1, 64)), xp.reshape(y, (-1, 64))[:, :3]),
    "linalg.lstsq of a square matrix": lambda a, x, y, line: xp.linalg.lstsq(square(line), square(line)[:, :3]),
    "linalg.lstsq of few independent columns": lambda a, x, y, line: xp.linalg.lstsq(
        xp.matmul(square(line)[:, :200], square(line)[:200, :]), square(line)[:, 0]
    ),
    "linalg.qr of a square matrix": lambda a, x, y, line: xp.linalg.qr(square(line)),
    "linalg.slogdet": lambda a, x, y, line: xp.linalg.slogdet(square(line)),
    "linalg.solve": lambda a, x, y, line: xp.linalg.solve(square(line), square(line)[:, :3000]),
    "linalg.svd_compressed": lambda a, x, y, line: xp.linalg.svd_compressed(x, 20, center=True),
    "linalg.matrix_norm": lambda a, x, y, line: xp.linalg.matrix_norm(x),
    "linalg.outer": lambda a, x, y, line: xp.linalg.outer(x[:, 0], y[0, :]),
    "linalg.qr": lambda a, x, y, line: xp.linalg.qr(xp.reshape(x, (-1, 64)))[0],
    "linalg.svd": lambda a, x, y, line: xp.linalg.svd(xp.reshape(x, (-1, 64)), full_matrices=False)[0],
    "linalg.svdvals": lambda a, x, y, line: xp.linalg.svdvals(xp.reshape(x, (-1, 64))),
    "linalg.vector_norm": lambda a, x, y, line: xp.linalg.vector_norm(x, axis=1),
    "mask": lambda a, x, y, line: x[x > 0],
    "mask of rows": lambda a, x, y, line: x[x[:, 0] > 0],
    "matmul": lambda a, x, y, line: x.T @ y,
    "matmul with a small one": lambda a, x, y, line: x @ xp.ones((COLUMNS, 3)),
    "mean": lambda a, x, y, line: xp.mean(x, axis=1),
    "median": lambda a, x, y, line: xp.median(x),
    "nonzero": lambda a, x, y, line: xp.nonzero(x > 2),
    "permute_dims": lambda a, x, y, line: xp.permute_dims(x, (1, 0)),
    "prod": lambda a, x, y, line: xp.prod(x, axis=0),
    "quantile": lambda a, x, y, line: xp.quantile(x, [0.1, 0.9], axis=0),
    "repeat": lambda a, x, y, line: xp.repeat(x[: ROWS // 4, :], 3, axis=0),
    "roll": lambda a, x, y, line: xp.roll(x, 5, axis=(0, 1)),
    "searchsorted": lambda a, x, y, line: xp.searchsorted(xp.sort(x[0, :]), x),
    "sort": lambda a, x, y, line: xp.sort(x, axis=1),
    "sort of columns": lambda a, x, y, line: xp.sort(x, axis=0),
    "sort of a line": lambda a, x, y, line: xp.sort(line),
    "stack": lambda a, x, y, line: xp.stack([x, y], axis=2),
    "standardised": lambda a, x, y, line: xp.max((x - xp.mean(x, axis=0)) / xp.std(x, axis=0)),
    "sum": lambda a, x, y, line: xp.sum(x, axis=(0, 1)),
    "take": lambda a, x, y, line: xp.take(x, xp.asarray(np.random.default_rng(1).permutation(ROWS)), axis=0),
    "take_along_axis": lambda a, x, y, line: xp.take_along_axis(x, xp.argsort(y, axis=1), axis=1),
    "take_along_axis of columns": lambda a, x, y, line: xp.take_along_axis(x, xp.argsort(y, axis=0), axis=0),
    "take_along_axis of a line": lambda a, x, y, line: xp.take_along_axis(line, xp.argsort(line)[: 1 << 20]),
    "tensordot": lambda a, x, y, line: xp.tensordot(x, y, axes=([0], [0])),
    "tile": lambda a, x, y, line: xp.tile(x[: ROWS // 4, :], (2, 2)),
    "tril": lambda a, x, y, line: xp.tril(x),
    "unique_all": lambda a, x, y, line: xp.unique_all(line),
    "unique_inverse": lambda a, x, y, line: xp.unique_inverse(xp.round(x)),
    "unique_counts": lambda a, x, y, line: xp.unique_counts(xp.round(line)),
    "unique_values": lambda a, x, y, line: xp.unique_values(line),
    "var": lambda a, x, y, line: xp.var(x, axis=0),
    "vecdot": lambda a, x, y, line: xp.vecdot(x, y),
    "where": lambda a, x, y, line: xp.where(x > 0, x, y),
    "a + 1": lambda a, x, y, line: a + 1,
    "a.std(axis=1)": lambda a, x, y, line: a.std(axis=1),
    "np.sort(a, axis=0)": lambda a, x, y, line: np.sort(a, axis=0),
    "np.unique(a)": lambda a, x, y, line: np.unique(a),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_takes_at_most_64_MiB_beside_the_budget(arrays, name):
    a, x, y, line, before = arrays
    gc.collect()
    forget()
    result = CALLS[name](a, x, y, line)
    for r in result if isinstance(result, tuple) else [result]:
        if isinstance(r, xp.Deferred):
            r.compute()
    assert peak() - before <= 64 * MiB, f"{(peak() - before) / MiB:.0f} MiB"  # the budget was in use before


def test_every_function_is_here():
    here = " ".join(CALLS)
    # What is an expression of one array, as `add`; of one small argument; or takes all of it into memory, and says so.
    from oocarray.numpy._elementwise import names

    others = set(names) | set(
        "asarray astype broadcast_arrays broadcast_shapes can_cast empty empty_like finfo from_dlpack full_like iinfo isdtype "
        "linspace matrix_transpose max meshgrid min moveaxis ones ones_like reshape result_type squeeze std triu unstack "
        "zeros zeros_like".split()
    )
    functions = {n for n in xp.__all__ if callable(getattr(xp, n)) and not isinstance(getattr(xp, n), type)} - {"__array_namespace_info__"}
    assert {f for f in functions - others if f not in here} == set()
