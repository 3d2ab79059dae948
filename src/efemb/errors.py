"""Every error that efemb raises on purpose; each is also a built-in error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EfembError(Exception):
    """Base of all errors raised on purpose."""


class DataError(EfembError, ValueError):
    """The data break a rule of the model; the message names the value, the rule and a remedy."""


class ParameterError(EfembError, ValueError):
    """An argument, or a combination of ingredients, is not valid."""


class InputTypeError(EfembError, TypeError):
    """An argument is of a type that cannot be used."""


class MemoryEstimateError(EfembError, ValueError):
    """The work needs more memory than is available; no result was stored."""


class StorageError(EfembError, OSError):
    """A file could not be written because the disk is full or fails; nothing was replaced."""


class DivergenceError(EfembError, ValueError):
    """Training diverged to NaN or infinity; the message names the step."""


class MissingExtraError(EfembError, ImportError):
    """An optional package is missing; the message names the extra to install."""


class ShardError(EfembError, RuntimeError):
    """A task failed on a cluster every time; the message names its shards, files and workers."""


class ClusterLostError(EfembError, ConnectionError):
    """No worker or scheduler is left; the message names the checkpoint to resume from."""


class DataLossError(EfembError, RuntimeError):
    """Rows or states that must exist are missing; no result was computed without them."""


def check_known(option: str, value: object, choices: Iterable[str]) -> None:
    """Raise an error that lists the choices of an option unless `value` is one of them."""
    names = list(choices)
    if value not in names:
        raise ParameterError(f"{option}={value!r} is unknown; {suggest(value, names)}")


def suggest(name: object, choices: Iterable[str]) -> str:
    """List `choices` in a sentence that starts with the one nearest to `name`.

    >>> suggest("poison", ["gaussian", "poisson"])
    "did you mean 'poisson'? choices: gaussian, poisson"
    """
    names = [str(choice) for choice in choices]  # of a data frame they may be numbers
    nearest = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"{hint}choices: {', '.join(names)}"
