"""
Movie ratings
=============

Ratings are counts as well: x = rating - 2 for what was liked. MovieLens-100K, as in the paper.
"""

# %%
# The data are fetched once and kept; the terms of use are shown when they are.
import efemb
from efemb.baselines import HPF
from efemb.datasets import fetch_movielens_100k
from efemb.evaluation import compare
from efemb.plots import history

ratings = fetch_movielens_100k()
train, test = ratings.split(test=0.2, seed=0)
print(train)

# %%
# Three models, among them a rival: hierarchical Poisson factorisation.
models = {
    "p-emb": efemb.PoissonEmbedding(20, random_state=0).fit(train),
    "ap-emb": efemb.AdditivePoissonEmbedding(20, random_state=0).fit(train),
    "HPF": HPF(20, random_state=0).fit(train),
}
print(compare(models, test, train=train))

# %%
# What the dimensions of the context vectors stand for, after a varimax rotation.
print(models["p-emb"].topics(n=4, topic=[0, 1, 2], rotate="varimax"))

# %%
# Training, pass by pass.
ax = history(models["p-emb"])
