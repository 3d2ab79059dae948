"""Embedding: any combination of context, family, link, structure, prior and zeros."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from efemb.estimators.base import BaseEmbedding
from efemb.model.spec import Spec


@dataclass(eq=False, repr=False)
class Embedding(BaseEmbedding):
    """Exponential family embedding of any kind; every ingredient is an object or a name.

    Parameters
    ----------
    n_components : int, default=10
        Length K of the vectors.
    context : Context or str, default="basket"
        What surrounds an observation: `Basket`, `Window`, `Neighbors`, `Graph`, `Lagged`,
        `Explicit`, sums of them, or your own.
    family : Family or str, default="poisson"
        Conditional distribution.
    link : Link or str, default="identity"
        From the inner product to the natural parameter.
    prior : Prior, pair of priors, str or None, default="normal"
        For both kinds of vectors, or (for rho, for alpha).
    zeros : Zeros or str, default="all"
        How observations that are zero are weighted or sampled.
    allow_real : bool, default=False
        Accept values between the whole numbers for count families.
    structure : Structure or str, default="per-entity"
        Which vectors are shared.
    combine : {"linear", "reverse"}, default="linear"
        Predict an entity from its context, or the context from the entity (skip-gram).
    intercept : bool, default=True
    intercept_prior : Prior or None, default=None
    terms : list of Term, optional
        What else is added to the linear predictor, such as ``RowVectors("household", 20)``.
    solver : {"auto", "rows", "moments", "windows", "generic"}, default="auto"
        `solver_` says which one ran.
    optimizer : Optimizer or str, default="auto"
        L-BFGS for "moments", Adagrad elsewhere.
    batch_size : int, None or "auto", default="auto"
        Rows of a minibatch; None takes all of them.
    max_iter : int, optional
        Largest number of passes over the data: by default 5 for text told from noise, 1,000 for
        L-BFGS, else 300, and up to 10,000 steps where a pass has few.
    early_stopping : bool or "auto", default=True
        Stop when a held-out score no longer rises, and keep the best parameters. Fewer than 20
        entries (row contexts) or 10 rows are too few to hold any out: `report_` says so.
    validation_fraction : float, optional
        Part held out; by default 5%, and at most 20,000 entries.
    n_iter_no_change : int, default=5
        Evaluations without a gain of `tol` before stopping.
    tol : float, default=1e-4
    warm_start : bool, default=False
        Continue from the last fit.
    n_jobs : int or None, default=1
        Threads; the result has the same bits for any number of them. The exception is solver
        "windows" (text told from noise), whose threads change the same vectors without locks.
    deterministic : bool, default=False
        Solver "windows": leave the steps to one thread, so that the result depends on
        `random_state` alone; other threads draw ahead.
    random_state : int, RandomState, Generator or None
    dtype : {"float32", "float64"}, default="float32"
    verbose : int, default=0
        Show a progress bar.
    callbacks : list of callables, optional
        Called after each pass with an object that has `iteration`, `objective`, `validation`,
        `seconds` and `parameters()`; returning True stops the fit.

    Attributes
    ----------
    rho_ : array (N, K), the embeddings; also called `embedding_`
    alpha_ : array (N, K), the context vectors; with lags of their own (N * lags, K), of vector
        data (N, K, D); also called `context_`
    intercept_ : array (N,) or None
    parameters_ : Parameters, all three, and the weights of places of a positional `Window`
    family_ : the family, with a learned dispersion
    history_ : list of dict, one an iteration: iteration, objective, validation, seconds
    n_iter_, best_iter_ : passes done, and pass of the best validation score
    solver_, gradient_ : which solver ran, and "exact", "unbiased" or "biased"
    report_ : dict of what was dropped or unusual; `held_out` is False where the data are too few
        to spare any (or `early_stopping=False`) and the objective told when to stop
    """

    context: Any = field(default="basket", kw_only=True)
    family: Any = field(default="poisson", kw_only=True)
    link: Any = field(default="identity", kw_only=True)
    prior: Any = field(default="normal", kw_only=True)
    zeros: Any = field(default="all", kw_only=True)
    allow_real: bool = field(default=False, kw_only=True)
    deterministic: bool = field(default=False, kw_only=True)

    _way_out = "correct such values, or pass allow_real=True to accept values between counts"

    def _spec(self) -> Spec:
        return Spec.resolve(
            context=self.context,
            family=self._family(),
            link=self.link,
            combine=self.combine,
            structure=self.structure,
            prior=self.prior,
            zeros=self._zeros(),
            intercept=self.intercept,
            intercept_prior=self.intercept_prior,
            terms=() if self.terms is None else self.terms,
        )

    def _family(self) -> Any:
        return self.family

    def _zeros(self) -> Any:
        return self.zeros
