"""Grown: a fitted model with room for new entities, and the data that fill it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.align import with_new
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import Vocabulary
from efemb.engine.initial import initial_parameters
from efemb.engine.precision import working_precision
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.engine.statistics import Statistics
from efemb.engine.threads import workers
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.fitted.embedding import FittedEmbedding
from efemb.inference.context_conditionals import ContextConditionals, member_blocks
from efemb.inference.design import Conditionals
from efemb.inference.neighbors import grown_lists, grown_positions
from efemb.inference.own_conditionals import OwnConditionals, entities_at_once
from efemb.inference.posterior import Block, EntityPosterior, vector_blocks
from efemb.inference.row_conditionals import RowConditionals
from efemb.inference.softmax_posterior import SoftmaxPosterior
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.contexts.neighbors import Neighbors
from efemb.model.contexts.window import WindowBags
from efemb.model.factors import Factors
from efemb.model.families import Categorical
from efemb.model.parameters import Parameters
from efemb.model.priors import HalfNormal, LogNormal, Normal, Prior
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.model.support import check_sample_weight

AT_ONCE = 512  # entities solved side by side
MANY_ROWS, THINNING = 20_000, 8


@dataclass
class Grown:
    """A model with room for new entities, and the data that are to fill it."""

    spec: Spec  # with the priors of the new vectors
    data: Dataset
    bound: BoundContext
    space: ParameterSpace
    parameters: Parameters
    new: Ints
    weight: Floats  # of the rows
    blocks: list[Block]  # columns of the new embeddings and of the entity sides of the terms
    positions: Floats | None = None
    exhausted: int = 0  # problems that were given up

    @classmethod
    def of(
        cls, fitted: FittedEmbedding, data: Any, prior: Prior | str, sample_weight: Any
    ) -> Grown:
        """Make room for what is new in the data, or say why there is nothing to solve."""
        if not isinstance(data, Dataset):
            raise InputTypeError(f"fold_in needs a Dataset, got {type(data).__name__}")
        weight = row_weights(sample_weight, data, fitted.spec)
        n_known, spec = fitted.n_entities, fitted.spec
        absent = np.nan if spec.family.missing else 0.0
        moved = with_new(data, fitted.vocabulary, n_known, absent=absent)
        new = np.arange(n_known, moved.n_entities)
        if len(new) == 0:
            raise DataError("the data have no new entity: there is nothing to fold in")
        _check_values(moved, spec)
        positions = None
        if fitted.lists is None:
            bound = spec.context.bind(moved)
        else:
            positions = grown_positions(fitted, data, moved)
            bound = EntityLists(moved, grown_lists(fitted, moved, new, positions, weight))
        _check_bound(bound)
        space = ParameterSpace(spec, bound.n_entities, bound.n_slots, 1, fitted.n_components)
        # Solved where a fit would be: a very large count leaves nothing of its context in float32.
        dtype = working_precision(moved, spec, "rows", fitted.parameters.rho.dtype)
        parameters = _with_room(fitted.parameters.astype(dtype), space, bound, new, weight)
        changed = _with_prior(spec, prior, fitted.parameters)
        blocks = vector_blocks(changed, space.k, _term_priors(spec, prior, fitted.parameters))
        return cls(changed, moved, bound, space, parameters, new, weight, blocks, positions)

    @property
    def context_block(self) -> Block:
        """Columns of the new context vectors."""
        return self.spec.prior_alpha, self.space.k, self.spec.positive_alpha

    @property
    def vectors(self) -> Factors:
        """All vectors as they stand."""
        return self.space.vectors(self.parameters)

    def solve_rho(self, tol: float) -> None:
        """Embeddings and intercepts of the new entities, given all context vectors."""
        if isinstance(self.spec.family, Categorical):
            self._solve_softmax(self.new, tol, context=False)
            return
        step = AT_ONCE
        if not isinstance(self.bound, RowBags):
            step = entities_at_once(self.bound, self.space.k, step)
        for start in range(0, len(self.new), step):
            self._solve_embeddings(self.new[start : start + step], tol)

    def _solve_embeddings(self, new: Ints, tol: float) -> None:
        given, vectors = self._conditionals(new), self.vectors
        posterior = EntityPosterior(given, self.blocks)
        intercept = vectors.intercept[new] if self.spec.intercept else None
        start = posterior.theta(posterior.joined(vectors.target[new], intercept))
        nats = 0.5 * tol * start.shape[1]
        if isinstance(given, RowConditionals) and self.bound.n_rows > MANY_ROWS:
            # Far from the solution a part of the rows shows the way as well as all of them.
            few = EntityPosterior(given.thinned(THINNING), self.blocks)
            problems = few.begin(start)
            problems.run(nats)
            problems.change(posterior.evaluate)
        else:
            problems = posterior.begin(start)
        found = problems.run(nats)
        self.exhausted += int(found.exhausted.sum())
        self._store(new, *posterior.split(posterior.vectors(found.theta)))

    def _store(self, new: Ints, target: Floats, intercept: Floats) -> None:
        """Embeddings, entity sides of the terms and intercepts of some entities."""
        p, k = self.parameters, self.space.k
        p.rho[new] = target[:, :k]
        for term in self.spec.terms:
            p.terms[f"{term.label}.{term.entity_array}"][new] = target[:, k : k + term.width]
            k += term.width
        if p.intercept is not None:
            p.intercept[new] = intercept

    def _conditionals(self, new: Ints) -> Conditionals:
        if isinstance(self.bound, RowBags):
            return RowConditionals(self.spec, self.bound, self.vectors, new, self.weight)
        return OwnConditionals(self.spec, self.bound, self.vectors, new, self.weight)

    def solve_alpha(self, tol: float) -> None:
        """Context vectors of the new entities, given all embeddings."""
        assert isinstance(self.bound, RowBags)
        stored = self.bound.stored
        used = np.unique(stored.ids[(stored.ids >= self.new[0]) & (stored.own != 0)])
        if len(used) == 0:  # what is in no row says nothing about others
            return
        if isinstance(self.spec.family, Categorical):
            self._solve_softmax(used, tol, context=True)
            return
        # All are solved with the others as they were, however few at a time.
        vectors, solved = self.vectors, self.parameters.alpha.copy()
        for some in member_blocks(self.spec, self.bound, used, solved.dtype):
            given = ContextConditionals(self.spec, self.bound, vectors, some, self.weight)
            posterior = EntityPosterior(given, [self.context_block])
            begin = posterior.theta(solved[some])
            found = posterior.begin(begin).run(0.5 * tol * begin.shape[1])
            self.exhausted += int(found.exhausted.sum())
            solved[some] = posterior.vectors(found.theta)
        self.parameters.alpha[:] = solved

    def _solve_softmax(self, which: Ints, tol: float, *, context: bool) -> None:
        assert isinstance(self.bound, RowBags)
        p = self.parameters
        with workers(1) as pool, np.errstate(over="ignore", invalid="ignore"):
            options: dict[str, Any] = {"dtype": p.rho.dtype, "row_weight": self.weight}
            solver = RowsSolver(self.bound, self.spec, pool, **options)
            blocks = [self.context_block] if context else self.blocks
            posterior = SoftmaxPosterior(solver, self.vectors, which, blocks, context=context)
            start = posterior.theta(posterior.block(self.vectors))
            found = posterior.problems(start, None, p.rho.dtype).run(0.5 * tol * start.shape[1])
            self.exhausted += int(found.exhausted.sum())
            filled = posterior.filled(posterior.vectors(found.theta))
        p.alpha[which] = filled.bag[which, : self.space.k]
        self._store(which, filled.target[which], filled.intercept[which])

    def fitted_with(self, fitted: FittedEmbedding) -> FittedEmbedding:
        """The known model, grown."""
        lists = self.bound.lists if isinstance(self.bound, EntityLists) else None
        spec, context = fitted.spec, fitted.spec.context
        if isinstance(context, Neighbors) and context.positions is not None:
            options = {**context.get_params(deep=False), "positions": self.positions}
            spec = replace(spec, context=Neighbors(**options))
        return replace(
            fitted,
            parameters=self.parameters.astype(fitted.parameters.rho.dtype),
            spec=spec,
            vocabulary=_vocabulary(fitted.vocabulary, self.data),
            positions=self.positions,
            lists=lists,
        )


def _check_bound(bound: BoundContext) -> None:
    rows = (
        isinstance(bound, RowBags) and not isinstance(bound, WindowBags) and bound.members is None
    )
    if not rows and not isinstance(bound, EntityLists):
        raise ParameterError("fold_in takes models on baskets or neighbours; use partial_fit")


def _check_values(data: Dataset, spec: Spec) -> None:
    from efemb.model.support import check_support

    if data.n_dims > 1:
        raise ParameterError("fold_in takes scalar data; use partial_fit")
    check_support(data, spec.family, allow_real=True, way_out="correct such values")


def row_weights(sample_weight: Any, data: Any, spec: Spec) -> Floats:
    """Weights of the rows, 1 unless given, and 0 of empty baskets, which no fit heeds."""
    found = check_sample_weight(sample_weight, data.n_rows)
    weight = np.ones(data.n_rows) if found is None else found
    return np.where(data.filled_rows(), weight, 0.0) if spec.context.name() == "basket" else weight


def _with_room(
    known: Parameters, space: ParameterSpace, bound: BoundContext, new: Ints, weight: Floats
) -> Parameters:
    """Rows for new entities: zeros (positive vectors: small numbers) and the usual intercept."""
    spec, k = space.spec, space.k
    signed = not (spec.positive_rho or spec.positive_alpha)
    small = ParameterSpace(spec, space.n_entities, space.n_slots, 1, 1) if signed else space
    first = initial_parameters(small, Statistics.of(bound, weight), np.random.default_rng(0))
    none = np.zeros((len(new), k))
    rho = first.rho[new] if spec.positive_rho else none
    alpha = first.alpha[new] if spec.positive_alpha else none
    intercept = None
    if known.intercept is not None and first.intercept is not None:
        intercept = _joined(known.intercept, first.intercept[new])
    terms = {
        name: _joined(array, np.zeros((len(new), *array.shape[1:])))
        if space.shape_of(name) != array.shape
        else array.copy()
        for name, array in known.terms.items()
    }
    rho, alpha = _joined(known.rho, rho), _joined(known.alpha, alpha)
    return Parameters(rho, alpha, intercept, terms=terms)


def _joined(known: Floats, more: Floats) -> Floats:
    return np.concatenate([known, more.astype(known.dtype)])


def _with_prior(spec: Spec, prior: Prior | str, known: Parameters) -> Spec:
    """The model with the priors of the new vectors."""
    if isinstance(prior, Prior):
        prior.check()
        changed = replace(spec, prior_rho=prior)
    elif prior == "model":
        changed = spec
    else:
        rho = _at_least(spec.prior_rho, known.rho, positive=spec.positive_rho)
        alpha = _at_least(spec.prior_alpha, known.alpha, positive=spec.positive_alpha)
        changed = replace(spec, prior_rho=rho, prior_alpha=alpha)
    if (changed.positive_rho, changed.positive_alpha) != (spec.positive_rho, spec.positive_alpha):
        raise ParameterError(f"the model's vectors do not take {prior!r}: the sign differs")
    return changed


def _term_priors(
    spec: Spec, prior: Prior | str, known: Parameters
) -> dict[str, Prior | None] | None:
    """Priors of the entity sides of new entities by the label of the term; None: the model's."""
    if prior != "fitted":
        return None
    priors = {}
    for term in spec.terms:
        (array,) = (one for one in term.arrays(1) if one.name == term.entity_array)
        values = known.terms[f"{term.label}.{array.name}"]
        priors[term.label] = _at_least(array.prior, values, positive=False)
    return priors


def _at_least(prior: Prior | None, known: Floats, *, positive: bool) -> Prior | None:
    """A Normal (positive: HalfNormal) as tight as the known vectors."""
    if isinstance(prior, LogNormal):
        return prior
    kind = HalfNormal if positive else Normal
    own = float(getattr(prior, "precision", 0.0))
    return kind(max(own, 1.0 / max(float(np.mean(known.astype(np.float64) ** 2)), 1e-12)))


def _vocabulary(known: Vocabulary | None, data: Dataset) -> Vocabulary | None:
    """Labels of all entities; counts, where they are known, of the new ones in these data."""
    if known is None or data.entities is None or known.counts is None:
        return None if known is None else data.entities
    present = np.asarray((data.values != 0).sum(axis=0)).ravel()
    counts = np.concatenate([known.counts, present[len(known) :]])
    return Vocabulary(data.entities.labels, counts=counts)
