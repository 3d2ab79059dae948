"""The models of the paper as presets of `Embedding`; defaults are the best-scoring ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from efemb.engine.optimizers.first_order import Adagrad
from efemb.errors import ParameterError
from efemb.estimators.general import Embedding
from efemb.model.contexts import Basket, Neighbors
from efemb.model.priors import LogNormal, Normal
from efemb.model.zeros import All


@dataclass(eq=False, repr=False)
class _BasketEmbedding(Embedding):
    """Counts or binary data on rows."""

    zero_weight: float | None = field(default=None, kw_only=True)

    def _zeros(self) -> Any:
        if self.zero_weight is None:
            return self.zeros
        if self.zeros != "all":
            raise ParameterError(
                "give zeros=All(weight) or zero_weight, not both: "
                f"zeros={self.zeros!r}, zero_weight={self.zero_weight!r}"
            )
        return All(self.zero_weight)

    @classmethod
    def paper(cls, n_components: int = 20, **overrides: Any) -> Self:
        """The paper's settings: context divided by its number of items, no intercept, lambda 1.

        Zeros are exact; `zeros=Sampled(10)` samples them as the paper does.
        """
        settings: dict[str, Any] = {
            "context": Basket(scale="items"),
            "prior": Normal(1.0),
            "intercept": False,
            "optimizer": Adagrad(0.1),
            "batch_size": None,
            "max_iter": 3000,
        }
        return cls(n_components=n_components, **{**settings, **overrides})


@dataclass(eq=False, repr=False)
class PoissonEmbedding(_BasketEmbedding):
    """p-emb: counts, context items multiply the mean. `zero_weight=0.1` is the paper's p-emb (dw).

    Parameters are those of `Embedding` with these defaults and shorthands:

    Parameters
    ----------
    family : default="poisson"
    context : default="basket", that is `Basket(scale="total")`
    zero_weight : float, optional
        Shorthand for `zeros=All(zero_weight)`.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=300, n_entities=12, n_components=2, seed=0
    ... )
    >>> model = efemb.PoissonEmbedding(2, random_state=0).fit(trips.data)
    >>> model.embedding_.shape
    (12, 2)
    """


@dataclass(eq=False, repr=False)
class AdditivePoissonEmbedding(_BasketEmbedding):
    """ap-emb: counts, positive vectors, context items add to the mean.

    Parameters are those of `PoissonEmbedding` with link "log" and prior "half-normal".
    """

    link: Any = field(default="log", kw_only=True)
    prior: Any = field(default="half-normal", kw_only=True)

    @classmethod
    def paper(cls, n_components: int = 20, **overrides: Any) -> Self:
        """The paper's settings; "l2 on the logarithm" is `LogNormal(1, 0)`."""
        settings: dict[str, Any] = {
            "prior": LogNormal(1.0, 0.0),
            "optimizer": "auto",
            "n_iter_no_change": 20,
        }
        return super().paper(n_components, **{**settings, **overrides})


@dataclass(eq=False, repr=False)
class BernoulliEmbedding(_BasketEmbedding):
    """b-emb: zeros and ones on rows.

    Parameters are those of `PoissonEmbedding`, and:

    Parameters
    ----------
    family : default="bernoulli"
    binarize : bool, default=False
        Turn every non-zero value into 1.
    """

    family: Any = field(default="bernoulli", kw_only=True)
    binarize: bool = field(default=False, kw_only=True)

    _way_out = "pass binarize=True to count every non-zero value as 1"


@dataclass(eq=False, repr=False)
class CategoricalEmbedding(_BasketEmbedding):
    """Each unit of a row is a draw among the entities: a softmax given the rest of the row.

    Parameters are those of `PoissonEmbedding` with family "categorical"; there are no zeros to
    weight or sample.
    """

    family: Any = field(default="categorical", kw_only=True)


@dataclass(eq=False, repr=False)
class GaussianEmbedding(Embedding):
    """g-emb: real numbers given the entities nearby.

    Parameters are those of `Embedding` with these defaults:

    Parameters
    ----------
    family : default="gaussian"
        `Gaussian("learned")` learns the variance.
    context : default="neighbors"
        `Neighbors()`: the 10 nearest entities by position, or the most correlated ones.
    """

    family: Any = field(default="gaussian", kw_only=True)
    context: Any = field(default="neighbors", kw_only=True)

    _way_out = "remove infinite values; NaN marks a missing observation"

    @classmethod
    def paper(cls, n_components: int = 100, **overrides: Any) -> Self:
        """The paper's settings: 50 neighbours, lambda 10, no intercept."""
        settings: dict[str, Any] = {
            "context": Neighbors(50),
            "prior": Normal(10.0),
            "intercept": False,
        }
        return cls(n_components=n_components, **{**settings, **overrides})


@dataclass(eq=False, repr=False)
class NonnegativeGaussianEmbedding(GaussianEmbedding):
    """ng-emb: g-emb with positive vectors, so that nearby entities only add.

    Parameters are those of `GaussianEmbedding` with prior "half-normal".
    """

    prior: Any = field(default="half-normal", kw_only=True)

    @classmethod
    def paper(cls, n_components: int = 10, **overrides: Any) -> Self:
        """The paper's settings: 10 neighbours, lambda 0.1 on the logarithm, no intercept."""
        settings: dict[str, Any] = {"context": Neighbors(10), "prior": LogNormal(0.1, 0.0)}
        return super().paper(n_components, **{**settings, **overrides})
