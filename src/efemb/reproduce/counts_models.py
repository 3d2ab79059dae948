"""Models of the count studies, with the paper's settings and with ours, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from efemb.baselines import HPF, ExponentialFamilyPCA, Popularity
from efemb.engine.optimizers.first_order import Adagrad
from efemb.estimators.presets import (
    AdditivePoissonEmbedding,
    CategoricalEmbedding,
    PoissonEmbedding,
)
from efemb.model.contexts import Basket
from efemb.model.priors import HalfNormal, LogNormal, Normal
from efemb.model.zeros import Sampled

# Table "Algorithm details" of the paper, shopping and movies, all models.
PRECISION = 1.0  # "regularization parameter"
PASSES = 3000  # "number iterations"
NEGATIVES = 10  # "negative samples" per row; here zeros are exact unless a row says otherwise
ZERO_WEIGHT = 0.1  # "downweights the contribution of the zeros ... by a factor of 0.1"
SIZES = (20, 100)
TOPIC_SIZE = 50
# "For each K we select the Adagrad constant based on best predictive performance on the
# validation set": the paper does not list the values.
STEPS = (0.05, 0.1, 0.2)
POSITIVE_STEPS = (0.2, 0.5, 1.0)  # steps on the log scale are relative
# Penalties of signed Poisson PCA, chosen on validation: on movies for K=20 of 4, 6, 8, 12 and for
# K=100 of 12 to 16, over splits 0-2; on baskets only K=20 was tried, of 4, 8, 16 with a quarter of
# the trips.
PENALTIES = {20: 8.0, 100: 16.0}
POSITIVE_PASSES = 200  # of Poisson PCA with positive vectors: slow; 300 more passes gain .016
VANISHING = 1e-10  # epsilon of Adagrad; the paper has none
PAPER, OURS, RIVAL = "paper's settings", "ours", "rival"


@dataclass(frozen=True)
class Recipe:
    """One row of a table of counts: a model, its settings and the reason for them.

    name : as in the paper where it has the model
    group : "paper's settings", "ours" or "rival"
    why : one line for the report
    make : function of (K, seed, step or None) that returns an unfitted model
    steps : Adagrad constants to choose from on validation; empty: that of the model
    sized : whether the model has a K
    """

    name: str
    group: str
    why: str
    make: Callable[..., Any] = field(repr=False, compare=False)
    steps: tuple[float, ...] = ()
    sized: bool = True


def _paper(kind: Any, **options: Any) -> Callable[..., Any]:
    """An embedding with the paper's settings, except for `options`."""

    def make(k: int, seed: int, step: float | None) -> Any:
        chosen = {} if step is None else {"optimizer": Adagrad(step, VANISHING)}
        return kind.paper(k, random_state=seed, **options, **chosen)

    return make


def _plain(kind: Any, **options: Any) -> Callable[..., Any]:
    """A model with its defaults, except for `options`."""

    def make(k: int, seed: int, step: float | None) -> Any:
        return kind(k, random_state=seed, **options)

    return make


def _make_movie_pca(k: int, seed: int, step: None) -> ExponentialFamilyPCA:
    penalty = PENALTIES.get(k, PENALTIES[SIZES[0]])
    return ExponentialFamilyPCA(k, penalty=penalty, random_state=seed)


def _make_popularity(k: None, seed: int, step: None) -> Popularity:
    return Popularity()


