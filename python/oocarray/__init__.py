"""Arrays larger than memory, as NumPy arrays.

::

    import numpy as np, oocarray as ooc

    store = ooc.open_store("local:/var/tmp/plate")
    a = store.create_or_open("a", (16384, 16384), fill=1.0)
    a[0] = 100.0
    print(np.sum(a))
    a.close()

See `Runtime` for the memory budget, and `Array` for what may be done with an array.  `sort`, `transpose`, `sweep` and
others go over arrays in few passes: see ``oocarray._algorithms``.
"""

from . import _core, _faults
from ._array import Array
from ._commit import Commit, commit, transaction
from ._dask import store, to_dask
from ._errors import (
    BudgetTooSmall,
    Busy,
    Closed,
    Conflict,
    Dirty,
    Error,
    IntegrityError,
    InvalidRequest,
    NotAStore,
    TypeMismatch,
    make as _make_error,
)
from ._groups import group_by
from ._hdf5_copy import from_hdf5, to_hdf5
from ._in_place.zarr_creation import create_zarr
from ._look import SliceViewer, view
from ._movement import copy, transpose
from ._open_file import open_file
from ._order import is_sorted, searchsorted, sort
from ._passes import count_nonzero, cumsum, for_each, histogram, max, min, reduce, sum, transform, vdot
from ._product import csr_matmul, matmul
from ._runtime import Runtime, reclaim_faults, runtime
from ._store import Attributes, Entry, Store, create, create_or_open, open, open_store
from ._sweep import map_overlap, sweep
from ._view import View
from ._zarr import as_zarr, from_zarr, to_zarr

_core.set_error_maker(_make_error)
_faults.install()

__version__ = "0.2.0"

__all__ = [
    "Array",
    "Attributes",
    "BudgetTooSmall",
    "Busy",
    "Closed",
    "Commit",
    "Conflict",
    "Dirty",
    "Entry",
    "Error",
    "IntegrityError",
    "InvalidRequest",
    "NotAStore",
    "Runtime",
    "SliceViewer",
    "Store",
    "TypeMismatch",
    "View",
    "as_zarr",
    "commit",
    "copy",
    "count_nonzero",
    "create",
    "create_or_open",
    "create_zarr",
    "cumsum",
    "for_each",
    "from_hdf5",
    "from_zarr",
    "group_by",
    "histogram",
    "is_sorted",
    "map_overlap",
    "csr_matmul",
    "matmul",
    "max",
    "min",
    "open",
    "open_file",
    "open_store",
    "reclaim_faults",
    "reduce",
    "runtime",
    "searchsorted",
    "sort",
    "store",
    "sum",
    "sweep",
    "to_dask",
    "to_hdf5",
    "to_zarr",
    "transaction",
    "transform",
    "transpose",
    "vdot",
    "view",
]
