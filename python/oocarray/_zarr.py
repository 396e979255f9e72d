"""Arrays from and to Zarr (versions 3 and 2 of the format), through zarr-python.

zarr-python 3 is imported when one of these functions is called: ``pip install zarr``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
import warnings
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from ._array import Array
from ._attributes import NOT_TEXTS, values_of, with_dimensions
from ._copying import Kept, Progress, Source, copied, copy_out, free_in, kept_of, passing_name, remove, take_name
from ._index import Box, part_of
from ._store import Path, Store

_missing = "_FillValue"


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as why:
        raise ImportError(f"from_zarr and to_zarr need zarr-python ({why}): pip install 'zarr>=3'") from why
    if int(zarr.__version__.split(".")[0]) < 3:
        raise ImportError(f"from_zarr and to_zarr need zarr-python 3, and this is {zarr.__version__}: pip install 'zarr>=3'")
    return zarr


def _is_local(place: Any) -> bool:
    return isinstance(place, (str, os.PathLike)) and "://" not in os.fspath(place)


@contextlib.contextmanager
def _source(source: Any, name: Optional[str]) -> Iterator[Tuple[Any, str]]:
    """A zarr.Array, and what it is called in messages."""
    zarr = _zarr()
    if isinstance(source, (zarr.Array, zarr.Group)):
        yield _member(source, f"{source.store_path}", name)
        return
    where = repr(source) if isinstance(source, (str, os.PathLike)) else f"{source}"
    with contextlib.ExitStack() as open_for_now:
        try:
            if _is_local(source) and os.path.isfile(source):
                source = open_for_now.enter_context(_zip_file(os.fspath(source), "r"))
            found = zarr.open(source, mode="r")
        except Exception as why:  # whatever zarr-python and its stores throw, from FileNotFoundError to KeyError
            raise ValueError(
                f"{where} cannot be opened as Zarr ({type(why).__name__}: {why}): give the folder, or the zip file, with "
                "zarr.json (or .zarray), and install what its codecs need"
            ) from why
        yield _member(found, where, name)


def _zip_file(path: str, mode: Any) -> Any:
    """Open from now on: a store that has never been used cannot be closed."""
    from zarr.core.sync import sync

    return sync(_zarr().storage.ZipStore.open(path, mode=mode))


def _member(found: Any, where: str, name: Optional[str]) -> Tuple[Any, str]:
    zarr = _zarr()
    if isinstance(found, zarr.Group):
        names = sorted(k for k, _ in found.arrays())
        if name is None and len(names) == 1:
            name = names[0]
        try:
            found = found[name] if name is not None else None
        except KeyError:
            found = None
        if found is None or isinstance(found, zarr.Group):
            wanted = f"no array {name!r}" if name is not None else "several arrays" if names else "no arrays"
            raise KeyError(f"{where} is a group with {wanted}; name= takes one of {names}")
        where = f"{where}, array {name!r}"
    elif name is not None:
        raise KeyError(f"{where} is an array, not a group: leave name={name!r} out")
    return found, where


def _decode_missing(attributes: Dict[str, Any], dtype: np.dtype) -> None:
    """The value that marks missing floats is in base64, because JSON has no NaN: so xarray writes Zarr 3."""
    if dtype.kind == "f" and isinstance(attributes.get(_missing), str):
        try:
            attributes[_missing] = struct.unpack("<d", base64.b64decode(attributes[_missing], validate=True))[0]
        except (ValueError, struct.error):
            pass  # it is something else


def _encode_missing(attributes: Dict[str, Any], dtype: np.dtype) -> None:
    if dtype.kind == "f" and isinstance(attributes.get(_missing), float):
        attributes[_missing] = base64.b64encode(struct.pack("<d", attributes[_missing])).decode()


def _texts(attributes: Dict[str, Any]) -> Dict[str, str]:
    texts, others = {}, []
    for key, value in attributes.items():
        if isinstance(value, str):
            texts[key] = value
        else:
            texts[key] = json.dumps(value)
            others.append(key)
    if others:
        texts[NOT_TEXTS] = json.dumps(sorted(others))
    return texts


def _values(texts: Dict[str, str], dtype: np.dtype) -> Dict[str, Any]:
    """In JSON there are no types of NumPy's."""
    values = values_of(texts, dtype)
    return {k: v.tolist() if isinstance(v, (np.generic, np.ndarray)) else v for k, v in values.items()}


def _named_dimensions(z: Any, attributes: Dict[str, Any]) -> Optional[Sequence[str]]:
    names = getattr(z.metadata, "dimension_names", None) or attributes.pop("_ARRAY_DIMENSIONS", None)
    if not names or not any(names):
        return None
    return [n if n is not None else f"dim_{d}" for d, n in enumerate(names)]


