"""Recordings of the neuron study, and the split of their frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from efemb import datasets
from efemb.data.dataset import Dataset
from efemb.reproduce.neurons_models import Plan
from efemb.simulation import simulate_zebrafish

TITLES = {
    "thunder": "zebrafish-thunder",
    "tectum": "zebrafish-tectum",
    "simulated": "simulated recording",
}
BLOCK_FRAMES = 40


@dataclass(frozen=True)
class Frames:
    """Frames x neurons for training, validation and testing.

    variance : overall variance in the units of the recording; it is 1 here
    """

    train: Dataset
    validation: Dataset
    test: Dataset
    variance: float


@dataclass(frozen=True)
class Source:
    """A recording, differenced or not, and a split of its frames.

    blocks : hold out whole stretches of frames, so that contexts may reach into the past
    """

    recording: str
    differenced: bool
    seed: int
    plan: Plan
    data_home: Path | None = None
    blocks: bool = False

    def settings(self) -> dict[str, object]:
        """What results depend on, as JSON."""
        size: object = None
        if self.recording == "thunder":
            size = self.plan.n_thunder
        elif self.recording == "simulated":
            size = [self.plan.n_simulated, self.plan.n_frames]
        return {
            "recording": self.recording,
            "differenced": self.differenced,
            "seed": self.seed,
            "size": size,
            "blocks": self.blocks,
        }

    def frames(self) -> Frames:
        """Training, validation and test frames, in units of the overall standard deviation."""
        return _load_frames(self)


@lru_cache(maxsize=2)
def load_recording(name: str, plan: Plan, data_home: Path | None) -> Dataset:
    """Activity as recorded (or simulated), with positions."""
    if name == "simulated":
        return simulate_zebrafish(n_neurons=plan.n_simulated, n_frames=plan.n_frames).data
    data = datasets.fetch_zebrafish(name, data_home, progress=False)
    if name == "thunder" and plan.n_thunder is not None:
        order = np.random.default_rng(0).permutation(data.n_entities)
        data = data.take_entities(np.sort(order[: plan.n_thunder]))
    return data


@lru_cache(maxsize=1)
def _load_frames(source: Source) -> Frames:
    data = load_recording(source.recording, source.plan, source.data_home)
    if source.differenced:
        data = data.difference()
    if source.blocks:
        block = np.arange(data.n_rows) // BLOCK_FRAMES
        data = data._replace(data.values, recordings=block)
        subsets = _split_blocks(block, source.seed)
    else:
        subsets = _split_frames(data.n_rows, source.seed)
    values = data.values
    if not source.differenced:  # differences are centered by construction, activity is not
        values = values - values[subsets[0]].mean(axis=0)
    deviation = float(values.std())
    scaled = data._replace(values / values.dtype.type(deviation))
    train, validation, test = (scaled.take_rows(rows) for rows in subsets)
    return Frames(train, validation, test, deviation**2)


def _split_frames(n_frames: int, seed: int) -> list[np.ndarray]:
    """90%, 5% and 5% of the frames at random."""
    order = np.random.default_rng(seed).permutation(n_frames)
    return np.split(order, [int(0.9 * n_frames), int(0.95 * n_frames)])


def _split_blocks(block: np.ndarray, seed: int) -> list[np.ndarray]:
    """80%, 10% and 10% of the blocks at random, frames in their order."""
    order = np.random.default_rng(seed).permutation(block.max() + 1)
    held = max(1, len(order) // 10)
    subsets = (order[2 * held :], order[held : 2 * held], order[:held])
    return [np.flatnonzero(np.isin(block, held_blocks)) for held_blocks in subsets]