POPULARITY = Recipe(
    "popularity",
    RIVAL,
    "ignores the context: the baseline for every model",
    _make_popularity,
    sized=False,
)
P_EMB = Recipe(
    "p-emb",
    PAPER,
    "context divided by its number of items, lambda 1, no intercept, all zeros exact",
    _paper(PoissonEmbedding),
    STEPS,
)
P_EMB_DW = Recipe(
    "p-emb (dw)",
    PAPER,
    "p-emb with the zeros weighted by 0.1",
    _paper(PoissonEmbedding, zero_weight=ZERO_WEIGHT),
    STEPS,
)
AP_EMB = Recipe(
    "ap-emb",
    PAPER,
    "positive vectors, l2 penalty on their logarithm, as in the text",
    _paper(AdditivePoissonEmbedding),
    POSITIVE_STEPS,
)
HIERARCHICAL = Recipe(
    "HPF", RIVAL, "hierarchical Poisson factorization, additive mean", _plain(HPF)
)
POSITIVE_PCA = Recipe(
    "Poisson PCA, positive",
    RIVAL,
    "positive vectors and a multiplicative mean, lambda 1, as the paper describes it",
    _plain(ExponentialFamilyPCA, positive=True, penalty=PRECISION, max_iter=POSITIVE_PASSES),
)
SIGNED_PCA = Recipe(
    "Poisson PCA",
    RIVAL,
    "signed vectors, which a multiplicative mean allows; penalty chosen on validation",
    _make_movie_pca,
)
RIVALS = (HIERARCHICAL, POSITIVE_PCA, SIGNED_PCA)
DEFAULTS = Recipe(
    "p-emb, defaults",
    OURS,
    "PoissonEmbedding() with its defaults: context divided by its units, intercepts",
    _plain(PoissonEmbedding),
)
MOVIES = (
    POPULARITY,
    P_EMB,
    P_EMB_DW,
    AP_EMB,
    *RIVALS,
    Recipe(
        "ap-emb, half-normal(1)",
        OURS,
        "l2 penalty on the vectors themselves, as in the supplement",
        _paper(AdditivePoissonEmbedding, prior=HalfNormal(PRECISION)),
    ),
    Recipe(
        "ap-emb, log-normal(.01, -3)",
        OURS,
        "a weak prior whose median makes the initial means small",
        _paper(AdditivePoissonEmbedding, prior=LogNormal(0.01, -3.0)),
    ),
    Recipe(
        "p-emb, total scale",
        OURS,
        "context divided by its sum of ratings instead of its number of movies",
        _paper(PoissonEmbedding, context=Basket(scale="total")),
    ),
    DEFAULTS,
    Recipe(
        "categorical",
        OURS,
        "each unit is a draw among all movies, which the normalized score measures; with the "
        "default step of 0.2, the validation score oscillates",
        _plain(CategoricalEmbedding, intercept_prior=Normal(0.1), optimizer=Adagrad(0.1)),
    ),
)
LETTER = (
    POPULARITY,
    P_EMB,
    P_EMB_DW,
    Recipe(
        "p-emb, 10 zeros per row",
        PAPER,
        "inference to the letter: 10 zeros drawn per row in each of 3,000 iterations, rescaled",
        _paper(PoissonEmbedding, zeros=Sampled(NEGATIVES, per="row"), n_iter_no_change=PASSES),
        STEPS,
    ),
    Recipe(
        "p-emb (dw), 10 zeros per row",
        PAPER,
        "the same, with zeros weighted by 0.1",
        _paper(
            PoissonEmbedding,
            zeros=Sampled(NEGATIVES, weight=ZERO_WEIGHT, per="row"),
            n_iter_no_change=PASSES,
        ),
        STEPS,
    ),
    DEFAULTS,
)
# On 98,000 trips, an iteration over all rows takes seconds, and thousands of them are infeasible:
# the paper's objective is maximized in minibatches of rows, for this many passes.
TRIP_PASSES = 20
TRIP_PILOT = 2  # passes of the fits that choose the Adagrad constant
TRIP_PENALTY, TRIP_PCA_PASSES, TRIP_POSITIVE_PASSES = 8.0, 100, 50
FOLDED_IN = 1_500  # test trips of HPF and Poisson PCA, whose fold-in is slow
TRIP_STEPS = (0.1, 0.2, 0.5)
SAMPLED_ZEROS = 1024
SAMPLED = "p-emb, 1,024 sampled zeros"


def _trips(kind: Any, **options: Any) -> Callable[..., Any]:
    return _paper(kind, batch_size="auto", max_iter=TRIP_PASSES, **options)


def _trip_pca(penalty: float, passes: int, **options: Any) -> Callable[..., Any]:
    return _plain(ExponentialFamilyPCA, penalty=penalty, max_iter=passes, **options)


DEFAULTS_DW = Recipe(
    "p-emb (dw), defaults",
    OURS,
    "the same, with zeros weighted by 0.1",
    _plain(PoissonEmbedding, zero_weight=ZERO_WEIGHT),
)
BASKETS = (
    POPULARITY,
    replace(P_EMB, make=_trips(PoissonEmbedding), steps=TRIP_STEPS),
    replace(P_EMB_DW, make=_trips(PoissonEmbedding, zero_weight=ZERO_WEIGHT), steps=TRIP_STEPS),
    replace(AP_EMB, make=_trips(AdditivePoissonEmbedding)),
    HIERARCHICAL,
    replace(POSITIVE_PCA, make=_trip_pca(PRECISION, TRIP_POSITIVE_PASSES, positive=True)),
    replace(SIGNED_PCA, make=_trip_pca(TRIP_PENALTY, TRIP_PCA_PASSES)),
    DEFAULTS,
    DEFAULTS_DW,
    Recipe(
        SAMPLED,
        OURS,
        "the defaults with a few zeros drawn for each minibatch, importance-weighted",
        _plain(PoissonEmbedding, zeros=Sampled(SAMPLED_ZEROS)),
    ),
    Recipe(
        "ap-emb, defaults",
        OURS,
        "positive vectors, l2 penalty on the vectors themselves, positive intercepts",
        _plain(AdditivePoissonEmbedding),
    ),
)
