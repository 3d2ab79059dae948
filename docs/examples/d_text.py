"""
Words
=====

A Bernoulli embedding of a small corpus: news from the Australian Broadcasting Corporation.
"""

# %%
# ``efemb.read_text`` reads your own text, one document per line.
import efemb
from efemb.datasets import fetch_lee
from efemb.evaluation import held_out_words
from efemb.plots import embedding_map

news = fetch_lee()
train, test = news.split(test=0.1, seed=0)
print(train)

# %%
# Small corpora overfit with long vectors. Held-out words reveal it.
models = {
    k: efemb.BernoulliTextEmbedding(k, max_iter=3, random_state=0).fit(train) for k in (10, 50)
}
for k, fitted in models.items():
    print(k, held_out_words(fitted, test))

# %%
# Words that occur in the same contexts.
model = models[10]
print(model.similar("police", n=5))

# %%
# Which word fits between these four?
print(model.predict(list(train.document(0)[:4]), n=5))

# %%
# A map of the words. The labels are frequent words of at least six letters.
words = model.fitted().entities
often = (-words.counts).argsort()
long = [words.labels[i] for i in often if len(words.labels[i]) > 5]
ax = embedding_map(model, method="tsne", labels=long[:60])

# %%
# The words as a page: similar words, analogies, and which word fits a gap.
page = efemb.explore.prepare(model, names="News")
