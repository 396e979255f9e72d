"""Datasets of HDF5 that lie in one piece, used where they are."""

import multiprocessing
import os

import numpy as np
import pytest

import oocarray as ooc
from oocarray._in_place.hdf5_chunks import pieces

h5py = pytest.importorskip("h5py", reason="needs h5py (Debian: python3-h5py)")


def test_a_contiguous_dataset_is_used_in_place(tmp_path, budget):
    path = tmp_path / "a.h5"
    there = np.random.default_rng(1).random((300, 400))
    with h5py.File(path, "w", userblock_size=512) as file:
        file["run/7"] = there
        file["flags"] = np.arange(10, dtype="u1")
    with ooc.open_file(path, "r+", dataset="run/7") as a:
        assert np.array_equal(a[...], there)
        a[299] = 1
    there[299] = 1
    with h5py.File(path, "r") as file:
        assert np.array_equal(file["run/7"], there)
        assert list(file["flags"]) == list(range(10))


def test_a_dataset_in_the_other_byte_order_stays_so(tmp_path, budget):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["swapped"] = np.arange(10, dtype=">f8")
    with ooc.open_file(tmp_path / "a.h5", dataset="swapped") as a:
        assert a.dtype == ">f8" and a[3] == 3


def test_records_with_texts_are_used_in_place(tmp_path, budget):
    record = np.dtype([("name", "S3"), ("flag", "?"), ("at", ">f8", (2,))])
    there = np.array([("abc", True, (1, 2)), ("d", False, (3, 4))], record)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["records"] = there
    with ooc.open_file(tmp_path / "a.h5", dataset="records") as a:
        assert a.dtype == record and np.array_equal(a[...], there)


def test_other_datasets_are_refused_by_name(tmp_path, budget):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("empty", (10,), "f8")
        file.create_dataset("text", data=["a", "b"])
        file.create_dataset("one", data=3.0)
        file.create_group("group")
    for name, why in {
        "empty": "no space",
        "text": "objects",
        "one": "single element",
        "group": "group",
    }.items():
        with pytest.raises(ooc.TypeMismatch, match=why) as raised:
            ooc.open_file(path, dataset=name)
        assert "a.h5" in str(raised.value)
    with pytest.raises(FileNotFoundError, match="'none'; it has empty, group"):
        ooc.open_file(path, dataset="none")


