"""
Shards and a cluster on one machine
===================================

Transactions that do not fit into memory are read once into a store of shards on disk. One machine
fits a model from it with the memory of a single shard; the workers of a Dask cluster fit the same
store together. Here the "cluster" is one process.
"""

# %%
# Lines of simulated shopping trips, in three files. The lines of a trip may be in any of them.
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import efemb
from efemb.plots import history

folder = Path(tempfile.mkdtemp())
trips = efemb.datasets.fetch_sample_trips()
row, item = trips.values.nonzero()
lines = pd.DataFrame(
    {
        "trip": row,
        "product": trips.entities.labels[item],
        "quantity": np.asarray(trips.values[row, item]).ravel(),
    }
).sample(frac=1, random_state=0)
for number in range(3):
    lines.iloc[number::3].to_parquet(folder / f"lines-{number}.parquet")

# %%
# A store: every line is accounted for.
store = efemb.shards.prepare(
    f"{folder}/lines-*.parquet",
    folder / "store",
    basket="trip",
    item="product",
    count="quantity",
    min_items_per_basket=2,
    held_out=0.1,
    n_shards=8,
)
print(store)
print({name: store.report[name] for name in ("lines", "lines_stored", "lines_dropped")})

# %%
# One machine, one shard at a time. The result is an ordinary estimator; the plot shows its fit.
model = efemb.shards.fit(efemb.PoissonEmbedding(10, random_state=0), store)
print(efemb.shards.score(model, store.test))
print(model.similar("yogurt", n=4))
ax = history(model)

# %%
# Two workers: four replicas of the model train separately and are averaged in every pass. Threads
# replace processes here (``processes=False``); any number of machines would give the same bits.
from dask.distributed import Client, LocalCluster  # noqa: E402

options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
with LocalCluster(**options) as local, Client(local) as client:
    shared = efemb.dask.fit(
        efemb.PoissonEmbedding(10, random_state=0), store, client=client, n_replicas=4
    )
    print(efemb.dask.score(shared, store.test, client=client))
print({name: shared.report_[name] for name in ("shards", "n_replicas", "rounds", "deaths")})
