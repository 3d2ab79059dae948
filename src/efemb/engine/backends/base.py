"""Backend: what the training loop asks of wherever rounds run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from efemb._typing import Floats
    from efemb.engine.round import Watch
    from efemb.engine.state import TrainState, Update


class Backend(ABC):
    """Runs rounds on every shard; results are those of all shards, added up in their order."""

    n_observed: float  # weight of the observations that tell something
    rounds_between_scores: int
    status: str = ""  # what a progress bar shows beside the part of a pass that is done

    @abstractmethod
    def run(self, state: TrainState, watch: Watch) -> list[Update]:
        """One round: what each shard makes of the state, in the order of the shards.

        The arrays of the state may be worked on; they are not needed afterwards.
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
        """Score of what is held out, None where nothing is."""
