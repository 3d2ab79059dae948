"""Embedding: any combination of context, family, link, structure, prior and zeros."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from efemb.estimators.base import BaseEmbedding
from efemb.model.spec import Spec


@dataclass(eq=False, repr=False)
class Embedding(BaseEmbedding):
    """Exponential family embedding with any combination of ingredients.

    u = rho_n . s / d + intercept_n, where s is the sum of x_m alpha_m over the context and d its
    scale; the observation x_tn has natural parameter f(u). Every ingredient is an object or a
    name.

    Parameters
    ----------
    n_components : int, default=10
        Length K of the vectors.
    context : Context or str, default="basket"
        The observations from which an observation is predicted: `Basket`, `Window`, `Neighbors`,
        `Graph`, `Lagged`, `Explicit`, sums of them, or your own.
    family : Family or str, default="poisson"
        Conditional distribution of an observation.
    link : Link or str, default="identity"
        Function f from the predictor u to the natural parameter.
    prior : Prior, pair of priors, str or None, default="normal"
        Prior of both kinds of vectors, or a pair (prior of rho, prior of alpha).
    zeros : Zeros or str, default="all"
        How observations that are zero are weighted or sampled.
    weight_ridge : float, "auto" or None, default=None
        Penalty on the squares of the weights rho_n . alpha_m of the context members, in units of
        the variance: with K at least as large as the contexts, the model is a ridge regression
        of each entity on its members. "auto" chooses it for each entity by the evidence, larger
        for members that are farther away. For real data in fixed contexts.
    center : bool, default=False
        Measure the members of fixed contexts from their means over the training rows, so that a
        missing member counts as its mean, not as 0.
    allow_real : bool, default=False
        Accept values other than whole numbers for families of counts.
    structure : Structure or str, default="per-entity"
        Which vectors are shared.
    combine : {"linear", "reverse"} or Combine, default="linear"
        Predict an entity from its context, or the context from the entity (skip-gram); or a
        combination of your own, which defines u and its derivatives.
    intercept : bool, default=True
        Whether every entity has an intercept.
    intercept_prior : Prior or None, default=None
        Prior of the intercepts.
    terms : list of Term, optional
        Terms that are added to u, such as ``RowVectors("household", 20)``.
    solver : {"auto", "rows", "moments", "windows", "generic"}, default="auto"
        How objective and gradients are computed; `solver_` is the one that was used.
    optimizer : Optimizer or str, default="auto"
        "auto" is L-BFGS for the solver "moments" and Adagrad otherwise.
    batch_size : int, None or "auto", default="auto"
        Rows per minibatch; None uses all rows.
    max_iter : int, optional
        Maximum number of passes over the data. By default 5 for text models trained with negative
        sampling, 1,000 for L-BFGS, and otherwise 300, or up to 10,000 steps if a pass has few.
    early_stopping : bool or "auto", default=True
        Stop when a held-out score no longer improves, and keep the best parameters. Nothing is
        held out if there are fewer than 20 entries (row contexts) or 10 rows; `report_` says so.
        "auto", for text, holds out text only if the model is exact.
    validation_fraction : float, optional
        Fraction of the data that is held out; by default 5%, and at most 20,000 entries.
    n_iter_no_change : int, default=5
        Number of evaluations without an improvement of `tol` before stopping.
    tol : float, default=0.0001
        Minimum improvement of the score.
    warm_start : bool, default=False
        Continue from the last fit.
    n_jobs : int or None, default=1
        Number of threads. The result has the same bits for any number, except with the solver
        "windows" (text models trained with negative sampling), whose threads update shared
        vectors without locks.
    deterministic : bool, default=False
        For the solver "windows": a single thread makes all steps while others prepare draws, so
        that the result depends on `random_state` alone.
    random_state : int, RandomState, Generator or None, default=None
        Random seed.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the vectors.
    verbose : int, default=0
        Show a progress bar.
    callbacks : list of callables, optional
        Called after each pass with an object that has `iteration`, `objective`, `validation`,
        `seconds` and `parameters()`; returning True stops the fit.

    Attributes
    ----------
    rho_ : array of shape (N, K)
        Embeddings; also called `embedding_`.
    alpha_ : array of shape (N, K)
        Context vectors; also called `context_`. (N * lags, K) for lags with vectors of their own,
        (N, K, D) for vector data.
    intercept_ : array of shape (N,) or None
    parameters_ : Parameters
        All learned arrays.
    family_ : Family
        The family, with a learned dispersion.
    history_ : list of dict
        One record per pass: iteration, objective, validation, seconds.
    n_iter_, best_iter_ : int
        Number of passes, and the pass with the best validation score.
    solver_, gradient_ : str
        The solver that was used, and whether its gradient is "exact", "unbiased" or "biased".
    report_ : dict
        What was dropped or unusual. `held_out` is False if nothing was held out; the objective
        then determined when to stop.
    """

    context: Any = field(default="basket", kw_only=True)
    family: Any = field(default="poisson", kw_only=True)
    link: Any = field(default="identity", kw_only=True)
    prior: Any = field(default="normal", kw_only=True)
    zeros: Any = field(default="all", kw_only=True)
    allow_real: bool = field(default=False, kw_only=True)
    deterministic: bool = field(default=False, kw_only=True)
    weight_ridge: Any = field(default=None, kw_only=True)
    center: bool = field(default=False, kw_only=True)

    _way_out = "correct such values, or pass allow_real=True to accept values between counts"

    def _spec(self) -> Spec:
        return Spec.resolve(
            context=self._context(),
            family=self._family(),
            link=self.link,
            combine=self.combine,
            structure=self.structure,
            prior=self._prior(),
            zeros=self._zeros(),
            intercept=self.intercept,
            intercept_prior=self.intercept_prior,
            terms=() if self.terms is None else self.terms,
            weight_ridge=self._weight_ridge(),
        )

    def _context(self) -> Any:
        return self.context

    def _family(self) -> Any:
        return self.family

    def _prior(self) -> Any:
        return self.prior

    def _weight_ridge(self) -> Any:
        return self.weight_ridge

    def _zeros(self) -> Any:
        return self.zeros


C = TypeVar("C", bound=type)


def complete_docstring(cls: C) -> C:
    """Add the parameters that a preset inherits to its docstring, with the defaults it has."""
    if cls.__doc__ is None:  # python -OO
        return cls
    head, own, rest = _split(cls.__doc__)
    inherited, attributes = _split(Embedding.__doc__ or "")[1:]
    for base in reversed(cls.__mro__[1:-1]):
        inherited |= _split(vars(base).get("__doc__") or "")[1]
    options = {option.name: option.default for option in fields(cls) if option.init}
    lines = [
        own.get(name) or _with_default(inherited[name], options[name])
        for name in dict.fromkeys([*inherited, *own])
        if name in options
    ]
    title = "Parameters\n----------"
    cls.__doc__ = "\n\n".join([head, "\n".join([title, *lines]), attributes.strip(), rest.strip()])
    return cls


def _split(doc: str) -> tuple[str, dict[str, str], str]:
    """The text before the section Parameters, its entries by name, and the text after it."""
    text = inspect.cleandoc(doc)
    head, _, after = text.partition("\n\nParameters\n----------\n")
    section, _, rest = after.partition("\n\n")
    entries = re.finditer(r"^(\w+) : .*(?:\n .*)*", section, re.M)
    return head, {entry[1]: entry[0] for entry in entries}, rest


def _with_default(entry: str, default: Any) -> str:
    """The first line of an entry with another default."""
    first, newline, text = entry.partition("\n")
    kind = re.sub(r", (default=.*|optional)$", "", first)
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    optional = default is None and "None" not in kind
    return f"{kind}, {'optional' if optional else f'default={shown}'}{newline}{text}"
