"""Resuming: the whole state of a fit on disk, and a fit that goes on from it with the same bits.

What follows from the data, the settings and the seed is made again, hold-outs included; on disk is
only what the iterations have changed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb import __version__
from efemb.engine.callbacks import Checkpoint
from efemb.engine.epochs import Passes
from efemb.engine.optimizers.first_order import OptimizerState
from efemb.engine.optimizers.limited_memory import LimitedMemory
from efemb.errors import ParameterError
from efemb.model.parameters import Parameters
from efemb.storage.encoding import encode

if TYPE_CHECKING:
    from efemb.engine.loop import Trainer
    from efemb.engine.options import Options
    from efemb.model.spec import Spec


@dataclass
class Keeper:
    """Keeps the state of one fit in a checkpoint; `saved` is what an earlier attempt left there.

    marks : checksums of what the fit depends on, by name;  began : state of the generator at start
    """

    checkpoint: Checkpoint
    marks: dict[str, str]
    began: dict[str, Any]
    saved: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        callbacks: Iterable[Any],
        rng: np.random.Generator,
        parts: Callable[[], dict[str, Any]],
        *,
        seeded: bool,
    ) -> Keeper | None:
        """The keeper of the checkpoint among the callbacks, None without one.

        `parts` gives what the fit depends on. Where an earlier attempt is taken up, the generator
        is put back to where that one began.
        """
        found = [one for one in callbacks if isinstance(one, Checkpoint)]
        if len(found) > 1:
            raise ParameterError(f"a fit has one Checkpoint, got {len(found)}")
        if not found:
            return None
        checkpoint = found[0]
        checkpoint.prepare()
        began = dict(rng.bit_generator.state)
        marks = {name: fingerprint(part) for name, part in parts().items()}
        marks["software"] = fingerprint([__version__, np.__version__])
        if seeded:
            marks["random_state"] = fingerprint(began)
        keeper = cls(checkpoint, marks, began)
        keeper._look(seeded)
        if keeper.saved is not None:
            keeper.began = keeper.saved["began"]
            rng.bit_generator.state = keeper.began
        return keeper

    def _look(self, seeded: bool) -> None:
        """Take up what is in the folder if it is of the same fit."""
        state = self.checkpoint.read() if self.checkpoint.resume else None
        if state is None:
            return
        found = dict(state["marks"])
        if not seeded:
            found.pop("random_state", None)
        names = sorted(self.marks | found)
        other = [name for name in names if self.marks.get(name) != found.get(name)]
        if not other:
            self.saved = state
        elif not state["ended"]:
            raise ParameterError(
                f"{self.checkpoint.path} holds the state of another fit that has not ended "
                f"(different: {', '.join(other)}); repeat that fit, choose another folder, or pass "
                "Checkpoint(..., resume=False) to overwrite it"
            )

    def over(self, max_iter: int) -> bool:
        """Whether the saved fit has nothing left to do."""
        saved = self.saved
        return saved is not None and (saved["converged"] or saved["iteration"] >= max_iter)

    def outcome(self) -> tuple[Parameters, bool]:
        """Parameters of the last iteration, and whether the fit had converged."""
        assert self.saved is not None
        return _parameters(self.saved["parameters"]), self.saved["converged"]

    def keep(self, trainer: Trainer, work: dict[str, Any], *, ended: bool, converged: bool) -> None:
        """Write the state after an iteration; `work` is what the optimiser adds to it."""
        state = {
            "marks": self.marks,
            "began": self.began,
            "ended": ended,
            "converged": converged,
            "iteration": trainer.iteration,
            "seconds": time.perf_counter() - trainer.started,
            "history": trainer.history,
            "family": trainer.family,
            "stopper": trainer.stopper.state(),
            "best": None,
            "callbacks": [_state_of(one) for one in trainer.callbacks],
            **work,
        }
        if trainer.best is not None:
            score, iteration, parameters, family = trainer.best
            numbers = {"score": score, "iteration": iteration, "family": family}
            state["best"] = {**numbers, "parameters": _arrays(parameters)}
        self.checkpoint.write(state)

    def restore(self, trainer: Trainer) -> None:
        """Bring a trainer to where the saved fit stood; `resume_passes` does the rest."""
        saved = self.saved
        if saved is None:
            return
        trainer.iteration, trainer.history = saved["iteration"], list(saved["history"])
        trainer.started = time.perf_counter() - saved["seconds"]
        trainer.family = saved["family"].scaled_to(trainer.solver.spec.family.scale)
        trainer.solver.set_family(trainer.family)
        trainer.stopper.restore(saved["stopper"])
        best = saved["best"]
        if best is not None:
            parameters = _parameters(best["parameters"])
            trainer.best = (best["score"], best["iteration"], parameters, best["family"])
        if "optimizer" in saved:
            trainer.state = OptimizerState(saved["optimizer"]["name"], saved["optimizer"]["arrays"])
        for callback, state in zip(trainer.callbacks, saved["callbacks"], strict=False):
            if state is not None and hasattr(callback, "restore"):
                callback.restore(state)

    def start(self) -> Parameters | None:
        """Unconstrained parameters that the saved passes had reached."""
        if self.saved is None:
            return None
        return _parameters({**self.saved["parameters"], **self.saved.get("theta", {})})

    def resume_passes(self, passes: Any) -> None:
        """Give new passes, started from `start` and the optimiser's state, the rest."""
        assert self.saved is not None
        if not isinstance(passes, Passes):  # of a text
            passes.done = self.saved["done"]
            return
        passes.count = self.saved["count"]
        # Not computed again: an exponential of some rows may differ from that of all in a bit.
        for name in self.saved["theta"]:
            getattr(passes.parameters, name)[...] = self.saved["parameters"][name]


