"""Objects as JSON and arrays: ingredients by class name and options, arrays apart; no pickle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from efemb.combine import Combine
from efemb.contexts import Context, ContextSum
from efemb.contexts.kept import Kept
from efemb.data.validation import is_sparse
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.families import Family
from efemb.ingredient import Ingredient
from efemb.links import Link
from efemb.priors import Prior
from efemb.structures import Structure
from efemb.zeros import Zeros

KINDS: tuple[type[Ingredient], ...] = (Combine, Context, Family, Link, Prior, Structure, Zeros)
C = TypeVar("C", bound=type[Ingredient])

_registered: dict[str, type[Ingredient]] = {}


def register(ingredient: C) -> C:
    """Let files hold an ingredient class of your own; usable as a decorator.

    A file names the class and its options, never its code: register the class again before
    loading such a file in another program.
    """
    if not (isinstance(ingredient, type) and issubclass(ingredient, KINDS)):
        raise InputTypeError(f"register takes a class of ingredients, got {ingredient!r}")
    _registered[_own_name(ingredient)] = ingredient
    return ingredient


def _own_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _known() -> dict[str, type[Ingredient]]:
    shipped = {c.__name__: c for kind in KINDS for c in kind.choices().values()}
    # A sum is written with a plus sign and lists are kept by a fit: none of the named choices.
    return {**shipped, "ContextSum": ContextSum, "Kept": Kept, **_registered}


def encode(value: Any, arrays: dict[str, Any], place: str) -> Any:
    """`value` as JSON; arrays go to `arrays` under the name `place` and what follows it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, Ingredient):
        return _encode_ingredient(value, arrays, place)
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, place)
    if is_sparse(value):
        return _encode_sparse(value, arrays, place)
    if isinstance(value, list | tuple):
        found = [encode(one, arrays, f"{place}.{i}") for i, one in enumerate(value)]
        return found if isinstance(value, list) else {"$tuple": found}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: encode(one, arrays, f"{place}.{key}") for key, one in value.items()}
    raise ParameterError(
        f"{place} holds {value!r:.80}, which a file cannot hold: use numbers, text, lists, arrays "
        "or ingredients"
    )


def _encode_ingredient(value: Ingredient, arrays: dict[str, Any], place: str) -> dict[str, Any]:
    cls = type(value)
    known = _known()
    name = cls.__name__ if known.get(cls.__name__) is cls else _own_name(cls)
    if known.get(name) is not cls:
        raise ParameterError(
            f"{place} is {cls.__name__}, a class of your own that a file cannot describe: call "
            f"efemb.storage.register({cls.__name__}) before saving and before loading"
        )
    options = value.get_params(deep=False)
    coded = {key: encode(one, arrays, f"{place}.{key}") for key, one in options.items()}
    return {"$ingredient": name, "options": coded}


def _encode_array(value: Any, arrays: dict[str, Any], place: str) -> dict[str, Any]:
    if value.dtype.kind not in "biuf":
        raise ParameterError(f"{place} is an array of {value.dtype}; a file holds numbers only")
    native = value.dtype.newbyteorder("=")
    arrays[place] = np.ascontiguousarray(value, dtype=native).reshape(value.shape)
    return {"$array": place}


def _encode_sparse(value: Any, arrays: dict[str, Any], place: str) -> dict[str, Any]:
    rows = value.tocsr()
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    coded = {key: _encode_array(one, arrays, f"{place}.{key}") for key, one in parts.items()}
    return {"$sparse": [int(size) for size in rows.shape], **coded}


def decode(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Undo `encode`."""
    if isinstance(value, list):
        plain = {list, dict}.isdisjoint(map(type, value))  # such as a million labels
        return value if plain else [decode(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return float(value["$float"])
    if "$tuple" in value:
        return tuple(decode(value["$tuple"], arrays))
    if "$array" in value:
        if value["$array"] not in arrays:
            raise DataError(f"the array {value['$array']!r} is missing")
        return arrays[value["$array"]]
    if "$sparse" in value:
        return _decode_sparse(value, arrays)
    if "$ingredient" in value:
        return _decode_ingredient(value, arrays)
    return {key: decode(one, arrays) for key, one in value.items()}


def _decode_sparse(value: dict[str, Any], arrays: Mapping[str, Any]) -> Any:
    from scipy.sparse import csr_array

    parts = tuple(decode(value[key], arrays) for key in ("data", "indices", "indptr"))
    return csr_array(parts, shape=tuple(value["$sparse"]))


def _decode_ingredient(value: dict[str, Any], arrays: Mapping[str, Any]) -> Ingredient:
    name, known = value["$ingredient"], _known()
    if name not in known:
        short = str(name).rpartition(".")[2]
        raise DataError(
            f"the model uses {name}, which is not known here: import it and call "
            f"efemb.storage.register({short}) before loading"
        )
    options = decode(value["options"], arrays)
    if not set(options) <= set(known[name].option_names()):
        raise DataError(f"the model has options of {name} that are not known here: {options!r:.80}")
    return known[name](**options)
