"""
Words
=====

A Bernoulli embedding of a small corpus: news of the Australian Broadcasting Corporation.
"""

# %%
# ``efemb.read_text`` reads your own: one document a line.
import efemb
from efemb.datasets import fetch_lee
from efemb.evaluation import held_out_words
from efemb.plots import embedding_map

news = fetch_lee()
train, test = news.split(test=0.1, seed=0)
print(train)

# %%
# A small corpus bears short vectors: longer ones learn it by heart, and held-out words tell.
models = {
    k: efemb.BernoulliTextEmbedding(k, max_iter=3, random_state=0).fit(train) for k in (10, 50)
}
for k, fitted in models.items():
    print(k, held_out_words(fitted, test))

# %%
# Words that come in the same company.
model = models[10]
print(model.similar("police", n=5))

# %%
# What is missing here?
print(model.predict(list(train.document(0)[:4]), n=5))

# %%
# Those in similar company are near one another. Long words say more than frequent ones.
words = model.fitted().entities
often = (-words.counts).argsort()
long = [words.labels[i] for i in often if len(words.labels[i]) > 5]
ax = embedding_map(model, method="tsne", labels=long[:60])
