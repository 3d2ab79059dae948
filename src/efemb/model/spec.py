"""Spec: the checked ingredients of one model, and which combinations are valid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import ParameterError, check_number, suggest
from efemb.model.combine import Combine
from efemb.model.contexts.base import Context
from efemb.model.families import Family
from efemb.model.ingredient import flag
from efemb.model.links import Link
from efemb.model.priors import Prior, resolve_pair
from efemb.model.structures import Structure
from efemb.model.terms import Term
from efemb.model.terms.base import resolve_terms
from efemb.model.zeros import Zeros

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset


@dataclass(frozen=True)
class Spec:
    """Ingredients as objects; `resolve` builds one from names or objects and checks it."""

    context: Context
    family: Family
    link: Link
    combine: Combine
    structure: Structure
    prior_rho: Prior | None
    prior_alpha: Prior | None
    zeros: Zeros
    intercept: bool
    intercept_prior: Prior | None
    terms: tuple[Term, ...] = ()
    weight_ridge: float | str | None = None  # penalty on (rho_n . alpha_m)^2 in units of sigma2

    @classmethod
    def resolve(  # noqa: PLR0913 - every ingredient is its own keyword
        cls,
        *,
        context: Any,
        family: Any,
        link: Any = "identity",
        combine: Any = "linear",
        structure: Any = "per-entity",
        prior: Any = "normal",
        zeros: Any = "all",
        intercept: bool = True,
        intercept_prior: Any = None,
        terms: Any = (),
        weight_ridge: float | str | None = None,
    ) -> Spec:
        """Build and check a model from names or objects."""
        rho, alpha = resolve_pair(prior)
        of_link, every_term = Link.resolve(link), resolve_terms(terms)
        if of_link.needs_positive:
            every_term = tuple(term.with_positive() for term in every_term)
        spec = cls(
            context=Context.resolve(context),
            family=Family.resolve(family),
            link=of_link,
            combine=Combine.resolve(combine),
            structure=Structure.resolve(structure),
            prior_rho=rho,
            prior_alpha=alpha,
            zeros=Zeros.resolve(zeros),
            intercept=flag("intercept", intercept),
            intercept_prior=(
                None
                if intercept_prior is None
                else Prior.resolve(intercept_prior, "intercept_prior")
            ),
            terms=every_term,
            weight_ridge=weight_ridge,
        )
        spec.check()
        return spec

    def own_ingredients(self) -> list[tuple[str, str]]:
        """User-defined classes: the name of the function that checks each, and of the class."""
        priors = (self.prior_rho, self.prior_alpha, self.intercept_prior)
        ingredients = {
            "check_family": (self.family,),
            "check_context": (self.context,),
            "check_structure": (self.structure,),
            "check_combine": (self.combine,),
            "check_prior": priors,
            "check_term": self.terms,
        }
        classes = [(check, type(each)) for check, used in ingredients.items() for each in used]
        package = f"{__name__.partition('.')[0]}."
        foreign = [
            (check, kind.__name__)
            for check, kind in classes
            if kind is not type(None) and not kind.__module__.startswith(package)
        ]
        return list(dict.fromkeys(foreign))

    @property
    def positive_rho(self) -> bool:
        """Whether rho is positive."""
        return _positive(self.prior_rho, self.link)

    @property
    def positive_alpha(self) -> bool:
        """Whether alpha is positive."""
        return _positive(self.prior_alpha, self.link)

    @property
    def positive_intercept(self) -> bool:
        """Whether intercepts are positive, because both kinds of vectors are."""
        return self.positive_rho and self.positive_alpha

    @property
    def one_of_all(self) -> bool:
        """Whether exactly one of all entities occurs: the word in a gap, a category."""
        return self.context.reads_text or self.family.softmax

    @property
    def relative_means(self) -> bool:
        """Whether means are only right up to a factor, because zeros have another weight."""
        return float(self.zeros.weight) != 1.0 or self.zeros.gradient == "biased"

    def check_means(self) -> None:
        """Reject to compute the distribution of counts from relative means."""
        if self.relative_means:
            raise ParameterError(
                f"zeros={self.zeros!r} weights zeros differently from other counts, so the model "
                "knows shares of means but not the size of counts: fit with zeros='all'"
            )

    def noise_offset(self, popularity: Floats) -> Floats | None:
        """log(n q) of every entity if rows are distinguished from n draws of noise q, else None.

        The odds of an entity against the noise are P / (n q), over the entities of the row. With
        log(n q) subtracted from u, they are fitted by u = log P, up to a constant of the row, so
        that means are proportional to P, whatever the noise was. This takes a free intercept; for
        text the correction is made when shares are computed, see `normalizer_of_words`.
        """
        odds = self.family.logistic or self.family.exponential_mean
        free = self.intercept and not self.positive_intercept and self.link.is_identity
        if not (self.zeros.odds and odds and free) or self.context.reads_text:
            return None
        share = self.zeros.entity_weights(popularity)
        least = 0.1 * float(share[share > 0].min())  # floor for entities that are never drawn
        return np.asarray(np.log(self.zeros.n * np.maximum(share, least)))

    def check(self) -> None:
        """Raise `ParameterError` for invalid options or combinations."""
        self.context.check()
        self.family.check()
        self.zeros.check()
        self._check_contracts()
        self._check_combine()
        _check_link(self.family, self.link)
        self._check_vectors()
        if self.intercept_prior is not None:
            self._check_intercept_prior(self.intercept_prior)
        if self.combine.reverse and (self.context.pseudo_count or self.context.thinning):
            raise ParameterError(
                "pseudo_count and thinning apply to contexts of several members, but with "
                "combine='reverse' every member predicts alone: leave them at 0"
            )
        self._check_parameters_of_entities()
        self._check_zeros()
        self._check_terms()
        self._check_groups()
        _check_ridge(self.weight_ridge)

    def _check_vectors(self) -> None:
        """Signs that the link needs, and priors of tied vectors."""
        for which, prior in (("rho", self.prior_rho), ("alpha", self.prior_alpha)):
            if self.link.needs_positive and prior is not None and not prior.positive:
                raise ParameterError(
                    f"link {self.link.name()!r} needs positive vectors, but the prior of {which} "
                    f"is {prior!r}; use LogNormal, HalfNormal or None"
                )
        if self.structure.tied and self.positive_rho != self.positive_alpha:
            raise ParameterError("Tied vectors need one prior, not two of different sign")
        if self.structure.tied and self.prior_rho != self.prior_alpha:
            raise ParameterError("Tied vectors are penalized once: give one prior, not a pair")

    def _check_parameters_of_entities(self) -> None:
        """Families with parameters or states of each entity do not suit every combination."""
        if self.family.varies and (self.combine.reverse or self.context.reads_text):
            raise ParameterError(
                f"{self.family!r} has parameters of entities, which need rows x entities and "
                "combine='linear'"
            )
        if self.family.varies and self.family.learns and not self.link.is_identity:
            raise ParameterError(
                f"{self.family!r} learns parameters of entities under the identity link only, not "
                f"under {self.link.name()!r}"
            )
        if self.family.states > 1 and (self.combine.reverse or float(self.zeros.weight) != 1.0):
            raise ParameterError(
                f"{self.family!r} has no zeros to weigh and predicts an entity from its context: "
                "use zeros='all' and combine='linear'"
            )

    def _check_contracts(self) -> None:
        """Try user-defined ingredients; questions to a saved model need no such check."""
        priors = (self.prior_rho, self.prior_alpha, self.intercept_prior)
        ingredients = (self.family, self.link, self.combine, *priors)
        if all(ingredient is None or ingredient.is_shipped() for ingredient in ingredients):
            return
        from efemb.model import contract

        contract.check_family_contract(self.family)
        contract.check_link_contract(self.link)
        contract.check_combine_contract(self.combine, sum(term.width for term in self.terms))
        for prior in priors:
            contract.check_prior_contract(prior)

    def _check_combine(self) -> None:
        """A user-defined combination takes signed vectors and rows x entities."""
        if self.combine.inner_product:
            return
        if self.link.needs_positive or self.context.reads_text:
            obstacle = f"link {self.link.name()!r}" if self.link.needs_positive else "text"
            raise ParameterError(f"combine={self.combine!r} cannot be combined with {obstacle}")

    def _check_terms(self) -> None:
        """Terms need rows; their signs are those of the predictor."""
        if not self.terms:
            return
        signed = [term for term in self.terms if not term.positive]
        if self.link.needs_positive and signed:
            raise ParameterError(
                f"{signed[0]!r} adds numbers of either sign, but link {self.link.name()!r} needs a "
                "positive predictor, whose terms are RowVectors and History: use PoissonEmbedding, "
                "whose link is the identity, for other terms"
            )
        if self.combine.reverse:
            raise ParameterError("terms need combine='linear'; a reverse model has none")
        if self.context.reads_text:
            raise ParameterError("terms need rows x entities; text (Window) has none")
        for term in self.terms:
            term.check_model(self.family, self.link)

    def _check_groups(self) -> None:
        """Groups of rows have signed vectors, and they need rows."""
        self.structure.check()
        if self.structure.signed and (self.positive_rho or self.positive_alpha):
            raise ParameterError(
                f"{self.structure!r} adds vectors of either sign, but vectors are positive here: "
                "use a Normal prior and the identity link, or structure='per-entity'"
            )
        if not self.structure.grouped:
            return
        if self.structure.contexts and self.positive_alpha:
            raise ParameterError(
                f"{self.structure!r} adds vectors of either sign to alpha, which is positive here: "
                "use a Normal prior, or leave out contexts=True"
            )
        if self.positive_rho or self.link.needs_positive:
            raise ParameterError(
                f"{self.structure!r} adds vectors of either sign to rho, which is positive here: "
                "use a Normal prior and the identity link, or structure='per-entity'"
            )
        if self.combine.reverse:
            raise ParameterError(
                f"{self.structure!r} needs combine='linear'; a reverse model has no groups"
            )
        drawn = self.zeros.by_noise or self.zeros.of_softmax  # of each word, inside a kernel
        steps = self.structure.has_proximal_step
        if self.context.reads_text and (self.zeros.tree or (drawn and not steps)):
            raise ParameterError(
                f"{self.structure!r} cannot be combined with text (Window) and zeros="
                f"{self.zeros.name()!r}: use zeros=NegativeSampling() and Grouped(column) or "
                "Dynamic(column) with a vector per word, or zeros='all'"
            )
        if self.structure.name() in {term.label for term in self.terms}:
            raise ParameterError(
                f"a term is called {self.structure.name()!r}, as the arrays of the structure are: "
                "rename its column"
            )

    def freeze_terms(self, data: Dataset, weight: Floats | None = None) -> Spec:
        """The model with terms and groups frozen by the training rows of positive weight."""
        reads_rows = self.terms or self.structure.grouped
        if reads_rows and weight is not None and not np.all(weight):
            data = data.take_rows(np.flatnonzero(weight))
        terms = tuple(term.freeze(data) for term in self.terms)
        return replace(self, terms=terms, structure=self.structure.freeze(data))

    def _check_zeros(self) -> None:
        """Check the approximation of zeros against family and context."""
        text, categorical, name = self.context.reads_text, self.family.softmax, self.zeros.name()
        names = [
            one
            for one, zeros in Zeros.choices().items()
            if zeros.of_softmax and (text or not zeros.tree)
        ]
        if self.zeros.of_softmax and not categorical:
            raise ParameterError(f"zeros={name!r} needs the categorical family")
        if self.zeros.tree and not text:
            raise ParameterError(f"zeros={name!r} needs a Window context")
        if self.zeros.of_softmax and self.combine.reverse and not text:
            raise ParameterError(
                f"zeros={name!r} with combine='reverse' needs a Window context: use zeros='all'"
            )
        if categorical and not (self.zeros.of_softmax or name == "all"):
            way_out = ", ".join(repr(one) for one in ("all", *names))
            raise ParameterError(
                f"the categorical family has no zeros to sample: use zeros={way_out}"
            )
        if categorical and self.zeros.weight != 1:
            raise ParameterError(
                f"the categorical family has no zeros to weigh, got weight={self.zeros.weight!r}: "
                "use zeros='all'"
            )
        if self.zeros.tree and (self.structure.tied or not all(self.structure.own_rows)):
            raise ParameterError(
                "a hierarchical softmax predicts by vectors of nodes, not of words, so they cannot "
                "be tied or shared: use structure='per-entity'"
            )
        self._check_windows()

    def _check_windows(self) -> None:
        """Check the options of a window against the approximation of its zeros."""
        if self.context.length_offset and not self.family.takes_exposure:
            raise ParameterError("Window(length_offset=True) is an offset of Poisson means only")
        if self.context.subsample is not None and not (self.zeros.by_noise or self.zeros.tree):
            raise ParameterError(
                "Window(subsample=) draws anew in each pass, which exact zeros do not: use "
                "Corpus.subsampled, or zeros=NegativeSampling()"
            )
        if not self.zeros.shared and not (self.context.reads_text and self.combine.reverse):
            raise ParameterError(
                "NegativeSampling(shared=False) draws for each pair of words, and only skip-gram "
                "(combine='reverse' on text) predicts one pair at a time: use shared=True"
            )
        drawn = self.combine.reverse and (self.zeros.by_noise or self.zeros.tree)
        if self.context.shrink and not drawn:
            raise ParameterError(
                "Window(shrink=True) draws the windows of skip-gram with negative sampling or a "
                "tree: use shrink=False"
            )

    def _check_intercept_prior(self, prior: Prior) -> None:
        prior.check()
        if not self.intercept:
            raise ParameterError("intercept_prior is set but intercept=False")
        if prior.positive != self.positive_intercept:
            need = "LogNormal or HalfNormal" if self.positive_intercept else "Normal"
            raise ParameterError(f"the intercept prior must be {need} here, got {prior!r}")


def _check_ridge(ridge: Any) -> None:
    if ridge is None or (isinstance(ridge, str) and ridge == "auto"):
        return
    check_number("weight_ridge, unless 'auto' or None,", ridge, low=0)


def _positive(prior: Prior | None, link: Link) -> bool:
    return link.needs_positive or (prior is not None and prior.positive)


def _check_link(family: Family, link: Link) -> None:
    builtin = type(link).__module__.startswith("efemb.")
    if family.links is None or not builtin or link.name() in family.links:
        return
    raise ParameterError(
        f"the {family.name()} family does not take link {link.name()!r}; "
        f"{suggest(link.name(), family.links)}"
    )
