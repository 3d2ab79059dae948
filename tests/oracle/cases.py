"""Every valid combination of the objective's options, on the tiny data."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from oracle import tiny
from oracle.loops import Problem, problem
from oracle.members import n_slots
from oracle.model import Array, Model, Penalty, Point

LINKS = {
    "gaussian": ("identity", "softplus"),
    "gaussian-learned": ("identity", "softplus"),
    "poisson": ("identity", "log", "softplus", "log-softplus"),
    "bernoulli": ("identity",),
    "negative-binomial": ("identity",),
    "categorical": ("identity",),
}
SCALES = ("none", "items", "total")
STRUCTURES = ("per-entity", "tied", "shared")
NORMAL: Penalty = ("normal", 0.8, 0.0)
LOGNORMAL: Penalty = ("lognormal", 0.7, -0.4)
HALFNORMAL: Penalty = ("halfnormal", 1.3, 0.0)
ONE_PRIOR: tuple[tuple[Penalty, Penalty], ...] = (
    (None, None),
    (NORMAL, NORMAL),
    (LOGNORMAL, LOGNORMAL),
    (HALFNORMAL, HALFNORMAL),
)
TWO_PRIORS: tuple[tuple[Penalty, Penalty], ...] = (
    (NORMAL, LOGNORMAL),
    (HALFNORMAL, None),
    (LOGNORMAL, HALFNORMAL),
    (None, NORMAL),
)


@dataclass(frozen=True)
class Case:
    """One combination."""

    kind: str
    family: str
    link: str = "identity"
    combine: str = "linear"
    structure: str = "per-entity"
    scale: str = "none"
    binary: bool = False
    intercept: bool = True
    priors: tuple[Penalty, Penalty] = (None, None)
    zero_weight: float = 1.0
    prior_intercept: Penalty = None
    n_dims: int = 1
    missing: bool = False

    @property
    def distribution(self) -> str:
        return "gaussian" if self.family == "gaussian-learned" else self.family

    @property
    def name(self) -> str:
        priors = "/".join("none" if one is None else one[0] for one in self.priors)
        flags = [
            "binary" if self.binary else "",
            "intercept" if self.intercept else "",
            f"w={self.zero_weight:g}" if self.zero_weight != 1 else "",
            f"D={self.n_dims}" if self.n_dims != 1 else "",
            "missing" if self.missing else "",
            f"b~{self.prior_intercept[0]}" if self.prior_intercept else "",
        ]
        parts = [self.kind, self.family, self.link, self.combine, self.structure, self.scale]
        return " ".join([*parts, priors, *filter(None, flags)])


def valid(case: Case) -> bool:
    """Is this combination one that the model has?"""
    if case.link not in LINKS[case.family]:
        return False
    if case.link == "log" and any(one is not None and one[0] == "normal" for one in case.priors):
        return False
    whole_rows = case.kind == "basket" and case.zero_weight == 1 and case.n_dims == 1
    if case.family == "categorical" and not whole_rows:
        return False
    if case.missing and case.distribution != "gaussian":
        return False
    if case.structure == "tied" and case.priors[0] != case.priors[1]:
        return False
    return case.structure != "tied" or not tiny.has_slots(case.kind)


def model_of(case: Case) -> Model:
    """The oracle's model of a combination."""
    shared = case.structure == "shared"
    return Model(
        parts=tiny.parts(case.kind, case.scale, case.binary),
        family=case.distribution,
        link=case.link,
        sigma2=None if case.family == "gaussian-learned" else 0.7,
        r=1.5,
        combine=case.combine,
        structure=case.structure,
        rho_of=tiny.RHO_OF if shared else None,
        alpha_of=tiny.ALPHA_OF if shared else None,
        prior_rho=case.priors[0],
        prior_alpha=case.priors[1],
        prior_intercept=case.prior_intercept,
        zero_weight=case.zero_weight,
        intercept=case.intercept,
    )


def data_of(case: Case) -> Array:
    """`total` divides by a sum of values, which must not be negative."""
    nonnegative = case.scale == "total"
    return tiny.data(case.distribution, nonnegative, case.missing, case.n_dims)


def problem_of(case: Case) -> Problem:
    """The combination on its data."""
    return problem(model_of(case), data_of(case), tiny.RECORDINGS)


def point_of(case: Case) -> Point:
    """Parameters drawn for this combination, positive where they have to be."""
    model = model_of(case)
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    dims = () if case.n_dims == 1 else (case.n_dims,)
    n_rho = n_alpha = tiny.N_ENTITIES
    if case.structure == "shared":
        n_rho, n_alpha = max(tiny.RHO_OF) + 1, max(tiny.ALPHA_OF) + 1

    def draw(shape: tuple[int, ...], positive: bool) -> Array:
        z = rng.standard_normal(shape)
        return 0.5 * np.exp(0.4 * z) if positive else 0.5 * z

    rho = draw((n_rho, tiny.N_COMPONENTS, *dims), model.rho_positive)
    rows = n_slots(model.parts) * n_alpha
    alpha = draw((rows, tiny.N_COMPONENTS, *dims), model.alpha_positive)
    if case.structure == "tied":
        alpha = rho
    if not case.intercept:
        return Point(rho, alpha, None)
    return Point(rho, alpha, draw((tiny.N_ENTITIES, *dims), model.intercept_positive))


def groups(combines: tuple[str, ...] = ("linear", "reverse")) -> list[tuple[str, str, str, str]]:
    """(family, link, structure, combine): one test each."""
    pairs = [(family, link) for family, links in LINKS.items() for link in links]
    every = itertools.product(pairs, STRUCTURES, combines)
    return [(family, link, structure, how) for (family, link), structure, how in every]


def combinations(
    family: str, link: str, structure: str, combine: str, complete: bool
) -> Iterator[Case]:
    """Valid scale x binary x intercept x prior x zero weight of a group, on context kinds.

    Each such combination runs on a basket and on one other kind (reverse: on one kind); on all
    kinds when `complete`.
    """
    everything = itertools.product(
        SCALES, (False, True), (False, True), ONE_PRIOR + TWO_PRIORS, (1.0, 0.3)
    )
    for turn, (scale, binary, intercept, priors, weight) in enumerate(everything):
        made = [
            Case(kind, family, link, combine, structure, scale, binary, intercept, priors, weight)
            for kind in tiny.KINDS
        ]
        made = [_with_gaps(case) for case in made]
        made = [case for case in made if valid(case)]
        if complete:
            yield from made
            continue
        # A checksum has no rhythm in common with the loops, as a plain turn would.
        pick = zlib.crc32(repr((family, link, structure, turn)).encode())
        if combine == "linear":
            yield from [case for case in made if case.kind == "basket"]
            made = [case for case in made if case.kind != "basket"]
        yield from made[pick % len(made) :][:1] if made else []


def _with_gaps(case: Case) -> Case:
    """Gaussian data have gaps except in baskets, whose fast path may be sparse."""
    if case.distribution != "gaussian" or "basket" in case.kind:
        return case
    return Case(**{**case.__dict__, "missing": True})
