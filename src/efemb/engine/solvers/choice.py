"""Choice of the solver for a model and its context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from efemb._typing import Floats
from efemb.engine.solvers import sums
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.by_group import GroupedSolver
from efemb.engine.solvers.generic import GenericSolver
from efemb.engine.solvers.moments import solver as moments
from efemb.engine.solvers.moments.solver import MomentsSolver
from efemb.engine.solvers.rows.solver import RowsSolver
from efemb.engine.solvers.sums import SumSolver
from efemb.engine.solvers.windows import solver as windows
from efemb.engine.solvers.windows.solver import WindowsSolver
from efemb.engine.threads import Workers
from efemb.errors import ParameterError, suggest
from efemb.model.contexts.base import BoundContext
from efemb.model.spec import Spec

SOLVERS = ("auto", "generic", "moments", "rows", "windows")


def choose_solver(name: str, bound: BoundContext, spec: Spec) -> str:
    """Name of the solver to run; an error if the requested one does not support the model."""
    if name not in SOLVERS:
        raise ParameterError(f"unknown solver {name!r}; {suggest(name, SOLVERS)}")
    if not spec.combine.inner_product:
        if name not in ("auto", "generic"):
            raise ParameterError(
                f"solver {name!r} supports inner products only, not combine={spec.combine!r}: use "
                "solver='auto'"
            )
        name = "generic"
    rows = bound.shares_rows or sums.applies(bound, spec)
    if name == "auto":
        name = _automatic(bound, spec, rows)
    if name == "rows" and not rows:
        raise ParameterError("solver 'rows' needs a row context (Basket) and scalar data")
    if name == "windows" and not windows.applies(bound, spec):
        raise ParameterError(f"solver 'windows' cannot run this model: {windows.explain(spec)}")
    if name != "windows" and bound.is_text and spec.zeros.of_softmax:
        raise ParameterError(windows.explain(spec))
    if name != "windows" and spec.context.shrink:
        raise ParameterError(f"solver {name!r} does not draw windows: use Window(shrink=False)")
    if name != "windows" and spec.context.subsample is not None:
        raise ParameterError(
            f"solver {name!r} does not draw anew in each pass, which Window(subsample=) needs: use "
            "Corpus.subsampled instead"
        )
    if name != "rows" and spec.context.thinning:
        raise ParameterError(
            f"solver {name!r} does not thin contexts, which Basket(thinning=) needs: use "
            "solver='rows'"
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
    if spec.family.softmax and not bound.shares_rows:
        raise ParameterError("the categorical family needs a row context: context='basket'")
    if name == "moments" and bound.lists is None:
        raise ParameterError("solver 'moments' needs a context fixed for each entity")
    # `choose_solver` has checked that the solver supports the context.
    kinds: dict[str, Any] = {
        "generic": GenericSolver,
        "moments": MomentsSolver,
        "rows": RowsSolver if bound.shares_rows else SumSolver,
        "windows": WindowsSolver,
    }
    if spec.structure.grouped and name != "windows":  # its kernels support groups
        return GroupedSolver(kinds[name], bound, spec, pool, **options)
    solver: Solver[Any] = kinds[name](bound, spec, pool, **options)
    return solver


@dataclass(frozen=True)
class Setup:
    """Makes solvers of one kind for bound data."""

    name: str
    spec: Spec
    pool: Workers
    dtype: Any
    seed: int
    popularity: Floats | None = None

    def __call__(self, bound: BoundContext, row_weight: Floats | None) -> Solver[Any]:
        """A solver on bound data."""
        return make_solver(
            self.name,
            bound,
            self.spec,
            self.pool,
            dtype=self.dtype,
            row_weight=row_weight,
            seed=self.seed,
            popularity=self.popularity,
        )
