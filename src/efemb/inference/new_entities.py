"""fold_in: vectors of new entities from their own rows, with everything else unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Floats, Ints
from efemb.data.align import positions_with_new, with_new
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary
from efemb.engine.initial import initial_parameters
from efemb.engine.precision import working_precision
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.engine.statistics import Statistics
from efemb.engine.threads import workers
from efemb.errors import (
    DataError,
    InputTypeError,
    ParameterError,
    check_integer,
    check_number,
    suggest,
)
from efemb.fitted.docstrings import as_function_of
from efemb.fitted.embedding import FittedEmbedding
from efemb.fitted.queries.model_queries import ModelQueries
from efemb.inference.conditionals import (
    Conditionals,
    ListConditionals,
    count_entities_at_once,
    resolve_row_weights,
)
from efemb.inference.context_conditionals import ContextConditionals, split_members
from efemb.inference.lbfgs import Solution, warn_exhausted
from efemb.inference.posterior import (
    Block,
    EntityPosterior,
    SoftmaxPosterior,
    explain_coupling,
    vector_blocks,
)
from efemb.inference.row_conditionals import RowConditionals
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists, Lists
from efemb.model.factors import Factors
from efemb.model.ingredient import flag
from efemb.model.parameters import Parameters
from efemb.model.priors import HalfNormal, Normal, Prior
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.support import binarized, check_not_negative, check_support

PRIORS = ("fitted", "model")
AT_ONCE = 512  # entities solved side by side
MANY_ROWS, THINNING = 20_000, 8


@as_function_of(ModelQueries.fold_in)
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
    """A model on baskets or neighbors, with vectors of its own for each item."""
    fitted: FittedEmbedding = model.fitted()
    _check_options(context_too, prior, sweeps, tol)
    _check_model(fitted)
    if getattr(model, "binarize", False) and isinstance(data, Dataset):
        check_not_negative(data)
        data = binarized(data)
    growth = Growth.of(fitted, data, prior, sample_weight)
    turns = sweeps if context_too and growth.bound.shares_rows else 0
    with progress_bar("fold in", 1 + 2 * turns, progress) as advance:
        growth.solve_rho(tol)
        advance(1)
        for _ in range(turns):
            growth.solve_alpha(tol)
            advance(1)
            growth.solve_rho(tol)
            advance(1)
    warn_exhausted(growth.exhausted, "raise the precision of the prior, or tol")
    return growth.extend(fitted)


def _check_options(context_too: Any, prior: Any, sweeps: Any, tol: Any) -> None:
    flag("context_too", context_too)
    check_prior(prior)
    check_integer("sweeps", sweeps)
    check_number("tol", tol, low=0)


def check_prior(prior: Any) -> None:
    """Reject anything but a Prior or the name of one of the ways to choose it."""
    if isinstance(prior, str) and prior not in PRIORS:
        raise ParameterError(f"unknown prior {prior!r}; {suggest(prior, PRIORS)} or a Prior")
    if not isinstance(prior, (str, Prior)):
        raise InputTypeError(f"prior must be 'fitted', 'model' or a Prior, got {prior!r}")


def _check_model(fitted: FittedEmbedding) -> None:
    """Accept only models in which each new entity is a separate problem."""
    spec, parameters = fitted.spec, fitted.parameters
    if spec.context.reads_text:
        raise ParameterError(
            "fold_in does not support text: every word around a new one would have to change as "
            "well; fit again with a corpus that contains the new words"
        )
    reason = explain_coupling(spec)
    if parameters.rho.ndim > 2 or fitted.n_slots > 1 or parameters.position is not None:
        reason = reason or "its entities have more than one vector pair"
    if reason:
        raise ParameterError(
            f"fold_in needs vectors that are solved one entity at a time, but {reason}; use "
            "partial_fit, which trains all vectors"
        )


# -- solving -----------------------------------------------------------------------------------


@dataclass
class Growth:
    """A model with room for new entities, and the data from which they are solved."""

    spec: Spec  # with the priors of the new vectors
    data: Dataset
    bound: Any  # BoundContext
    space: ParameterSpace
    parameters: Parameters
    new: Ints
    weight: Floats  # of the rows
    blocks: list[Block]  # columns of the new embeddings and of the entity sides of the terms
    positions: Floats | None = None
    exhausted: int = 0  # problems that did not converge

    @classmethod
    def of(
        cls, fitted: FittedEmbedding, data: Any, prior: Prior | str, sample_weight: Any
    ) -> Growth:
        """Make room for the new entities of the data; an error if there are none."""
        if not isinstance(data, Dataset):
            raise InputTypeError(f"fold_in needs a Dataset, got {type(data).__name__}")
        weight = resolve_row_weights(sample_weight, data, fitted.spec)
        n_known, spec = fitted.n_entities, fitted.spec
        absent = np.nan if spec.family.missing else 0.0
        aligned = with_new(data, fitted.vocabulary, n_known, absent=absent)
        new = np.arange(n_known, aligned.n_entities)
        if len(new) == 0:
            raise DataError("the data have no new entity: there is nothing to fold in")
        spec = replace(spec, family=spec.family.grow(aligned.n_entities))
        _check_values(aligned, spec)
        positions = None
        if fitted.lists is None:
            bound = spec.context.bind(aligned)
        else:
            positions = _extend_positions(fitted, data, aligned)
            bound = EntityLists(aligned, _extend_lists(fitted, aligned, new, positions, weight))
        if not spec.context.rest_of_row and bound.lists is None:
            raise ParameterError("fold_in takes models on baskets or neighbors; use partial_fit")
        space = ParameterSpace(spec, bound.n_entities, bound.n_slots, 1, fitted.n_components)
        # In the precision of a fit: next to a very large count, float32 would lose the context.
        dtype = working_precision(aligned, spec, "rows", fitted.parameters.rho.dtype)
        parameters = _make_room(fitted.parameters.astype(dtype), space, bound, new, weight)
        changed = _replace_priors(spec, prior, fitted.parameters)
        blocks = vector_blocks(changed, space.k, _term_priors(spec, prior, fitted.parameters))
        return cls(changed, aligned, bound, space, parameters, new, weight, blocks, positions)

    @property
    def context_block(self) -> Block:
        """Columns of the new context vectors."""
        return self.spec.prior_alpha, self.space.k, self.spec.positive_alpha

    @property
    def vectors(self) -> Factors:
        """All vectors in their current state."""
        return self.space.vectors(self.parameters)

    def solve_rho(self, tol: float) -> None:
        """Embeddings and intercepts of the new entities, given all context vectors."""
        if self.spec.family.softmax:
            self._solve_softmax(self.new, tol, context=False)
            return
        step = AT_ONCE
        if not self.bound.shares_rows:
            step = count_entities_at_once(self.bound, self.space.k, step)
        for start in range(0, len(self.new), step):
            self._solve_embeddings(self.new[start : start + step], tol)

    def _solve_embeddings(self, new: Ints, tol: float) -> None:
        conditionals, vectors = self._conditionals(new), self.vectors
        posterior = EntityPosterior(conditionals, self.blocks)
        intercept = vectors.intercept[new] if self.spec.intercept else None
        start = posterior.theta(posterior.joined(vectors.target[new], intercept))
        nats = 0.5 * tol * start.shape[1]
        thinned = conditionals.thinned(THINNING) if self.bound.n_rows > MANY_ROWS else None
        if thinned is None:
            problems = posterior.begin(start)
        else:
            # Far from the solution a fraction of the rows is as informative as all of them.
            problems = EntityPosterior(thinned, self.blocks).begin(start)
            problems.run(nats)
            problems.change(posterior.evaluate)
        solution = self._count_exhausted(problems.run(nats))
        self._store(new, *posterior.split(posterior.vectors(solution.theta)))

    def _count_exhausted(self, solution: Solution) -> Solution:
        self.exhausted += int(solution.exhausted.sum())
        return solution

    def _store(self, new: Ints, target: Floats, intercept: Floats) -> None:
        """Embeddings, entity sides of the terms and intercepts of some entities."""
        p, k = self.parameters, self.space.k
        p.rho[new] = target[:, :k]
        for term in (term for term in self.spec.terms if term.width):
            p.terms[f"{term.label}.{term.entity_array}"][new] = target[:, k : k + term.width]
            k += term.width
        if p.intercept is not None:
            p.intercept[new] = intercept

    def _conditionals(self, new: Ints) -> Conditionals:
        kind = RowConditionals if self.bound.shares_rows else ListConditionals
        return kind(self.spec, self.bound, self.vectors, new, self.weight)

    def solve_alpha(self, tol: float) -> None:
        """Context vectors of the new entities, given all embeddings."""
        stored = self.bound.stored
        present = np.unique(stored.ids[(stored.ids >= self.new[0]) & (stored.own != 0)])
        if len(present) == 0:  # entities in no row carry no information about others
            return
        if self.spec.family.softmax:
            self._solve_softmax(present, tol, context=True)
            return
        # Each is solved with the others at their old values, whatever the number of blocks.
        vectors, solved = self.vectors, self.parameters.alpha.copy()
        for members in split_members(self.spec, self.bound, present, solved.dtype):
            conditionals = ContextConditionals(self.spec, self.bound, vectors, members, self.weight)
            posterior = EntityPosterior(conditionals, [self.context_block])
            start = posterior.theta(solved[members])
            solution = self._count_exhausted(posterior.begin(start).run(0.5 * tol * start.shape[1]))
            solved[members] = posterior.vectors(solution.theta)
        self.parameters.alpha[:] = solved

    def _solve_softmax(self, entities: Ints, tol: float, *, context: bool) -> None:
        p = self.parameters
        with workers(1) as pool, np.errstate(over="ignore", invalid="ignore"):
            options: dict[str, Any] = {"dtype": p.rho.dtype, "row_weight": self.weight}
            solver = RowsSolver(self.bound, self.spec, pool, **options)
            blocks = [self.context_block] if context else self.blocks
            posterior = SoftmaxPosterior(solver, self.vectors, entities, blocks, context=context)
            start = posterior.theta(posterior.block(self.vectors))
            problems = posterior.problems(start, None, p.rho.dtype)
            solution = self._count_exhausted(problems.run(0.5 * tol * start.shape[1]))
            filled = posterior.filled(posterior.vectors(solution.theta))
        p.alpha[entities] = filled.bag[entities, : self.space.k]
        self._store(entities, filled.target[entities], filled.intercept[entities])

    def extend(self, fitted: FittedEmbedding) -> FittedEmbedding:
        """The fitted model with the new entities."""
        spec, context = replace(fitted.spec, family=self.spec.family), fitted.spec.context
        if context.positions is not None:
            options = {**context.get_params(deep=False), "positions": self.positions}
            spec = replace(spec, context=type(context)(**options))
        return replace(
            fitted,
            parameters=self.parameters.astype(fitted.parameters.rho.dtype),
            spec=spec,
            vocabulary=_extend_vocabulary(fitted.vocabulary, self.data),
            positions=self.positions,
            lists=self.bound.lists,
        )


# -- room for the new entities -----------------------------------------------------------------


def _check_values(data: Dataset, spec: Spec) -> None:
    if data.n_dims > 1:
        raise ParameterError("fold_in takes scalar data; use partial_fit")
    check_support(data, spec.family, allow_real=True, way_out="correct such values")


def _make_room(
    known: Parameters, space: ParameterSpace, bound: BoundContext, new: Ints, weight: Floats
) -> Parameters:
    """Rows for new entities: zeros (positive vectors: small numbers) and the usual intercept."""
    spec, k = space.spec, space.k
    signed = not (spec.positive_rho or spec.positive_alpha)
    small = ParameterSpace(spec, space.n_entities, space.n_slots, 1, 1) if signed else space
    first = initial_parameters(small, Statistics.of(bound, weight), np.random.default_rng(0))
    zeros = np.zeros((len(new), k))
    rho = _append(known.rho, first.rho[new] if spec.positive_rho else zeros)
    alpha = _append(known.alpha, first.alpha[new] if spec.positive_alpha else zeros)
    intercept = None
    if known.intercept is not None and first.intercept is not None:
        intercept = _append(known.intercept, first.intercept[new])
    terms, positive = {}, {array.name for array in space.layout if array.positive}
    for name, array in known.terms.items():
        by_entity = space.shape_of(name) != array.shape
        rows = np.zeros((len(new) if by_entity else 0, *array.shape[1:]))
        if by_entity and name in positive:
            rows = first.terms[name][new]
        terms[name] = _append(array, rows)
    return Parameters(rho, alpha, intercept, terms=terms)


def _append(known: Floats, rows: Floats) -> Floats:
    return np.concatenate([known, rows.astype(known.dtype)])


def _replace_priors(spec: Spec, prior: Prior | str, known: Parameters) -> Spec:
    """The model with the priors of the new vectors."""
    if isinstance(prior, Prior):
        prior.check()
        changed = replace(spec, prior_rho=prior)
    elif prior == "model":
        changed = spec
    else:
        rho = tighten(spec.prior_rho, known.rho, positive=spec.positive_rho)
        alpha = tighten(spec.prior_alpha, known.alpha, positive=spec.positive_alpha)
        changed = replace(spec, prior_rho=rho, prior_alpha=alpha)
    if (changed.positive_rho, changed.positive_alpha) != (spec.positive_rho, spec.positive_alpha):
        raise ParameterError(f"the model's vectors do not take {prior!r}: the sign differs")
    return changed


def _term_priors(
    spec: Spec, prior: Prior | str, known: Parameters
) -> Mapping[str, Prior | None] | None:
    """Priors of the entity sides of new entities by the label of the term; None: the model's."""
    if prior != "fitted":
        return None
    priors = {}
    for term in (term for term in spec.terms if term.width):
        values = known.terms[f"{term.label}.{term.entity_array}"]
        priors[term.label] = tighten(term.entity_prior, values, positive=term.positive)
    return priors


