"""All ways in which HDF5 keeps an array, as far as they are tested: types, byte orders, layouts, filters, what was written.

A type is a row of `types`; everything else follows from it.  See ooc_hdf5_matrix_test.py.
"""

import itertools
import os
from typing import NamedTuple, Optional

import h5py
import numpy as np

shape, chunk = (12, 9), (5, 8)
box = (slice(2, 7), slice(1, 6))  # what is written of an array that is written in part
mapped = slice(3, 9)  # the rows that a virtual dataset takes from its source, of one that is mapped in part


class Type(NamedTuple):
    """A type in a file, and the array that it becomes."""

    name: str
    stored: np.dtype  #: little-endian
    array: np.dtype  #: of what `ooc import` makes
    fill: Optional[object] = 77  #: a fill value that is not zero; None: without one
    bits: int = 0xFF  #: of each byte that a value may have
    orders: str = "<>"
    whole: bool = False  #: an integer, for which scale-offset loses nothing
    szip: bool = False  #: szip takes it
    in_place: bool = True  #: NumPy has it


def _numbers():
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        dtype = np.dtype(name)
        yield Type(name, dtype, dtype, whole=True, szip=True, orders="<" if dtype.itemsize == 1 else "<>")
    for name in ("f2", "f4", "f8"):
        yield Type(name, np.dtype(name), np.dtype(name), szip=name != "f2")
    for name in ("c8", "c16"):
        yield Type(name, np.dtype(name), np.dtype(name), fill=np.dtype(name).type(7 - 2j))


def _enumeration(order):
    return h5py.enum_dtype({"LAND": 1, "SEA": 300}, basetype=f"{order}i2")


types = [
    *_numbers(),
    Type("boolean", np.dtype("?"), np.dtype("?"), fill=None, bits=1, orders="<"),
    Type("opaque", np.dtype("V7"), np.dtype("V7"), fill=None, orders="<"),
    Type("enumeration", _enumeration("<"), np.dtype("i2"), fill=9),
]


class Case(NamedTuple):
    """One dataset."""

    type: str
    order: str
    layout: str
    filter: str
    written: str
    libver: str

    def __str__(self):
        return "-".join(self).replace("<", "little").replace(">", "big")


def _has_szip():
    z = h5py.h5z
    return bool(z.filter_avail(z.FILTER_SZIP) and z.get_filter_info(z.FILTER_SZIP) & z.FILTER_CONFIG_ENCODE_ENABLED)


def cases():
    szip = _has_szip()
    for t in types:
        filters = ["none", "gzip", "shuffle", "fletcher32"]
        filters += ["scale-offset"] if t.whole else []
        filters += ["szip"] if t.szip and szip else []
        ways = [("chunked", f) for f in filters]
        ways += [(layout, "none") for layout in ("contiguous", "compact", "external", "virtual")]
        for order, (layout, filter), written, libver in itertools.product(
            t.orders, ways, ("full", "partly", "never"), ("default", "latest")
        ):
            yield Case(t.name, order, layout, filter, written, libver)


def type_of(case):
    return next(t for t in types if t.name == case.type)


def stored_type(case):
    t = type_of(case)
    return _enumeration(case.order) if t.name == "enumeration" else t.stored.newbyteorder(case.order)


def values(case, rng):
    t, dtype = type_of(case), stored_type(case)
    raw = rng.integers(0, 256, size=int(np.prod(shape)) * dtype.itemsize, dtype="u1") & t.bits
    return raw.view(dtype if dtype.kind != "V" else t.stored).reshape(shape)


_filters = {
    "none": {},
    "gzip": {"compression": "gzip"},
    "shuffle": {"shuffle": True},
    "fletcher32": {"fletcher32": True},
    "scale-offset": {"scaleoffset": 0},
    "szip": {"compression": "szip"},
}


def _compact(file, dtype, fill):
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_layout(h5py.h5d.COMPACT)
    if fill is not None:
        created.set_fill_value(np.array(fill, dtype))
    space, kind = h5py.h5s.create_simple(shape), h5py.h5t.py_create(dtype, logical=True)
    return h5py.Dataset(h5py.h5d.create(file.id, b"data", kind, space, dcpl=created))


def _virtual(file, folder, case, a, fill):
    with h5py.File(os.path.join(folder, "source.h5"), "w", libver=_libver(case)) as source:
        d = source.create_dataset("data", shape, stored_type(case), fillvalue=fill)
        if case.written != "never":
            d[...] = a
    layout = h5py.VirtualLayout(shape, stored_type(case))
    rows = mapped if case.written == "partly" else slice(None)
    layout[rows] = h5py.VirtualSource("source.h5", "data", shape)[rows]
    file.create_virtual_dataset("data", layout, fillvalue=fill)


def _libver(case):
    if case.libver != "latest":
        return None
    return "latest" if h5py.version.hdf5_version_tuple < (1, 12) else ("v110", "v110")  # which libhdf5 1.10 reads


def write(case, folder, a):
    """Makes data.h5 in the folder, with the dataset `data`."""
    fill, dtype = type_of(case).fill, stored_type(case)
    for name in ("raw", "source.h5"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    with h5py.File(os.path.join(folder, "data.h5"), "w", libver=_libver(case)) as file:
        if case.layout == "virtual":
            return _virtual(file, folder, case, a, fill)
        keywords = {}
        if case.layout == "chunked":
            keywords = {"chunks": chunk, **_filters[case.filter]}
        if case.layout == "external":
            fill = None  # libhdf5 gives zeros for what such a file has not got
            keywords = {"external": [(os.path.join(folder, "raw"), 3, a.nbytes)]}
        if case.layout == "compact":
            d = _compact(file, dtype, fill)
        else:
            d = file.create_dataset("data", shape, dtype, fillvalue=fill, **keywords)
        where = {"full": (...,), "partly": box, "never": None}[case.written]
        if where is not None:
            d[where] = a[where]


def lacks_bytes(case, folder):
    """Whether an external file is shorter than its dataset, which nobody can tell from one that was cut off."""
    if case.layout != "external":
        return False
    raw = os.path.join(folder, "raw")
    needed = 3 + int(np.prod(shape)) * stored_type(case).itemsize
    return not os.path.exists(raw) or os.path.getsize(raw) < needed
