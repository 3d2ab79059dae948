"""Options: how to fit, apart from the model itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from efemb.engine.callbacks import Callback, Checkpoint
from efemb.errors import InputTypeError, ParameterError, check_integer, check_number
from efemb.model.ingredient import flag


@dataclass(frozen=True)
class Options:
    """How to fit; the model itself is a Spec."""

    n_components: int
    solver: str = "auto"
    optimizer: Any = "auto"
    batch_size: int | str | None = "auto"
    max_iter: int | None = None
    early_stopping: bool | str = True  # "auto": not if the number of passes is planned
    validation_fraction: float | None = None
    n_iter_no_change: int = 5
    tol: float = 1e-4
    n_jobs: int | None = 1
    dtype: str = "float32"
    callbacks: Iterable[Callback] = ()
    deterministic: bool = False
    seeded: bool = True  # False: the generator is fresh, so its state is not reproducible

    def check(self) -> None:
        """Raise an error that names the first invalid option."""
        check_integer("n_iter_no_change", self.n_iter_no_change)
        if self.max_iter is not None:
            check_integer("max_iter", self.max_iter)
        if isinstance(self.batch_size, str) and self.batch_size != "auto":
            raise InputTypeError(
                f"batch_size must be an integer >= 1, None or 'auto', got {self.batch_size!r}"
            )
        if self.batch_size not in (None, "auto"):
            check_integer("batch_size", self.batch_size)
        check_number("tol", self.tol, low=0)
        flags = {"early_stopping": self.early_stopping, "deterministic": self.deterministic}
        for name, value in flags.items():
            auto = name == "early_stopping" and isinstance(value, str) and value == "auto"
            if not auto:
                flag(name, value)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, low=0)
        if str(self.dtype) not in ("float32", "float64"):
            raise ParameterError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}")
        for callback in self.callbacks:
            if not callable(callback):
                raise InputTypeError(f"callbacks must be callables, got {callback!r}")

    def without_checkpoints(self) -> Options:
        """Options for one additional pass, which must not replace the state of the whole fit."""
        kept_callbacks = tuple(c for c in self.callbacks if not isinstance(c, Checkpoint))
        return replace(self, callbacks=kept_callbacks)
