"""Savepoint: the state of a fit on disk, from which it resumes with the same bits.

Everything that follows from the data, the settings and the seed is recomputed, including hold-outs;
the disk only has what the rounds have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb import __version__
from efemb.engine.callbacks import Checkpoint
from efemb.engine.state import TrainState
from efemb.errors import ParameterError
from efemb.model.space import ParameterSpace
from efemb.storage.encoding import encode

if TYPE_CHECKING:
    from efemb.engine.options import Options
    from efemb.model.spec import Spec


@dataclass(frozen=True)
class Snapshot:
    """Everything the loop needs in order to resume after a round.

    seconds : since the fit began;  stopper, callbacks : their states
    ended : whether the fit is complete;  converged : whether it converged
    """

    state: TrainState
    history: list[dict[str, Any]]
    seconds: float
    stopper: dict[str, Any]
    callbacks: list[Any]
    ended: bool
    converged: bool

    def to_arrays(self) -> dict[str, Any]:
        """Nested dictionaries of numbers, text, ingredients and arrays."""
        return {**vars(self), **self.state.to_arrays(), "state": None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], space: ParameterSpace) -> Snapshot:
        """Undo `to_arrays`."""
        own = {entry.name: arrays[entry.name] for entry in fields(cls)}
        return cls(**{**own, "state": TrainState.from_arrays(arrays, space)})


@dataclass
class Savepoint:
    """The checkpoint of one fit, and the results of an earlier attempt in it.

    marks : checksums of what the fit depends on, by name;  began : state of the generator at start
    """

    checkpoint: Checkpoint
    marks: dict[str, str]
    began: dict[str, Any]
    saved: dict[str, Any] | None = None

    @classmethod
    def open(
        cls,
        callbacks: Iterable[Any],
        rng: np.random.Generator,
        identify: Callable[[], dict[str, Any]],
        *,
        seeded: bool,
    ) -> Savepoint | None:
        """The savepoint of the checkpoint among the callbacks, None without one.

        `identify` returns what the fit depends on. If an earlier attempt is resumed, the generator
        is reset to where that attempt began.
        """
        checkpoints = [callback for callback in callbacks if isinstance(callback, Checkpoint)]
        if len(checkpoints) > 1:
            raise ParameterError(f"a fit has one Checkpoint, got {len(checkpoints)}")
        if not checkpoints:
            return None
        checkpoint = checkpoints[0]
        checkpoint.prepare()
        began = dict(rng.bit_generator.state)
        marks = {name: fingerprint(content) for name, content in identify().items()}
        marks["software"] = fingerprint([__version__, np.__version__])
        if seeded:
            marks["random_state"] = fingerprint(began)
        savepoint = cls(checkpoint, marks, began)
        savepoint._read_earlier(seeded)
        if savepoint.saved is not None:
            savepoint.began = savepoint.saved["began"]
            rng.bit_generator.state = savepoint.began
        return savepoint

    def _read_earlier(self, seeded: bool) -> None:
        """Read the state in the folder if it belongs to the same fit."""
        saved = self.checkpoint.read() if self.checkpoint.resume else None
        if saved is None:
            return
        marks = dict(saved["marks"])
        if not seeded:
            marks.pop("random_state", None)
        names = sorted(self.marks | marks)
        different = [name for name in names if self.marks.get(name) != marks.get(name)]
        if not different:
            self.saved = saved
        elif not saved["ended"]:
            raise ParameterError(
                f"{self.checkpoint.path} holds the state of another fit that has not ended "
                f"(different: {', '.join(different)}); repeat that fit, choose another folder, or "
                "pass Checkpoint(..., resume=False) to overwrite it"
            )

    def read(self, space: ParameterSpace) -> Snapshot | None:
        """The state of the earlier attempt, None if there is none."""
        return None if self.saved is None else Snapshot.from_arrays(self.saved, space)

    def is_due(self, round: int, *, ended: bool) -> bool:
        """Whether to write the state after a round."""
        return ended or round % self.checkpoint.every == 0

    def write(self, snapshot: Snapshot) -> None:
        """Replace the state in the folder."""
        own = {"marks": self.marks, "began": self.began}
        self.checkpoint.write({**own, **snapshot.to_arrays()})


def fingerprint(value: Any) -> str:
    """Checksum of numbers, text, arrays and ingredients in lists and dictionaries."""
    arrays: dict[str, Any] = {}
    digest = hashlib.sha256(json.dumps(encode(value, arrays, "value")).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def identity(
    spec: Spec,
    options: Options,
    data: Any,
    validation: Any,
    *,
    planned: bool,
    **origin: Any,
) -> dict[str, Any]:
    """Everything a fit depends on except the seed; the number of threads does not matter."""
    settings = {**vars(options), "optimizer": repr(options.optimizer), "dtype": str(options.dtype)}
    for name in ("callbacks", "n_jobs", "seeded"):
        del settings[name]
    if not planned:  # a mere limit, which may be raised later
        del settings["max_iter"]
    return {
        "data": [_content(data), _content(validation), origin.pop("sample_weight")],
        "settings": [vars(spec), settings],
        "start": {name: _plain(value) for name, value in origin.items()},
    }


def _content(data: Any) -> Any:
    """Everything in the data that a fit depends on."""
    if data is None:
        return None
    return data._content()


def _plain(value: Any) -> Any:
    """Dataclasses of arrays, or tuples of them, as dictionaries."""
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    return value if value is None or isinstance(value, bool) else vars(value)