def tighten(prior: Prior | None, known: Floats, *, positive: bool) -> Prior | None:
    """The prior, at least as tight as a normal one with the spread of the known vectors."""
    precision = 1.0 / max(float(np.mean(known.astype(np.float64) ** 2)), 1e-12)
    if prior is None:
        return HalfNormal(precision) if positive else Normal(precision)
    return prior.tightened(precision)


def _extend_vocabulary(known: Vocabulary | None, data: Dataset) -> Vocabulary | None:
    """Labels of all entities; if counts are known, those of new entities refer to these data."""
    if known is None or data.entities is None or known.counts is None:
        return None if known is None else data.entities
    present = np.asarray((data.values != 0).sum(axis=0)).ravel()
    counts = np.concatenate([known.counts, present[len(known) :]])
    return Vocabulary(data.entities.labels, counts=counts)


# -- neighbors of new entities among the known ones --------------------------------------------


def _extend_lists(
    fitted: FittedEmbedding, data: Dataset, new: Ints, positions: Floats | None, weight: Floats
) -> tuple[Lists, ...]:
    """The lists of the model, and for each new entity its nearest known ones.

    data : with known entities first;  new : the others;  positions : of all, or None
    weight : of the rows
    """
    assert fitted.lists is not None
    old_lists = fitted.lists[0]
    k = int(np.diff(old_lists.ptr).max(initial=0))
    nearest = fitted.spec.context.find_known(data, new, k, positions, weight)
    members = np.concatenate([old_lists.members, *nearest])
    degree = np.concatenate([np.diff(old_lists.ptr), [len(near) for near in nearest]])
    ptr = np.concatenate([[0], np.cumsum(degree)]).astype(np.int64)
    none = np.zeros(len(members), dtype=np.int64)
    lists = Lists(ptr, members, none, none, old_lists.scale, old_lists.binary)
    center = old_lists.column_center
    if center is not None:
        lists = replace(lists, center=center[members])
    if old_lists.ridge is not None:  # new entities get the usual one
        usual = np.full(len(members) - len(old_lists.ridge), np.median(old_lists.ridge))
        lists = replace(lists, ridge=np.concatenate([old_lists.ridge, usual]))
    return (lists,)


def _extend_positions(fitted: FittedEmbedding, data: Dataset, aligned: Dataset) -> Floats | None:
    """Positions of all entities; None if neighbors are determined by correlation.

    data : as the user passed them;  aligned : the same with known entities first
    """
    old_positions = fitted.spec.context.positions
    old_positions = fitted.positions if old_positions is None else np.asarray(old_positions)
    if old_positions is None:
        return None
    return positions_with_new(data, aligned, fitted.vocabulary, old_positions)
