"""ParameterSpace: from unconstrained parameters to the vectors of a solver, and gradients back."""

from __future__ import annotations

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import ParameterError
from efemb.model.factors import Factors
from efemb.model.parameters import Parameters, flatten, unflatten
from efemb.model.priors import HalfNormal, Normal, Prior
from efemb.model.spec import Spec
from efemb.model.structures import sum_rows


class ParameterSpace:
    """Shapes, positivity, sharing and priors of one model on one data set."""

    def __init__(self, spec: Spec, n_entities: int, n_slots: int, n_dims: int, k: int) -> None:
        self.spec, self.n_entities, self.n_slots, self.n_dims = spec, n_entities, n_slots, n_dims
        self.k = k
        self.rho_of, self.alpha_of = spec.structure.maps(n_entities)
        self.positional = bool(getattr(spec.context, "positional", False))
        if spec.structure.tied and n_slots > 1 and not self.positional:
            raise ParameterError("Tied vectors need one context vector an entity: Lagged(shared)")
        self.n_rho = _rows(self.rho_of, n_entities)
        self.n_alpha = _rows(self.alpha_of, n_entities)
        self.plain = (
            not spec.structure.tied and self.rho_of is None and self.alpha_of is None
        ) and n_dims == 1
        self.plain &= not self.positional

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None]:
        """Shapes of rho, alpha and the intercept."""
        tail = () if self.n_dims == 1 else (self.n_dims,)
        rho = (self.n_rho, self.k, *tail)
        slots = 1 if self.positional else self.n_slots
        alpha = rho if self.spec.structure.tied else (self.n_alpha * slots, self.k, *tail)
        return rho, alpha, (self.n_entities, *tail) if self.spec.intercept else None

    @property
    def position_shape(self) -> tuple[int, int] | None:
        """Shape of the weights of the places of a window."""
        return (self.n_slots, self.k) if self.positional else None

    def checked(self, parameters: Parameters) -> Parameters:
        """The parameters as float64, after checking shapes, finiteness and signs."""
        tied = self.spec.structure.tied
        alpha = parameters.rho if tied and parameters.alpha is None else parameters.alpha
        given = (parameters.rho, alpha, parameters.intercept, parameters.position)
        names, shapes = ("rho", "alpha", "intercept", "position"), self.shapes()
        arrays: list[Floats | None] = []
        for name, value, shape in zip(names, given, (*shapes, self.position_shape), strict=True):
            if shape is None or value is None:
                if shape is not None or (value is not None and np.any(value)):
                    need = "missing" if shape is not None else "given, but the model has none"
                    raise ParameterError(f"{name} is {need}")
                arrays.append(None)
                continue
            array = np.asarray(value, dtype=np.float64)
            if array.shape != shape:
                raise ParameterError(f"{name} must have shape {shape}, got {array.shape}")
            if not np.isfinite(array).all():
                raise ParameterError(f"{name} holds NaN or infinite numbers")
            arrays.append(array)
        rho, alpha_array, intercept, position = arrays
        assert rho is not None
        assert alpha_array is not None
        found = Parameters(rho, alpha_array, intercept, position)
        if tied and not np.array_equal(rho, alpha_array):
            raise ParameterError("a Tied model has rho = alpha: pass the same array twice")
        for name, value, positive in self.signed(found):
            if positive and value.min() <= 0:
                raise ParameterError(f"{name} must be positive in this model")
        return found

    def signed(self, p: Parameters) -> list[tuple[str, Floats, bool]]:
        """(name, array, whether it is positive) of every array."""
        found = [
            ("rho", p.rho, self.spec.positive_rho),
            ("alpha", p.alpha, self.spec.positive_alpha),
        ]
        if p.intercept is not None:
            found.append(("intercept", p.intercept, self.spec.positive_intercept))
        if p.position is not None:
            found.append(("position", p.position, self.spec.link.needs_positive))
        return found

    def unconstrained(self, parameters: Parameters) -> Parameters:
        """Logarithms where the vectors are positive."""
        signed = self.signed(parameters)
        return parameters.like(np.log(v) if positive else v.copy() for _, v, positive in signed)

    def constrained(self, theta: Parameters) -> Parameters:
        """The vectors themselves; arrays without a constraint are shared, not copied."""
        arrays = [positive_exp(v) if positive else v for _, v, positive in self.signed(theta)]
        if self.spec.structure.tied:
            arrays[1] = arrays[0]
        return theta.like(arrays)

    def vectors(self, parameters: Parameters) -> Factors:
        """Flat vectors of every entity; under the reverse conditional with exchanged roles."""
        rho = parameters.rho if self.rho_of is None else parameters.rho[self.rho_of]
        alpha = parameters.rho if self.spec.structure.tied else parameters.alpha
        if self.alpha_of is not None:
            slots = alpha.reshape(-1, self.n_alpha, *alpha.shape[1:])
            alpha = slots[:, self.alpha_of].reshape(-1, *alpha.shape[1:])
        if parameters.position is not None:  # the weights act on what is summed
            summed = rho if self.spec.combine.reverse else alpha
            weighted = (parameters.position[:, None] * summed).reshape(-1, self.k)
            rho, alpha = (weighted, alpha) if self.spec.combine.reverse else (rho, weighted)
        intercept = parameters.intercept
        if intercept is None:
            intercept = np.zeros(self.n_entities * self.n_dims, dtype=rho.dtype)
        found = Factors(flatten(rho), flatten(alpha), intercept.reshape(-1))
        return found.swapped() if self.spec.combine.reverse else found

    def pull_back(
        self, parameters: Parameters, slopes: Factors, *, chain_rule: bool = True
    ) -> Parameters:
        """Gradient in the unconstrained parameters from the gradient in the vectors.

        Without the `chain_rule` it is that in the parameters themselves.
        """
        if self.spec.combine.reverse:
            slopes = slopes.swapped()
        rho, alpha = unflatten(slopes.target, self.n_dims), unflatten(slopes.bag, self.n_dims)
        position = None
        if parameters.position is not None:
            reverse = self.spec.combine.reverse
            summed, position = self._without_places(parameters, rho if reverse else alpha)
            rho, alpha = (summed, alpha) if reverse else (rho, summed)
        if self.rho_of is not None:
            rho = sum_rows(rho, self.rho_of, self.n_rho)
        if self.alpha_of is not None:
            slots = alpha.reshape(-1, self.n_entities, *alpha.shape[1:])
            parts = [sum_rows(slot, self.alpha_of, self.n_alpha) for slot in slots]
            alpha = np.concatenate(parts)
        if self.spec.structure.tied:
            rho, alpha = rho + alpha, np.zeros_like(alpha)
        intercept = None
        if parameters.intercept is not None:
            intercept = slopes.intercept.reshape(-1, *parameters.intercept.shape[1:])
        gradient = Parameters(rho, alpha, intercept, position)
        if chain_rule:
            self._chain_rule(parameters, gradient, slopes.rows)
        return gradient

    def _without_places(self, parameters: Parameters, slope: Floats) -> tuple[Floats, Floats]:
        """Gradients of vectors and place weights from that of their products."""
        assert parameters.position is not None
        tied = self.spec.structure.tied or self.spec.combine.reverse
        vectors = parameters.rho if tied else parameters.alpha
        index = self.rho_of if self.spec.combine.reverse else self.alpha_of
        vectors = vectors if index is None else vectors[index]
        slots = slope.reshape(self.n_slots, *vectors.shape)
        by_place = np.einsum("snk,nk->sk", slots, vectors)
        return np.einsum("snk,sk->nk", slots, parameters.position), by_place

    def _chain_rule(self, parameters: Parameters, gradient: Parameters, rows: Ints | None) -> None:
        signed = self.signed(parameters)
        for (_, value, positive), slope in zip(signed, gradient.arrays(), strict=True):
            if positive:
                np.multiply(slope, value if rows is None else value[rows], out=slope)

    def priors(self, parameters: Parameters) -> list[tuple[int, Prior, Floats]]:
        """(place, prior, array) of every penalised array."""
        spec = self.spec
        found = [(0, spec.prior_rho, parameters.rho)]
        if not spec.structure.tied:
            found.append((1, spec.prior_alpha, parameters.alpha))
        if parameters.intercept is not None:
            found.append((2, spec.intercept_prior, parameters.intercept))
        return [(place, prior, array) for place, prior, array in found if prior is not None]

    def log_prior(self, parameters: Parameters) -> float:
        """Sum of the log-priors."""
        return float(sum(prior.log_density(array) for _, prior, array in self.priors(parameters)))

    def add_prior(self, parameters: Parameters, gradient: Parameters) -> None:
        """Add the priors' gradient in place."""
        slopes = list(gradient.arrays())
        for place, prior, array in self.priors(parameters):
            slopes[place] += prior.gradient(array)

    def shrinkage(self, *, of_positive: bool = False) -> list[float]:
        """Precision of each array with a `Normal` prior: optimisers can fold it into a step.

        On request also of positive arrays with a `HalfNormal` one.
        """
        spec = self.spec
        found = [spec.prior_rho, None if spec.structure.tied else spec.prior_alpha]
        if spec.intercept:
            found.append(spec.intercept_prior)
        signs = (spec.positive_rho, spec.positive_alpha, spec.positive_intercept)
        known = ((Normal,), (HalfNormal,) if of_positive else ())  # of signed, of positive arrays
        shrinkage = [0.0] * (len(found) + self.positional)
        for place, (prior, positive) in enumerate(zip(found, signs, strict=False)):
            if isinstance(prior, Normal | HalfNormal) and type(prior) in known[positive]:
                shrinkage[place] = float(prior.precision)
        return shrinkage


def positive_exp(logarithm: Floats, out: Floats | None = None) -> Floats:
    """exp that never underflows to 0, so that the logarithm of a positive vector exists."""
    clipped = np.clip(logarithm, -80.0, 80.0, out=out)
    return np.asarray(np.exp(clipped, out=out))


def _rows(index: Ints | None, n_entities: int) -> int:
    return n_entities if index is None else int(index.max()) + 1
