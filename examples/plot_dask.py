"""
Training points on a cluster, with Dask
=======================================

A class score is a sum over training rows, so the rows may be in several places. Each place adds up
its own rows, and the sums are added in the end. Nothing else travels.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from coxfield import LGCPClassifier
from coxfield.dask import DaskLGCPClassifier
from coxfield.datasets import make_circles

# %%
# Rings of three classes, in four chunks. Chunks of a Dask array may be parts of files, or live on
# the workers of a cluster. Here they are in memory, and threads of this process do the work. With
# ``distributed.Client("tcp://...")`` the same lines run on a cluster.
X, y = make_circles(3, random_state=0)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
rows = -(-len(y) // 4)
clf = DaskLGCPClassifier(random_state=0).fit(da.from_array(X, chunks=(rows, 2)), da.from_array(y, chunks=rows))
print(f"{clf.X_fit_.numblocks[0]} shards with the covariance {clf.kernel_}")

# %%
# Predictions are lazy: the next line plans them, and ``compute`` does the work.
reach = 1.1 * np.abs(X).max()
across = np.linspace(-reach, reach, 150)
places = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
probabilities = clf.predict_proba(da.from_array(places, chunks=(5000, 2)))
print(probabilities)

# %%
# The picture: which class is most probable where, and the shard of each training row.
found = probabilities.compute()
figure, ax = plt.subplots(figsize=(6.2, 5), layout="constrained")
ax.contourf(across, across, found.argmax(axis=1).reshape(150, 150), levels=[-0.5, 0.5, 1.5, 2.5], alpha=0.35)
points = ax.scatter(*X.T, c=np.arange(len(y)) // rows, s=12, cmap="viridis")
figure.colorbar(points, label="shard", ticks=range(4))
ax.set_aspect("equal")

# %%
# On one machine the result is the same, up to the last step of the search for the covariance.
alone = LGCPClassifier(random_state=0).fit(X, y)
print(f"largest difference below 1e-6: {np.abs(found - alone.predict_proba(places)).max() < 1e-6}")
plt.show()
