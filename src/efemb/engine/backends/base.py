"""Backend: the interface between the training loop and the place where rounds run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from efemb._typing import Floats
    from efemb.engine.round import Watch
    from efemb.engine.state import TrainState, Update


class Backend(ABC):
    """Runs rounds on all shards; results are summed over the shards, in their order."""

    n_observed: float  # weight of the observations, without the zeros of rows
    rounds_between_scores: int
    status: str = ""  # shown by a progress bar
    early_scores: tuple[int, ...] = ()  # further rounds that are scored; 0 is the start

    @abstractmethod
    def run(self, state: TrainState, watch: Watch) -> list[Update]:
        """One round: the updates of the shards, in their order.

        The arrays of the state may be overwritten.
        """

    @abstractmethod
    def evaluate(self, state: TrainState) -> float:
        """The data term at the parameters of a state, with every zero."""

    @abstractmethod
    def evidence(self, state: TrainState) -> tuple[Floats, Floats]:
        """Sums by entity of the evidence of the family of a state, and of the weights of cells."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the weights of all terms of the data term."""

    @abstractmethod
    def validate(self, state: TrainState) -> float | None:
        """Score of the held-out observations, None if there are none."""
