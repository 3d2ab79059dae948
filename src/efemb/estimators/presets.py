"""The models of the paper as presets of `Embedding`; defaults are the best-scoring ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from efemb.engine.optimizers.first_order import Adagrad
from efemb.errors import ParameterError
from efemb.estimators.general import Embedding, complete_docstring
from efemb.model.contexts import Basket, Neighbors
from efemb.model.families import Gaussian
from efemb.model.priors import HalfNormal, LogNormal, Normal
from efemb.model.zeros import All


@dataclass(eq=False, repr=False)
class _BasketEmbedding(Embedding):
    """Counts or binary data on rows.

    Parameters
    ----------
    zero_weight : float, optional
        Weight of the zeros: shorthand for `zeros=All(zero_weight)`.
    """

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

        Adagrad on all rows, 3,000 iterations. The objective is the paper's, but its zeros are
        exact; `zeros=Sampled(10, per="row")` draws 10 of them for each row in every iteration, as
        the paper does, which gives the same gradient on average.

        Parameters
        ----------
        n_components : int, default=20
            Length K of the vectors.
        **overrides
            Other arguments of the class; they replace the paper's settings.
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


@complete_docstring
@dataclass(eq=False, repr=False)
class PoissonEmbedding(_BasketEmbedding):
    """p-emb: an embedding of counts in which context items multiply the mean.

    E[x_tn] = exp(rho_n . s / d + intercept_n). `zero_weight=0.1` is the paper's p-emb (dw).

    Parameters
    ----------
    context : Context or str, default="basket"
        The observations from which an observation is predicted; `Basket(scale="total")` is the rest
        of the row, averaged over its units.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=300, n_entities=12, n_components=2, seed=0
    ... )
    >>> model = efemb.PoissonEmbedding(2, random_state=0).fit(trips.data)
    >>> model.rho_.shape
    (12, 2)
    """


@complete_docstring
@dataclass(eq=False, repr=False)
class AdditivePoissonEmbedding(_BasketEmbedding):
    """ap-emb: an embedding of counts in which context items add to the mean.

    E[x_tn] = rho_n . s / d + intercept_n with positive vectors. Zeros are summed in closed form,
    which makes it much faster than `PoissonEmbedding`. It has no negative effects, so it cannot
    find substitutes. `RowVectors` is the only term that it takes.

    Examples
    --------
    >>> import efemb
    >>> trips = efemb.simulation.simulate(
    ...     "ap-emb", n_rows=300, n_entities=12, n_components=2, seed=0
    ... )
    >>> model = efemb.AdditivePoissonEmbedding(2, random_state=0).fit(trips.data)
    >>> bool((model.rho_ > 0).all())
    True
    """

    link: Any = field(default="log", kw_only=True)
    prior: Any = field(default="half-normal", kw_only=True)

    @classmethod
    def paper(cls, n_components: int = 20, **overrides: Any) -> Self:
        """The paper's settings; "l2 on the logarithm" is `LogNormal(1, 0)`.

        Context divided by its number of items, no intercept, Adagrad on all rows, at most 3,000
        iterations and a patience of 20; zeros are exact.

        Parameters
        ----------
        n_components : int, default=20
            Length K of the vectors.
        **overrides
            Other arguments of the class; they replace the paper's settings.
        """
        settings: dict[str, Any] = {
            "prior": LogNormal(1.0, 0.0),
            "optimizer": "auto",
            "n_iter_no_change": 20,
        }
        return super().paper(n_components, **{**settings, **overrides})


@complete_docstring
@dataclass(eq=False, repr=False)
class BernoulliEmbedding(_BasketEmbedding):
    """b-emb: an embedding of binary data on rows.

    P(x_tn = 1) = 1 / (1 + exp(-u)) with u = rho_n . s / d + intercept_n.

    Parameters
    ----------
    binarize : bool, default=False
        Turn every nonzero value into 1.

    Examples
    --------
    >>> import efemb
    >>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> model = efemb.BernoulliEmbedding(2, binarize=True, random_state=0).fit(X)
    >>> bool(0 < model.conditional(X).min() and model.conditional(X).max() < 1)
    True
    """

    family: Any = field(default="bernoulli", kw_only=True)
    binarize: bool = field(default=False, kw_only=True)

    _way_out = "pass binarize=True to count every non-zero value as 1"


@complete_docstring
@dataclass(eq=False, repr=False)
class CategoricalEmbedding(_BasketEmbedding):
    """Each unit of a row is a draw among the entities: a softmax given the rest of the row.

    P(entity n) = exp(u_n) / sum of exp(u_j). There are no zeros to weight or sample.

    Parameters
    ----------
    zero_weight : float, optional
        There are no zeros to weight: leave it at None.

    Examples
    --------
    >>> import efemb
    >>> X = [[2, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 2], [0, 0, 1, 1]] * 10
    >>> model = efemb.CategoricalEmbedding(2, random_state=0).fit(X)
    >>> model.conditional(X[:2]).sum(axis=1).round(3)
    array([1., 1.])
    """

    family: Any = field(default="categorical", kw_only=True)


@complete_docstring
@dataclass(eq=False, repr=False)
class GaussianEmbedding(Embedding):
    """g-emb: an embedding of real numbers given the entities nearby.

    E[x_tn] = rho_n . s / d + intercept_n; NaN marks a missing observation.

    Parameters
    ----------
    family : Family or str, default="auto"
        Conditional distribution; "auto" is `Gaussian("learned")`, which learns the variance.
    prior : Prior, pair of priors, "auto" or None, default="auto"
        Prior of both kinds of vectors. "auto" chooses the precision from the data; `report_`
        contains the choice.
    weight_ridge : float, "auto" or None, default="auto"
        Penalty on the squares of the weights rho_n . alpha_m of the neighbors, in units of the
        variance. "auto" chooses it for each entity by the evidence, larger for neighbors that are
        farther away, if `prior` is "auto" as well, and is None otherwise.
    center : bool, default=True
        Measure the neighbors from their means over the training rows, so that a missing neighbor
        counts as its mean, not as 0.
    context : Context or str, default="neighbors"
        `Neighbors()` is the 10 nearest entities by position, or the most correlated ones if the
        data have no positions.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> X, places = np.random.default_rng(0).normal(size=(60, 5)), np.arange(5.0)[:, None]
    >>> model = efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0)
    >>> model.fit(X, positions=places).conditional(X).shape
    (60, 5)
    """

    family: Any = field(default="auto", kw_only=True)
    context: Any = field(default="neighbors", kw_only=True)
    prior: Any = field(default="auto", kw_only=True)
    weight_ridge: Any = field(default="auto", kw_only=True)
    center: bool = field(default=True, kw_only=True)

    _way_out = "remove infinite values; NaN marks a missing observation"

    def _family(self) -> Any:
        automatic = isinstance(self.family, str) and self.family == "auto"
        return Gaussian("learned") if automatic else self.family

    def _weight_ridge(self) -> Any:
        if not (isinstance(self.weight_ridge, str) and self.weight_ridge == "auto"):
            return self.weight_ridge
        return "auto" if isinstance(self.prior, str) and self.prior == "auto" else None

    @classmethod
    def paper(cls, n_components: int = 100, **overrides: Any) -> Self:
        """The paper's settings: 50 neighbors, lambda 10, variance 1, no intercept, no centering.

        Parameters
        ----------
        n_components : int, default=100
            Length K of the vectors.
        **overrides
            Other arguments of the class; they replace the paper's settings.
        """
        settings: dict[str, Any] = {
            "context": Neighbors(50),
            "family": Gaussian(1.0),
            "prior": Normal(10.0),
            "weight_ridge": None,
            "intercept": False,
            "center": False,
        }
        return cls(n_components=n_components, **{**settings, **overrides})


@complete_docstring
@dataclass(eq=False, repr=False)
class NonnegativeGaussianEmbedding(GaussianEmbedding):
    """ng-emb: g-emb with positive vectors, so that nearby entities only add.

    E[x_tn] = rho_n . s / d + intercept_n, rho and alpha positive.

    Parameters
    ----------
    prior : Prior, pair of priors, "auto" or None, default="auto"
        Prior of both kinds of vectors. "auto" is `HalfNormal` with a precision chosen from the
        data; `report_` contains the choice.

    Examples
    --------
    >>> import numpy as np
    >>> import efemb
    >>> X = np.random.default_rng(0).gamma(2.0, size=(60, 5))
    >>> model = efemb.NonnegativeGaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0)
    >>> bool((model.fit(X).alpha_ > 0).all())
    True
    """

    def _prior(self) -> Any:
        automatic = isinstance(self.prior, str) and self.prior == "auto"
        return HalfNormal("auto") if automatic else self.prior

    @classmethod
    def paper(cls, n_components: int = 10, **overrides: Any) -> Self:
        """The paper's settings: 10 neighbors, lambda 0.1 on the logarithm, no intercept.

        Parameters
        ----------
        n_components : int, default=10
            Length K of the vectors.
        **overrides
            Other arguments of the class; they replace the paper's settings.
        """
        settings: dict[str, Any] = {"context": Neighbors(10), "prior": LogNormal(0.1, 0.0)}
        return super().paper(n_components, **{**settings, **overrides})
