"""The `windows` solver: text models with noise or a tree, one stochastic step per token."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from efemb._typing import Ints
from efemb.engine.plan import Plan
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.by_group import GroupedSolver
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.engine.solvers.windows.chunks import Streams
from efemb.engine.solvers.windows.passes import GroupedPasses, WindowPasses
from efemb.engine.state import TrainState
from efemb.errors import ParameterError
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.window import WindowBags
from efemb.model.factors import Factors
from efemb.model.spec import Spec


def applies(bound: BoundContext, spec: Spec) -> bool:
    """Whether the kernels support this model."""
    noisy = spec.zeros.by_noise or spec.zeros.tree
    if not (bound.is_text and noisy and spec.family.word_kernel and spec.link.is_identity):
        return False
    plain = all(spec.structure.own_rows) and bound.n_slots == 1
    signed = all(
        prior is None or (prior.is_ridge and not prior.positive)
        for prior in (spec.prior_rho, spec.prior_alpha)
    )
    return plain and signed and spec.intercept_prior is None


def explain(spec: Spec) -> str:
    """Explain why `applies` is false."""
    if not (spec.zeros.by_noise or spec.zeros.tree):
        return "it needs zeros that are sampled for each word, such as NegativeSampling()"
    return (
        f"zeros={spec.zeros.name()!r} needs the Bernoulli or Categorical family, a Window without "
        "`positional`, Normal priors or none on the vectors, no prior on the intercept, and "
        "vectors that are per entity or tied; "
        "zeros='all' takes any of them"
    )


class WindowsSolver(Solver[WindowBags]):
    """Makes its steps in a kernel (`WindowPasses`); value and gradient come from `RowsSolver`."""

    name = "windows"
    weighs = False

    def prepare(self) -> None:
        """Reject what the kernels do not support."""
        if not applies(self.bound, self.spec):
            raise ParameterError(explain(self.spec))
        if self.spec.combine.reverse and self.spec.zeros.among_draws:
            raise ParameterError(
                "the reverse conditional takes zeros='negative-sampling', 'noise-contrastive' or "
                "'hierarchical', not 'sampled-softmax'"
            )
        self.n_observed = self.total_weight = float(self.bound.n_rows)

    def value_and_gradient(
        self, vectors: Factors, rows: Ints | None = None, *, exact: bool = False
    ) -> tuple[float, Factors]:
        """The expectation over the noise for negative sampling, else the exact softmax."""
        if self.spec.zeros.tree:
            raise ParameterError("a hierarchical softmax has steps only: there is no full gradient")
        return self._rows.value_and_gradient(vectors, rows, exact=True)

    @cached_property
    def _rows(self) -> Solver[Any]:
        arguments = (self.bound, self.spec, self.pool)
        if self.spec.structure.grouped:
            return GroupedSolver(RowsSolver, *arguments, dtype=self.dtype, seed=self.seed)
        return RowsSolver(*arguments, dtype=self.dtype, seed=self.seed)

    @cached_property
    def streams(self) -> Streams:
        """The draws of all passes."""
        return Streams(self.bound, self.spec)

    def passes(self, state: TrainState, plan: Plan) -> Any:
        """Passes that run in a kernel."""
        kind = GroupedPasses if self.spec.structure.grouped else WindowPasses
        return kind(self, state, plan)
