"""Element types: what NumPy has is what comes back."""

import numpy as np
import pytest

import oocarray as ooc
from oocarray import _dtype

kinds = [
    "?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "g", "c8", "c16",
    ">f8", "M8[ns]", "m8[s]", "S5", "U3", "V7",
    [("x", "f4"), ("y", "i8"), ("name", "S3")],
    [("position", "f8", (3,)), ("inner", [("a", "u1"), ("b", "<u2")])],
]  # fmt: skip


def values(dtype, n, rng):
    raw = rng.integers(32, 96, n * dtype.itemsize, dtype="u1")
    if dtype.kind == "b":
        raw &= 1
    if dtype.kind == "U":
        return np.array(["".join(chr(c) for c in rng.integers(97, 123, 3)) for _ in range(n)], dtype)
    if dtype.char == "g":
        return rng.random(n).astype(dtype)
    return raw.view(dtype)


@pytest.mark.parametrize("kind", kinds, ids=str)
def test_a_type_is_the_same_when_the_array_is_opened_again(store, budget, kind):
    dtype = np.dtype(kind)
    plain = values(dtype, 1000, np.random.default_rng(3))
    with store.create("a", 1000, dtype) as a:
        assert a.dtype == dtype
        a[...] = plain
    with store.create_or_open("a", (1000,), dtype) as a:
        assert a.dtype == dtype
    assert store.entry("a").dtype == dtype
    with store.open("a", "r") as a:
        assert a.dtype == dtype and a[:].tobytes() == plain.tobytes()


def test_an_aligned_structure_keeps_its_padding(store, budget):
    dtype = np.dtype([("a", "u1"), ("b", "f8")], align=True)
    assert dtype.itemsize == 16
    with store.create("a", 10, dtype) as a:
        a["b"] = 2.5
    with store.open("a") as a:
        assert a.dtype.itemsize == 16 and a.dtype.fields["b"][1] == 8 and a[3]["b"] == 2.5


def test_fields_of_an_array_are_views(store, budget):
    a = store.create("a", (100,), [("x", "f4"), ("y", "i8")])
    a["x"] = 1.5
    a["y"][3:5] = 7
    assert a[4].item() == (1.5, 7) and a["y"].sum() == 14


def test_a_fill_is_an_element(store, budget):
    a = store.create("a", 10, [("x", "f4"), ("y", "i8")], fill=(1.5, -1))
    assert a[9].item() == (1.5, -1)


@pytest.mark.parametrize(
    "kind, said", [(object, "Python objects"), ("S0", "0 bytes|itemsize"), (("f8", (3,)), "append")], ids=str
)
def test_what_has_no_bytes_is_refused(store, budget, kind, said):
    dtype = np.dtype(kind)
    with pytest.raises(TypeError, match=said):
        store.create("a", 10, dtype)
    assert not store.exists("a")


@pytest.mark.parametrize("inside", [False, True])
def test_a_type_that_is_not_of_numpy_is_refused_as_that(store, budget, inside):
    tests = pytest.importorskip("numpy.core._rational_tests" if np.__version__ < "2" else "numpy._core._rational_tests")
    foreign = np.dtype(tests.rational)
    with pytest.raises(TypeError, match="rational are none of NumPy's.*view\\('u8'\\)"):
        store.create("a", 10, [("x", "f4"), ("y", foreign, (3,))] if inside else foreign)


def test_another_structure_of_the_same_size_is_refused(store, budget):
    store.create("a", 10, [("x", "f4"), ("y", "f4")]).close()
    with pytest.raises(ooc.TypeMismatch, match="'x'"):
        store.create_or_open("a", 10, [("u", "f4"), ("v", "f4")])
    store.attributes("a")["dtype"] = "nonsense("
    with pytest.raises(TypeError, match="'dtype' is 'nonsense\\('"):
        store.open("a")
    del store.attributes("a")["dtype"]
    assert store.open("a").dtype == "V8"


def test_long_doubles_of_another_processor_are_refused(store, budget, monkeypatch):
    a = store.create("of_x86", (4,), dtype=np.longdouble)
    a[:] = 1
    a.close()
    monkeypatch.setattr(_dtype, "_has_long_doubles", False)
    with pytest.raises(TypeError, match="f16 are long doubles of x86.*float64"):
        store.open("of_x86")
    with pytest.raises(TypeError, match="c32 are long doubles of x86"):
        store.create("x", (4,), dtype=np.clongdouble)
