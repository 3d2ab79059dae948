"""Baselines that are fitted pass by pass, until the score stops rising."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from efemb.baselines.base import Baseline
from efemb.engine.options import number, whole
from efemb.estimators.checking import check_components
from efemb.ingredient import positive_number
from efemb.types import Floats


@dataclass(eq=False, repr=False)
class Iterated(Baseline):
    """K components and the options of `watched`; members say which of their own must be > 0."""

    n_components: int = 20
    _: KW_ONLY
    max_iter: int = 500
    tol: float = 1e-4
    n_iter_no_change: int = 10
    random_state: Any = None
    verbose: int = 0

    beta_: Floats = field(init=False)
    theta_: Floats = field(init=False)
    history_: list[dict[str, float]] = field(init=False)
    n_iter_: int = field(init=False)
    best_iter_: int = field(init=False)
    converged_: bool = field(init=False)

    _positive: ClassVar[tuple[str, ...]] = ()

    def _check(self) -> None:
        check_components(self.n_components)
        owner: Any = self
        for name in self._positive:
            positive_number(owner, name)
        number("tol", self.tol)
        whole("max_iter", self.max_iter)
        whole("n_iter_no_change", self.n_iter_no_change)
