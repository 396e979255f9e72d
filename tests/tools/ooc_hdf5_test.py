"""`ooc import` and `ooc export` of HDF5, compared with h5py.  OOC_COMMAND is the command under test.

OOC_TEST_SEED replays the random arrays; with OOC_TEST_LONG (scripts/test --long) there are 200.
"""

import json
import os
import random
import subprocess
import sys

import h5py
import numpy as np
import pytest

from ooc_shell import Shell

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
arrays = 200 if os.environ.get("OOC_TEST_LONG") else 6
types = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", ">i4", ">f8", ">c8", "V7"]


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


@pytest.fixture(scope="module")
def one_shell(tmp_path_factory):
    return Shell(str(tmp_path_factory.mktemp("random")))


def random_array(rng):
    """Any bytes, as far as they are values of the type: signalling NaNs and negative zeros too."""
    dtype = np.dtype(types[rng.integers(len(types))])
    rank = int(rng.integers(1, 9))
    shape = tuple(int(n) for n in rng.integers(1, [0, 3000, 70, 18, 9, 6, 5, 4, 4][rank], size=rank))
    raw = rng.integers(0, 256, size=int(np.prod(shape)) * dtype.itemsize, dtype="u1")
    if dtype.kind == "b":
        raw &= 1
    return raw.view(dtype).reshape(shape)


def random_box(rng, shape):
    lower = [int(rng.integers(0, n)) for n in shape]
    return [(l, int(rng.integers(l + 1, n + 1))) for l, n in zip(lower, shape)]


def box_text(box):
    return ",".join(f"{l}:{u}" for l, u in box)


def chunk_of(rng, shape):
    return tuple(int(rng.integers(1, n + 1)) for n in shape)


def same(a, b):
    if a.shape != b.shape or a.dtype.newbyteorder("=") != b.dtype.newbyteorder("="):
        return False
    return np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes() == (
        np.ascontiguousarray(b).astype(b.dtype.newbyteorder("<")).tobytes()
    )


def random_chunks(rng, a):
    """Keywords of create_dataset: chunks of some shape, and filters that lose nothing."""
    kept = {"chunks": chunk_of(rng, a.shape), "maxshape": (None,) * a.ndim, "fletcher32": bool(rng.integers(2))}
    codecs = [{}, {"compression": "gzip"}, {"shuffle": True}, {"compression": "gzip", "shuffle": True}]
    if a.dtype.kind in "iu":
        codecs.append({"scaleoffset": 0})
    szip = h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP) and h5py.h5z.get_filter_info(h5py.h5z.FILTER_SZIP)
    if szip and szip & h5py.h5z.FILTER_CONFIG_ENCODE_ENABLED and a.dtype.kind in "iuf" and np.prod(kept["chunks"]) >= 32:
        codecs.append({"compression": "szip"})
    kept.update(codecs[rng.integers(len(codecs))])
    if "scaleoffset" in kept:
        kept["fletcher32"] = False  # h5py takes them for a loss together
    return kept


