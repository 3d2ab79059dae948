"""Ingredient: base of all parts of a model; stores its options in scikit-learn style."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from efemb.errors import DataError, InputTypeError, ParameterError, check_number, suggest

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

T = TypeVar("T", bound="Ingredient")


class Ingredient:
    """Options are the constructor's arguments, stored untouched under their own names."""

    listed: ClassVar[bool] = True  # whether its name can be chosen as a string
    # The package whose files define the classes of this kind, if it imports them on demand.
    package: ClassVar[str | None] = None
    # Options in which a fit stores what it found; `repr` leaves them out.
    from_fit: ClassVar[tuple[str, ...]] = ()
    # Attributes that depend on the mathematics of one class, so that subclasses must set them anew.
    not_inherited: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Reset attributes that are not inherited to the value in the base class of the kind."""
        super().__init_subclass__(**options)
        if "not_inherited" in vars(cls):
            return
        kind = next(base for base in cls.__mro__ if "not_inherited" in vars(base))
        for name in cls.not_inherited:
            if name not in vars(cls):
                setattr(cls, name, inspect.getattr_static(kind, name))

    @classmethod
    def option_names(cls) -> list[str]:
        """Names of the constructor's arguments."""
        return list(_default_options(cls.__init__))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Options by name; with `deep`, also those of nested ingredients as `outer__inner`."""
        params: dict[str, Any] = {}
        for name in self.option_names():
            value = getattr(self, name)
            params[name] = value
            if deep and isinstance(value, Ingredient):
                params.update({f"{name}__{key}": v for key, v in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set options in place; `outer__inner` reaches nested ingredients."""
        names = self.option_names()
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in names:
                raise ParameterError(
                    f"{type(self).__name__} has no option {name!r}; {suggest(name, names)}"
                )
            if rest:
                inner = getattr(self, name)
                if not isinstance(inner, Ingredient):
                    raise ParameterError(
                        f"{key} cannot be set: {name} is {inner!r}; pass an object first"
                    )
                inner.set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    @classmethod
    def name(cls) -> str:
        """Name used in strings: the class name in lower-case words."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__).lower()

    @classmethod
    def is_shipped(cls) -> bool:
        """Whether it is part of efemb; ingredients of others are checked before they are used."""
        return cls.__module__.startswith("efemb.")

    @classmethod
    def choices(cls: type[T]) -> dict[str, type[T]]:
        """Final classes of this kind that ship with efemb, by name."""
        for file in sorted(_files_of(cls.package)):
            import_module(f"{cls.package}.{file}")
        return dict(sorted((sub.name(), sub) for sub in cls._imported()))

    @classmethod
    def find(cls: type[T], class_name: str) -> type[T] | None:
        """The class of efemb of this kind and name; imports only its file."""
        file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
        if file in _files_of(cls.package):
            import_module(f"{cls.package}.{file}")
        return next((sub for sub in cls._imported() if sub.__name__ == class_name), None)

    @classmethod
    def _imported(cls: type[T]) -> Iterator[type[T]]:
        """Final classes of this kind in files that have been imported."""
        for sub in cls.__subclasses__():
            if sub.listed and not inspect.isabstract(sub) and sub.is_shipped():
                yield sub
            yield from sub._imported()

    @classmethod
    def resolve(cls: type[T], value: Any, option: str = "") -> T:
        """Return an object of this kind from an object or from a name.

        option : name in messages, by default that of the kind
        """
        kind = option or cls.__name__.lower()
        article = "an" if cls.__name__[0] in "AEIOU" else "a"
        if isinstance(value, cls):
            return value
        if isinstance(value, type) and issubclass(value, cls):
            raise InputTypeError(
                f"{kind} must be {article} {cls.__name__} object, got the class "
                f"{value.__name__}: pass {value.__name__}(...)"
            )
        if not isinstance(value, str):
            raise InputTypeError(
                f"{kind} must be {article} {cls.__name__} object or a name, got {value!r}; "
                f"choices: {', '.join(cls.choices())}"
            )
        choices = cls.choices()
        if value not in choices:
            raise ParameterError(f"unknown {kind} {value!r}; {suggest(value, choices)}")
        try:
            return choices[value]()
        except TypeError as error:
            raise ParameterError(
                f"{kind} {value!r} needs options: pass {choices[value].__name__}(...)"
            ) from error

    def __repr__(self) -> str:
        """The constructor call, with options that differ from the defaults."""
        shown = []
        for key, default in _default_options(type(self).__init__).items():
            value, required = getattr(self, key), default is inspect.Parameter.empty
            if key in self.from_fit or _same(value, default):
                continue
            size = np.size(value) if isinstance(value, np.ndarray) else 0
            text = f"<array of {size}>" if size > 6 else repr(value)
            shown.append(text if required else f"{key}={text}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Two ingredients are equal if their class and options are."""
        if type(self) is not type(other) or not isinstance(other, Ingredient):
            return False
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[key], theirs[key]) for key in mine)

    __hash__ = None  # type: ignore[assignment]


@cache  # reading signatures takes longer than answering many questions
def _default_options(constructor: Callable[..., None]) -> dict[str, Any]:
    """Arguments of a constructor and their defaults."""
    if constructor is object.__init__:
        return {}
    _, *arguments = inspect.signature(constructor).parameters.values()
    return {argument.name: argument.default for argument in arguments}


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if hasattr(left, "tocsr") and hasattr(right, "tocsr"):
        return bool(left.shape == right.shape and (left.tocsr() != right.tocsr()).nnz == 0)
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        missing = np.asarray(left).dtype.kind == "f" and np.asarray(right).dtype.kind == "f"
        return np.array_equal(left, right, equal_nan=missing)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    try:
        return bool(left == right)
    except (TypeError, ValueError):
        return False


def positive_number(owner: object, option: str, *, zero: bool = False) -> float:
    """The value of a numeric option that must be > 0 (or >= 0)."""
    name, limit = f"{type(owner).__name__}.{option}", {"low" if zero else "above": 0.0}
    return check_number(name, getattr(owner, option), **limit)


def flag(option: str, value: object) -> bool:
    """The value of an option that must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{option} must be True or False, got {value!r}")
    return bool(value)


def row_column(data: Dataset, column: str, asked_by: Ingredient) -> np.ndarray[Any, Any]:
    """A column of the rows of the data, or an error that lists the columns."""
    columns = data.rows
    if column not in columns:
        names = ", ".join(map(repr, columns)) or "none"
        raise DataError(
            f"{asked_by!r} needs the row column {column!r}, which the data lack (columns: {names}):"
            f" pass Dataset(values, rows={{{column!r}: ...}}), read_baskets(..., rows=...) or "
            f"corpus.with_rows({{{column!r}: ...}})"
        )
    return np.asarray(columns[column])


@cache
def _files_of(package: str | None) -> frozenset[str]:
    """Names of the files of a package."""
    if package is None:
        return frozenset()
    return frozenset(file.name for file in pkgutil.iter_modules(import_module(package).__path__))
