"""fold_in: vectors of new entities from their own rows, everything else as it was fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._progress import progress_bar
from efemb.data.dataset import Dataset
from efemb.engine.options import number, whole
from efemb.errors import InputTypeError, ParameterError, suggest
from efemb.fitted.embedding import FittedEmbedding
from efemb.inference.grown import Grown
from efemb.inference.posterior import shared_terms
from efemb.inference.solving import tell_exhausted
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.contexts.window import Window
from efemb.model.priors import Prior
from efemb.model.support import binarized, check_not_negative

PRIORS = ("fitted", "model")


def fold_in(
    model: Any,
    data: Dataset,
    *,
    context_too: bool = True,
    prior: Prior | str = "fitted",
    sweeps: int = 1,
    tol: float = 0.05,
    sample_weight: Any = None,
    progress: bool = False,
) -> FittedEmbedding:
    """A model that also knows the new entities of `data`, without fitting it again.

    Given all context vectors, the embedding rho_n and the intercept of an entity are a generalised
    linear model on its own column; given all embeddings, a context vector alpha_n is one on the
    rows that hold n. Both are solved with everything that was fitted left as it is. Further terms
    of the model are columns beside the contexts; their entity side is solved together with rho.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        On baskets or neighbours, with vectors of its own for each entity.
    data : Dataset
        Rows with both known and new entities. Labels tell which are new; without labels the first
        columns are the known ones. Known entities that are not there count as absent.
    context_too : bool, default=True
        Also solve alpha. Otherwise it stays 0 (positive models: small), and the new entities tell
        nothing about others: enough, and several times faster, where only they are predicted.
        Neighbours of known entities stay who they are, so that new neurons are in nobody's
        context in any case.
    prior : {"fitted", "model"} or Prior, default="fitted"
        Of the new vectors. A model that was stopped early has shorter vectors than its prior alone
        would give; "fitted" is a Normal of the spread that the known vectors have, or the model's
        prior if that is tighter. A Prior is for rho; alpha then has the model's.
    sweeps : int, default=1
        How often alpha and then rho are solved after the first rho.
    tol : float, default=0.05
        A problem of p numbers ends when it is within tol p / 2 of the largest log-posterior; p / 2
        is what the posterior itself leaves open.
    sample_weight : array (rows,), optional
        Weights of the rows, as in `fit`.
    progress : bool, default=False

    Returns
    -------
    FittedEmbedding
        Known entities first, then the new ones in the order of the data.

    Examples
    --------
    >>> import efemb
    >>> from efemb.inference import fold_in
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=400, n_entities=9, n_components=2, seed=0
    ... ).data
    >>> trips = efemb.Dataset(trips.values, entities=list("abcdefghi"))
    >>> model = efemb.PoissonEmbedding(2, random_state=0).fit(trips.take_entities(slice(0, 7)))
    >>> fold_in(model, trips).n_entities
    9
    """
    fitted: FittedEmbedding = model.fitted()
    _check_options(context_too, prior, sweeps, tol)
    _check_model(fitted)
    if getattr(model, "binarize", False) and isinstance(data, Dataset):
        check_not_negative(data)
        data = binarized(data)
    grown = Grown.of(fitted, data, prior, sample_weight)
    turns = sweeps if context_too and isinstance(grown.bound, RowBags) else 0
    with progress_bar("fold in", 1 + 2 * turns, progress) as advance:
        grown.solve_rho(tol)
        advance(1)
        for _ in range(turns):
            grown.solve_alpha(tol)
            advance(1)
            grown.solve_rho(tol)
            advance(1)
    tell_exhausted(grown.exhausted, "raise the precision of the prior, or tol")
    return grown.fitted_with(fitted)


def _check_options(context_too: Any, prior: Any, sweeps: Any, tol: Any) -> None:
    if not isinstance(context_too, (bool, np.bool_)):
        raise InputTypeError(f"context_too must be True or False, got {context_too!r}")
    if isinstance(prior, str) and prior not in PRIORS:
        raise ParameterError(f"unknown prior {prior!r}; {suggest(prior, PRIORS)} or a Prior")
    if not isinstance(prior, (str, Prior)):
        raise InputTypeError(f"prior must be 'fitted', 'model' or a Prior, got {prior!r}")
    whole("sweeps", sweeps)
    number("tol", tol)


def _check_model(fitted: FittedEmbedding) -> None:
    """Only models in which a new entity is a problem of its own."""
    spec = fitted.spec
    reason = ""
    if isinstance(spec.context, Window):
        raise ParameterError(
            "fold_in does not take text: every word around a new one would have to change as "
            "well; fit again with a corpus that has the new words"
        )
    if spec.combine.reverse:
        reason = "combine='reverse' predicts the context from the entity"
    elif spec.structure.name() != "per-entity":
        reason = f"structure={spec.structure!r} shares vectors"
    elif (
        fitted.parameters.rho.ndim > 2
        or fitted.n_slots > 1
        or fitted.parameters.position is not None
    ):
        reason = "its entities have more than one vector pair"
    else:
        reason = shared_terms(spec)
    if reason:
        raise ParameterError(
            f"fold_in needs vectors that are solved one entity at a time, but {reason}; use "
            "partial_fit, which trains all vectors"
        )
