"""
What changed, and when
======================

Embeddings that change over time: two products swap roles during a year.
"""

# %%
# Simulated trips of 12 months. Six recipes each have two partners; from July on, the partners of
# two recipes are swapped. A product with a constant role serves as a comparison.
import numpy as np

import efemb
from efemb.plots import answer, change_points, trajectory

rng = np.random.default_rng(0)
month = rng.integers(1, 13, 6000)
recipes = ["pasta", "salad", "curry", "tacos", "soup", "toast"]
partners = ["basil", "olives", "coconut", "salsa", "cream", "jam"]
cooked = rng.random((6000, 6)) < 0.25
served = cooked.copy()
late = month >= 7
served[late, 0], served[late, 1] = cooked[late, 1], cooked[late, 0]
served ^= rng.random((6000, 6)) < 0.03
trips = efemb.Dataset(
    np.hstack([cooked, served]).astype(float), entities=recipes + partners, rows={"month": month}
)

# %%
# All months share their context vectors, which aligns them.
structure = efemb.Dynamic("month", precision=10)
model = efemb.PoissonEmbedding(12, structure=structure, random_state=0).fit(trips)
for at in (1, 12):
    print(at, model.complements("basil", n=1, at=at)["label"][0])

# %%
# Distance of embeddings from January. Slices without an item would have hollow markers.
path = model.trajectory(["basil", "olives", "salsa"], data=trips)
ax = trajectory(path)

# %%
# When? The rows before and after each month, compared with months shuffled among the rows.

# sphinx_gallery_thumbnail_number = 2
when = model.change_points("basil", trips, n=11, n_permutations=99)
print(when[:3])
ax = change_points(when)

# %%
# What? All products by the difference between the two halves of the year, in standard errors. With
# fewer components than products an embedding is a compromise, so products with a constant role may
# move a little, too.
what = model.drift(trips, n=12)
print(what)
ax = answer(what, value="ratio")
