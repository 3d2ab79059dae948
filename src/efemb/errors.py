"""Every error that efemb raises on purpose; each is also a built-in error."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable
from math import isfinite
from numbers import Integral, Real

_ORDERS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


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


def check_integer(option: str, value: object, low: int = 1, high: int | None = None) -> int:
    """The value as an int; an error unless it is an integer from `low` to `high`.

    >>> check_integer("n", 3)
    3
    >>> check_integer("n", 0)
    Traceback (most recent call last):
    efemb.errors.ParameterError: n must be >= 1, got 0
    """
    between = "" if high is None else f"between {low} and {high:,}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        rule = between or f">= {low}"
        raise InputTypeError(f"{option} must be an integer {rule}, got {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        rule = f"lie {between}" if between else f"be >= {low}"
        raise ParameterError(f"{option} must {rule}, got {value}")
    return number


def check_number(
    option: str,
    value: object,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
) -> float:
    """The value as a float; an error unless it is a finite number within the limits.

    >>> check_number("tol", 0, low=0)
    0.0
    >>> check_number("level", 1, above=0, below=1)
    Traceback (most recent call last):
    efemb.errors.ParameterError: level must lie in (0, 1), got 1
    """
    limits = {">=": low, ">": above, "<=": high, "<": below}
    stated = {sign: limit for sign, limit in limits.items() if limit is not None}
    rule = " and ".join(f"{sign} {limit:g}" for sign, limit in stated.items())
    if len(stated) == 2:
        least, most = (f"{limit:g}" for limit in stated.values())
        rule = f"in {'[' if '>=' in stated else '('}{least}, {most}{']' if '<=' in stated else ')'}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{option} must be a number {rule}, got {value!r}")
    number = float(value)
    if not isfinite(number) or not all(_ORDERS[sign](number, x) for sign, x in stated.items()):
        finite = "be" if isfinite(number) else "be finite and"
        verb = "lie" if len(stated) == 2 else finite
        raise ParameterError(f"{option} must {verb} {rule}, got {value}")
    return number


def check_name(option: str, value: object) -> None:
    """Raise an error unless an option is a name: text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputTypeError(f"{option} must be a name, got {value!r}")


def suggest(name: object, choices: Iterable[str]) -> str:
    """List `choices` in a sentence that starts with the one nearest to `name`.

    >>> suggest("poison", ["gaussian", "poisson"])
    "did you mean 'poisson'? choices: gaussian, poisson"
    """
    names = [str(choice) for choice in choices]  # of a data frame they may be numbers
    nearest = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"{hint}choices: {', '.join(names)}"
