"""Rows that change places, by whoever takes an array for a sequence."""

import random
import warnings

import numpy as np
import pytest

import oocarray as ooc


def numbered(store, shape=(10, 3), **options):
    a = store.create("a", shape, "i4", **options)
    a[...] = np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    return a


shuffles = {
    "Generator.shuffle": lambda a: np.random.default_rng(0).shuffle(a),
    "numpy.random.shuffle": np.random.shuffle,
    "random.shuffle": random.Random(5).shuffle,
    "Generator.shuffle of a view": lambda a: np.random.default_rng(0).shuffle(a[...]),
}


@pytest.mark.parametrize("shape", [(10,), (10, 3), (40, 2, 5), (500, 4096)])
@pytest.mark.parametrize("shuffle", shuffles.values(), ids=shuffles)
def test_a_shuffle_loses_no_row(store, budget, shuffle, shape):
    a = numbered(store, shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, that it might lose some
        shuffle(a)
    first = a[...].reshape(shape[0], -1)
    assert sorted(first[:, 0].tolist()) == list(range(shape[0]))
    assert (first == first[:, :1]).all()
    assert first[:, 0].tolist() != list(range(shape[0]))


def test_rows_are_swapped_in_the_usual_ways(store, budget):
    a = numbered(store)
    a[2], a[5] = a[5], a[2]
    a[np.int64(1)], a[-1] = a[-1], a[1]
    a[[3, 4]] = a[[4, 3]]
    x, y = a[0], a[6]
    a[0], a[6] = y, x
    assert a[:, 0].tolist() == [6, 9, 5, 4, 3, 2, 0, 7, 8, 1]


def test_a_row_that_is_assigned_otherwise_is_copied_as_in_numpy(store, budget):
    a = numbered(store)
    plain = np.array(a)
    for x in (a, plain):
        x[1] = x[0]          # no view of row 1 waits
        x[0] = x[1]
        row = x[4]
        x[4] = x[5]
        row += 100           # so they are not the same any more
        x[5] = row
        x[7], x[8] = x[8] + 1, x[7] + 1
        x[9], x[9] = x[9], x[9]
    assert a[...].tolist() == plain.tolist()


def test_a_swap_that_is_not_finished_keeps_nothing_alive(store, budget):
    a = numbered(store)
    row = a[4]
    a[4] = a[5]
    del row
    a.close()
    assert a.closed


def test_rows_of_a_file_in_fortrans_order_are_shuffled(tmp_path, budget):
    np.save(tmp_path / "f.npy", np.asfortranarray(np.arange(30).reshape(10, 3)))
    with ooc.open_file(tmp_path / "f.npy", "r+") as a:
        random.Random(1).shuffle(a)
        rows = sorted(map(tuple, np.array(a)))
    assert rows == [(3 * i, 3 * i + 1, 3 * i + 2) for i in range(10)]
