"""Commits of arrays."""

import datetime
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc


@pytest.fixture
def two(store, budget):
    return [store.create(name, (100, 70), np.int32, commits=True, max_extents=(200,)) for name in "uv"]


def reopened(arrays):
    names, store = [a.path for a in arrays], arrays[0].store
    for a in arrays:
        a.close()
    return [store.open(name) for name in names]


def test_what_was_not_committed_is_gone_when_the_arrays_are_opened_again(two):
    u, v = two
    u[...], v[...] = 1, 2
    ooc.commit(u, v, step=1200, by="hand")
    u[...] = 3
    v.resize(150)
    v.attributes["note"] = "not committed"
    u.writeback(durable=True)
    u, v = reopened(two)
    assert np.all(u[...] == 1) and np.all(v[...] == 2) and v.shape == (100, 70) and "note" not in v.attributes
    last = u.last_commit
    assert last.number == 1 and last.attributes == {"step": 1200, "by": "hand"} and last == v.last_commit
    assert abs(datetime.datetime.now(datetime.timezone.utc) - last.time) < datetime.timedelta(minutes=5)


def test_a_transaction_commits_at_its_end_and_takes_back_at_an_exception(two):
    u, v = two
    with ooc.transaction(u, v, step=1) as given:
        u[...] = 1
        v[...] = 1
        given["more"] = [1, 2]
    assert u.last_commit.attributes["step"] == 1 and list(v.last_commit.attributes["more"]) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        with ooc.transaction(u, v):
            u[...] = 2
            v.resize(120)
            1 / 0
    assert u.last_commit.number == 1 and np.all(u[...] == 1) and v.shape == (100, 70)


@pytest.mark.parametrize("dtype", ["M8[ns]", "S3", "U2", ">f8", [("x", "i4"), ("y", "f8")]])
def test_the_type_that_an_array_was_made_with_stays_when_it_is_taken_back_before_its_first_commit(store, budget, dtype):
    t = store.create("t", 10, dtype, commits=True)
    assert store.entry("t").dtype == np.dtype(dtype)
    t.attributes["note"] = "not committed"
    with pytest.raises(ZeroDivisionError):
        with ooc.transaction(t):
            1 / 0
    assert "note" not in t.attributes
    t.close()
    t = store.open("t")
    assert t.dtype == np.dtype(dtype)
    ooc.commit(t)
    t.close()
    assert store.open("t", mode="r").dtype == np.dtype(dtype)


def test_where_one_array_cannot_be_taken_back_the_others_are(two, store):
    fixed = store.create("fixed", 10, commits=True)
    u, v = two
    ooc.commit(u, v, fixed)
    with pytest.raises(BufferError, match="'u'"):
        with ooc.transaction(u, v, fixed):
            view = u[...]
            v[...] = 1
            fixed[...] = 1
            1 / 0
    assert np.all(v[...] == 0) and np.all(fixed[...] == 0)
    del view


def test_views_of_an_array_that_may_be_resized_keep_it_from_being_rolled_back(two, store):
    u, _ = two
    view = u[...]
    with pytest.raises(BufferError, match="rolled back"):
        u.roll_back()
    del view
    u.roll_back()
    fixed = store.create("fixed", 10, commits=True)
    view = fixed[...]
    view[...] = 1
    fixed.roll_back()
    assert np.all(view == 0)


@pytest.mark.parametrize(
    "before, now, options", [(4, 8, {"max_extents": (8,)}), (2, 4, {}), (4, 2, {}), (4, 2, {"max_extents": (4,)})]
)
def test_views_of_an_array_that_had_another_shape_keep_it_from_being_rolled_back(store, budget, before, now, options):
    a = store.create("a", 4, commits=True, **options)
    if before != 4:
        a.resize(before)
    a[...] = 1
    ooc.commit(a)
    a.resize(now)
    view = a[...]
    with pytest.raises(BufferError, match="rolled back"):
        a.roll_back()
    view[...] = 2
    del view
    a.roll_back()
    assert a[...].tolist() == [1] * before


def test_what_has_no_commits_is_refused_by_its_name(two, store):
    plain = store.create("plain", 10)
    assert plain.last_commit is None
    with pytest.raises(ooc.InvalidRequest, match="'plain'.*commits"):
        ooc.commit(two[0], plain)
    with pytest.raises(TypeError, match="'what'"):
        ooc.commit(two[0], what=object())
    assert two[0].last_commit.number == 0


def test_others_see_the_last_commit(two, store):
    u, v = two
    u[...] = 1
    u.attributes["state"] = "committed"
    ooc.commit(u, step=5)
    u[...] = 2
    u.resize(150)
    u.attributes["state"] = "not committed"
    u.writeback()
    entry = store.entry("u")
    assert entry.shape == (100, 70) and entry.attributes["state"] == "committed"
    assert entry.last_commit.number == 1 and entry.last_commit.attributes == {"step": 5}
    assert {e.path: e.shape for e in store.list()}["u"] == (100, 70)
    program = f"""
import oocarray as ooc, numpy as np
a = ooc.open({store.url!r}, "u", "r")
assert np.all(a[...] == 1) and a.shape == (100, 70) and a.attributes["state"] == "committed", a
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(ooc.Busy):
        store.attributes("u")["state"] = "from outside"
    u.close()
    store.attributes("u")["state"] = "from outside"
    u = store.open("u")
    assert u.attributes["state"] == "from outside" and np.all(u[...] == 1)
    assert u.last_commit.number == 2 and u.last_commit.attributes == {"step": 5}
