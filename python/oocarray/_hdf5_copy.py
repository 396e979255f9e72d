"""Arrays from and to HDF5, through h5py, in pieces of bounded size.

h5py is imported when one of these functions is called: ``pip install h5py``.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy as np

from ._array import Array
from ._attributes import DTYPE, texts_of, values_of, with_dimensions
from ._copying import Progress, Source, copied, copy_out, free_in, kept_of, passing_name
from ._errors import TypeMismatch
from ._hdf5_sources import check_sources
from ._in_place.hdf5 import bare_dimension, is_bare, only_dataset, opened, stored_name
from ._index import Box, part_of
from ._pieces import most_piece_bytes
from ._store import Path, Store

# What the machinery of dimension scales and NetCDF-4 keeps for itself, as tools/formats/hdf5_attributes.cpp has it.
_internal = {
    "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict",
    "_NCProperties",
}  # fmt: skip
_of_netcdf = {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"}  # as tools/formats/netcdf_types.cpp has it


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as why:
        raise ImportError(f"from_hdf5 and to_hdf5 need h5py ({why}): pip install h5py") from why
    return h5py


# --- in


@contextlib.contextmanager
def _source(source: Any, name: Optional[str]) -> Iterator[Tuple[Any, str]]:
    """A dataset, and what it is called in messages."""
    h5py = _h5py()
    with contextlib.ExitStack() as open_for_now:
        found = source
        if isinstance(source, (str, os.PathLike)):
            found = open_for_now.enter_context(opened(os.fspath(source)))
        where = repr(found.file.filename)
        if isinstance(found, h5py.Group):
            name = stored_name(found, name or only_dataset(found))
            if name not in found or not isinstance(found[name], h5py.Dataset):
                raise KeyError(f"{where} has no dataset {name!r}; it has {', '.join(sorted(found)[:20]) or 'nothing'}")
            found = found[name]
        elif name is not None:
            raise KeyError(f"{where}, dataset {found.name!r} is no group: leave dataset={name!r} out")
        yield found, f"{where}, dataset {found.name!r}"


def _is_scale(dataset: Any) -> bool:
    return _h5py().h5ds.is_scale(dataset.id)


def _plain_dtype(dataset: Any, where: str) -> np.dtype:
    """Of its elements in an array of ours: numbers in this machine's byte order, and enumerations as numbers."""
    try:
        dtype = dataset.dtype
    except TypeError as why:
        raise TypeMismatch(f"{where} has elements that NumPy has no type for ({why})") from None
    if dtype.hasobject:
        raise TypeMismatch(
            f"{where} has texts, sequences or references, of no fixed size, which no array can have; texts become one of fixed "
            "size in h5py by asstr()[...].astype('S')"
        )
    return _without_remarks(dtype).newbyteorder("=") if dtype.kind in "biufc" else _without_remarks(dtype)


