"""Contestants: the models that `ranking` compares, and the settings that each may choose from.

Settings stand in the order in which they are tried; every contestant is allowed the same number.
Popularity has nothing to choose, and BasketEmbedding chooses by itself in its fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.rivals import Hpfrec, ImplicitALS, Rival

Setting = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    """A model under several settings.

    make : unfitted model of a setting;  settings : what to try, first things first
    rival : adapter of another package, which may not be installed
    for_users : needs to know who a row belongs to
    short : is asked for all entries of the test rows and with short contexts, too
    compiled : a small fit comes first, which loads or compiles the kernels
    parts : contestants whose fits, under their chosen settings, `make` combines
    only : data sets that it takes part in, by default all
    recommended : is compared with each of the strongest others; gives calibrated probabilities
    """

    name: str
    make: Callable[..., Any]
    settings: tuple[Setting, ...] = ({},)
    rival: type[Rival] | None = None
    for_users: bool = False
    short: bool = False
    compiled: bool = False
    parts: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    recommended: bool = False


def _baseline(name: str) -> Callable[..., Any]:
    def make(**setting: Any) -> Any:
        import efemb.baselines

        return getattr(efemb.baselines, name)(**setting)

    return make


def _preset(name: str, **fixed: Any) -> Callable[..., Any]:
    def make(precision: float, **setting: Any) -> Any:
        import efemb

        prior = efemb.Normal(precision)
        return getattr(efemb, name)(prior=prior, random_state=0, **fixed, **setting)

    return make


def _blend(parts: dict[str, Any], how: str) -> Any:
    import efemb

    return efemb.Blend(parts, how=how)


def _baskets(name: str, seed: int = 0, user: str | None = None, **more: Any) -> Contestant:
    """BasketEmbedding with its defaults."""

    def make() -> Any:
        import efemb

        return efemb.BasketEmbedding(100, user=user, random_state=seed)

    known = user is not None
    return Contestant(name, make, for_users=known, compiled=True, recommended=True, **more)


def _grid(**values: tuple[Any, ...]) -> tuple[Setting, ...]:
    """All combinations, the first values first."""
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


BASKETS = "efemb BasketEmbedding"
EMBEDDINGS = _grid(n_components=(100, 50), precision=(1.0, 0.3, 3.0))
PENALTIES = (100.0, 200.0, 50.0, 500.0, 1000.0, 2000.0)

CONTESTANTS = (
    Contestant("popularity", _baseline("Popularity"), short=True),
    Contestant(
        "personal popularity",
        _baseline("PersonalPopularity"),
        _grid(kappa=(1000.0, 300.0, 100.0, 30.0, 10.0, 3000.0)),
        for_users=True,
    ),
    Contestant(
        "smoothed rules",
        _baseline("Rules"),
        _grid(smoothing=(10.0, 100.0, 1.0, 30.0, 3.0, 1000.0)),
    ),
    Contestant(
        "item-kNN (cosine)",
        _baseline("ItemKNN"),
        _grid(shrinkage=(10.0, 0.0), n_neighbors=(100, 50, 500)),
        short=True,
    ),
    Contestant(
        "RP3beta",
        _baseline("RP3beta"),
        _grid(n_neighbors=(100, 30), beta=(0.3, 0.6, 0.5)),
    ),
    Contestant(
        "implicit ALS",
        ImplicitALS,
        _grid(factors=(100,), regularization=(10.0, 3.0), alpha=(1.0, 10.0, 0.5)),
        rival=ImplicitALS,
    ),
    Contestant("hpfrec", Hpfrec, _grid(factors=(20,)), rival=Hpfrec),
    Contestant("EASE", _baseline("EASE"), _grid(penalty=PENALTIES), short=True),
    Contestant(
        "EASE, dropout",
        _baseline("EASE"),
        _grid(penalty=(100.0, 30.0), dropout=(0.3, 0.5, 0.1)),
    ),
    Contestant("efemb p-emb", _preset("PoissonEmbedding"), EMBEDDINGS, short=True, compiled=True),
    Contestant(
        "efemb b-emb",
        _preset("BernoulliEmbedding", binarize=True),
        EMBEDDINGS,
        short=True,
        compiled=True,
    ),
    Contestant(
        "efemb categorical",
        _preset("CategoricalEmbedding"),
        _grid(n_components=(50,), precision=(1.0, 3.0)),  # fewer: each takes ten times p-emb's time
        compiled=True,
        only=("MovieLens-100K",),
    ),
    _baskets(BASKETS, short=True),
    *(
        _baskets(f"{BASKETS}, seed {seed}", seed, short=True, only=("Complete Journey",))
        for seed in (1, 2)
    ),
    _baskets(f"{BASKETS}, personal", user="user"),
    Contestant(
        "efemb Blend",
        _blend,
        _grid(how=("mixture", "log-linear")),
        short=True,
        parts=("efemb p-emb", "EASE", "popularity"),
    ),
    Contestant(
        "efemb Blend, personal",
        _blend,
        _grid(how=("log-linear", "mixture")),
        for_users=True,
        parts=("efemb p-emb", "EASE", "personal popularity", "popularity"),
    ),
)
