"""What cannot be read: calls that know what they will touch raise, and the interpreter lives on."""

import os

import numpy as np
import pytest
from damaging import damage

import oocarray as ooc

n = 1 << 18  # 2 MiB of doubles


@pytest.fixture
def damaged(store, budget, tmp_path):
    """An array of which a block cannot be read, and a good one."""
    with store.create("a", n, block="64KiB") as a:
        a[...] = np.arange(n)
    with store.create("b", n // 4, block="64KiB") as b:
        b[...] = 1
    damage(tmp_path / "store")
    return store.open("a"), store.create("c", n, block="64KiB")


calls = {
    "sum": lambda a, c: ooc.sum(a),
    "min": lambda a, c: ooc.min(a),
    "max": lambda a, c: ooc.max(a),
    "vdot": lambda a, c: ooc.vdot(a, a),
    "reduce": lambda a, c: ooc.reduce(np.multiply, a),
    "cumsum": lambda a, c: ooc.cumsum(a, c),
    "cumsum in place": lambda a, c: ooc.cumsum(a),
    "histogram": lambda a, c: ooc.histogram(a, 10, range=(0, n)),
    "transform": lambda a, c: ooc.transform(np.sqrt, a, out=c),
    "transform in place": lambda a, c: ooc.transform(np.sqrt, a, out=a),
    "for_each": lambda a, c: ooc.for_each(lambda x: np.sqrt(x, out=x), a),
    "sweep": lambda a, c: ooc.sweep(a, 2, lambda out, x: None, to=c),
    "tiles": lambda a, c: [t.sum() for _, t in a.tiles()],
    "tiles to be written": lambda a, c: [t.fill(0) for _, t in a.tiles(write=True)],
    "sort": lambda a, c: ooc.sort(a, c),
    "copy": lambda a, c: ooc.copy(a, c),
    "read": lambda a, c: a.read(np.s_[::2]),
    "write": lambda a, c: a.write(np.s_[::2], 1),
    "write in part": lambda a, c: a.write(np.s_[n // 2 : n // 2 + 1], 1),
    "tofile": lambda a, c: a.tofile(os.devnull),
    "a.sum": lambda a, c: a.sum(),
    "a.std": lambda a, c: a.std(),
    "a.argmax": lambda a, c: a.argmax(),
    "a.all": lambda a, c: (a[:1].fill(1), a.all()),
}


@pytest.mark.parametrize("call", calls.values(), ids=calls)
def test_a_damaged_block_is_an_exception(damaged, store, call):
    with pytest.raises(ooc.IntegrityError, match="'a'"):
        call(*damaged)
    assert store.open("b")[...].sum() == n // 4


def test_a_damaged_block_ends_the_export_to_hdf5(damaged, tmp_path):
    pytest.importorskip("h5py")
    with pytest.raises(ooc.IntegrityError, match="'a'"):
        ooc.to_hdf5(damaged[0], tmp_path / "a.h5")
    assert not list(tmp_path.glob("*.h5*"))


def test_a_damaged_block_is_the_failure_of_a_task_of_dask(damaged):
    pytest.importorskip("dask.array")
    with pytest.raises(ooc.IntegrityError, match="'a'"):
        ooc.to_dask(damaged[0]).sum().compute(scheduler="threads")


def test_a_damaged_block_ends_the_export_to_zarr(damaged, tmp_path):
    pytest.importorskip("zarr", minversion="3")
    with pytest.raises(ooc.IntegrityError, match="'a'"):
        ooc.to_zarr(damaged[0], tmp_path / "a.zarr")


@pytest.mark.parametrize("name", ["sum", "min", "vdot", "reduce", "histogram", "tiles", "read", "tofile", "a.std"])
def test_a_npy_file_that_was_cut_off_is_an_exception(tmp_path, budget, name):
    np.save(tmp_path / "a.npy", np.arange(float(n)))
    a = ooc.open_file(tmp_path / "a.npy", block="64KiB")
    os.truncate(tmp_path / "a.npy", 1 << 20)
    with pytest.raises(OSError, match="a.npy"):
        calls[name](a, None)
    assert a[100] == 100
