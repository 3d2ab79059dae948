"""
Your own combination of embedding and context
=============================================

How an embedding and its context combine into the natural parameter is a modeling choice. The
paper focuses on their inner product. A combination of your own needs its value and derivative.
"""

# %%
# Users respond to the same context in different ways. Each user u has a vector theta_u that
# multiplies the context, u = sum over k of rho_nk s_k (1 + theta_uk) + gamma_n . theta_u. The
# vectors of users are a term: its columns are beside those of the embedding and of the context.
import numpy as np

import efemb
from efemb.model.combine import Combine
from efemb.plots import history


class UserTimesContext(Combine):
    """u = sum_k rho_k s_k (1 + theta_k) + gamma . theta, with RowVectors of length K."""

    def value(self, target, context):
        (rho, gamma), (s, theta) = np.hsplit(target, 2), np.hsplit(context, 2)
        return (rho * s * (1 + theta) + gamma * theta).sum(axis=1)

    def pull_back(self, target, context, slope):
        (rho, gamma), (s, theta) = np.hsplit(target, 2), np.hsplit(context, 2)
        d_target = np.hstack([s * (1 + theta), theta])
        d_context = np.hstack([rho * (1 + theta), rho * s + gamma])
        return slope[:, None] * d_target, slope[:, None] * d_context


efemb.checks.check_combine(UserTimesContext(), n_components=4)

# %%
# Every signal follows the mean of the two before it, but half of the users invert it.
rng = np.random.default_rng(0)
users = rng.integers(0, 20, 900)
sign = np.where(users < 10, 1.0, -1.0)
signals = rng.normal(size=(900, 6))
for n in range(2, 6):
    signals[:, n] = 0.9 * sign * signals[:, n - 2 : n].mean(axis=1) + 0.5 * signals[:, n]
data = efemb.Dataset(signals, rows={"user": users})
train, test = data.split(test=0.3, seed=0)

# %%
# Added to u, a vector of the user cannot change what the context means; multiplied, it can.
options = {
    "family": efemb.Gaussian("learned"),
    "context": efemb.Graph(np.tri(6, k=-1)),
    "terms": [efemb.RowVectors("user", 2)],
    "random_state": 0,
}
for combine in ("linear", UserTimesContext()):
    model = efemb.Embedding(2, combine=combine, **options).fit(train)
    print(f"{combine!s:20} {model.solver_}: {model.score(test):.3f} nats per number")

# %%
# The fit of the second model, pass by pass.
ax = history(model)
