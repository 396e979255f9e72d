"""Attributes as values: numbers, lists of them and of texts.

A store keeps texts.  What was no text is a text there, too, and attributes of our own say what it was:

- ``hdf5.types``, an object in JSON: the type by the name of the attribute, "f8", "i4[2,3]" or "str[2]".  Numbers have
  commas between, and brackets around where there is a shape ("0.01", "[1,2]"); texts are a list in JSON.  `ooc import`
  and `ooc export` write and read the same (tools/formats/hdf5_file.hpp).
- ``zarr.json``, a list in JSON: the names of the attributes that are in JSON, as `from_zarr` makes them.

An attribute that has been set to a text that no longer fits its type is that text.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, MutableMapping, Optional, Sequence, Tuple

import numpy as np

from ._dtype import ATTRIBUTE as DTYPE, is_named

DIMENSIONS = "dimensions"
TYPES = "hdf5.types"
NOT_TEXTS = "zarr.json"

_type = re.compile(r"(str|b1|[iu][1248]|f[48])(?:\[([0-9]+(?:,[0-9]+)*)\])?")


def dimensions_of(path: str, shape: Tuple[int, ...], texts: Mapping[str, str]) -> Optional[List[str]]:
    """The names of the dimensions of an array; None: they have none; []: its one element was a scalar."""
    text = texts.get(DIMENSIONS)
    if text is None:
        return None
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if names == [] and shape == (1,):
        return []
    if not isinstance(names, list) or len(names) != len(shape) or not all(isinstance(n, str) for n in names):
        raise ValueError(
            f"array '{path}': its attribute '{DIMENSIONS}' is {text!r}, which is no list of {len(shape)} names in "
            "JSON: set it with oocarray.xarray.set_dimensions()"
        )
    return names


def values_of(texts: Mapping[str, str], dtype: Optional[np.dtype] = None) -> Dict[str, Any]:
    """The attributes without those that are ours; `dtype`: of the array that they belong to."""
    ours = {DIMENSIONS, TYPES, NOT_TEXTS} if dtype is None or is_named(dtype) else {DIMENSIONS, TYPES, NOT_TEXTS, DTYPE}
    values = {k: v for k, v in typed(texts).items() if k not in ours}
    for key in _json(texts, NOT_TEXTS, list):
        if isinstance(key, str) and isinstance(values.get(key), str):
            try:
                values[key] = json.loads(values[key])
            except ValueError:
                pass  # it has been set to another text
    return values


def typed(texts: Mapping[str, str]) -> Dict[str, Any]:
    """The attributes with the types of HDF5."""
    types = _json(texts, TYPES, dict)
    return {k: _value(v, types[k]) if k in types else v for k, v in texts.items() if k != TYPES}


def with_type(texts: Mapping[str, str], key: str, kind: str) -> Optional[str]:
    """The attribute `TYPES` that says this of one attribute; None: it says nothing any more."""
    types = {**_json(texts, TYPES, dict), key: kind}
    if not kind:
        del types[key]
    return json.dumps(types) if types else None


def texts_of(values: Mapping[str, Any], left_out: List[str]) -> Dict[str, str]:
    """Texts for a store, with their types; `left_out` gets a line for each value that has none."""
    texts, types = {}, {}
    for key, value in values.items():
        try:
            texts[key], kind = text_of(value)
        except (TypeError, ValueError) as why:
            left_out.append(f"attribute '{key}': {why}")
            continue
        if kind:
            types[key] = kind
    if types:
        texts[TYPES] = json.dumps(types)
    return texts


def _json(texts: Mapping[str, str], key: str, kind: type) -> Any:
    try:
        found = json.loads(texts.get(key, "null"))
    except ValueError:
        found = None
    return found if isinstance(found, kind) else kind()


def _value(text: str, kind: Any) -> Any:
    match = _type.fullmatch(kind) if isinstance(kind, str) else None
    if match is None:
        return text
    element, extents = match.groups()
    shape = tuple(int(n) for n in extents.split(",")) if extents is not None else ()
    try:
        if element == "str":
            return _strings(json.loads(text), shape)
        parts = text[1:-1].split(",") if shape else [text]
        number: Any = float if element[0] == "f" else int
        all_ = np.array([number(p) for p in parts], np.dtype(element)).reshape(shape)
    except (ValueError, OverflowError):
        return text
    return all_ if shape else all_[()]


def _strings(found: Any, shape: Tuple[int, ...]) -> Any:
    if not isinstance(found, list) or not all(isinstance(s, str) for s in found):
        raise ValueError("no list of texts")
    return found if len(shape) == 1 and len(found) == shape[0] else np.array(found, object).reshape(shape)


def text_of(value: Any) -> Tuple[str, str]:
    """The text, and its type; "" for a text."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        return str(value), ""
    numbers = np.asarray(value)
    shape = f"[{','.join(map(str, numbers.shape))}]" if numbers.shape else ""
    if numbers.dtype.kind in "OSU":
        all_ = [s.decode() if isinstance(s, bytes) else s for s in numbers.ravel().tolist()]
        if not all(isinstance(s, str) for s in all_):
            raise TypeError(f"{value!r} is neither a text nor a number, nor a list of such")
        return json.dumps(all_), f"str{shape or '[1]'}"
    kind = f"{numbers.dtype.kind}{numbers.dtype.itemsize}"
    if _type.fullmatch(kind) is None:
        raise TypeError(f"it has elements of the type {numbers.dtype}, which no attribute of an array can have")
    if numbers.size == 0:
        raise ValueError("it is empty")
    plain = numbers.astype(np.int8) if kind == "b1" else numbers
    text = ",".join(str(n) for n in plain.ravel())
    return (f"[{text}]" if shape else text), kind + shape