def from_zarr(
    source: Any,
    store: Union[Store, Path],
    path: Path,
    *,
    name: Optional[str] = None,
    box: Optional[Any] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Array:
    """Copies a Zarr array into a store, chunk by chunk, and returns it open.

    Parameters
    ----------
    source : str, path, zarr.Array, zarr.Group or a store of zarr
        The folder, zip file or URL of an array or a group, or one that is open.
    name : str
        Of the array in a group; not needed where there is only one.
    store, path, box, progress, options
        As for `from_hdf5`.

    The names of the dimensions become the attribute ``dimensions``, as in `oocarray.xarray`.  Attributes that are no
    texts are kept in JSON, and `to_zarr` writes them as what they were.  The array has its name when it is complete.

    Raises
    ------
    ImportError
        Without zarr-python 3.
    ValueError, KeyError, TypeError
        For what is no Zarr array, for a name that is not there, and for elements of no fixed size.
    MemoryError
        For chunks, or shards, that do not fit in memory.
    OSError
        For a chunk that cannot be read, or is cut short, and where all chunks have names that the metadata does not say.
    FileExistsError
        If there is something at the path, unless ``replace=True``.
    """
    with _source(source, name) as (z, where):
        from ._zarr_checks import CompleteReads

        into = free_in(store, path, options)
        dtype = np.dtype(z.dtype)
        if dtype.hasobject or dtype.kind == "T":
            raise TypeError(
                f"{where} has elements of type {dtype}, of no fixed size: an array has none such; convert it first"
            )
        if dtype.fields is None and dtype.kind in "biufc":
            dtype = dtype.newbyteorder("=")
        if 0 in z.shape[1:]:
            raise ValueError(f"{where} has the shape {z.shape}, and of an array only the first extent may be 0")
        attributes = dict(z.attrs)
        _decode_missing(attributes, dtype)
        dimensions = _named_dimensions(z, attributes)
        elements = CompleteReads(z, where)

        def describe() -> Dict[str, str]:
            elements.check_names()
            return with_dimensions(_texts(attributes), dimensions if z.shape else [])

        found = Source(
            shape=z.shape,
            dtype=dtype,
            fill=z.fill_value,
            grain=getattr(z, "shards", None) or z.chunks,
            smaller="rewrite it in smaller ones where there is more",
            read=elements.read,
            describe=describe,
        )
        return copied(found, box, where, into, path, progress, options)


def to_zarr(
    array: Array,
    target: Any,
    *,
    name: Optional[str] = None,
    box: Optional[Any] = None,
    chunks: Any = "auto",
    overwrite: bool = False,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Any:
    """Copies an array to Zarr, chunk by chunk, and returns the `zarr.Array`.

    Parameters
    ----------
    array : Array
    target : str, path, zarr.Group or a store of zarr
        The folder or URL of the new array, a zip file where it ends in ".zip", or the group that it is made in.
    name : str
        In the group; without it, the last part of the array's path.
    box : tuple of slice
        The part that is copied; all of it without one.
    chunks
        The shape of a chunk; zarr-python chooses one without it.
    overwrite : bool
        Whether to replace what is there: when the copy is complete, where it is a folder or file of this machine.
    progress : callable or True
        Is given the bytes that have been copied, and those that there are.  True: a bar of tqdm, or a percentage.
    options
        For `zarr.create_array`, as ``compressors=`` or ``shards=``.

    What is not complete when an error is raised is removed.
    """
    zarr = _zarr()
    kept = kept_of(array)
    part = part_of(box, array.shape, f"array '{array.path}'")
    name = kept.path.rpartition("/")[2] if name is None else name
    version = target.metadata.zarr_format if isinstance(target, zarr.Group) else options.get("zarr_format", 3)
    make = {"shape": tuple(b.stop - b.start for b in part), "chunks": chunks, **_described(array, kept, version), **options}
    if isinstance(target, zarr.Group):
        new = _new_in_group(target, name, overwrite, make)
    elif _is_local(target):
        new = _new_on_disk(os.fspath(target), overwrite, make)
    else:
        new = _new_elsewhere(target, overwrite, make)
    with new as z:
        _write(array, part, z, progress)
    if not _is_local(target):
        return z
    path = os.fspath(target)
    return zarr.open_array(_zip_file(path, "r") if _is_zip(path) else path)


def as_zarr(arrays: Union[Array, Dict[str, Array]], *, chunks: Optional[Any] = None) -> Any:
    """An array as zarr-python and what builds on it read it, without a copy: a `zarr.Array` over a store without files.

    ::

        z = oocarray.as_zarr(a)                              # of one array
        d = xarray.open_zarr(oocarray.as_zarr({"t2m": a, "u10": b}).store, consolidated=False)

    It is only read.  A chunk is read from the array when it is asked for; what is written to the array later is seen.

    Parameters
    ----------
    arrays : Array or dict
        One array; or a group of some, by their names in it, for which a `zarr.Group` is returned.
    chunks : tuple of int
        The shape of a chunk; without it that of a tile, or a band of whole rows of about a block.

    Attributes, the names of dimensions and the fill value are shown.  The array must stay open.

    Raises
    ------
    ImportError
        Without zarr-python 3.
    TypeMismatch
        For elements that version 3 of Zarr has no name for, and arrays without elements.
    """
    zarr = _zarr()
    from ._in_place.zarr_creation import metadata_of_new
    from ._in_place.zarr_view import ArrayStore

    def shown(array: Array) -> Tuple[Array, Dict[str, Any]]:
        kept = kept_of(array)
        said = _described(array, kept, 3)
        tile = tuple(min(c, n) for c, n in zip(array.chunks, array.shape))
        meta = metadata_of_new(array.path, array.shape, array.dtype, tile if chunks is None else chunks, None, said["fill_value"])
        meta["attributes"] = said["attributes"]
        if kept.dimensions:
            meta["dimension_names"] = list(kept.dimensions)
        return array, meta

    if isinstance(arrays, Array):
        return zarr.open_array(ArrayStore({"": shown(arrays)}), mode="r")
    return zarr.open_group(ArrayStore({name: shown(a) for name, a in arrays.items()}), mode="r")


def _described(array: Array, kept: Kept, version: int) -> Dict[str, Any]:
    """What `zarr.create_array` is told of an array."""
    attributes = _values(kept.texts, array.dtype)
    # Zeros are said, too: of times zarr-python's own choice is "not a time".
    fill = np.zeros((), array.dtype)[()] if kept.fill is None else kept.fill
    out: Dict[str, Any] = {"dtype": array.dtype, "fill_value": fill, "attributes": attributes}
    if version != 3:
        if kept.dimensions:
            attributes.setdefault("_ARRAY_DIMENSIONS", kept.dimensions)
        return out
    if array.dtype.fields:  # of which version 3 does not say in which byte order they are
        out["dtype"] = array.dtype.newbyteorder("<")
        out["fill_value"] = np.array(fill).astype(out["dtype"])[()]
    _encode_missing(attributes, array.dtype)
    if kept.dimensions:
        out["dimension_names"] = kept.dimensions
    return out


def _write(array: Array, part: Box, z: Any, progress: Optional[Progress]) -> None:
    zarr = _zarr()
    with zarr.config.set({"array.write_empty_chunks": True}):
        whole = zarr.open_array(z.store_path, mode="r+")  # as it will be read

    def write(box: Box, values: np.ndarray) -> None:
        (whole if _is_taken_for(whole.fill_value, values) else z)[box] = values

    copy_out(array, part, getattr(z, "shards", None) or z.chunks, write, progress)


def _is_taken_for(fill: Any, values: np.ndarray) -> bool:
    """Whether some compare equal to the fill value and are not: zarr-python writes no chunk of such (-0.0, another NaN)."""
    if fill is None or not (values.dtype.kind in "fc" or values.dtype.fields):
        return False
    one, raw = np.array(fill, values.dtype), f"V{values.itemsize}"
    equal = (values == one) | ((values != values) & (one != one))
    return bool(np.any(equal & (values.view(raw) != one.view(raw))))


# --- where it is made: there when the block ends, and not where that raises


def _is_zip(path: str) -> bool:
    return path.endswith(".zip")


@contextlib.contextmanager
def _new_on_disk(path: str, overwrite: bool, make: Dict[str, Any]) -> Iterator[Any]:
    there = os.path.lexists(path)
    if there and not overwrite:
        raise FileExistsError(f"{path} exists already: take another name, or give overwrite=True")
    folder, slash, last = path.rstrip("/").rpartition("/")
    passing = f"{folder}{slash}{passing_name(last)}"
    try:
        with _zip_file(passing, "w") if _is_zip(path) else contextlib.nullcontext(passing) as store:
            yield _zarr().create_array(store, **make)
        take_name(passing, path)
    except BaseException:
        remove(passing)
        raise


@contextlib.contextmanager
def _new_in_group(group: Any, name: str, overwrite: bool, make: Dict[str, Any]) -> Iterator[Any]:
    if name in group and not overwrite:
        raise FileExistsError(f"{name!r} exists already: take another name, or give overwrite=True")
    z = group.create_array(name, overwrite=overwrite, **make)
    with _removed_unless_complete(z):
        yield z


@contextlib.contextmanager
def _new_elsewhere(target: Any, overwrite: bool, make: Dict[str, Any]) -> Iterator[Any]:
    z = _zarr().create_array(target, overwrite=overwrite, **make)
    with _removed_unless_complete(z):
        yield z


@contextlib.contextmanager
def _removed_unless_complete(z: Any) -> Iterator[None]:
    from zarr.core.sync import sync

    try:
        yield
    except BaseException:
        if z.store_path.store.supports_deletes:
            sync(z.store_path.delete_dir())
        else:
            warnings.warn(f"{z.store_path} is incomplete, and stays, as nothing can be removed there: throw the file away")
        raise
