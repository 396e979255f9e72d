"""Bytes of arrays to and from files, pipes and sockets."""

import gzip
import io
import os
import socket
import threading

import numpy as np
import pytest
from damaging import damage

import oocarray as ooc

shape = (1024, 1024)  # 8 MiB of doubles, twice the budget
plain = np.arange(1 << 20, dtype="f8").reshape(shape)


@pytest.fixture
def a(store, budget):
    a = store.create("a", shape)
    a[...] = plain
    a.writeback()
    a.invalidate()
    a[100:200].sum()  # half in memory, half not
    return a


@pytest.mark.parametrize("box", [None, np.s_[7:9], np.s_[100:1000, 3:500], np.s_[1:2, 1:2]], ids=str)
def test_bytes_go_out_in_c_order_and_come_back(store, a, tmp_path, box):
    right = plain if box is None else plain[box]
    a.tofile(tmp_path / "raw", box=box)
    assert (tmp_path / "raw").read_bytes() == right.tobytes()
    with store.create("b", shape, fill=-1.0) as b:
        b.fromfile(tmp_path / "raw", box=box)
        assert np.array_equal(b[...] if box is None else b[box], right)
        assert np.sum(b) == right.sum() - (plain.size - right.size)


def test_planes_that_are_larger_than_a_piece_are_written_in_order(store, budget, tmp_path):
    right = np.arange(3 * 200 * 300, dtype="f8").reshape(3, 200, 300)
    with store.create("c", right.shape) as c, store.create("d", right.shape) as d:
        c[...] = right
        for box in (np.s_[:, :, :], np.s_[1:, 7:190, 3:299]):
            c.tofile(tmp_path / "raw", box=box)
            assert (tmp_path / "raw").read_bytes() == right[box].tobytes()
            d.fromfile(tmp_path / "raw", box=box)
            assert np.array_equal(d[box], right[box])


def test_a_file_in_fortrans_order_is_written_in_c_order(budget, tmp_path):
    np.save(tmp_path / "f.npy", np.asfortranarray(plain[:50]))
    with ooc.open_file(tmp_path / "f.npy", "r+") as f:
        f.tofile(tmp_path / "raw")
        assert (tmp_path / "raw").read_bytes() == plain[:50].tobytes()
        f.fromfile(io.BytesIO(plain[50:100].tobytes()))
        assert np.array_equal(f[...], plain[50:100])


def test_a_file_that_does_not_wait_is_refused_and_not_taken_for_written(store, a):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    with open(writing, "wb", 0) as out, open(reading, "rb", 0) as back:
        with pytest.raises(BlockingIOError, match="os.set_blocking"):
            a.fromfile(back)
        with pytest.raises(BlockingIOError, match="os.set_blocking"):
            a.tofile(out)


def test_whatever_can_be_written_to_and_read_from_will_do(store, a, tmp_path):
    memory = io.BytesIO()
    with open(tmp_path / "raw", "wb", buffering=0) as unbuffered, open(tmp_path / "b", "wb") as buffered:
        with gzip.open(tmp_path / "z", "wb", compresslevel=1) as packed:
            for out in (memory, unbuffered, buffered, packed):
                out.write(b"head")
                a.tofile(out, box=np.s_[:8])
    for name in ("raw", "b"):
        assert (tmp_path / name).read_bytes() == b"head" + plain[:8].tobytes() == memory.getvalue()
    with gzip.open(tmp_path / "z", "rb") as packed, open(tmp_path / "raw", "rb", buffering=0) as unbuffered:
        for source in (packed, unbuffered):
            source.read(4)
            a.fromfile(source, box=np.s_[100:108])
            assert np.array_equal(a[100:108], plain[:8])
            a[100:108] = 0


def test_a_socket_takes_what_it_takes_at_a_time(a):
    here, there = socket.socketpair()
    got = bytearray()

    def read():
        while part := there.recv(100_001):
            got.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    with here, here.makefile("wb", buffering=0) as out:
        a.tofile(out, box=np.s_[:200])
    reader.join()
    there.close()
    assert got == plain[:200].tobytes()


@pytest.mark.parametrize("dtype", ["M8[ns]", "S5", "?", [("x", "<f4"), ("n", "<i2")], "c16"], ids=str)
def test_bytes_of_any_type_go_out_and_come_back(store, budget, tmp_path, dtype):
    right = np.frombuffer(np.arange(240, dtype="u1").tobytes() * np.dtype(dtype).itemsize, dtype).reshape(20, 12)
    with store.create("x", right.shape, dtype) as x, store.create("y", right.shape, dtype) as y:
        x[...] = right
        x.tofile(tmp_path / "raw")
        y.fromfile(tmp_path / "raw")
        assert y[...].tobytes() == right.tobytes()


def test_a_file_that_ends_too_early_is_told(a, tmp_path):
    (tmp_path / "short").write_bytes(b"\0" * 100_000)
    with pytest.raises(EOFError, match="'a'.*short' ends after 100000 of 8388608 bytes"):
        a.fromfile(tmp_path / "short")
    with pytest.raises(IndexError, match="2000"):
        a.tofile(tmp_path / "x", box=np.s_[0:2000])
    with pytest.raises(FileNotFoundError):
        a.fromfile(tmp_path / "nothing")
    a.close()
    with ooc.open(a.store, "a", "r") as r, pytest.raises(ValueError, match="mode='r\\+'"):
        r.fromfile(tmp_path / "short")


def test_text_is_written_with_a_separator(store, budget, tmp_path):
    with store.create("t", 3, "i4") as t:
        t[...] = [1, 2, 3]
        t.tofile(tmp_path / "t", sep=",")
        assert (tmp_path / "t").read_text() == "1,2,3"


def test_flush_writes_back(store, budget):
    with store.create("f", 1000) as f:
        f[...] = 1
        f.flush()
        assert f.dirty_blocks == 0


def test_a_damaged_block_is_an_exception(a, tmp_path, store):
    a.close()
    damage(tmp_path / "store")
    with store.open("a", "r") as a:
        with pytest.raises(ooc.IntegrityError, match="'a'"):
            a.tofile(tmp_path / "raw")
        assert np.array_equal(a[:10], plain[:10])
