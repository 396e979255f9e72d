"""Types of packages beside NumPy."""

import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")

import numpy as np


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_types_of_ml_dtypes_are_refused_as_such(store, budget, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    with pytest.raises(TypeError, match=f"{name} are none of NumPy's.*ml_dtypes.*view\\('u{dtype.itemsize}'\\)"):
        store.create("a", 10, dtype)
    with store.create("a", 10, f"u{dtype.itemsize}") as a:
        a[...].view(dtype)[3] = 2
        assert a[3:4].view(dtype)[0] == 2