def with_dimensions(texts: Dict[str, str], names: Optional[Sequence[str]]) -> Dict[str, str]:
    return texts if names is None else {**texts, DIMENSIONS: json.dumps(list(names))}


class Attributes(MutableMapping):
    """The attributes of a file, a folder or the root of a store, by name, as a `dict` that is kept there.

    A value is a text, a number, an array of numbers, or a list of texts.  The store keeps texts, and in the attribute
    ``hdf5.types``, which is not shown, what others were.  Who sets values that are no texts must be alone in doing so.
    """

    def __init__(self, core: Any, path: str) -> None:
        self._core = core  #: of a store
        self._path = path

    @property
    def without_name(self) -> bool:
        """Whether they are those of a result, which no store has under a name."""
        return isinstance(self._core, InMemory)

    def texts(self) -> Dict[str, str]:
        """What the store keeps."""
        return self._core.attributes(self._path)

    def __getitem__(self, key: str) -> Any:
        return typed(self.texts())[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"attributes are named by texts, not {type(key).__name__}")
        try:
            text, kind = text_of(value)
        except (TypeError, ValueError) as why:
            raise TypeError(f"attribute '{key}': {why}; convert it, as with json.dumps()") from None
        self._core.set_attribute(self._path, key, text)
        self._note(key, kind)

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._core.remove_attribute(self._path, key)
        self._note(key, "")

    def _note(self, key: str, kind: str) -> None:
        """The type of a value; "" for a text."""
        texts = self.texts()
        noted = with_type(texts, key, kind)
        if noted is None:
            if TYPES in texts:
                self._core.remove_attribute(self._path, TYPES)
        elif noted != texts.get(TYPES):
            self._core.set_attribute(self._path, TYPES, noted)

    def __iter__(self) -> Iterator[str]:
        return iter(typed(self.texts()))

    def __len__(self) -> int:
        return len(typed(self.texts()))

    def __repr__(self) -> str:
        return f"Attributes({typed(self.texts())!r})"


class InMemory:
    """The attributes of an array without a name, as those of a path of a store."""

    def __init__(self) -> None:
        self._texts: Dict[str, str] = {}

    def attributes(self, path: str) -> Dict[str, str]:
        return dict(self._texts)

    def set_attribute(self, path: str, key: str, value: str) -> None:
        self._texts[key] = value

    def remove_attribute(self, path: str, key: str) -> None:
        self._texts.pop(key, None)


class OfArray:
    """The attributes of an open array, wherever it has been renamed to, as those of a path of a store."""

    def __init__(self, core: Any) -> None:
        self._array = core

    def attributes(self, path: str) -> Dict[str, str]:
        return self._array.attributes()

    def set_attribute(self, path: str, key: str, value: str) -> None:
        self._array.set_attribute(key, value)

    def remove_attribute(self, path: str, key: str) -> None:
        self._array.remove_attribute(key)
