"""Solvers by name: which one runs for a model and its context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from efemb.contexts.base import BoundContext
from efemb.contexts.entity_lists import EntityLists
from efemb.contexts.row_bags import RowBags
from efemb.contexts.window import WindowBags
from efemb.engine import moments, windows
from efemb.engine.blocks import Workers
from efemb.engine.generic import GenericSolver
from efemb.engine.moments import MomentsSolver
from efemb.engine.rows import RowsSolver
from efemb.engine.solver import Solver
from efemb.engine.windows import WindowsSolver
from efemb.errors import ParameterError, suggest
from efemb.families import Categorical
from efemb.spec import Spec
from efemb.types import Floats

SOLVERS = ("auto", "generic", "moments", "rows", "windows")


def choose_solver(name: str, bound: BoundContext, spec: Spec) -> str:
    """The solver that runs; a typed error where the asked one cannot."""
    if name not in SOLVERS:
        raise ParameterError(f"unknown solver {name!r}; {suggest(name, SOLVERS)}")
    rows = isinstance(bound, RowBags) and bound.n_dims == 1
    if name == "auto":
        name = _automatic(bound, spec, rows)
    if name == "rows" and not rows:
        raise ParameterError("solver 'rows' needs a row context (Basket) and scalar data")
    if name == "windows" and not windows.applies(bound, spec):
        raise ParameterError(f"solver 'windows' cannot run this model: {windows.explain(spec)}")
    if name != "windows" and spec.zeros.name() in windows.ONLY:
        raise ParameterError(windows.explain(spec))
    if name != "windows" and getattr(spec.context, "subsample", None) is not None:
        raise ParameterError(
            f"solver {name!r} does not draw anew in each pass, as Window(subsample=) asks: use "
            "Corpus.subsampled instead"
        )
    return name


def _automatic(bound: BoundContext, spec: Spec, rows: bool) -> str:
    if windows.applies(bound, spec):
        return "windows"
    if rows:
        return "rows"
    return "moments" if moments.applies(bound, spec) else "generic"


def make_solver(
    name: str, bound: BoundContext, spec: Spec, pool: Workers, **options: Any
) -> Solver[Any]:
    """Build a solver by name."""
    if isinstance(spec.family, Categorical) and not isinstance(bound, RowBags):
        raise ParameterError("the categorical family needs a row context: context='basket'")
    if name == "windows":
        assert isinstance(bound, WindowBags)
        return WindowsSolver(bound, spec, pool, **options)
    if name == "rows":
        assert isinstance(bound, RowBags)
        return RowsSolver(bound, spec, pool, **options)
    if name == "moments":
        if not isinstance(bound, EntityLists):
            raise ParameterError("solver 'moments' needs a context fixed for each entity")
        return MomentsSolver(bound, spec, pool, **options)
    return GenericSolver(bound, spec, pool, **options)


@dataclass(frozen=True)
class Setup:
    """Makes solvers of one kind."""

    name: str
    spec: Spec
    pool: Workers
    dtype: Any
    seed: int

    def __call__(self, bound: BoundContext, row_weight: Floats | None) -> Solver[Any]:
        """A solver on bound data."""
        options = {"dtype": self.dtype, "row_weight": row_weight, "seed": self.seed}
        return make_solver(self.name, bound, self.spec, self.pool, **options)
