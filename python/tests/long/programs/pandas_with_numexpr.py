"""A table of two columns in pandas, which computes with numexpr's threads above a million rows."""

import numexpr
import numpy as np
import pandas as pd

import oocarray as ooc

store = ooc.open_store("local:store")
with store.create("table", (2_000_000, 2), "f8") as a:
    a[:, 0] = np.arange(len(a))
    a[:, 1] = 1

numexpr.set_num_threads(2)
a = store.open("table", "r")
df = pd.DataFrame(a[...], columns=["u", "v"], copy=False)
assert np.shares_memory(df.to_numpy(), a)
assert (df.u + df.v).sum() == sum(range(2_000_000)) + 2_000_000
assert df[df.u * 2 > df.v + 10].shape[0] == 2_000_000 - 6
assert df.groupby(df.u % 3).v.sum().tolist() == [666_667, 666_667, 666_666]