def test_pieces_are_found_when_the_program_has_changed_its_folder(tmp_path, budget, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with h5py.File("a.h5", "w") as file:
        file["odd"] = np.zeros(3, "u1")
        file["d"] = np.arange(10.0)
    with ooc.open_file("a.h5", dataset="d") as a:
        monkeypatch.chdir("/")
        assert np.array_equal(a[...], np.arange(10.0))


def test_elements_that_begin_at_any_byte_are_read(tmp_path, budget):
    there = np.random.default_rng(1).random((1201, 7))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["odd"] = np.zeros(3, "u1")
        file["d"] = there
        file["prime"] = np.arange(10007.0)
        assert file["d"].id.get_offset() % 8 != 0
        file.create_dataset("raw", data=there, external=[(str(tmp_path / "raw"), 3, there.nbytes)])
    for name, expected in {"d": there, "raw": there, "prime": np.arange(10007.0)}.items():
        with ooc.open_file(tmp_path / "a.h5", dataset=name) as a:
            assert np.array_equal(a[...], expected)
    with pytest.raises(ooc.InvalidRequest, match="no multiple of 8"):
        ooc.open_file(tmp_path / "a.h5", "r+", dataset="d")


@pytest.mark.parametrize(
    "shape, divides, expected",
    [
        ((10,), 80, (10,)),
        ((1 << 20,), 8 << 20, (1 << 19,)),
        ((1048583,), 8 * 1048583, (1048583,)),  # a prime number
        ((1, 100, 1000, 1000), 8 * 10**8, (1, 1, 500, 1000)),
        ((16777259,), 8 * 16777259, ()),  # another one, of 128 MiB
        ((2 * 8388617,), 8 * 16777234, ()),
        ((3, 8388617), 8 * 8388617, ()),
        ((300, 65537), 8 * 65537 * 300, (6, 65537)),
        ((16777259,), 0, (1 << 19,)),
        ((3, 16777259), 0, (1, 1 << 19)),
        ((100, 7), 0, (100, 7)),
        ((30, 80), 4 * 40, (1, 40)),
        ((30, 80), 6, ()),
    ],
)
def test_pieces_of_what_is_in_no_chunks_divide_it(shape, divides, expected):
    assert pieces(shape, 4 if divides in (160, 6) else 8, divides) == expected


@pytest.mark.parametrize("shape", [(8388617,), (2, 4194319)])  # prime numbers
def test_what_no_piece_divides_is_read_with_a_small_budget(tmp_path, shape):
    there = np.arange(8388700.0)[: np.prod(shape)].reshape(shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["odd"] = np.zeros(3, "u1")
        file["d"] = there
        file.create_virtual_dataset("virtual", _whole_of(file["d"]))
        assert file["d"].id.get_offset() % 8 != 0
    for name in ("d", "virtual"):
        with ooc.Runtime("28MiB"), ooc.open_file(tmp_path / "a.h5", dataset=name) as a:
            some = (*(n - 1 for n in shape[:-1]), np.array([0, 1, 524287, 524288, shape[-1] - 1]))
            assert np.array_equal(a.gather(tuple(np.broadcast_arrays(*some))), there[some])
            assert ooc.sum(a) == there.sum()


def _whole_of(dataset):
    layout = h5py.VirtualLayout(dataset.shape, dataset.dtype)
    layout[...] = h5py.VirtualSource(dataset)
    return layout


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("dtype", ["u1", "f8", [("x", "i4"), ("y", "f8")]])
def test_a_dataset_without_a_shape_is_refused_and_nothing_is_written(tmp_path, budget, mode, dtype):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["null"] = h5py.Empty(dtype)
    before = (tmp_path / "a.h5").read_bytes()
    with pytest.raises(ooc.TypeMismatch, match="'null'.*no elements and no shape"):
        ooc.open_file(tmp_path / "a.h5", mode, dataset="null")
    assert (tmp_path / "a.h5").read_bytes() == before


def test_the_only_dataset_need_not_be_named(tmp_path, budget):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file["group/d"] = np.arange(10.0)
    with ooc.open_file(tmp_path / "a.h5") as a:
        assert np.array_equal(a[...], np.arange(10.0))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["e"] = 1
    with pytest.raises(KeyError, match="a.h5' has 'e', 'group/d': say which with dataset="):
        ooc.open_file(tmp_path / "a.h5")
    with pytest.raises(TypeError, match="is for raw files"):
        ooc.open_file(tmp_path / "a.h5", shape=10)


def test_a_compact_dataset_is_read(tmp_path, budget):
    there = np.arange(60, dtype=">i2").reshape(5, 12)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        space, stored = h5py.h5s.create_simple(there.shape), h5py.h5t.py_create(there.dtype)
        h5py.Dataset(h5py.h5d.create(file.id, b"c", stored, space, plist))[...] = there
    with ooc.open_file(tmp_path / "a.h5", dataset="c") as a:
        assert a.dtype == there.dtype and np.array_equal(a[...], there)
        with multiprocessing.get_context("spawn").Pool(1) as other:
            assert other.apply(_sum_of, (a,)) == there.sum()
    with pytest.raises(ooc.TypeMismatch, match="a.h5', dataset 'c': is stored in the header .*only read in place"):
        ooc.open_file(tmp_path / "a.h5", "r+", dataset="c")


def _sum_of(a):
    return int(np.asarray(a[...]).sum())


def test_a_dataset_whose_data_are_in_a_raw_file_is_used_there(tmp_path, budget, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = np.arange(300.0).reshape(30, 10)
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("d", data=there, external=[("raw.bin", 16, h5py.h5f.UNLIMITED)])
    with ooc.open_file("a.h5", "r+", dataset="d") as a:
        assert np.array_equal(a[...], there)
        a[3, 4] = 7
    there[3, 4] = 7
    with h5py.File("a.h5", "r") as file:
        assert np.array_equal(file["d"], there)
    with ooc.open_file("a.h5", dataset="d") as a:
        assert np.array_equal(a[...], there)
    os.truncate("raw.bin", 100)
    with pytest.raises(OSError, match="raw.bin' .*2316 bytes too short"):
        ooc.open_file("a.h5", dataset="d")
    os.remove("raw.bin")
    with pytest.raises(FileNotFoundError, match="raw.bin"):
        ooc.open_file("a.h5", dataset="d")


def test_a_dataset_whose_data_are_in_several_raw_files_is_read(tmp_path, budget, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = np.arange(2400, dtype="i4").reshape(30, 80)
    shapes = {"rows": [3200, 1600, 4800], "parts": [160, 480, 8960], "bytes": [6, 9594]}
    with h5py.File("a.h5", "w") as file:
        for name, sizes in shapes.items():
            raw = [(f"{name}{i}", 8 * i, size) for i, size in enumerate(sizes)]
            file.create_dataset(name, data=there, external=raw)
    for name in ("rows", "parts"):
        with ooc.open_file("a.h5", dataset=name) as a:
            assert np.array_equal(a[...], there)
        with pytest.raises(ooc.TypeMismatch, match="in several files, which are only read"):
            ooc.open_file("a.h5", "r+", dataset=name)
    with pytest.raises(ooc.TypeMismatch, match="'bytes': is stored in several files, which do not each have whole elements"):
        ooc.open_file("a.h5", dataset="bytes")


def test_files_that_are_not_hdf5_any_more_are_refused_by_name_with_what_to_do(tmp_path, budget):
    with h5py.File(tmp_path / "good.h5", "w") as file:
        file["a"] = np.arange(10000.0)
    good = (tmp_path / "good.h5").read_bytes()
    for name, content, remedy in [
        ("cut.h5", good[: len(good) // 2], "copy it again"),
        ("magic.h5", b"CDF\1" + good[4:], "NetCDF file of the classic format.*nccopy -k nc4"),
        ("none.h5", b"", "copy it again"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ooc.InvalidRequest, match=remedy) as raised:
            ooc.open_file(tmp_path / name, dataset="a")
        assert name in str(raised.value)
    with pytest.raises(FileNotFoundError, match="missing.h5"):
        ooc.open_file(tmp_path / "missing.h5", dataset="a")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut.h5", "good.h5", "magic.h5", "none.h5"]


def test_a_dataset_without_space_behind_a_user_block_is_refused(tmp_path, budget):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("empty", (10,), "u1")
        assert file["empty"].id.get_offset() == 511  # libhdf5 adds the user block to "undefined"
    before = path.read_bytes()
    with pytest.raises(ooc.TypeMismatch, match="'empty': has no space"):
        ooc.open_file(path, "r+", dataset="empty")
    assert path.read_bytes() == before


def _of_type(file, name, kind, content, count):
    """A contiguous dataset of a type that NumPy has no name for."""
    dataset = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((count,)))
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(content, f"V{kind.get_size()}"), kind)


def test_types_whose_bytes_are_not_those_of_numpy_are_refused_by_name(tmp_path, budget):
    bfloat16 = h5py.h5t.IEEE_F32LE.copy()
    bfloat16.set_fields(15, 7, 8, 0, 7)
    bfloat16.set_precision(16)
    bfloat16.set_size(2)
    bits = h5py.h5t.STD_I32LE.copy()
    bits.set_precision(12)
    bits.set_offset(4)
    three = h5py.h5t.STD_I32LE.copy()
    three.set_precision(24)
    three.set_size(3)
    spaces = h5py.h5t.C_S1.copy()
    spaces.set_size(4)
    spaces.set_strpad(h5py.h5t.STR_SPACEPAD)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, kind in {"bfloat16": bfloat16, "bits": bits, "three": three, "spaces": spaces}.items():
            _of_type(file, name, kind, bytes(range(1, 1 + 8 * kind.get_size())), 8)
            assert file[name].id.get_offset() is not None
    before = path.read_bytes()
    for name in ("bfloat16", "bits", "three", "spaces"):
        for mode in ("r", "r+"):
            with pytest.raises(ooc.TypeMismatch, match=f"a.h5', dataset '{name}'.*import it"):
                ooc.open_file(path, mode, dataset=name)
    assert path.read_bytes() == before


def test_all_types_that_numpy_and_hdf5_share_are_used_in_place(tmp_path, budget):
    path = tmp_path / "a.h5"
    types = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16", "S5", "V7"]
    types += [np.dtype([("t", "f8"), ("n", "i2"), ("v", "f4", (3,))]), h5py.enum_dtype({"a": 1, "b": 2}, "i2"),
              h5py.opaque_dtype(np.dtype("M8[s]")), h5py.string_dtype("utf-8", 6)]
    with h5py.File(path, "w") as file:
        for k, dtype in enumerate(map(np.dtype, types)):
            raw = np.arange(16 * dtype.itemsize, dtype="u1") & (1 if dtype.kind == "b" else 0x3F)
            file.create_dataset(f"t{k}", data=raw.view(dtype), dtype=dtype)
        tagged = h5py.h5t.create(h5py.h5t.OPAQUE, 5)
        tagged.set_tag(b"of another program")
        _of_type(file, "tagged", tagged, bytes(80), 16)
    with h5py.File(path, "r") as file:
        stored = {name: file[name][()].tobytes() for name in file if name != "tagged"}  # which h5py cannot read
    for name, there in {**stored, "tagged": bytes(80)}.items():
        with ooc.open_file(path, dataset=name) as a:
            assert np.asarray(a).tobytes() == there, name


# --- virtual datasets


def sources(folder, random, dtype, shapes, **options):
    """A dataset in a file of its own for each shape, with its values."""
    values = []
    for i, shape in enumerate(shapes):
        values.append(random.integers(0, 200, shape).astype(dtype))
        with h5py.File(folder / f"part{i}.h5", "w") as file:
            file.create_dataset("d", data=values[-1], **options)
    return values


def virtual(path, shape, dtype, parts, fillvalue=None):
    """`parts`: where in the virtual dataset each of part0.h5, part1.h5, ... is."""
    layout = h5py.VirtualLayout(shape, dtype)
    for i, (where, source_shape) in enumerate(parts):
        layout[where] = h5py.VirtualSource(f"part{i}.h5", "d", source_shape)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=fillvalue)


@pytest.mark.parametrize(
    "options", [{}, {"chunks": (1, 6, 5)}, {"chunks": (2, 4, 11), "compression": "gzip", "shuffle": True}], ids=str
)
@pytest.mark.parametrize("dtype", ["u2", ">f8", "f4"])
def test_frames_of_several_files_are_one_array(tmp_path, budget, options, dtype):
    random = np.random.default_rng(5)
    counts = (4, 4, 4) if not options else (4, 8, 3)  # only those in chunks differ
    values = sources(tmp_path, random, dtype, [(n, 10, 11) for n in counts], **options)
    starts = np.cumsum((0,) + counts)
    parts = [(np.s_[s : s + n], (n, 10, 11)) for s, n in zip(starts, counts)]
    virtual(tmp_path / "all.h5", (starts[-1], 10, 11), dtype, parts)
    with ooc.open_file(tmp_path / "all.h5", dataset="v") as a:
        assert a.shape == (starts[-1], 10, 11) and not a.writable
        assert np.array_equal(a, np.concatenate(values))
        assert np.array_equal(a.read(np.s_[2:9, ::3, 5]), np.concatenate(values)[2:9, ::3, 5])


def test_a_virtual_dataset_may_stack_its_sources_and_leave_places_empty(tmp_path, budget):
    for options in ({}, {"chunks": (40,)}):
        values = sources(tmp_path, np.random.default_rng(6), "i4", [(100,)] * 3, **options)
        virtual(tmp_path / "all.h5", (5, 100), "i4", [((i + 1,), (100,)) for i in range(3)], fillvalue=-7)
        with h5py.File(tmp_path / "all.h5") as file:
            there = file["v"][...]
        with ooc.open_file(tmp_path / "all.h5", dataset="v") as a:
            assert np.array_equal(a, there) and (a[0] == -7).all() and np.array_equal(a[2], values[1])


def test_virtual_datasets_that_cannot_be_read_in_place_are_refused_by_name(tmp_path, budget):
    random = np.random.default_rng(7)

    def refused(why, shape, parts, dtype="i4"):
        virtual(tmp_path / "all.h5", shape, dtype, parts)
        with pytest.raises(ooc.TypeMismatch, match=why) as raised:
            ooc.open_file(tmp_path / "all.h5", dataset="v")
        assert "all.h5', dataset 'v'" in str(raised.value)

    sources(tmp_path, random, "i4", [(10, 10), (10, 10)], chunks=(5, 5))
    refused("begin or end within its chunks", (23, 10), [(np.s_[0:10], (10, 10)), (np.s_[13:23], (10, 10))])
    refused("with other elements", (20, 10), [(np.s_[0:10], (10, 10)), (np.s_[10:20], (10, 10))], "f4")
    refused("gaps", (40, 10), [(np.s_[0:20:2], (10, 10)), (np.s_[20:30], (10, 10))])
    with h5py.File(tmp_path / "part1.h5", "w") as file:
        file.create_dataset("d", data=np.zeros((10, 10), "i4"), chunks=(5, 10))
    refused("chunks of different shapes", (20, 10), [(np.s_[0:10], (10, 10)), (np.s_[10:20], (10, 10))])
    (tmp_path / "part1.h5").unlink()
    refused("'part1.h5', which is not there", (20, 10), [(np.s_[0:10], (10, 10)), (np.s_[10:20], (10, 10))])


def test_a_source_that_changes_is_an_error_that_names_it(tmp_path, budget):
    sources(tmp_path, np.random.default_rng(8), "i4", [(10, 10), (10, 10)], chunks=(5, 5))
    virtual(tmp_path / "all.h5", (20, 10), "i4", [(np.s_[0:10], (10, 10)), (np.s_[10:20], (10, 10))])
    with ooc.open_file(tmp_path / "all.h5", dataset="v") as a:
        with h5py.File(tmp_path / "part1.h5", "r+") as file:
            file["d"][0] = 5
        with pytest.raises(OSError, match="part1.h5.*written to the file since"):
            a.read(np.s_[10:])


def test_a_source_that_was_not_written_has_its_own_fill_value(tmp_path, budget):
    for options in ({}, {"chunks": (5,)}):
        for other in (0, 0x0700, 0x0007):
            with h5py.File(tmp_path / "part0.h5", "w") as file:
                file.create_dataset("d", (10,), ">i2", fillvalue=other, **options)
            virtual(tmp_path / "all.h5", (10,), ">i2", [(np.s_[0:10], (10,))], fillvalue=0x0007)
            with h5py.File(tmp_path / "all.h5") as file:
                there = file["v"][...]
            if other == 0x0007:
                with ooc.open_file(tmp_path / "all.h5", dataset="v") as a:
                    assert np.array_equal(a, there)
            else:
                assert (there == other).all()
                with pytest.raises(ooc.TypeMismatch, match="another fill value"):
                    ooc.open_file(tmp_path / "all.h5", dataset="v")


def test_a_source_with_many_parts_is_looked_at_once(tmp_path, budget, monkeypatch):
    from oocarray._in_place import hdf5_virtual

    looked = []
    chunks_of = hdf5_virtual.chunks_of
    monkeypatch.setattr(hdf5_virtual, "chunks_of", lambda *given: looked.append(given[1]) or chunks_of(*given))
    values = np.arange(600, dtype="i4").reshape(60, 10)
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file.create_dataset("d", data=values, chunks=(1, 10))
    layout = h5py.VirtualLayout((60, 10), "i4")
    source = h5py.VirtualSource(tmp_path / "part.h5", "d", (60, 10))
    for i in range(60):
        layout[i] = source[59 - i]
    with h5py.File(tmp_path / "all.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with ooc.open_file(tmp_path / "all.h5", dataset="v") as a:
        assert np.array_equal(a, values[::-1]) and looked == ["d"]


def test_a_virtual_dataset_without_an_end_is_refused_by_name(tmp_path, budget):
    path, without_end = tmp_path / "virtual.h5", (h5py.h5s.UNLIMITED, 4)
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("source", data=np.ones((10, 4)), chunks=(5, 4), maxshape=(None, 4))
        space = h5py.h5s.create_simple((10, 4), without_end)
        space.select_hyperslab((0, 0), without_end)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_virtual(space, b".", b"source", space)
        h5py.h5d.create(file.id, b"grows", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((10, 4), without_end), plist)
    with pytest.raises(ooc.TypeMismatch, match="virtual.h5', dataset 'grows': takes parts without an end .*import"):
        ooc.open_file(path, dataset="grows")


def test_a_variable_of_netcdf_beside_a_dimension_of_its_name_has_that_name(tmp_path, store, budget):
    path, p = tmp_path / "f.nc", np.arange(12.0).reshape(3, 4)
    with h5py.File(path, "w") as file:  # as netCDF-4 writes x(t, x)
        file.create_dataset("x", (4,), ">f4").make_scale(f"This is a netCDF dimension but not a netCDF variable.{4:10d}")
        file["_nc4_non_coord_x"] = p
    for dataset in (None, "x"):
        with ooc.open_file(path, dataset=dataset) as a:
            assert np.array_equal(a, p)
        with ooc.from_hdf5(path, store, f"copy of {dataset}", dataset=dataset) as a:
            assert np.array_equal(a, p)
    with h5py.File(path, "r+") as file:
        file["y"] = p
    with pytest.raises(KeyError, match="'x', 'y'"):
        ooc.open_file(path)
