"""States on disk: whole, or with their rows cut into parts that workers average in parallel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from efemb.engine.plan import Plan
from efemb.engine.state import TrainState
from efemb.errors import DataError, DataLossError
from efemb.model.space import ParameterSpace
from efemb.storage.encoding import decode, encode
from efemb.storage.folder import MANIFEST, SealedKind

STATE = SealedKind(
    format="efemb state", noun="state of a round", version=1, tensors="state.safetensors"
)
# A task on a cluster costs as much as averaging a megabyte, and file servers prefer few files.
SMALLEST_PART, MOST_PARTS = 2 << 20, 8

Paths = tuple[Path, ...]  # folders of the parts of a state


@dataclass(frozen=True)
class Trained:
    """A state that was written: its checksums, and the rows and data term of this round."""

    paths: Paths
    checksums: tuple[str, ...]
    rows: int
    data_term: float


def count_parts(space: ParameterSpace, dtype: Any, n_replicas: int) -> int:
    """Number of parts of the states of replicas, a power of 2; 1 for a single replica.

    It depends on sizes only, like the names of the files.
    """
    numbers = 2 * sum(int(np.prod(array.shape)) for array in space.layout)  # with sums of squares
    n_fitting = max(1, numbers * np.dtype(dtype).itemsize // SMALLEST_PART)
    n_parts = min(MOST_PARTS, n_replicas, int(n_fitting))
    return 1 << (n_parts.bit_length() - 1)


def paths_of(path: Path, n_parts: int) -> Paths:
    """Folders of the parts of a state."""
    if n_parts == 1:
        return (path,)
    return tuple(path.with_name(f"{path.name}-part-{part}") for part in range(n_parts))


def write_state(paths: Paths, state: TrainState, mark: dict[str, Any]) -> None:
    """Write a state without the best so far, which only the loop needs.

    A crash of the machine may destroy it: then the pass begins anew.
    """
    contents = replace(state, best=None).to_arrays()
    for part, path in enumerate(paths):
        _write(path, _cut(contents, part, len(paths)), mark)


def write_part(path: Path, part: TrainState) -> None:
    """Write a part of a state, which holds some rows of every array."""
    _write(path, replace(part, best=None).to_arrays(), {})


def _write(path: Path, contents: dict[str, Any], mark: dict[str, Any]) -> None:
    arrays: dict[str, Any] = {}
    body = {"state": encode(contents, arrays, "state"), "mark": mark}
    STATE.write(path, body, arrays, damaged=True, lasting=False)


def _cut(value: Any, part: int, n_parts: int) -> Any:
    """Some rows of every array in nested dictionaries."""
    if isinstance(value, dict):
        return {name: _cut(inner, part, n_parts) for name, inner in value.items()}
    if n_parts == 1 or not isinstance(value, np.ndarray):
        return value
    return value[len(value) * part // n_parts : len(value) * (part + 1) // n_parts]


def read_state(paths: Paths, plan: Plan) -> TrainState:
    """Read a state; any change since it was written is an error."""
    return TrainState.from_arrays(_join([read_part(path) for path in paths]), plan.space)


def read_part(path: Path, checksum: str | None = None) -> dict[str, Any]:
    """The arrays of a part; `checksum` : which they must have."""
    if checksum is not None and checksum_of(path) != checksum:
        raise DataLossError(
            f"{path} is not the state that its task has written: another fit uses this folder, or "
            "the file system lost it"
        )
    contents = STATE.read(path)
    arrays: dict[str, Any] = decode(contents.body["state"], contents.arrays)
    return arrays


def _join(parts: Sequence[Any]) -> Any:
    """Undo `_cut`; what is not an array is the same in every part."""
    first = parts[0]
    if isinstance(first, dict):
        return {name: _join([part[name] for part in parts]) for name in first}
    if len(parts) == 1 or not isinstance(first, np.ndarray):
        return first
    return np.concatenate(parts)


def checksum_of(path: Path) -> str:
    """Checksum of the arrays of a state, or of a part of one."""
    body = json.loads((path / MANIFEST).read_bytes())
    checksum: str = body["sha256"][STATE.tensors]
    return checksum


def checksums_of(paths: Paths) -> tuple[str, ...]:
    """Checksums of all parts."""
    return tuple(checksum_of(path) for path in paths)


def done_before(paths: Paths, mark: dict[str, Any]) -> Trained | None:
    """The state that an earlier attempt wrote, None if it is missing or incomplete."""
    body: dict[str, Any] = {}
    for path in paths:
        if not STATE.exists(path):
            return None
        try:
            body = STATE.read(path).body["mark"]
        except DataError:
            return None
        if {name: body.get(name) for name in mark} != mark:
            return None
    return Trained(paths, checksums_of(paths), body["rows"], body["data_term"])