def _without_remarks(dtype: np.dtype) -> np.dtype:
    """Without what h5py notes in types, as that they are enumerations."""
    if dtype.subdtype is not None:
        return np.dtype((_without_remarks(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.fields is None:
        return np.dtype(dtype.str)
    fields = {name: dtype.fields[name] for name in dtype.names or ()}
    described: Any = {
        "names": list(fields),
        "formats": [_without_remarks(f[0]) for f in fields.values()],
        "offsets": [f[1] for f in fields.values()],
        "itemsize": dtype.itemsize,
    }
    return np.dtype(described)


def _dimension_names(dataset: Any) -> Optional[List[str]]:
    names = []
    for d, dimension in enumerate(dataset.dims):
        name = dimension.label or (dimension[0].name.rpartition("/")[2] if len(dimension) else "")
        if not name and dataset.ndim == 1 and _is_scale(dataset):
            name = dataset.name.rpartition("/")[2]
        names.append(name)
    if dataset.ndim and not any(names):
        return None
    return [n or f"dim_{d}" for d, n in enumerate(names)]


def _attributes(dataset: Any, where: str) -> Dict[str, str]:
    left_out: List[str] = []
    values = {}
    for key in dataset.attrs:
        if key in _internal or (_is_scale(dataset) and key in ("CLASS", "NAME")):
            continue
        try:
            values[key] = dataset.attrs[key]
        except (TypeError, OSError) as why:
            left_out.append(f"attribute '{key}': {why}")
    texts = texts_of(values, left_out)
    for line in left_out:
        warnings.warn(f"{where}: {line}: it is left out", stacklevel=7)
    return texts


def _grain(dataset: Any) -> Tuple[int, ...]:
    """What is best read as a whole: a chunk; but one that is not packed need not be, where it is large."""
    chunk = dataset.chunks or (1,) * dataset.ndim
    is_packed = dataset.id.get_create_plist().get_nfilters() > 0
    return chunk if is_packed or math.prod(chunk) * dataset.dtype.itemsize <= most_piece_bytes() else (1,) * dataset.ndim


def from_hdf5(
    source: Any,
    store: Union[Store, Path],
    path: Path,
    *,
    dataset: Optional[str] = None,
    box: Optional[Any] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Array:
    """Copies a dataset of HDF5 into a store, piece by piece, and returns it open.

    ::

        a = ooc.from_hdf5("era5.nc", store, "runs/t", dataset="t2m", box=np.s_[0:24])

    Parameters
    ----------
    source : str, path, h5py.File, h5py.Group or h5py.Dataset
        A file, or what is open of one.
    store : Store, str or path
        Where the array is made: a store, its URL, or its folder.
    path : str or path
        Its path there.
    dataset : str
        Of the dataset in a file or group; not needed where there is only one.
    box : tuple of slice
        The part that is copied, as ``np.s_[0:10, :]``; all of it without one.
    progress : callable or True
        Is given the bytes that have been copied, and those that there are.  True: a bar of tqdm, or a percentage.
    options
        As for `oocarray.create`; the fill value is that of the dataset.

    Whatever h5py reads is read: chunks, filters, both byte orders, records, texts of fixed size.  Dimension names and
    attributes with their types are kept as `ooc import` keeps them.  The array has its name when it is complete.  A chunk
    that is packed is unpacked whole, beside the budget.

    Raises
    ------
    ImportError
        Without h5py.
    KeyError
        For a dataset that is not there.
    TypeMismatch
        For elements of no fixed size.
    MemoryError
        For packed chunks that do not fit in memory.
    OSError
        For what cannot be read, also of files that the dataset is made up of.
    Busy, InvalidRequest
        For a file that h5py cannot open: as `open_file` says.
    FileExistsError
        If there is something at the path, unless ``replace=True``.
    """
    with _source(source, dataset) as (d, where):
        into = free_in(store, path, options)
        dtype = _plain_dtype(d, where)
        check_sources(d, where)
        if d.shape is None:
            raise ValueError(f"{where} has no shape (H5S_NULL), which every array has")
        if 0 in d.shape[1:]:
            raise ValueError(f"{where} has the shape {d.shape}, and of an array only the first extent may be 0")
        read = Source(
            shape=d.shape,
            dtype=dtype,
            fill=d.fillvalue if dtype.kind in "biufc" else None,
            grain=_grain(d),
            smaller="rewrite it in smaller ones where there is more (`h5repack -l CHUNK=...`)",
            read=d.__getitem__,
            describe=lambda: with_dimensions(_attributes(d, where), _dimension_names(d)),
        )
        return copied(read, box, where, into, path, progress, options)


# --- out


def _stored_dtype(array: Array, file: str) -> np.dtype:
    """As h5py takes it; of truth values in NetCDF-4 the integers that stand for them there."""
    if file.endswith((".nc", ".nc4")):
        if array.dtype.str[1:] in _of_netcdf:
            return array.dtype
        if array.dtype.kind == "b":
            return np.dtype("i1")
        raise TypeMismatch(
            f"'{file}': NetCDF-4 has no elements of the type {array.dtype}: write them to a name that ends in .h5, or convert "
            "them to numbers that it has (i1..i8 u1..u8 f4 f8)"
        )
    if array.dtype.kind == "U":
        raise TypeMismatch(
            f"array '{array.path}' has elements of type {array.dtype}, and HDF5 has none such: make them bytes, with "
            "numpy.char.encode()"
        )
    return _h5py().opaque_dtype(array.dtype) if array.dtype.kind in "mM" else array.dtype


def _attach(group: Any, dataset: Any, d: int, name: str) -> None:
    """Names a dimension as NetCDF-4 does, by a scale beside the dataset, one without values if there is none; else by a label."""
    if name == dataset.name.rpartition("/")[2] and dataset.ndim == 1:
        dataset.make_scale(name)
        return
    possible = name not in ("", ".", dataset.name.rpartition("/")[2]) and "/" not in name
    if possible and name not in group:
        group.create_dataset(name, (dataset.shape[d],), ">f4").make_scale(f"{bare_dimension}{dataset.shape[d]:10d}")
    scale = group[name] if possible else None
    if isinstance(scale, type(dataset)) and _is_scale(scale) and scale.shape == (dataset.shape[d],):
        dataset.dims[d].attach_scale(scale)
    else:
        dataset.dims[d].label = name


def _set_attribute(dataset: Any, key: str, value: Any, where: str) -> None:
    left_out: List[str] = []
    texts_of({key: value}, left_out)
    if left_out:  # of Zarr, where attributes are JSON
        value = json.dumps(value)
    texts = isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype.hasobject)
    try:
        dataset.attrs.create(key, value, dtype=_h5py().string_dtype() if texts and _are_texts(value) else None)
    except (TypeError, ValueError, OSError, RuntimeError) as why:
        raise ValueError(f"array '{where}': its attribute '{key}' cannot be one of HDF5: {why}") from why


def _are_texts(values: Any) -> bool:
    return all(isinstance(v, str) for v in np.asarray(values, object).ravel())


def _write(
    array: Array, group: Any, name: str, stored: np.dtype, part: Tuple[slice, ...], progress: Any, options: Dict[str, Any]
) -> None:
    where, fill, texts, names = kept_of(array)
    shape = tuple(b.stop - b.start for b in part)
    if fill is not None and array.dtype.kind in "biufc":
        options.setdefault("fillvalue", fill)
    if 0 in shape and options:
        options.setdefault("maxshape", (None, *shape[1:]))  # chunks are at least one row, which it must be able to have
    is_scalar = names == [] and not options
    folder, slash, last = name.rpartition("/")
    passing = f"{folder}{slash}{passing_name(last)}"
    dataset = group.create_dataset(passing, () if is_scalar else shape, stored, **options)

    def write(piece: Box, values: np.ndarray) -> None:
        dataset[() if is_scalar else piece] = values[0] if is_scalar else values.view(stored)

    try:
        copy_out(array, part, dataset.chunks or (1,) * array.ndim, write, progress)
        values = values_of(texts, array.dtype)
        if array.dtype.kind == "b" and stored.kind == "i":
            values[DTYPE] = "bool"  # as xarray has it
        for key, value in values.items():
            _set_attribute(dataset, key, value, where)
    except BaseException:
        del group[passing]
        raise
    if name in group:
        del group[name]
    group.move(passing, name)
    for d, label in enumerate(names or ()):
        _attach(group[name].parent, group[name], d, label)


def to_hdf5(
    array: Array,
    target: Any,
    dataset: Optional[str] = None,
    *,
    box: Optional[Any] = None,
    overwrite: bool = False,
    progress: Optional[Progress] = None,
    **options: Any,
) -> None:
    """Copies an array to HDF5, piece by piece.

    ::

        ooc.to_hdf5(a, "a.h5", compression="gzip", shuffle=True)
        with h5py.File("all.h5", "a") as f:
            ooc.to_hdf5(a, f, "runs/7/a")

    Parameters
    ----------
    array : Array
    target : str, path, h5py.File or h5py.Group
        A new file, or the open file or group that the dataset is made in.
    dataset : str
        Its name; without it, the last part of the array's path.
    box : tuple of slice
        The part that is copied; all of it without one.
    overwrite : bool
        Whether to replace the file, when the copy is complete, or the dataset of this name.
    progress : callable or True
        Is given the bytes that have been copied, and those that there are.  True: a bar of tqdm, or a percentage.
    options
        For `h5py.Group.create_dataset`, as ``chunks=``, ``compression=`` and ``maxshape=``; without any the dataset is
        contiguous, and `open_file` can use it in place.

    Attributes get the types that they had, and dimensions their names, as NetCDF-4 has them: write an array that holds the
    coordinates of a dimension, and has its name, before those that lie along it.  What is not complete when an error is
    raised is removed.  A file whose name ends in .nc or .nc4 gets what NetCDF-4 has: integers and floats of 4 and 8 bytes, truth
    values as integers with the attribute ``dtype``; other types raise `TypeMismatch`.
    """
    h5py = _h5py()
    part = part_of(box, array.shape, f"array '{array.path}'")
    own = "data" if array.attributes.without_name else array.current_path.rpartition("/")[2]
    name = own if dataset is None else dataset
    if isinstance(target, h5py.Group):
        if name in target:
            if is_bare(target[name]):
                raise FileExistsError(
                    f"{name!r} exists already, as the dimension of another dataset: write the array of its coordinates first"
                )
            if not overwrite:
                raise FileExistsError(f"{name!r} exists already: take another name, or give overwrite=True")
            if "REFERENCE_LIST" in target[name].attrs:
                raise FileExistsError(f"{name!r} is a dimension of other datasets, which would lose it: remove those first")
        _write(array, target, name, _stored_dtype(array, target.file.filename), part, progress, options)
        return
    path = os.fspath(target)
    stored = _stored_dtype(array, path)
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(
            f"'{path}' exists already: take another name, or give overwrite=True; to add a dataset to it, give h5py.File(..., 'a')"
        )
    folder, slash, last = path.rpartition("/")
    passing = f"{folder}{slash}{passing_name(last)}"
    try:
        with h5py.File(passing, "w", libver=("v108", "latest")) as file:  # attributes of more than 64 KiB
            _write(array, file, name, stored, part, progress, options)
        os.rename(passing, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(passing)
        raise
