"""
Your own family
===============

A family is defined by its statistic, log-normalizer and mean; the gradient follows from these.
"""

# %%
# Durations often follow an exponential distribution: density r exp(-r x) with natural parameter
# eta = -r < 0. The linked predictor v can be any number, so eta = -exp(-v) keeps eta negative, and
# the mean is exp(v).
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
# Waiting times at twelve places along a line. Nearby places have similar waiting times.
rng = np.random.default_rng(0)
busy = np.exp(0.4 * np.cumsum(rng.normal(size=(600, 12)), axis=1))
waits = rng.exponential(busy)
places = np.arange(12.0)[:, None]

# %%
# The family works in every estimator, with every context and prior. To save models that use it,
# call `efemb.storage.register(Exponential)` before `save` and before `load`.
context = efemb.Neighbors(4, scale="items")
model = efemb.Embedding(2, family=Exponential(), context=context, random_state=0)
model.fit(waits[:500], positions=places)
print(model.solver_, model.n_iter_)

# %%
# Log-density of new rows given their neighbors, compared with a model without context.
alone = -np.log(waits[:500].mean(axis=0)) - waits[500:] / waits[:500].mean(axis=0)
print(f"with neighbors {model.score(waits[500:]):.3f}, without {alone.mean():.3f}")

# %%
# The fit, pass by pass.
ax = history(model)
