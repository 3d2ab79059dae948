"""simulate_zebrafish: a recording of the size of the paper's, from known fields of activity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from efemb._terminal import Advance, progress_bar
from efemb._typing import Floats
from efemb.data.dataset import Dataset
from efemb.errors import check_integer, check_number

# Regions of a larval brain from above, in micrometers: center, half axes, share of the neurons.
# Each region but the last, which lies on the midline, has a mirror image.
REGIONS = (
    ((60.0, 90.0, 120.0), (45.0, 70.0, 60.0), 0.2),  # forebrain
    ((110.0, 290.0, 140.0), (80.0, 110.0, 70.0), 0.45),  # tectum
    ((0.0, 560.0, 110.0), (110.0, 190.0, 80.0), 0.35),  # hindbrain
)
_MIDDLE = 250.0
BLOCK_FRAMES = 256
DECAY = 0.8  # of calcium, from frame to frame
EVENT_RATE = 0.04  # per frame
SUPPRESSED = 0.15  # share of the neurons that respond negatively to the fields around them
MIRRORED = 0.3  # share of the fields that have a twin on the other side
# Shares of the variance of a neuron: fields, own events; the rest is white noise, which is small
# because the traces of a recording are cleaned, and differences double it.
SHARED, OWN = 0.85, 0.12


@dataclass(frozen=True)
class SimulatedRecording:
    """A simulated recording and the fields behind it: x = activity loadings' + own events + noise.

    Attributes
    ----------
    data : Dataset
        Frames x neurons, float32, with positions (N, 3).
    loadings : array of shape (N, n_fields)
        The true vectors: how much each neuron responds to each field.
    activity : array of shape (T, n_fields)
        Calcium of each field.
    """

    data: Dataset
    loadings: Floats
    activity: Floats


def simulate_zebrafish(
    *,
    n_neurons: int = 10_000,
    n_frames: int = 3_000,
    n_fields: int = 400,
    width: float = 30.0,
    seed: int = 0,
    progress: bool = False,
) -> SimulatedRecording:
    """Simulate the calcium activity of a larval zebrafish brain, local and correlated.

    A field is a bump around a point in the brain (some have a twin on the other side). It is
    driven by random events, and calcium decays after each. A neuron responds to the fields around
    it (some neurons with a negative sign) and adds events of its own and noise; its variance is
    about 1.

    Parameters
    ----------
    n_neurons, n_frames : int, default=10000 and 3000
        Numbers of neurons and frames; by default those of the paper's recording.
    n_fields : int, default=400
        Number of fields: more than the components of a factor analysis, as in a brain.
    width : float, default=30.0
        Typical radius of a field, in micrometers; the brain is about 700 long.
    seed : int, default=0
        Random seed.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    SimulatedRecording

    Examples
    --------
    >>> fish = simulate_zebrafish(n_neurons=50, n_frames=20, n_fields=5)
    >>> fish.data, fish.loadings.shape, fish.activity.shape
    (Dataset(20 rows x 50 entities, dense float32, 3-d positions), (50, 5), (20, 5))
    """
    sizes = {"n_neurons": n_neurons, "n_frames": n_frames, "n_fields": n_fields}
    for name, value in {**sizes, "seed": seed}.items():
        check_integer(name, value, 0 if name == "seed" else 1)
    check_number("width", width, above=0)
    rng = np.random.default_rng(seed)
    positions = _draw_positions(n_neurons, rng)
    loadings = _draw_loadings(positions, n_fields, float(width), rng)
    shared = np.sqrt((loadings**2).sum(axis=1, keepdims=True))
    # A neuron far from all fields has only events of its own and noise.
    loadings *= np.sqrt(SHARED) / np.maximum(shared, 1e-3)
    noise = np.float32(np.sqrt(1.0 - SHARED - OWN))
    with progress_bar("drawing frames", 3 * n_frames, progress) as advance:
        activity = _draw_calcium((n_frames, n_fields), rng, advance)
        values = _draw_calcium((n_frames, n_neurons), rng, advance)
        values *= np.float32(np.sqrt(OWN))
        for first in range(0, n_frames, BLOCK_FRAMES):  # all at once would need twice the memory
            block = values[first : first + BLOCK_FRAMES]
            block += activity[first : first + BLOCK_FRAMES] @ loadings.T
            block += noise * rng.standard_normal(block.shape, dtype=np.float32)
            advance(len(block))
    return SimulatedRecording(Dataset(values, positions=positions), loadings, activity)


def _draw_positions(n_neurons: int, rng: np.random.Generator) -> Floats:
    """Draw points inside the regions of a brain (N, 3)."""
    center, radius, share = (np.array(column) for column in zip(*REGIONS, strict=True))
    region = rng.choice(len(REGIONS), n_neurons, p=share)
    direction = rng.standard_normal((n_neurons, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    inside = direction * rng.random((n_neurons, 1)) ** (1.0 / 3.0)
    points = center[region] + radius[region] * inside
    side = np.where(rng.random(n_neurons) < 0.5, -1.0, 1.0)
    points[:, 0] = _MIDDLE + side * points[:, 0]
    return points


def _draw_loadings(
    positions: Floats, n_fields: int, width: float, rng: np.random.Generator
) -> Floats:
    """exp(-distance^2 / (2 width^2)) of the field's center or its twin, with signs (N, L)."""
    center = positions[rng.integers(len(positions), size=n_fields)]
    twin = center.copy()
    mirrored = rng.random(n_fields) < MIRRORED
    twin[mirrored, 0] = 2.0 * _MIDDLE - twin[mirrored, 0]
    radius = width * rng.lognormal(0.0, 0.3, n_fields)
    distance = np.minimum(_squared_distance(positions, center), _squared_distance(positions, twin))
    loadings = np.exp(-distance / (2.0 * radius**2)).astype(np.float32)
    # Also because denormal numbers slow processors down a lot.
    loadings[loadings < 1e-4] = 0.0
    # Neurons follow a field to different degrees: each has its own gain per field.
    loadings *= rng.standard_exponential(loadings.shape, dtype=np.float32)
    loadings[rng.random(len(positions)) < SUPPRESSED] *= -1.0
    return loadings


def _squared_distance(points: Floats, others: Floats) -> Floats:
    total = np.zeros((len(points), len(others)))
    for a, b in zip(points.T, others.T, strict=True):
        total += (a[:, None] - b) ** 2
    return total


def _draw_calcium(shape: tuple[int, int], rng: np.random.Generator, advance: Advance) -> Floats:
    """Random events after which calcium decays, of mean about 0 and variance 1 (frames, things)."""
    values = np.empty(shape, dtype=np.float32)
    # Of exponential events at a rate p: mean p / (1 - d), variance p (2 - p) / (1 - d^2).
    mean = EVENT_RATE / (1.0 - DECAY)
    deviation = np.sqrt(EVENT_RATE * (2.0 - EVENT_RATE) / (1.0 - DECAY**2))
    level = np.full(shape[1], mean, dtype=np.float32)
    for frame in values:
        level *= np.float32(DECAY)
        happened = np.flatnonzero(rng.random(shape[1], dtype=np.float32) < EVENT_RATE)
        level[happened] += rng.standard_exponential(len(happened), dtype=np.float32)
        frame[:] = level
        advance(1)
    values -= np.float32(mean)
    values /= np.float32(deviation)
    return values