def state_of_passes(passes: Any) -> dict[str, Any]:
    """What first-order passes add to the state of a fit."""
    state = passes.state()
    work: dict[str, Any] = {
        "parameters": _arrays(passes.parameters),
        "optimizer": {"name": state.optimizer, "arrays": state.arrays},
    }
    if not isinstance(passes, Passes):
        return {**work, "done": passes.done}
    theta, live = _arrays(passes.theta), work["parameters"]
    work["theta"] = {name: value for name, value in theta.items() if value is not live[name]}
    return {**work, "count": passes.count}


def state_of_search(search: LimitedMemory, parameters: Parameters) -> dict[str, Any]:
    """What L-BFGS adds to the state of a fit."""
    return {"parameters": _arrays(parameters), "search": search.state()}


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
    **more: Any,
) -> dict[str, Any]:
    """What a fit depends on, apart from the seed; the same bits come from any number of threads."""
    settings = {**vars(options), "optimizer": repr(options.optimizer), "dtype": str(options.dtype)}
    for name in ("callbacks", "n_jobs", "seeded"):
        del settings[name]
    if not planned:  # a limit only, which may be raised later
        del settings["max_iter"]
    return {
        "data": [_content(data), _content(validation), more.pop("sample_weight")],
        "settings": [vars(spec), settings],
        "start": {name: _plain(value) for name, value in more.items()},
    }


def _content(data: Any) -> Any:
    """Everything in the data that a fit may look at."""
    if data is None:
        return None
    return data._content()


def _plain(value: Any) -> Any:
    """Dataclasses of arrays, or tuples of them, as dictionaries."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return None if value is None else vars(value)


def _arrays(parameters: Parameters) -> dict[str, Any]:
    return dict(parameters.named())


def _parameters(arrays: dict[str, Any]) -> Parameters:
    """Copies: what is read from a file cannot be changed."""
    return Parameters.from_named({name: array.copy() for name, array in arrays.items()})


def _state_of(callback: Any) -> Any:
    return callback.state() if hasattr(callback, "state") else None
