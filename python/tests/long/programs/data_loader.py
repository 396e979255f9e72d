"""Batches of samples by a pool of workers, each of which opens the array at its first sample, as a DataLoader's do."""

import multiprocessing
import sys

import numpy as np

import oocarray as ooc


class Samples:
    def __init__(self, url, path):
        self.url, self.path, self.array = url, path, None

    def __getitem__(self, i):
        if self.array is None:
            self.array = ooc.open(self.url, self.path, "r")
        return np.array(self.array[i], subok=False)

    def batch(self, indices):
        return np.stack([self[i] for i in indices])


def use(samples):
    global mine
    mine = samples


def load(indices):
    return mine.batch(indices)


def make(url):
    with ooc.create(url, "x", (4096, 64, 64), "f4") as x:
        for rows in range(0, 4096, 256):
            x[rows : rows + 256] = np.arange(rows, rows + 256)[:, None, None]
    ooc.runtime().close()


def main(method):
    context = multiprocessing.get_context(method)
    maker = context.Process(target=make, args=("local:store",))
    maker.start()
    maker.join()
    assert maker.exitcode == 0
    order = np.random.default_rng(5).permutation(4096)
    batches = [order[k : k + 64] for k in range(0, 4096, 64)]
    with context.Pool(2, use, (Samples("local:store", "x"),)) as pool:
        seen = [batch[:, 3, 5].astype(int) for batch in pool.imap(load, batches)]
    assert np.array_equal(np.concatenate(seen), order)


if __name__ == "__main__":
    main(sys.argv[1])
