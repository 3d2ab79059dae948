"""Objects as JSON and arrays: ingredients by class name and options, without pickles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from efemb.data.array_checks import is_sparse, make_csr
from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.model.combine import Combine
from efemb.model.contexts import Context, ContextSum
from efemb.model.contexts.frozen import Kept
from efemb.model.families import Family
from efemb.model.ingredient import Ingredient
from efemb.model.links import Link
from efemb.model.priors import Prior
from efemb.model.structures import Structure
from efemb.model.terms import Term
from efemb.model.zeros import Zeros

KINDS: tuple[type[Ingredient], ...] = (
    Combine,
    Context,
    Family,
    Link,
    Prior,
    Structure,
    Term,
    Zeros,
)
C = TypeVar("C", bound=type[Ingredient])

_registered: dict[str, type[Ingredient]] = {}


def register(ingredient: C) -> C:
    """Allow files to hold your own ingredient class; usable as a decorator.

    A file names the class and its options but not its code: register the class again before
    loading such a file in another program.

    Parameters
    ----------
    ingredient : class
        A subclass of `Context`, `Family`, `Link`, `Prior`, `Structure`, `Term`, `Zeros` or
        `Combine`.

    Returns
    -------
    class
        The same one.
    """
    if not (isinstance(ingredient, type) and issubclass(ingredient, KINDS)):
        raise InputTypeError(f"register takes an ingredient class, got {ingredient!r}")
    _registered[_own_name(ingredient)] = ingredient
    return ingredient


def _own_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# Sums are written with a plus sign and fits freeze lists: neither is a named choice.
_UNNAMED: dict[str, type[Ingredient]] = {"ContextSum": ContextSum, "Kept": Kept}


def _class_named(name: str) -> type[Ingredient] | None:
    """The class of this name in a file; of the classes of efemb, only its file is imported."""
    special = {**_UNNAMED, **_registered}
    if name in special:
        return special[name]
    shipped = (kind.find(name) for kind in KINDS)
    return next((cls for cls in shipped if cls is not None), None)


def encode(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """`value` as JSON; arrays go to `arrays` under names that start with `name`."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    for kind, encode_kind in _ENCODERS.items():
        if isinstance(value, kind):
            return encode_kind(value, arrays, name)
    if is_sparse(value):
        return _encode_sparse(value, arrays, name)
    raise ParameterError(
        f"{name} holds {value!r:.80}, which cannot be saved: use numbers, text, lists, arrays "
        "or ingredients"
    )


def _encode_list(value: list[Any], arrays: dict[str, Any], name: str) -> list[Any]:
    return [encode(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]


def _encode_tuple(value: tuple[Any, ...], arrays: dict[str, Any], name: str) -> dict[str, Any]:
    return {"$tuple": _encode_list(list(value), arrays, name)}


def _encode_vocabulary(value: Vocabulary, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    return {
        "$labels": encode(list(value.labels), arrays, f"{name}.labels"),
        "counts": encode(value.counts, arrays, f"{name}.counts"),
    }


def _encode_mapping(value: Mapping[Any, Any], arrays: dict[str, Any], name: str) -> dict[str, Any]:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: encode(item, arrays, f"{name}.{key}") for key, item in value.items()}
    return {"$pairs": _encode_list([list(pair) for pair in value.items()], arrays, name)}


def _encode_ingredient(value: Ingredient, arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    cls = type(value)
    name = cls.__name__ if _class_named(cls.__name__) is cls else _own_name(cls)
    if _class_named(name) is not cls:
        raise ParameterError(
            f"{prefix} is {cls.__name__}, a class that efemb does not know: call "
            f"efemb.storage.register({cls.__name__}) before saving and before loading"
        )
    options = value.get_params(deep=False)
    coded = {key: encode(option, arrays, f"{prefix}.{key}") for key, option in options.items()}
    return {"$ingredient": name, "options": coded}


def _encode_array(value: Any, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    if value.dtype.kind not in "biuf":
        raise ParameterError(f"{name} is an array of {value.dtype}; only numbers can be saved")
    native = value.dtype.newbyteorder("=")
    arrays[name] = np.ascontiguousarray(value, dtype=native).reshape(value.shape)
    return {"$array": name}


def _encode_sparse(value: Any, arrays: dict[str, Any], name: str) -> dict[str, Any]:
    rows = value.tocsr()
    csr = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    coded = {key: _encode_array(array, arrays, f"{name}.{key}") for key, array in csr.items()}
    return {"$sparse": [int(size) for size in rows.shape], **coded}


_ENCODERS: dict[type, Callable[[Any, dict[str, Any], str], Any]] = {
    Ingredient: _encode_ingredient,
    np.ndarray: _encode_array,
    list: _encode_list,
    tuple: _encode_tuple,
    Vocabulary: _encode_vocabulary,
    Mapping: _encode_mapping,
}


def decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Undo `encode`."""
    if isinstance(value, list):
        plain = {list, dict}.isdisjoint(map(type, value))  # for instance, a million labels
        return value if plain else [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    for mark, decode_marked in _DECODERS.items():
        if mark in value:
            return decode_marked(value, arrays)
    return {key: decode(item, arrays) for key, item in value.items()}


def _decode_array(value: dict[str, Any], arrays: Mapping[str, Any]) -> Any:
    if value["$array"] not in arrays:
        raise DataError(f"the array {value['$array']!r} is missing")
    return arrays[value["$array"]]


def _decode_vocabulary(value: dict[str, Any], arrays: Mapping[str, Any]) -> Vocabulary:
    return Vocabulary(decode(value["$labels"], arrays), counts=decode(value["counts"], arrays))


def _decode_sparse(value: dict[str, Any], arrays: Mapping[str, Any]) -> Any:
    csr = tuple(decode(value[key], arrays) for key in ("data", "indices", "indptr"))
    try:
        matrix = make_csr(csr, shape=tuple(value["$sparse"]))
        matrix.check_format(full_check=True)  # an index outside the matrix would end the process
    except (TypeError, ValueError) as error:
        raise DataError(f"a sparse matrix of the model is inconsistent: {error}") from error
    return matrix


def _decode_ingredient(value: dict[str, Any], arrays: Mapping[str, Any]) -> Ingredient:
    name = value["$ingredient"]
    cls = _class_named(name)
    if cls is None:
        short = str(name).rpartition(".")[2]
        raise DataError(
            f"the model uses {name}, which is unknown: import it and call "
            f"efemb.storage.register({short}) before loading"
        )
    options = decode(value["options"], arrays)
    if not set(options) <= set(cls.option_names()):
        raise DataError(f"the model has unknown options of {name}: {options!r:.80}")
    return cls(**options)


_DECODERS: dict[str, Callable[[dict[str, Any], Mapping[str, Any]], Any]] = {
    "$float": lambda value, _: float(value["$float"]),
    "$tuple": lambda value, arrays: tuple(decode(value["$tuple"], arrays)),
    "$pairs": lambda value, arrays: dict(decode(value["$pairs"], arrays)),
    "$array": _decode_array,
    "$sparse": _decode_sparse,
    "$labels": _decode_vocabulary,
    "$ingredient": _decode_ingredient,
}
