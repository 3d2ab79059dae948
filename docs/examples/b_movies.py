"""
Movie ratings
=============

Ratings as counts: x = rating - 2 if positive. MovieLens-100K, as in the paper.
"""

# %%
# The data are downloaded once and cached; the terms of use are shown on download.
import efemb
from efemb.baselines import HPF
from efemb.datasets import fetch_movielens_100k
from efemb.evaluation import compare
from efemb.plots import history

ratings = fetch_movielens_100k()
train, test = ratings.split(test=0.2, seed=0)
print(train)

# %%
# Two embeddings and a rival, hierarchical Poisson factorization.
models = {
    "p-emb": efemb.PoissonEmbedding(20, random_state=0).fit(train),
    "ap-emb": efemb.AdditivePoissonEmbedding(20, random_state=0).fit(train),
    "HPF": HPF(20, random_state=0).fit(train),
}
print(compare(models, test, train=train))

# %%
# The first movies of three dimensions of the context vectors, after a varimax rotation.
print(models["p-emb"].topics(n=4, topic=[0, 1, 2], rotate="varimax"))

# %%
# The fit, pass by pass.
ax = history(models["p-emb"])

# %%
# Two of the models side by side: movies whose neighbors differ are dark.
page = efemb.explore.prepare(
    models["p-emb"], against=models["ap-emb"], data=train, names=["p-emb", "ap-emb"]
)
