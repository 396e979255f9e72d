"""Arrays from and to Zarr (versions 3 and 2 of the format), through zarr-python.

zarr-python 3 is imported when one of these functions is called: ``pip install zarr``.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from ._array import Array
from ._attributes import DTYPE, NOT_TEXTS, dimensions_of, values_of, with_dimensions
from ._copying import Progress, copy_in, copy_out, free_in, make_filled, passing_name
from ._dtype import is_named
from ._index import Box, part_of
from ._store import Store

_missing = "_FillValue"


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as why:
        raise ImportError(f"from_zarr and to_zarr need zarr-python ({why}): pip install 'zarr>=3'") from why
    if int(zarr.__version__.split(".")[0]) < 3:
        raise ImportError(f"from_zarr and to_zarr need zarr-python 3, and this is {zarr.__version__}: pip install 'zarr>=3'")
    return zarr


def _opened(source: Any, name: Optional[str]) -> Tuple[Any, str]:
    """A zarr.Array, and what it is called in messages."""
    zarr = _zarr()
    where = repr(source) if isinstance(source, (str, os.PathLike)) else f"{source.store_path}"
    try:
        found = zarr.open(source, mode="r") if isinstance(source, (str, os.PathLike)) else source
    except Exception as why:  # whatever zarr-python and its stores throw, from FileNotFoundError to KeyError
        raise ValueError(
            f"{where} cannot be opened as Zarr ({type(why).__name__}: {why}): give the folder with zarr.json (or "
            ".zarray), and install what its codecs need"
        ) from why
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
    store: Union[Store, str],
    path: str,
    *,
    name: Optional[str] = None,
    box: Optional[Any] = None,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Array:
    """Copies a Zarr array into a store, chunk by chunk, and returns it open.

    Parameters
    ----------
    source : str, path, zarr.Array or zarr.Group
        The folder or URL of an array or a group, or one that is open.
    store : Store or str
        Where the array is made, or its URL.
    path : str
        Its path there.
    name : str
        Of the array in a group; not needed where there is only one.
    box : tuple of slice
        The part that is copied, as ``np.s_[0:10, :]``; all of it without one.
    progress : callable
        Is given the bytes that have been copied, and those that there are.
    options
        As for `oocarray.create`; the fill value is that of the Zarr array.

    The names of the dimensions become the attribute ``dimensions``, as in `oocarray.xarray`.  Attributes that are no
    texts are kept in JSON, and `to_zarr` writes them as what they were.  The array has its name when it is complete.

    Raises
    ------
    ImportError
        Without zarr-python 3.
    ValueError, KeyError, TypeError
        For what is no Zarr array, for a name that is not there, and for elements of no fixed size.
    OSError
        For a chunk that cannot be read.
    FileExistsError
        If there is something at the path, unless ``replace=True``.
    """
    z, where = _opened(source, name)
    store = free_in(store, path, options)
    dtype = np.dtype(z.dtype)
    if dtype.hasobject or dtype.kind == "T":
        raise TypeError(f"{where} has elements of type {dtype}, of no fixed size: an array has none such; convert it first")
    if dtype.fields is None and dtype.kind in "biufc":
        dtype = dtype.newbyteorder("=")
    if 0 in z.shape[1:]:
        raise ValueError(f"{where} has the shape {z.shape}, and of an array only the first extent may be 0")
    part = part_of(box, z.shape, where)
    shape = tuple(b.stop - b.start for b in part) or (1,)
    if z.fill_value is not None and "fill" not in options and np.array(z.fill_value, dtype).tobytes().strip(b"\0"):
        options["fill"] = z.fill_value
    attributes = dict(z.attrs)
    _decode_missing(attributes, dtype)
    dimensions = _named_dimensions(z, attributes)

    def read(piece: Box) -> Any:
        try:
            return z[piece]
        except Exception as why:  # codecs throw what they like
            raise OSError(f"{where}: the elements at {piece} cannot be read ({type(why).__name__}: {why}); take the "
                          "data from their source again") from why

    def fill(a: Array) -> Dict[str, str]:
        copy_in(a, part, getattr(z, "shards", None) or z.chunks, read, progress)
        texts = _texts(attributes)
        if not is_named(dtype):
            texts.pop(DTYPE, None)  # it is ours
        return with_dimensions(texts, dimensions if z.shape else [])

    return make_filled(store, path, shape, dtype, options, fill)


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
    target : str, path or zarr.Group
        The folder or URL of the new array, or the group that it is made in.
    name : str
        In the group; without it, the last part of the array's path.
    box : tuple of slice
        The part that is copied; all of it without one.
    chunks
        The shape of a chunk; zarr-python chooses one without it.
    overwrite : bool
        Whether to replace what is there: when the copy is complete, where it is a folder of this machine.
    progress : callable
        Is given the bytes that have been copied, and those that there are.
    options
        For `zarr.create_array`, as ``compressors=`` or ``shards=``.

    What is not complete when an error is raised is removed.
    """
    zarr = _zarr()
    where = array.current_path
    fill, texts = None, {}
    if array.store is not None:  # a file in place has neither
        fill, texts = array.store._core.entry(where)["fill"], array.attributes.texts()
    attributes = _values(texts, array.dtype)
    part = part_of(box, array.shape, f"array '{array.path}'")
    shape = tuple(b.stop - b.start for b in part)
    make: Dict[str, Any] = {"shape": shape, "dtype": array.dtype, "chunks": chunks, "attributes": attributes, **options}
    # Zeros are said, too: of times zarr-python's own choice is "not a time".
    make.setdefault("fill_value", np.frombuffer(fill or bytes(array.itemsize), array.dtype)[0])
    group = target if isinstance(target, zarr.Group) else None
    version_3 = (options.get("zarr_format", 3) if group is None else group.metadata.zarr_format) == 3
    if version_3:
        _encode_missing(attributes, array.dtype)
    names = dimensions_of(where, array.shape, texts)
    if names:
        if version_3:
            make.setdefault("dimension_names", names)
        else:
            attributes.setdefault("_ARRAY_DIMENSIONS", names)
    path = "" if group is not None else os.fspath(target)
    local = group is None and "://" not in path
    name = where.rpartition("/")[2] if name is None else name
    there = name in group if group is not None else local and os.path.lexists(path)
    if there and not overwrite:
        raise FileExistsError(f"{path if group is None else name!r} exists already: take another name, or give overwrite=True")
    folder, slash, last = path.rstrip("/").rpartition("/")
    passing = f"{folder}{slash}{passing_name(last)}" if local else path
    begun = False
    try:
        if group is not None:
            z = group.create_array(name, overwrite=overwrite, **make)
        else:
            z = zarr.create_array(passing, overwrite=overwrite, **make)
        begun = True
        copy_out(array, part, getattr(z, "shards", None) or z.chunks, z.__setitem__, progress)
        if local:
            if there:
                old = f"{passing}.old"
                os.rename(path, old)
            os.rename(passing, path)
            if there:
                shutil.rmtree(old) if os.path.isdir(old) and not os.path.islink(old) else os.remove(old)
            z = zarr.open_array(path)
    except BaseException:
        if local:
            shutil.rmtree(passing, ignore_errors=True)
        elif begun and group is not None:
            del group[name]
        raise
    return z
