"""ParameterSpace: maps unconstrained parameters to a solver's vectors, and gradients back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError
from efemb.model.factors import Factors, GroupVectors
from efemb.model.parameters import CORE, Parameters, flatten, unflatten
from efemb.model.priors import Prior
from efemb.model.spec import Spec
from efemb.model.terms.base import arrays_of


@dataclass(frozen=True)
class ArraySpec:
    """Name, shape, sign and prior of one array of parameters."""

    name: str
    shape: tuple[int, ...]
    positive: bool
    prior: Prior | None


class ParameterSpace:
    """Names, shapes, signs, sharing and priors of the parameters of one model on one data set."""

    def __init__(self, spec: Spec, n_entities: int, n_slots: int, n_dims: int, k: int) -> None:
        self.spec, self.n_entities, self.n_slots, self.n_dims = spec, n_entities, n_slots, n_dims
        self.k = k
        self.n_rho, self.n_alpha = spec.structure.sizes(n_entities)
        self.positional = bool(getattr(spec.context, "positional", False))
        if spec.structure.tied and n_slots > 1 and not self.positional:
            raise ParameterError("Tied vectors need one context vector per entity: Lagged(shared)")
        self.by_entity = (  # a row of rho and of alpha for each entity
            not spec.structure.tied
            and all(spec.structure.own_rows)
            and n_dims == 1
            and not self.positional
            and not spec.structure.grouped
        )
        self.plain = self.by_entity and not spec.terms
        size = spec.family.n_entities
        if size is not None and size != n_entities:
            raise ParameterError(
                f"{type(spec.family).__name__} has parameters of {size} entities, but there are "
                f"{n_entities}"
            )
        if spec.family.varies and n_dims > 1:
            raise ParameterError(
                f"{spec.family!r} has parameters of entities, which takes one number per "
                "observation, not vectors of them"
            )
        if spec.structure.contexts and n_slots > 1:
            raise ParameterError(
                f"{spec.structure!r} has one context vector per entity and group, but here an "
                f"entity has {n_slots:,} context vectors (Lagged, positional windows): leave out "
                "contexts=True"
            )
        for used, named in ((spec.terms, "terms"), (spec.structure.grouped, "groups of rows")):
            if used and n_dims > 1:
                raise ParameterError(f"{named} need scalar observations, not vectors of them")

    @cached_property
    def layout(self) -> tuple[ArraySpec, ...]:
        """Every array, in the order of `Parameters.named`."""
        spec, tail = self.spec, () if self.n_dims == 1 else (self.n_dims,)
        rho = (self.n_rho, self.k, *tail)
        slots = 1 if self.positional else self.n_slots
        alpha, prior = (self.n_alpha * slots, self.k, *tail), spec.prior_alpha
        if spec.structure.tied:  # one array, penalized once
            alpha, prior = rho, None
        arrays = [
            ArraySpec("rho", rho, spec.positive_rho, spec.prior_rho),
            ArraySpec("alpha", alpha, spec.positive_alpha, prior),
        ]
        if spec.intercept:
            shape, positive = (self.n_entities, *tail), spec.positive_intercept
            arrays.append(ArraySpec("intercept", shape, positive, spec.intercept_prior))
        if self.positional:
            shape = (self.n_slots, self.k)
            arrays.append(ArraySpec("position", shape, spec.link.needs_positive, None))
        for own in spec.structure.arrays(self.n_entities, self.k, spec.prior_rho):
            arrays.append(ArraySpec(self.prefix + own.name, own.shape, False, own.prior))
        for term in spec.terms:
            for array in term.arrays(self.n_entities):
                name = f"{term.label}.{array.name}"
                arrays.append(ArraySpec(name, array.shape, array.positive, array.prior))
        return tuple(arrays)

    @property
    def prefix(self) -> str:
        """Prefix of the names of the structure's arrays."""
        return f"{self.spec.structure.name()}."

    def of_structure(self, arrays: Mapping[str, Floats]) -> dict[str, Floats]:
        """The arrays of the structure, by their names within it."""
        named = ((name, name.removeprefix(self.prefix)) for name in arrays)
        return {own: arrays[name] for name, own in named if own != name}

    @cached_property
    def of_terms(self) -> tuple[str, ...]:
        """Names of the arrays of the structure and the terms."""
        return tuple(array.name for array in self.layout if array.name not in CORE)

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """Shape of an array, None if the model has no array of this name."""
        return next((array.shape for array in self.layout if array.name == name), None)

    def checked(self, parameters: Parameters) -> Parameters:
        """The parameters as float64, after checking shapes, finiteness and signs.

        Arrays of the structure may be missing: they then start at 0, as if there were no structure.
        """
        tied = self.spec.structure.tied
        values = parameters.named()
        if tied:
            values.setdefault("alpha", parameters.rho)
        for own in self.spec.structure.arrays(self.n_entities, self.k, self.spec.prior_rho):
            if own.spread == 0:
                values.setdefault(self.prefix + own.name, np.zeros(own.shape))
        for name, value in values.items():
            if self.shape_of(name) is None and np.any(value):
                raise ParameterError(f"{name} is given, but the model has none")
        arrays = {array.name: _check_array(array, values) for array in self.layout}
        if tied and not np.array_equal(arrays["rho"], arrays["alpha"]):
            raise ParameterError("a Tied model has rho = alpha: pass the same array twice")
        return Parameters.from_named(arrays)

    def signed(self, parameters: Parameters) -> list[tuple[str, Floats, bool]]:
        """(name, array, whether it is positive) of every array."""
        signs = {array.name: array.positive for array in self.layout}
        return [(name, array, signs[name]) for name, array in parameters.named().items()]

    def unconstrained(self, parameters: Parameters) -> Parameters:
        """The parameters, with logarithms of positive vectors."""
        signed = self.signed(parameters)
        return parameters.like(np.log(v) if positive else v.copy() for _, v, positive in signed)

    def constrained(self, theta: Parameters) -> Parameters:
        """The vectors themselves; arrays without a constraint are shared, not copied."""
        arrays = [positive_exp(v) if positive else v for _, v, positive in self.signed(theta)]
        if self.spec.structure.tied:
            arrays[1] = arrays[0]
        return theta.like(arrays)

    def vectors(self, parameters: Parameters, room: dict[str, Floats] | None = None) -> Factors:
        """Flat vectors of every entity; under the reverse conditional with swapped roles.

        room : arrays of earlier vectors that are no longer needed, to be overwritten
        """
        structure, reverse = self.spec.structure, self.spec.combine.reverse
        rho, alpha = structure.spread(parameters.rho, parameters.alpha, self.n_entities)
        if parameters.position is not None:  # the weights multiply what is summed
            summed = rho if reverse else alpha
            weighted = (parameters.position[:, None] * summed).reshape(-1, self.k)
            rho, alpha = (weighted, alpha) if reverse else (rho, weighted)
        intercept = parameters.intercept
        if intercept is None:
            intercept = np.zeros(self.n_entities * self.n_dims, dtype=rho.dtype)
        factors = Factors(flatten(rho), flatten(alpha), intercept.reshape(-1))
        if not self.spec.combine.inner_product:
            factors.combine = self.spec.combine
        if structure.grouped:
            own = self.of_structure(parameters.terms)
            shared = (factors.target, factors.intercept, factors.bag)
            factors.groups = GroupVectors(structure, own, *shared)
        if self.spec.terms:
            factors = self._add_terms(factors, parameters.terms, {} if room is None else room)
        return factors.swapped() if reverse else factors

    def _add_terms(
        self, factors: Factors, arrays: dict[str, Floats], room: dict[str, Floats]
    ) -> Factors:
        """Append the entity sides of the terms to rho."""
        width = sum(term.width for term in self.spec.terms)
        if width == 0:
            return replace(factors, terms=arrays)
        rho, start = factors.target, self.k
        if "target" not in room:
            room["target"] = np.empty((len(rho), self.k + width), dtype=rho.dtype)
        target = room["target"]
        target[:, : self.k] = rho
        for term in self.spec.terms:
            columns = term.entity_columns(arrays_of(term, arrays), self.n_entities)
            target[:, start : start + term.width] = columns
            start += term.width
        return replace(factors, target=target, terms=arrays, width=width)

    def pull_back(
        self, parameters: Parameters, slopes: Factors, *, chain_rule: bool = True
    ) -> Parameters:
        """Gradient in the unconstrained parameters from the gradient in the vectors.

        Without the `chain_rule` it is the gradient in the parameters themselves.
        """
        if self.spec.combine.reverse:
            slopes = slopes.swapped()
        if self.spec.structure.grouped:
            slopes = self._pull_back_groups(parameters, slopes)
        target = slopes.target[:, : self.k]
        rho, alpha = unflatten(target, self.n_dims), unflatten(slopes.bag, self.n_dims)
        position = None
        if parameters.position is not None:
            reverse = self.spec.combine.reverse
            summed, position = self._pull_back_positions(parameters, rho if reverse else alpha)
            rho, alpha = (summed, alpha) if reverse else (rho, summed)
        rho, alpha = self.spec.structure.collect(rho, alpha, self.n_entities)
        intercept = None
        if parameters.intercept is not None:
            intercept = slopes.intercept.reshape(-1, *parameters.intercept.shape[1:])
        gradient = Parameters(rho, alpha, intercept, position, self._pull_back_terms(slopes))
        if chain_rule:
            self._chain_rule(parameters, gradient, slopes.rows)
        return gradient

    def _pull_back_groups(self, parameters: Parameters, slopes: Factors) -> Factors:
        """Gradients of the vectors that groups share, and of the arrays of the structure."""
        structure = self.spec.structure
        target, bag = structure.spread(parameters.rho, parameters.alpha, self.n_entities)
        groups = np.array(sorted(slopes.by_group), dtype=np.int64)
        d_target = np.zeros((len(groups), *slopes.target.shape), dtype=slopes.target.dtype)
        d_intercept = np.zeros((len(groups), len(slopes.intercept)), dtype=slopes.intercept.dtype)
        d_bag = np.zeros((len(groups) if structure.contexts else 0, *slopes.bag.shape), bag.dtype)
        for index, group in enumerate(groups.tolist()):
            d_target[index], d_intercept[index], own_bag = slopes.by_group[group]
            if own_bag is not None:
                d_bag[index] = own_bag
        arrays, slopes_of_vectors = self.of_structure(parameters.terms), d_target[..., : self.k]
        own, of_all, intercept = structure.collect_groups(
            arrays, target, groups, slopes_of_vectors, d_intercept
        )
        columns = slopes.target + d_target.sum(axis=0)  # groups do not affect those of terms
        columns[:, : self.k] = slopes.target[:, : self.k] + of_all
        total = replace(slopes, target=columns, intercept=slopes.intercept.copy(), by_group={})
        if structure.contexts:
            moved, of_contexts = structure.collect_contexts(arrays, bag, groups, d_bag)
            own, total.bag = {**own, **moved}, slopes.bag + of_contexts
        total.add_intercepts(intercept)
        total.terms = {**slopes.terms, **{self.prefix + name: own[name] for name in own}}
        return total

    def _pull_back_terms(self, slopes: Factors) -> dict[str, Floats]:
        """Gradients of the arrays of the structure and the terms, summed over both sides."""
        start, total = self.k, Factors(slopes.target, slopes.bag, slopes.intercept)
        total.add_terms(slopes.terms)
        for term in self.spec.terms:
            columns = slopes.target[:, start : start + term.width]
            gradients = term.pull_back_entities(columns)
            total.add_terms({f"{term.label}.{name}": array for name, array in gradients.items()})
            start += term.width
        return {a.name: total.terms[a.name] for a in self.layout if a.name in total.terms}

    def _pull_back_positions(self, parameters: Parameters, slope: Floats) -> tuple[Floats, Floats]:
        """Gradients of vectors and position weights from the gradient of their products."""
        assert parameters.position is not None
        both = self.spec.structure.spread(parameters.rho, parameters.alpha, self.n_entities)
        vectors = both[0] if self.spec.combine.reverse else both[1]
        slots = slope.reshape(self.n_slots, *vectors.shape)
        by_place = np.einsum("snk,nk->sk", slots, vectors)
        return np.einsum("snk,sk->nk", slots, parameters.position), by_place

    def _chain_rule(self, parameters: Parameters, gradient: Parameters, rows: Ints | None) -> None:
        signed = self.signed(parameters)
        for (_, value, positive), slope in zip(signed, gradient.arrays(), strict=True):
            if positive:
                np.multiply(slope, value if rows is None else value[rows], out=slope)

    def priors(self, parameters: Parameters) -> list[tuple[int, Prior, Floats]]:
        """(place, prior, array) of every penalized array."""
        arrays = parameters.named()
        return [
            (index, array.prior, arrays[array.name])
            for index, array in enumerate(self.layout)
            if array.prior is not None
        ]

    def log_prior(self, parameters: Parameters) -> float:
        """Sum of the log-priors."""
        return float(sum(prior.log_density(array) for _, prior, array in self.priors(parameters)))

    def add_prior(self, parameters: Parameters, gradient: Parameters) -> None:
        """Add the priors' gradient in place."""
        slopes = list(gradient.arrays())
        for index, prior, array in self.priors(parameters):
            slopes[index] += prior.gradient(array)

    def shrinkage(self, *, of_positive: bool = False) -> list[float]:
        """Precision of each array with a `Normal` prior, which optimizers can include in a step.

        On request also of positive arrays with a `HalfNormal` prior.
        """
        return [
            array.prior.shrinkage
            if array.prior is not None and (of_positive or not array.positive)
            else 0.0
            for array in self.layout
        ]


def _check_array(array: ArraySpec, values: Mapping[str, Floats]) -> Floats:
    """The value of an array as float64, checked against its specification."""
    if array.name not in values:
        raise ParameterError(f"{array.name} is missing")
    value = np.asarray(values[array.name], dtype=np.float64)
    if value.shape != array.shape:
        raise ParameterError(f"{array.name} must have shape {array.shape}, got {value.shape}")
    if not np.isfinite(value).all():
        raise ParameterError(f"{array.name} holds NaN or infinite numbers")
    if array.positive and value.min() <= 0:
        raise ParameterError(f"{array.name} must be positive in this model")
    return value


def positive_exp(logarithm: Floats, out: Floats | None = None) -> Floats:
    """exp that never underflows to 0, so that the logarithm of a positive vector exists."""
    clipped = np.clip(logarithm, -80.0, 80.0, out=out)
    return np.asarray(np.exp(clipped, out=out))
