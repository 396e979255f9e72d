"""Principal components of a table larger than the budget, by scikit-learn, batch by batch."""

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

import oocarray as ooc

rng = np.random.default_rng(3)
axes = np.linalg.qr(rng.standard_normal((20, 20)))[0][:2]
with ooc.create("local:store", "x", (400_000, 20), "f8") as x:
    for rows in range(0, len(x), 50_000):
        scores = rng.normal(0, [9, 4], (50_000, 2))
        x[rows : rows + 50_000] = scores @ axes + 0.1 * rng.standard_normal((50_000, 20))

x = ooc.open("local:store", "x", "r")
pca = IncrementalPCA(n_components=2)
for rows in range(0, len(x), 20_000):
    pca.partial_fit(x[rows : rows + 20_000])
assert np.allclose(np.abs(np.sum(pca.components_ * axes, axis=1)), 1, atol=1e-3)

again = IncrementalPCA(n_components=2, batch_size=50_000).fit(np.asarray(x))
assert np.allclose(again.explained_variance_, [81, 16], rtol=0.02)
sample = PCA(n_components=2).fit(x[:20_000])
assert np.allclose(pca.explained_variance_, sample.explained_variance_, rtol=0.05)
