"""
Your own family
===============

A family is its statistic, log-normaliser and mean; the gradient is written once for all of them.
"""

# %%
# Durations are exponentially distributed: density r exp(-r x) with natural parameter -r. The
# inner product may be any number v, so that eta = -exp(-v) keeps it negative, and the mean is
# exp(v).
import numpy as np

import efemb
from efemb.plots import history


class Exponential(efemb.model.families.Family):
    """x | eta ~ Exponential with rate -eta, eta < 0: t(x) = x, a = -log(-eta)."""

    support = efemb.model.families.Interval(low=0)

    def statistic(self, x):
        return x

    def log_normalizer(self, eta):
        return -np.log(-eta)

    def mean(self, eta):
        return -1.0 / eta

    def natural(self, v):
        return -np.exp(-v)

    def natural_derivative(self, v):
        return np.exp(-v)


# %%
# Waiting times at twelve places along a line: where one waits long, one waits long nearby.
rng = np.random.default_rng(0)
busy = np.exp(0.4 * np.cumsum(rng.normal(size=(600, 12)), axis=1))
waits = rng.exponential(busy)
places = np.arange(12.0)[:, None]

# %%
# It works in every estimator, with every context and prior; nothing else is to be written. Only
# files must be told of it: `efemb.storage.register(Exponential)` before `save` and before `load`.
context = efemb.Neighbors(4, scale="items")
model = efemb.Embedding(2, family=Exponential(), context=context, random_state=0)
model.fit(waits[:500], positions=places)
print(model.solver_, model.n_iter_)

# %%
# Log-density of new rows given their neighbours, and of a model without any.
alone = -np.log(waits[:500].mean(axis=0)) - waits[500:] / waits[:500].mean(axis=0)
print(f"with neighbours {model.score(waits[500:]):.3f}, without {alone.mean():.3f}")

# %%
# The fit, pass by pass.
ax = history(model)