def write_dataset(rng, shell, a):
    """A file with `a` in one of the ways that HDF5 stores data; what it holds, and its fill value."""
    way = ["contiguous", "compact", "external", "virtual", "chunks", "chunks", "chunks", "holes", "holes"][rng.integers(9)]
    fill = np.frombuffer(rng.bytes(a.dtype.itemsize), a.dtype)[0] if a.dtype.kind in "iufc" else None
    if fill is not None and rng.random() < 0.2:
        fill = np.zeros((), a.dtype)[()]
    with shell.open("a.h5", "w", libver=(["earliest", "v110"][rng.integers(2)], "v110")) as f:
        if way == "virtual":
            with shell.open("source.h5", "w") as source:
                source["half"] = a[: len(a) // 2 + 1]
                source["rest"] = a[len(a) // 2 + 1 :]
            layout = h5py.VirtualLayout(a.shape, a.dtype)
            layout[: len(a) // 2 + 1] = h5py.VirtualSource(f"{shell.folder}/source.h5", "half", (len(a) // 2 + 1, *a.shape[1:]))
            if len(a) // 2 + 1 < len(a):
                rest = (len(a) - len(a) // 2 - 1, *a.shape[1:])
                layout[len(a) // 2 + 1 :] = h5py.VirtualSource(f"{shell.folder}/source.h5", "rest", rest)
            f.create_virtual_dataset("folder/data", layout)
            return a, None
        keywords = {}
        if way == "external":
            keywords["external"] = [(f"{shell.folder}/outside", 7, a.nbytes)]
        elif way in ("chunks", "holes"):
            keywords = random_chunks(rng, a)
        d = None
        if way == "compact" and a.nbytes < 60000:
            space, kind = h5py.h5s.create_simple(a.shape), h5py.h5t.py_create(a.dtype, logical=True)
            created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            created.set_layout(h5py.h5d.COMPACT)
            d = h5py.Dataset(h5py.h5d.create(f.create_group("folder").id, b"data", kind, space, dcpl=created))
            fill = None
        if d is None:
            d = f.create_dataset("folder/data", a.shape, a.dtype, fillvalue=fill, **keywords)
        where = (...,)
        if way == "holes":
            where = tuple(slice(*b) for b in random_box(rng, a.shape))
            whole = np.full(a.shape, np.zeros((), a.dtype)[()] if fill is None else fill, a.dtype)
            whole[where] = a[where]
            a = whole
        d[where] = a[where]
    return a, fill


@pytest.mark.parametrize("case", range(arrays))
def test_random_arrays_go_in_and_out_bit_by_bit(one_shell, case):
    print(f"OOC_TEST_SEED={seed}, case {case}")
    rng = np.random.default_rng([seed, case])
    a, fill = write_dataset(rng, one_shell, random_array(rng))
    with one_shell.open("a.h5") as f:
        assert same(f["folder/data"][()], a)  # what h5py says
    buffer = ["4096", "10000", "1MiB"][rng.integers(3)]
    tile = ["--tile", "x".join("4" for _ in a.shape)] if rng.random() < 0.3 else []
    one_shell.ok("import", "a.h5", f"a{case}", "--buffer", buffer, *tile)
    assert same(one_shell.array(f"a{case}"), a)
    box = random_box(rng, a.shape)
    part = a[tuple(slice(*b) for b in box)]
    one_shell.ok("import", "a.h5", f"part{case}", "--buffer", buffer, "--box", box_text(box))
    assert same(one_shell.array(f"part{case}"), part)
    packing = []
    if rng.random() < 0.5:
        packing = ["--chunk", "x".join(map(str, chunk_of(rng, a.shape)))]
    if rng.random() < 0.5:
        packing += ["--deflate", "3"]
    one_shell.ok("export", "-f", f"a{case}", "b.h5", "--dataset", "x/y", "--buffer", buffer, *packing)
    one_shell.ok("export", "-f", f"a{case}", "part.h5", "--buffer", buffer, "--box", box_text(box), *packing)
    with one_shell.open("b.h5") as f, one_shell.open("part.h5") as g:
        assert same(f["x/y"][()], a)
        assert same(g[f"a{case}"][()], part)
        assert (f["x/y"].chunks is not None) == bool(packing)
        if fill is not None:
            assert same(np.asarray(f["x/y"].fillvalue), np.asarray(fill)) and f["x/y"].fillvalue.dtype == a.dtype.newbyteorder("<")


def test_dimension_names_attributes_and_fill_value_are_kept(shell):
    with shell.open("a.nc", "w") as f:
        time = f.create_dataset("time", data=np.arange(6.0))
        time.make_scale()
        bare = f.create_dataset("x", shape=(10,), dtype="f4")
        bare.make_scale("This is a netCDF dimension but not a netCDF variable.        10")
        t = f.create_dataset("t", data=np.arange(60.0).reshape(6, 10), chunks=(4, 3), fillvalue=-1.5)
        t.dims[0].attach_scale(time)
        t.dims[1].attach_scale(bare)
        t.attrs["units"] = "K"
        t.attrs["fixed"] = np.bytes_("fixed  ")
        t.attrs["scale_factor"] = np.float32(0.1)
        t.attrs["valid_range"] = np.array([[-1, 2]], "i2")
        t.attrs["names"] = ["ä", 'b"']
        t.attrs["large"] = np.uint64(2**64 - 1)
        t.attrs["nan"] = np.array([np.nan, np.inf])
        t.attrs["link"] = time.ref
    shell.refused("import", "a.nc", "t", names=["'a.nc'", "--dataset", "t (f8 6x10)", "time (f8 6)"])
    done = shell.run("import", "a.nc", "t", "--dataset", "t")
    assert done.returncode == 0 and b"'link' holds references" in done.stderr and b"left out" in done.stderr
    attributes = shell.attributes("t")
    assert json.loads(attributes.pop("dimensions")) == ["time", "x"]
    assert set(json.loads(attributes.pop("hdf5.types"))) == {"large", "names", "nan", "scale_factor", "valid_range"}
    assert attributes == {
        "units": "K",
        "fixed": "fixed  ",
        "scale_factor": "0.1",
        "valid_range": "[-1,2]",
        "names": '["ä","b\\""]',
        "large": "18446744073709551615",
        "nan": "[nan,inf]",
    }
    shell.ok("attr", "set", "t", "note", "7")  # a text stays one
    shell.ok("attr", "set", "t", "scale_factor", "about 0.1")  # no number any more
    shell.ok("export", "t", "b.nc")
    with shell.open("b.nc") as f:
        t = f["t"]
        assert t.fillvalue == -1.5
        assert [d.label for d in t.dims] == ["", ""]  # which NetCDF's libraries would show as an attribute
        assert [d[0].name for d in t.dims] == ["/time", "/x"]
        assert t.attrs["units"] == "K" and t.attrs["note"] == "7" and t.attrs["scale_factor"] == "about 0.1"
        assert t.attrs["valid_range"].dtype == np.int16 and t.attrs["valid_range"].tolist() == [[-1, 2]]
        assert t.attrs["names"].tolist() == ["ä", 'b"']
        assert t.attrs["large"] == 2**64 - 1 and t.attrs["large"].dtype == np.uint64
        assert np.isnan(t.attrs["nan"][0]) and t.attrs["nan"][1] == np.inf
    shell.ok("import", "b.nc", "again")  # bare dimensions are no data
    assert shell.attributes("again")["dimensions"] == '["time","x"]'


@pytest.mark.parametrize("text", ["", "7", "[", "[]", "[1,2]", "[x]"])
def test_a_number_that_has_been_set_to_a_text_is_exported_as_that(shell, text):
    with shell.open("a.nc", "w") as f:
        f["t"] = np.arange(3.0)
        f["t"].attrs["scale"] = np.array([2.5])
        f["t"].attrs["one"] = np.float32(2.5)
    shell.ok("import", "a.nc", "t")
    for name in ["scale", "one"]:
        shell.ok("attr", "set", "t", name, text)
    shell.ok("export", "t", "b.nc")
    with shell.open("b.nc") as f:
        assert f["t"].attrs["scale"] == text
        assert f["t"].attrs["one"] == (7 if text == "7" else text)


def test_a_coordinate_is_the_scale_of_its_own_dimension(shell):
    with shell.open("a.nc", "w") as f:
        f.create_dataset("time", data=np.arange(6.0)).make_scale("time")
    shell.ok("import", "a.nc", "time")
    for options in [(), ("--dataset", "deep/time")]:
        shell.ok("export", "-f", "time", "b.nc", *options)
        with shell.open("b.nc") as f:
            time = f[options[1] if options else "time"]
            assert h5py.h5ds.is_scale(time.id) and not len(time.dims[0]) and time.dims[0].label == ""
            assert list(time.parent) == ["time"]
        shell.ok("import", "-f", "b.nc", "again")
        assert shell.attributes("again")["dimensions"] == '["time"]'


def test_dimensions_without_a_scale_have_labels(shell):
    with shell.open("a.h5", "w") as f:
        a = f.create_dataset("a", data=np.zeros((2, 3)))
        a.dims[0].label = "x/y"
        a.dims[1].label = "a"  # as the dataset itself
    shell.ok("import", "a.h5", "a")
    shell.ok("export", "a", "b.h5")
    with shell.open("b.h5") as f:
        assert [d.label for d in f["a"].dims] == ["x/y", "a"] and list(f) == ["a"]


def test_attributes_of_groups_are_those_of_folders(shell):
    with shell.open("a.nc", "w") as f:
        f["deep/t"] = np.arange(3.0)
        f.attrs["title"] = "a run"
        f.attrs["version"] = np.int32(7)
        f.attrs["_NCProperties"] = "version=2"
        f.attrs["link"] = f["deep"].ref
        f["deep"].attrs["levels"] = np.array([1.5, 2.5])
        f.create_group("none").attrs["note"] = "no array"
    done = shell.run("import", "a.nc", "of/")
    assert done.returncode == 0 and b"'a.nc', group '/': attribute 'link' holds references" in done.stderr
    assert shell.attributes("of") == {"title": "a run", "version": "7", "hdf5.types": '{"version":"i4"}'}
    assert shell.attributes("of/deep")["levels"] == "[1.5,2.5]" and shell.attributes("of/none")["note"] == "no array"
    with shell.open("b.nc", "w") as f:
        f["a"] = [1]
        f.attrs["title"] = np.float32(2.5)
    shell.ok("import", "b.nc", "of/")
    assert json.loads(shell.attributes("of")["hdf5.types"]) == {"version": "i4", "title": "f4"}
    for out, options in [("o.nc", ()), ("o.h5", ("--dataset", "x/t"))]:
        shell.ok("export", "of/deep/t", out, *options)
        with shell.open(out) as f:
            assert f["x" if options else "/"].attrs["levels"].tolist() == [1.5, 2.5]
    shell.ok("export", "of/a", "g.nc")
    with shell.open("g.nc") as f:
        assert f.attrs["version"] == 7 and f.attrs["version"].dtype == np.int32 and f.attrs["title"] == 2.5
    shell.ok("import", "g.nc", "/")  # into the root
    assert shell.attributes("/")["version"] == "7"
    shell.ok("export", "a", "r.nc")
    with shell.open("r.nc") as f:
        assert f.attrs["version"] == 7


def test_what_a_store_notes_of_its_nodes_goes_into_no_file_and_comes_from_none(shell):
    with shell.open("a.h5", "w") as f:
        f["a"] = np.arange(3.0)
        f.attrs["title"] = "a run"
        f.attrs["ooc.drained"] = f.attrs["ooc.retired"] = "1"
        f["a"].attrs["ooc.note"] = "of an array"
    done = shell.run("import", "a.h5", "/")
    assert done.returncode == 0 and done.stderr.count(b": it is left out") == 2
    for key in ["ooc.drained", "ooc.retired"]:
        assert f"note: 'a.h5', group '/': attribute '{key}' says how the store".encode() in done.stderr
    assert shell.attributes("/") == {"title": "a run"} and shell.attributes("a") == {"ooc.note": "of an array"}
    assert b"retired" not in shell.ok("info") and b"no new files" not in shell.ok("info")
    shell.ok("drain", "-q", "1")
    assert "ooc.retired" in shell.attributes("/")
    shell.ok("export", "a", "b.h5")
    with shell.open("b.h5") as f:
        assert dict(f.attrs) == {"title": "a run"}


def test_scalars_enumerations_and_bit_fields_are_arrays(shell):
    with shell.open("a.h5", "w") as f:
        f["scalar"] = 4.5
        kinds = h5py.enum_dtype({"sea": 0, "land": 300}, basetype=">i2")
        f.create_dataset("kinds", data=np.array([300, 0], "i2"), dtype=kinds)
    shell.ok("import", "a.h5", "scalar", "--dataset", "scalar")
    assert shell.array("scalar").tolist() == [4.5]
    for options, shape in (([], ()), (["--deflate", "1"], (1,))):  # it is one again, if it need not be in chunks
        shell.ok("export", "scalar", "b.h5", "-f", *options)
        with shell.open("b.h5") as f:
            assert f["scalar"].shape == shape and f["scalar"][...] == 4.5 and not list(f["scalar"].attrs)
    shell.ok("import", "a.h5", "kinds", "--dataset", "/kinds/")
    assert shell.array("kinds").tolist() == [300, 0]


def test_bad_files_are_refused_by_name(shell):
    with shell.open("good.h5", "w") as f:
        f["a"] = np.arange(10000.0)
        f["texts"] = ["a", "b"]
        f.create_dataset("ragged", (3,), dtype=h5py.vlen_dtype("i4"))
        f.create_dataset("links", (3,), dtype=h5py.ref_dtype)
        f["nothing"] = h5py.Empty("f4")
        f["empty"] = np.zeros((3, 0))
        f["many"] = np.zeros((1,) * 9)
        f.create_dataset("lzf", data=np.arange(10000), compression="lzf")
    good = open(f"{shell.folder}/good.h5", "rb").read()
    for name, data in [
        ("cut.h5", good[: len(good) // 2]),
        ("short.h5", good[:100]),
        ("magic.h5", b"CDF\1" + good[4:]),
        ("none.h5", b""),
    ]:
        with open(f"{shell.folder}/{name}", "wb") as f:
            f.write(data)
        shell.refused("import", name, "x", names=[f"'{name}'"])
    shell.refused("import", "cut.h5", "x", "--dataset", "a", names=["truncated file", "copy it again"])
    shell.refused("import", "magic.h5", "x", names=["signature", "nccopy"])
    shell.refused("import", "missing.h5", "x", names=["'missing.h5'"])
    shell.refused("import", ".", "x", "--format", "hdf5", names=["directory"])
    shell.refused("import", "good.h5", "x", "--dataset", "b", names=["'b'", "a (f8 10000)"])
    for name, says in [
        ("texts", "strings"),
        ("ragged", "variable length"),
        ("links", "references"),
        ("nothing", "no shape"),
        ("empty", "3x0"),
        ("many", "9 dimensions"),
        ("lzf", "HDF5_PLUGIN_PATH"),
    ]:
        shell.refused("import", "good.h5", "x", "--dataset", name, names=["'good.h5'", says])
    for box in ["0:5,0:5", "5", "5:x", "5:5", "0:10001", ",", "::"]:
        shell.refused("import", "good.h5", "x", "--dataset", "a", "--box", box, names=["--box", f"'{box}'"])
    shell.refused("import", "good.h5", "x", "--dataset", "a", "--type", "f8", names=["--type"])
    shell.ok("import", "good.h5", "a", "--dataset", "a")
    shell.refused("import", "good.h5", "a/y", "--dataset", "a", names=["'a/y'", "folder"])
    shell.refused("import", "good.h5", "a", "--dataset", "a", names=["'a'"])

    # One chunk is damaged: what has been read by then goes.
    with shell.open("bad.h5", "w") as f:
        f.create_dataset("a", data=np.arange(10000.0), chunks=(100,), fletcher32=True)
        where = f["a"].id.get_chunk_info(70).byte_offset
    with open(f"{shell.folder}/bad.h5", "r+b") as f:
        f.seek(where + 8)
        f.write(b"damaged?")
    shell.refused("import", "bad.h5", "x", "--buffer", "4096", names=["'bad.h5'", "'a'", "cannot be read"])

    shell.refused("export", "a", "good.h5", names=["--force"])
    shell.refused("export", "a", "no/such/a.h5", names=["no/such/a.h5"])
    shell.refused("export", "a", "-", "--format", "hdf5", names=["stream"])
    shell.refused("export", "a", "o.h5", "--chunk", "4x4", names=["--chunk"])
    shell.refused("export", "a", "o.h5", "--deflate", "10", names=["--deflate"])
    shell.refused("export", "a", "o.npy", "--deflate", "1", names=["HDF5"])
    shell.refused("export", "a", "o.h5", "--box", "0:10001", names=["--box"])
    with open(f"{shell.folder}/good.h5", "rb") as f:
        assert f.read() == good
    shell.ok("export", "--force", "a", "good.h5")
    with shell.open("good.h5") as f:
        assert list(f) == ["a"]


@pytest.mark.skipif(h5py.version.hdf5_version_tuple < (2,), reason="this h5py writes nothing that libhdf5 1.10 cannot read")
def test_a_file_of_a_newer_hdf5_is_refused_with_what_to_do(shell):
    with shell.open("new.h5", "w", libver="latest") as f:
        f.create_dataset("a", data=np.arange(100, dtype="c16"), chunks=(10,))
    if shell.run("import", "new.h5", "x").returncode != 0:  # else libhdf5 is new here, too
        shell.refused("import", "new.h5", "x", names=["'new.h5'", "'a'", "newer HDF5", "h5repack"])


def test_large_datasets_pass_through_a_small_buffer(shell):
    with shell.open("a.h5", "w") as f:
        f.create_dataset("a", data=np.arange(1 << 23).reshape(1 << 10, -1), chunks=(64, 64))
    # This process is large itself, and that of a child begins as a copy of it.
    peak = (
        "import os, resource, subprocess, sys; subprocess.run([os.environ['OOC_COMMAND']] + sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    for arguments in (["import", "-q", "a.h5", "a"], ["export", "-q", "a", "b.h5"]):
        done = subprocess.run(
            [sys.executable, "-c", peak, "--store", shell.store, *arguments, "--buffer", "1MiB"],
            cwd=shell.folder, capture_output=True, check=True,
        )
        assert int(done.stdout) < 40 << 10, arguments  # KiB, for an array of 64 MiB
    with shell.open("b.h5") as f:
        assert np.array_equal(f["a"][()], np.arange(1 << 23).reshape(1 << 10, -1))
