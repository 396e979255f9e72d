"""Whether what a dataset of HDF5 takes from other files is there.

libhdf5 gives the fill value for what is not, without a word.  tools/formats/hdf5_sources.cpp does the same for `ooc import`.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any, Iterator, List, Optional, Tuple

from ._in_place.chunks import absolute

_gap = 256  # so many numbers beyond the last source another one is looked for


def check_sources(dataset: Any, where: str) -> None:
    """Raises OSError for a part that lies elsewhere, and is not there or is too small."""
    for source in dataset.virtual_sources() if dataset.is_virtual else ():
        if _is_numbered(source):
            _check_numbered(dataset, source, where)
        else:
            _check(dataset, source, 0, where)
    left = dataset.nbytes if dataset.external else 0
    for name, offset, size in dataset.external or ():
        place = place_of_raw_file(dataset, name)
        missing = offset + min(size, left) - os.path.getsize(place) if os.path.exists(place) else 0
        left -= min(size, left)
        if missing > 0:  # libhdf5 itself refuses where there is none
            raise OSError(f"{where}: the file '{place}' that holds its data is {missing} bytes too short: put it back as it was")


# --- where they are


def _variable(name: str) -> str:
    """As the process was started with it; libhdf5 reads it once, when h5py is imported, and sees no later change."""
    with open("/proc/self/environ", "rb") as variables:
        found = dict(v.partition(b"=")[::2] for v in variables.read().split(b"\0"))
    return os.fsdecode(found.get(name.encode(), b""))


def _folder_of(dataset: Any) -> str:
    return os.path.dirname(absolute(dataset.file.filename))


def _expanded(prefix: str, dataset: Any) -> str:
    own = "${ORIGIN}"
    return _folder_of(dataset) + prefix[len(own) :] if prefix.startswith(own) else prefix


def places_of(dataset: Any, name: str) -> Iterator[str]:
    """As H5F_prefix_open_file() goes through them."""
    if os.path.isabs(name):
        yield name
        name = os.path.basename(name)
    prefixes = _variable("HDF5_VDS_PREFIX")
    for prefix in filter(None, prefixes.split(":")):
        yield os.path.join(prefix, name)
    if prefixes not in ("", "."):
        yield os.path.join(_expanded(prefixes, dataset), name)
    yield os.path.join(_folder_of(dataset), name)
    yield name
    if os.path.islink(dataset.file.filename):
        yield os.path.join(os.path.dirname(os.path.realpath(dataset.file.filename)), name)


def place_of_raw_file(dataset: Any, name: str) -> str:
    prefix = _expanded(_variable("HDF5_EXTFILE_PREFIX"), dataset)
    return name if prefix in ("", ".") else os.path.join(prefix, name)


def _opened(dataset: Any, name: str) -> Any:
    import h5py

    first: Optional[OSError] = None
    for place in places_of(dataset, name):
        try:
            return h5py.File(place, "r", swmr=dataset.file.swmr_mode)
        except FileNotFoundError:
            continue
        except OSError as why:
            first = first or why
    raise first or FileNotFoundError("there is no such file")


# --- what they have


def _numbered(text: str, k: int) -> str:
    return re.sub("%[b%]", lambda mark: str(k) if mark[0] == "%b" else "%", text)


def _names(source: Any, k: int) -> Tuple[str, str]:
    return _numbered(source.file_name, k), _numbered(source.dset_name, k)


def _is_numbered(source: Any) -> bool:
    """Whether each block of the dataset is a source of its own."""
    return _names(source, 0) != _names(source, 1) and _goes_on(source.vspace) and not _goes_on(source.src_space)


def _goes_on(space: Any) -> bool:
    return _unlimited_in(space) != []


def _unlimited_in(space: Any) -> List[int]:
    """The dimensions in which a selection has no end."""
    from h5py import h5s

    if space.get_select_type() != h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return []
    _, _, count, block = space.get_regular_hyperslab()
    return [d for d, sizes in enumerate(zip(count, block)) if h5s.UNLIMITED in sizes]


def _check(dataset: Any, source: Any, k: int, where: str) -> None:
    file, name = _names(source, k)
    part = f"{where}: its source {name!r} in {file!r}"
    try:
        if file == ".":
            _check_extents(source, dataset.file[name], part)
            return
        with _opened(dataset, file) as opened:
            _check_extents(source, opened[name], part)
    except (OSError, KeyError) as why:
        raise OSError(f"{part} cannot be read ({why}): put it back as it was") from why


def _check_extents(source: Any, there: Any, part: str) -> None:
    from h5py import h5s

    check_sources(there, part)
    if source.src_space.get_select_type() == h5s.SEL_ALL:
        used: Any = _elements_of_a_block(source.vspace)
        short = there.size < used
    elif _goes_on(source.src_space):  # whatever there is
        return
    else:
        used = tuple(u + 1 for u in source.src_space.get_select_bounds()[1])
        short = any(u > n for u, n in zip(used, there.shape))
    if short:
        raise OSError(f"it has the shape {there.shape}, and {used} elements are used")


def _elements_of_a_block(space: Any) -> int:
    endless = _unlimited_in(space)
    if not endless:
        return space.get_select_npoints()
    _, _, count, block = space.get_regular_hyperslab()
    return math.prod(b * (1 if d in endless else n) for d, (n, b) in enumerate(zip(count, block)))


def _check_numbered(dataset: Any, source: Any, where: str) -> None:
    """All up to the last; libhdf5 takes the first that is missing for the end."""

    def is_there(k: int) -> bool:
        file, name = _names(source, k)
        if file == ".":
            return name in dataset.file
        if not any(map(os.path.exists, places_of(dataset, file))):
            return False
        try:
            with _opened(dataset, file) as opened:
                return name in opened
        except OSError:  # which _check() explains
            return True

    n = 0
    while is_there(n) or n == 0:  # the first is read, or named
        _check(dataset, source, n, where)
        n += 1
    for k in range(n + 1, n + 1 + _gap):
        if is_there(k):
            missing, later = (f"{name!r} in {file!r}" for file, name in (_names(source, n), _names(source, k)))
            raise OSError(f"{where}: its source {missing} is not there, though {later} is there: put it back as it was")
