"""Small fits that reach every kernel and every preset: their bits must not change unnoticed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

import efemb
from estimators.samples import baskets, neurons

Array = Any
K = 37  # several SIMD vectors and a remainder
TEXT = [[f"w{i}" for i in np.random.default_rng(d).zipf(1.6, 60) % 40] for d in range(12)]
COUNTS = baskets(150, 60)
SPARSE_COUNTS = np.where(COUNTS > 2, COUNTS, 0.0)
HISTORY = efemb.Dataset(COUNTS, users=np.arange(len(COUNTS)) % 20)
SPARSE_HISTORY = efemb.Dataset(sparse.csr_array(SPARSE_COUNTS), users=np.arange(len(COUNTS)) % 20)
PRICES = efemb.data.CellTable(
    np.exp(np.random.default_rng(5).normal(0.0, 0.2, (3, COUNTS.shape[1]))),
    by="week",
    groups=range(3),
)
TABLE, SPARSE_TABLE = (
    efemb.Dataset(values, rows={"week": np.arange(len(COUNTS)) % 3}, cells={"price": PRICES})
    for values in (COUNTS, sparse.csr_array(SPARSE_COUNTS))
)
OFFERS = efemb.data.CellTable(
    sparse.csr_array(np.random.default_rng(6).random((3, COUNTS.shape[1])) < 0.2, dtype=float),
    by="week",
    groups=range(3),
)
SPARSE_OFFERS = efemb.Dataset(
    COUNTS, rows={"week": np.arange(len(COUNTS)) % 3}, cells={"offer": OFFERS}
)
# Rows that hold other items than when the history was learned.
PAST, CHANGED = (
    efemb.Dataset(counts, rows={"user": np.arange(len(counts)) % 20, "row": np.arange(len(counts))})
    for counts in (COUNTS[::-1].copy(), COUNTS)
)
NEURONS = neurons(80, 50)
POSITIONS = np.random.default_rng(1).normal(size=(50, 3))


@dataclass(frozen=True)
class Fit:
    """An estimator and its data; every call fits a new one."""

    model: Callable[..., Any]
    data: Any
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        """The fitted estimator; BLAS uses one thread, whose sums are the same everywhere."""
        options = {"random_state": 0, "max_iter": 2, **self.options}
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.model(**options).fit(self.data)


def rows(model: Callable[..., Any], data: Array = COUNTS, **options: Any) -> Fit:
    return Fit(model, data, {"n_components": K, **options})


def text(model: Callable[..., Any], **options: Any) -> Fit:
    return Fit(model, TEXT, {"n_components": K, "min_count": 1, **options})


P, W = efemb.PoissonEmbedding, efemb.Window
# Threads that do not wait for each other: not the same bits in every run, so no golden.
RACING_THREADS = text(efemb.BernoulliTextEmbedding, n_jobs=2)
# Together with it, these call every kernel (tests/engine/test_addresses.py sees to it).
KERNEL_FITS: dict[str, Fit] = {
    "exact zeros": rows(P, batch_size=70),
    "exact zeros, sparse": rows(P, SPARSE_COUNTS),
    "exact zeros, two threads": rows(P, SPARSE_COUNTS, n_jobs=2),
    "exact zeros, step by step": rows(P, link="log-softplus", prior="half-normal"),
    "Bernoulli": rows(efemb.BernoulliEmbedding, np.where(COUNTS > 2, 1.0, 0.0)),
    "sampled zeros": rows(P, zeros=efemb.Sampled(9), batch_size=70),
    "Adam": rows(P, optimizer="adam"),
    "closed form": rows(efemb.AdditivePoissonEmbedding, batch_size=70),
    "softmax": rows(efemb.CategoricalEmbedding),
    "offsets": rows(P, HISTORY, terms=[efemb.History("user", kappa=9.0)]),
    "columns of terms": rows(P, HISTORY, terms=[efemb.RowVectors("user", 3)]),
    "columns of terms, sparse": rows(
        P, SPARSE_HISTORY, terms=[efemb.RowVectors("user", 3), efemb.History("user", kappa=9.0)]
    ),
    "offsets, sparse": rows(P, SPARSE_HISTORY, terms=[efemb.History("user", kappa=9.0)]),
    "offsets, changed rows": rows(
        P, CHANGED, terms=[efemb.History("user", kappa=9.0).freeze(PAST)]
    ),
    "offsets by cell": rows(P, SPARSE_OFFERS, terms=[efemb.CellCovariate("offer")]),
    "offsets by group": rows(P, TABLE, terms=[efemb.CellCovariate("price", log=True)]),
    "offsets by group, sparse": rows(
        P, SPARSE_TABLE, terms=[efemb.CellCovariate("price", log=True)], n_jobs=2
    ),
    "offsets, softmax": rows(
        efemb.CategoricalEmbedding, HISTORY, terms=[efemb.History("user", kappa=9.0)]
    ),
    "moments": rows(efemb.GaussianEmbedding, NEURONS, context=efemb.Neighbors(40)),
    "generic": rows(P, solver="generic"),
    "noise": text(efemb.BernoulliTextEmbedding),
    "noise, two threads": text(efemb.BernoulliTextEmbedding, n_jobs=2, deterministic=True),
    "subsampled": text(efemb.BernoulliTextEmbedding, context=W(5, subsample=0.05)),
    "skip-gram": text(efemb.SkipGram, zeros=efemb.NegativeSampling(5, "smoothed")),
    "skip-gram, apart": text(efemb.SkipGram),
    "sampled softmax": text(efemb.CBOW, zeros=efemb.SampledSoftmax(5)),
    "tree": text(efemb.CBOW, zeros="hierarchical"),
    "sparse pairs": rows(efemb.BasketEmbedding, SPARSE_COUNTS, n_neighbors=9, family="poisson"),
    "factors": Fit(efemb.baselines.HPF, COUNTS, {"n_components": K, "max_iter": 3}),
}


def small(model: Callable[..., Any], data: Array, **options: Any) -> Fit:
    """As a user would fit it: several passes, with early stopping."""
    return Fit(model, data, {"n_components": 5, "max_iter": 6, **options})


def words(model: Callable[..., Any], **options: Any) -> Fit:
    return small(model, TEXT, min_count=1, deterministic=True, **options)


def grouped_counts(n_rows: int = 120, n_entities: int = 20) -> Array:
    """Counts in which even entities occur together, and odd ones; every row has two at least."""
    rng = np.random.default_rng(3)
    even = rng.integers(2, size=(n_rows, 1)) == np.arange(n_entities) % 2
    counts = rng.poisson(np.where(even, 0.6, 0.1)).astype(float)
    counts[np.arange(n_rows), np.arange(n_rows) % n_entities] += 1
    counts[np.arange(n_rows), np.arange(2, n_rows + 2) % n_entities] += 1
    return counts


TRIPS = efemb.Dataset(
    sparse.csr_array(grouped_counts()),
    entities=[f"item {n}" for n in range(20)],
    users=np.arange(120) % 30,
)
PRESENT = np.minimum(grouped_counts(), 1.0)
FRAMES = efemb.Dataset(NEURONS, positions=POSITIONS)
GAPS = np.where(np.random.default_rng(2).random(NEURONS.shape) < 0.1, np.nan, NEURONS)
MISSING = efemb.Dataset(GAPS, positions=POSITIONS, recordings=np.repeat([0, 1], 40))
ROW_PRESETS: dict[str, tuple[Any, Any]] = {
    "PoissonEmbedding": (P, TRIPS),
    "AdditivePoissonEmbedding": (efemb.AdditivePoissonEmbedding, TRIPS),
    "BernoulliEmbedding": (efemb.BernoulliEmbedding, PRESENT),
    "CategoricalEmbedding": (efemb.CategoricalEmbedding, TRIPS),
    "GaussianEmbedding": (efemb.GaussianEmbedding, FRAMES),
    "NonnegativeGaussianEmbedding": (efemb.NonnegativeGaussianEmbedding, FRAMES),
}
TEXT_PRESETS: dict[str, Any] = {
    "BernoulliTextEmbedding": efemb.BernoulliTextEmbedding,
    "SkipGram": efemb.SkipGram,
    "CBOW": efemb.CBOW,
    "PoissonTextEmbedding": efemb.PoissonTextEmbedding,
}
PRESET_FITS: dict[str, Fit] = {
    **{name: small(model, data) for name, (model, data) in ROW_PRESETS.items()},
    **{
        f"{name}.paper": small(model.paper, data, max_iter=20)
        for name, (model, data) in ROW_PRESETS.items()
        if model is not efemb.GaussianEmbedding  # 50 neighbors need more than 50 entities
    },
    "GaussianEmbedding.paper": small(efemb.GaussianEmbedding.paper, neurons(60, 55), max_iter=20),
    **{name: words(model) for name, model in TEXT_PRESETS.items()},
    **{
        f"{name}.paper": words(model.paper)
        for name, model in TEXT_PRESETS.items()
        if hasattr(model, "paper")
    },
}
E = efemb.Embedding
VERY_SPARSE = sparse.csr_array(np.eye(200, 120) + 2 * np.eye(200, 120, 1) + np.eye(200, 120, -80))
HALVES = np.arange(20) // 2
FURTHER_FITS: dict[str, Fit] = {
    "very sparse": small(P, VERY_SPARSE, batch_size=50),
    "two threads": small(P, TRIPS, n_jobs=2, batch_size=30),
    "weighted zeros": small(P, TRIPS, zero_weight=0.1),
    "sampled zeros, small": small(P, TRIPS, zeros=efemb.Sampled(4, "sqrt"), batch_size=30),
    "negative samples on rows": small(P, TRIPS, zeros=efemb.NegativeSampling(3)),
    "float64": small(P, TRIPS, dtype="float64"),
    "tied": small(P, TRIPS, structure="tied"),
    "shared": small(P, TRIPS, structure=efemb.Shared(HALVES, HALVES[::-1].copy())),
    "reverse": small(P, TRIPS, combine="reverse"),
    "negative binomial": small(E, TRIPS, family=efemb.NegativeBinomial(2.0)),
    "softplus": small(E, TRIPS, link="softplus", prior=efemb.Normal(0.5)),
    "log-normal": small(E, TRIPS, link="log", prior=efemb.LogNormal(0.1, -1.0)),
    "binary context": small(P, TRIPS, context=efemb.Basket("items", binary=True)),
    "learned variance": small(E, FRAMES, family=efemb.Gaussian("learned"), context="neighbors"),
    "missing values": small(efemb.GaussianEmbedding, MISSING),
    "lagged": small(
        efemb.GaussianEmbedding, MISSING, context=efemb.Lagged((-1, 1), of=efemb.Neighbors(3))
    ),
    "sum of contexts": small(
        efemb.GaussianEmbedding, FRAMES, context=efemb.Neighbors(4) + efemb.Lagged((-1,))
    ),
    "vector data": small(
        efemb.GaussianEmbedding,
        efemb.Dataset(np.stack([NEURONS, NEURONS[::-1]], axis=2), positions=POSITIONS),
    ),
    "counts of neighbors": small(
        E, efemb.Dataset(COUNTS[:, :50], positions=POSITIONS), context=efemb.Neighbors(4)
    ),
    "positional": words(efemb.BernoulliTextEmbedding, context=W(2, positional=True)),
    "positional softmax": words(efemb.CBOW, context=W(2, positional=True)),
    "noise-contrastive": words(efemb.CBOW, zeros=efemb.NoiseContrastive(5)),
    "skip-gram, tree": words(efemb.SkipGram, zeros="hierarchical"),
    "skip-gram, own negatives": words(
        efemb.SkipGram, zeros=efemb.NegativeSampling(5, shared=False)
    ),
    "tied words": words(efemb.BernoulliTextEmbedding, structure="tied"),
    "all words": words(efemb.BernoulliTextEmbedding, zeros="all"),
    "sampled words": words(efemb.BernoulliTextEmbedding, zeros=efemb.Sampled(5)),
    "length offset": words(efemb.PoissonTextEmbedding, context=W(5, length_offset=True)),
    "Poisson words of any sign": words(efemb.PoissonTextEmbedding, link="identity"),
}
BASELINE_FITS: dict[str, Fit] = {
    "Popularity": Fit(lambda **_: efemb.baselines.Popularity(), TRIPS),
    "WeightedMF": small(efemb.baselines.WeightedMF, TRIPS),
    "ExponentialFamilyPCA": small(efemb.baselines.ExponentialFamilyPCA, TRIPS),
    "FactorAnalysis": small(efemb.baselines.FactorAnalysis, NEURONS),
    "ItemSkipGram": small(efemb.baselines.ItemSkipGram, TRIPS),
}
FITS: dict[str, Fit] = {**KERNEL_FITS, **PRESET_FITS, **FURTHER_FITS, **BASELINE_FITS}


def parameter_arrays(model: Any) -> dict[str, Array]:
    """The arrays that a fit learned, by name; baselines have none that all of them share."""
    if not hasattr(model, "fitted"):
        return {}
    parameters = model.fitted().parameters
    names = ("rho", "alpha", "intercept", "position")
    arrays = {name: getattr(parameters, name) for name in names}
    return {name: array for name, array in arrays.items() if array is not None}


def score(model: Any, fit: Fit) -> float | None:
    """Score of the data of the fit; None where the model has none (reverse conditionals)."""
    with threadpool_limits(1):
        try:
            return float(model.score(fit.data))
        except efemb.ParameterError:
            return None


SIMULATIONS = ("g-emb", "ng-emb", "p-emb", "ap-emb", "b-emb", "categorical", "negative-binomial")


def simulated_arrays(model: str) -> dict[str, Array]:
    """Data and parameters that `efemb.simulation.simulate` draws."""
    drawn = efemb.simulation.simulate(model, n_rows=30, n_entities=12, n_components=3, seed=0)
    values, truth = drawn.data.values, drawn.parameters
    dense = values.toarray() if sparse.issparse(values) else values
    arrays = {"data": dense, "rho": truth.rho, "alpha": truth.alpha, "intercept": truth.intercept}
    return {name: array for name, array in arrays.items() if array is not None}
