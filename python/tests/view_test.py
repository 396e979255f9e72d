"""Pictures of arrays: what they show, and how much they read."""

import numpy as np
import pytest

import oocarray as ooc

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib (Debian: python3-matplotlib) is not installed")
matplotlib.use("Agg")

n = 1024


@pytest.fixture
def plane(store, budget):
    """8 MiB in 4 MiB; element [i, j] is i * n + j."""
    a = store.create("plane", (n, n), "f8", block="64KiB")
    for i in range(n):
        a[i] = np.arange(i * n, (i + 1) * n)
    a.writeback()
    yield a
    matplotlib.pyplot.close("all")
    a.close()


class Reads:
    """Bytes that the nodes have delivered since."""

    def __init__(self, store):
        self.store = store
        self.before = store.stats["bytes_read"]

    def bytes(self):
        now = self.store.stats["bytes_read"]
        was, self.before = self.before, now
        return now - was


def test_an_overview_reads_every_kth_element_and_zooming_what_is_shown(plane, store):
    reads = Reads(store)
    v = ooc.view(plane, pixels=128)
    v.figure.canvas.draw()
    assert reads.bytes() == 128 * 128 * 8
    assert np.array_equal(v.data, np.asarray(plane[::8, ::8])) and v.index == np.s_[0:n:8, 0:n:8]
    reads.bytes()
    v.figure.canvas.draw()
    assert reads.bytes() == 0
    v.axes.set_xlim(199.5, 263.5)
    v.axes.set_ylim(163.5, 99.5)
    v.figure.canvas.draw()
    assert v.index == np.s_[100:164:1, 200:264:1]
    assert reads.bytes() == 64 * 64 * 8
    assert np.array_equal(v.data, np.asarray(plane[100:164, 200:264]))
    assert tuple(v.image.get_extent()) == (199.5, 263.5, 163.5, 99.5)
    assert v.image.get_clim() == (0, (n - 8) * n + n - 8)  # as in the overview


def test_what_is_modified_is_seen(plane):
    plane[0, 0] = 5.5
    assert ooc.view(plane, pixels=16).data[0, 0] == 5.5


def test_an_array_that_was_renamed_is_shown(plane, store):
    store.rename("plane", "elsewhere")
    plane[1, 0] = 7.5
    reads = Reads(store)
    v = ooc.view(plane, np.s_[1, :], pixels=16)
    assert v.data[0] == 7.5
    assert reads.bytes() < 64 * 1024  # 128, and what may have been read ahead of the touch meanwhile


def test_other_dimensions_have_a_slider_and_each_move_reads_one_plane(store, budget):
    with store.create("cube", (8, 64, 64), "i4") as a:
        a[...] = np.arange(8 * 64 * 64).reshape(8, 64, 64)
        a.writeback()
        reads = Reads(store)
        v = ooc.view(a)
        assert v.index == (4, slice(0, 64, 1), slice(0, 64, 1)) and len(v.sliders) == 1
        v.sliders[0].set_val(6)
        v.figure.canvas.draw()
        assert reads.bytes() == 2 * 64 * 64 * 4
        assert np.array_equal(v.data, np.arange(8 * 64 * 64).reshape(8, 64, 64)[6])
        across = ooc.view(a, np.s_[1:5, 7], pixels=2)
        assert np.array_equal(across.data, np.arange(8 * 64 * 64).reshape(8, 64, 64)[1:5:2, 7, ::32])
        matplotlib.pyplot.close("all")


def test_lines_complex_numbers_tiles_and_fortran_order_are_shown(store, budget, tmp_path):
    with store.create("line", 1000, "c8") as a:
        a[...] = np.arange(1000) * 1j
        v = ooc.view(a, pixels=100)
        assert v.data.shape == (100,) and v.image.get_array()[0, 1] == 10
    tiled = store.create("tiles", (256, 256), "?", order="tiled", tile=(64, 64))
    tiled[::2] = True
    assert np.array_equal(ooc.view(tiled, pixels=64).data, np.asarray(tiled[::4, ::4]))
    f = np.asfortranarray(np.arange(600.0).reshape(20, 30))
    np.save(tmp_path / "f.npy", f)
    with ooc.open_file(tmp_path / "f.npy") as a:
        assert np.array_equal(ooc.view(a, pixels=10).data, f[::2, ::3])
    matplotlib.pyplot.close("all")


def test_what_cannot_be_shown_is_refused(store, budget):
    with store.create("points", (4, 4, 4), [("x", "f4")]) as a:
        with pytest.raises(TypeError, match="points.*shows numbers"):
            ooc.view(a)
    with store.create("cube", (4, 4, 4)) as a:
        for index, text in ((np.s_[:, :, :], "one or two dimensions"), (np.s_[9], "outside the extent"),
                            (np.s_[0, ::2], "step 1"), (np.s_[0, 0, 0, 0], "4")):
            with pytest.raises(IndexError, match=text):
                ooc.view(a, index)
        with pytest.raises(ValueError, match="pixels"):
            ooc.view(a, pixels=0)
