"""Types that libhdf5 converts when they are read: `ooc import` gives the values that are stored, and invents none.

Each row writes bytes, and says what values they are; h5py, where it has such a type, must say the same.
"""

import os

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

from ooc_shell import Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    return Shell(str(tmp_path_factory.mktemp("types")))


def of_base(name, order):
    return getattr(h5t, f"STD_{name.upper()[0]}{8 * int(name[1])}{'LE' if order == '<' else 'BE'}")


def enumeration(base, names):
    kind = h5t.enum_create(base)
    for name, value in names.items():
        kind.enum_insert(name.encode(), value)
    return kind


def bits_of(base, precision, offset):
    kind = base.copy()
    kind.set_precision(precision)
    kind.set_offset(offset)
    return kind


def float_of(base, size, sign, exponent, exponent_size, mantissa_size, bias):
    kind = base.copy()
    kind.set_fields(sign, exponent, exponent_size, 0, mantissa_size)
    kind.set_precision(sign + 1)
    kind.set_size(size)
    kind.set_ebias(bias)
    return kind


def rows():
    """Name, type in the file, bytes of the elements, values that they are, type that the array has."""
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        for order in "<>":
            stored = np.dtype(order + name)
            info = np.iinfo(stored)
            values = np.array([1, 4, 5, 0, 2, 7, info.max, info.min, 1], stored)
            base = of_base(name, order)
            yield f"enumeration {order}{name}", enumeration(base, {"A": 1, "B": 4}), values.tobytes(), values, name
            yield f"enumeration of one {order}{name}", enumeration(base, {"A": 7}), values.tobytes(), values, name
    cells = np.array([0, 1, 2, 255, 1], "u1")
    yield "boolean", enumeration(h5t.STD_I8LE, {"FALSE": 0, "TRUE": 1}), cells.tobytes(), cells, "?"
    yield "no boolean", enumeration(h5t.STD_I8LE, {"FALSE": 1, "TRUE": 0}), cells.tobytes(), cells.view("i1"), "i1"
    yield "small boolean", enumeration(h5t.STD_I8LE, {"NO": 0, "YES": 1}), cells.tobytes(), cells.view("i1"), "i1"
    for size in (1, 2, 4, 8):
        for order, suffix in (("<", "LE"), (">", "BE")):
            values = np.array([0, 1, 200, 2 ** (8 * size) - 1, 2 ** (8 * size - 1)], f"{order}u{size}")
            yield f"bit field {order}{size}", getattr(h5t, f"STD_B{8 * size}{suffix}"), values.tobytes(), values, f"u{size}"
    for order in "<>":
        for name, precision, offset in (("i4", 12, 4), ("u4", 12, 4), ("i2", 5, 0), ("u8", 33, 7), ("i8", 60, 1)):
            limit = 1 << precision
            low, high = (-limit // 2, limit // 2 - 1) if name[0] == "i" else (0, limit - 1)
            values = np.array([0, 1, low, high, 5], name)
            raw = ((values.astype(f"u{name[1]}") & np.array(limit - 1, f"u{name[1]}")) << np.array(offset, f"u{name[1]}"))
            kind = bits_of(of_base(name, order), precision, offset)
            raw = raw.astype(f"{order}u{name[1]}").tobytes()
            yield f"{precision} bits of {order}{name}", kind, raw, values, name
            yield f"enumeration of {precision} bits of {order}{name}", enumeration(kind, {"A": 1}), raw, values, name
        base = h5t.IEEE_F32LE if order == "<" else h5t.IEEE_F32BE
        wide = np.array([1.5, -2.0, 0.0, np.inf, -np.inf, 2.0**-126, 3.0e38, 2.0**-130], "f4")
        raw = (wide.view("u4") >> 16).astype(f"{order}u2")
        brain = (raw.astype("u4") << 16).view("f4")
        yield f"bfloat16 {order}", float_of(base, 2, 15, 7, 8, 7, 127), raw.tobytes(), brain, "f4"
        short = (np.array([1.5, -2.25, 0.0, 3.0e38], "f4").view("u4") & 0xFFFFE000).view("f4")
        kind = float_of(base, 4, 18, 10, 8, 10, 127)
        yield f"19 bits of f4 {order}", kind, (short.view("u4") >> 13).astype(f"{order}u4").tobytes(), short, "f4"
        # A float of 4 bytes with the exponents of a double.
        far = np.array([1.5, -2.25, 0.0, 2.0**900, 2.0**-1000], "f8")
        kind = float_of(base, 4, 31, 20, 11, 20, 1023)
        yield f"far f4 {order}", kind, (far.view("u8") >> 32).astype(f"{order}u4").tobytes(), far, "f8"


table = list(rows())
table_names = [row[0] for row in table]


def created(way, kind):
    plist = h5p.create(h5p.DATASET_CREATE)
    if way == "contiguous":
        return plist
    if way == "compact":
        plist.set_layout(h5d.COMPACT)
        return plist
    plist.set_chunk((3,))
    if way == "packed":
        plist.set_shuffle()
        plist.set_deflate(3)
        plist.set_fletcher32()
    if way == "n-bit":
        plist.set_filter(h5z.FILTER_NBIT, 0)
    return plist


def written(file, name, way, kind, raw, count):
    d = h5d.create(file.id, name.encode(), kind, h5s.create_simple((count,)), created(way, kind))
    d.write(h5s.ALL, h5s.ALL, np.frombuffer(raw, f"V{kind.get_size()}"), kind)
    return d


@pytest.mark.parametrize("name", table_names)
def test_values_are_those_that_are_stored(shell, name):
    _, kind, raw, values, element = table[table_names.index(name)]
    ways = ["contiguous", "packed"]
    if os.environ.get("OOC_TEST_LONG"):
        ways += ["compact", "chunks"]
    if "bits of" in name and not name.startswith("enumeration"):
        ways.append("n-bit")
    with shell.open("a.h5", "w") as f:
        for way in ways:
            written(f, way, way, kind, raw, len(values))
    for way in ways:
        path = f"{table_names.index(name)}-{way}"
        shell.ok("import", "a.h5", path, "--dataset", way)
        a = shell.array(path)
        assert a.dtype == np.dtype(element)
        wanted = values.astype(values.dtype.newbyteorder("="))
        assert a.tobytes() == wanted.tobytes(), (way, a, wanted)
        with shell.open("a.h5") as f:
            if isinstance(kind, h5t.TypeEnumID) and "bits of" not in name:  # its base is what the values are
                there = np.zeros(len(values), element)
                f[way].id.read(h5s.ALL, h5s.ALL, there, h5t.py_create(np.dtype(element if element != "?" else "i1")))
            elif "5 bits of >i2" in name or name == "bit field >1":
                continue  # of which h5py forgets the signs, and which it does not read
            else:
                there = f[way][()]
        assert there.tolist() == a.tolist() or np.array_equal(there.astype(a.dtype), a), (way, there)


def test_cells_of_an_enumeration_that_were_never_written_have_the_fill_value(shell):
    for order in "<>":
        for fill in (None, 0, 9):
            with shell.open("e.h5", "w") as f:
                for name, way in (("contiguous", {}), ("chunks", {"chunks": (2,)})):
                    kind = h5py.enum_dtype({"LAND": 1, "SEA": 2}, basetype=f"{order}i2")
                    f.create_dataset(name, (6,), dtype=kind, fillvalue=fill, **way)[:2] = np.array([1, 2], kind)
            for way in ("contiguous", "chunks"):
                path = f"fill{order == '<'}{fill}{way}"
                shell.ok("import", "e.h5", path, "--dataset", way)
                assert shell.array(path).tolist() == [1, 2] + 4 * [fill or 0]


def test_an_enumeration_as_an_attribute_keeps_its_value(shell):
    with shell.open("a.h5", "w") as f:
        f["d"] = [1.0]
        for order in "<>":
            kind = h5py.enum_dtype({"A": 1, "B": 4}, basetype=f"{order}u4")
            f["d"].attrs.create("flags" + order, np.array([1, 5], kind), dtype=kind)
    shell.ok("import", "a.h5", "attributes")
    assert shell.attributes("attributes")["flags<"] == shell.attributes("attributes")["flags>"] == "[1,5]"


def test_floats_that_none_of_ours_holds_are_refused(shell):
    with shell.open("a.h5", "w") as f:
        long = float_of(h5t.IEEE_F64LE, 8, 63, 60, 3, 60, 3)  # 60 bits of mantissa
        written(f, "long", "contiguous", long, bytes(16), 2)
        far = float_of(h5t.IEEE_F64LE, 8, 63, 48, 15, 48, 16383)  # an exponent beyond a double's
        written(f, "far", "contiguous", far, bytes(16), 2)
    for name in ("long", "far"):
        shell.refused("import", "a.h5", "x", "--dataset", name, names=["'a.h5'", f"'{name}'", "floats of a format of its own"])


def test_what_scale_offset_gives_is_what_h5py_reads(shell):
    rng = np.random.default_rng(1)
    with shell.open("s.h5", "w") as f:
        for k, order in enumerate("<>"):
            for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
                values = rng.integers(0, 100, 40).astype(order + name)
                d = f.create_dataset(f"{name}{k}", (80,), order + name, chunks=(16,), scaleoffset=0, fillvalue=77)
                d[:40] = values
            for name in ("f4", "f8"):
                f.create_dataset(f"{name}{k}", data=rng.random(80).astype(order + name), chunks=(16,), scaleoffset=3)
        expected = {name: f[name][()] for name in f}
    for name, values in expected.items():
        shell.ok("import", "s.h5", f"scaled{name}", "--dataset", name)
        a = shell.array(f"scaled{name}")
        assert a.tobytes() == values.astype(values.dtype.newbyteorder("=")).tobytes(), name
