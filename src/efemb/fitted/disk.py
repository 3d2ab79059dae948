"""Models on disk: a folder of safetensors and JSON, written at once, checked when read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts.base import SCALES
from efemb.model.parameters import CORE, Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.storage.encoding import decode, encode, register
from efemb.storage.folder import Contents, SealedKind

if TYPE_CHECKING:
    from efemb.model.contexts.bound.entities import Lists

__all__ = ["read", "register", "save"]

LABELS = "vocabulary.json"
MODEL = SealedKind(
    format="efemb model",
    noun="model",
    version=1,
    tensors="parameters.safetensors",
    replaces=("efemb basket model",),
    texts=(LABELS,),
)
TERMS = "terms/"  # prefix of the arrays of terms, which may have the names of other arrays
_LISTS = ("ptr", "members", "offset", "slot")
_OF_EDGES = ("distance", "center", "ridge", "weight")  # arrays that only some lists have


def save(fitted: FittedEmbedding, path: str | os.PathLike[str]) -> None:
    """Write a model to the folder `path`; an older model there is replaced as a whole.

    Anything that `read` would refuse is refused here, while the older model still exists.
    """
    MODEL.replaceable(path)
    MODEL.write(path, *pack(fitted))


def read(path: str | os.PathLike[str]) -> FittedEmbedding:
    """Read the folder that `save` wrote; anything that changed since then is an error."""
    return MODEL.load(path, unpack)


def pack(fitted: FittedEmbedding) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The manifest (still without checksums), the arrays and the JSON files of a model."""
    _check_shapes(fitted)
    _check_parameters(fitted.parameters)
    arrays: dict[str, Any] = {}
    options = {field.name: getattr(fitted.spec, field.name) for field in fields(Spec)}
    body = {
        "model": fitted.model,
        "binarize": bool(fitted.binarize),
        "ingredients": {
            name: encode(ingredient, arrays, name) for name, ingredient in options.items()
        },
        "lists": [
            _encode_lists(members, arrays, i) for i, members in enumerate(fitted.lists or ())
        ],
        "fixed": fitted.lists is not None,
        "history": encode(list(fitted.history), arrays, "history"),
    }
    words = fitted.vocabulary
    named: dict[str, Any] = {
        (name if name in CORE else TERMS + name): array
        for name, array in fitted.parameters.named().items()
    }
    named["positions"] = fitted.positions
    named["counts"] = None if words is None else words.counts
    for name, value in named.items():
        if value is not None:
            encode(np.asarray(value), arrays, name)
    texts = {} if words is None else {LABELS: encode(list(words.labels), {}, "labels")}
    return body, arrays, texts


def _encode_lists(members: Lists, arrays: dict[str, Any], number: int) -> dict[str, Any]:
    for name in _LISTS:
        encode(np.asarray(getattr(members, name)), arrays, f"lists.{number}.{name}")
    for name in _OF_EDGES:
        if getattr(members, name) is not None:
            encode(np.asarray(getattr(members, name)), arrays, f"lists.{number}.{name}")
    return {"scale": members.scale, "binary": members.binary}


def _check_parameters(parameters: Parameters) -> None:
    for name, value in parameters.named().items():
        if not np.isfinite(value).all():
            raise DataError(f"{name} holds NaN or infinite numbers: this is not a usable model")


def unpack(contents: Contents) -> FittedEmbedding:
    """Undo `pack`."""
    manifest, arrays = contents.body, contents.arrays
    spec = _spec({key: decode(options, arrays) for key, options in manifest["ingredients"].items()})
    core = {name: arrays[name] for name in CORE if name in arrays}
    of_terms = {
        name.removeprefix(TERMS): array for name, array in arrays.items() if name.startswith(TERMS)
    }
    parameters = Parameters(**core, terms=of_terms)
    _check_parameters(parameters)
    vocabulary = None
    if LABELS in contents.texts:
        labels = decode(contents.texts[LABELS], {})
        if not isinstance(labels, list):
            raise DataError(f"{LABELS} does not hold a list of labels")
        vocabulary = Vocabulary(labels, counts=arrays.get("counts"))
    lists = None
    if not isinstance(manifest["fixed"], bool):
        raise DataError(f"'fixed' must be true or false, got {manifest['fixed']!r:.40}")
    if manifest["fixed"]:
        lists = tuple(
            _decode_lists(options, arrays, i) for i, options in enumerate(manifest["lists"])
        )
    model = FittedEmbedding(
        parameters=parameters,
        spec=spec,
        vocabulary=vocabulary,
        positions=arrays.get("positions"),
        lists=lists,
        history=decode(manifest["history"], arrays),
        model=manifest["model"],
        binarize=bool(manifest.get("binarize", False)),  # absent from older files
    )
    _check_shapes(model)
    return model


def _spec(options: dict[str, Any]) -> Spec:
    """The ingredients, each checked to be of its kind."""
    names = {field.name: field.default is MISSING for field in fields(Spec)}
    mandatory = {name for name, required in names.items() if required}
    if missing := mandatory - set(options):
        raise DataError(f"{min(missing)!r} is missing among the ingredients")
    if unknown := set(options) - set(names):
        raise DataError(
            f"{min(unknown)!r} is not an ingredient that this version knows: the model was saved "
            "by a newer version of efemb; upgrade it to load the model"
        )
    priors = options.pop("prior_rho"), options.pop("prior_alpha")
    return Spec.resolve(prior=priors, **options)


def _decode_lists(options: dict[str, Any], arrays: dict[str, Any], number: int) -> Lists:
    from efemb.model.contexts.bound.entities import Lists

    ptr, members, offset, slot = (arrays[f"lists.{number}.{name}"] for name in _LISTS)
    of_edges: dict[str, Any] = {name: arrays.get(f"lists.{number}.{name}") for name in _OF_EDGES}
    return Lists(ptr, members, offset, slot, **options, **of_edges)


def _check_shapes(fitted: FittedEmbedding) -> None:
    size = fitted.n_entities
    checks: dict[str, Callable[[], bool]] = {
        "rho and alpha": lambda: _vectors_fit(fitted),
        "positions": lambda: fitted.positions is None or _rows_fit(fitted.positions, size),
        "labels": lambda: fitted.vocabulary is None or len(fitted.vocabulary) == size,
        "lists": lambda: all(_lists_fit(members, size) for members in fitted.lists or ()),
    }
    for name, holds in checks.items():
        if not holds():
            raise DataError(f"{name} do not fit a model of {size} entities")
    reads_text = fitted.spec.context.reads_text
    if reads_text and (fitted.vocabulary is None or fitted.lists is not None):
        raise DataError("a text model needs words, and cannot have fixed contexts")
    if fitted.lists == ():
        raise DataError("the fixed contexts are missing")
    if not isinstance(fitted.model, str) or not _is_history(fitted.history):
        raise DataError("the name or the history of the model is malformed")


def _is_history(history: Any) -> bool:
    """Whether a history consists of records of numbers, as `Progress.record` makes them."""

    def is_number(value: Any) -> bool:
        return isinstance(value, int | float | np.number) and not isinstance(value, bool)

    def is_record(record: Any) -> bool:
        return (
            isinstance(record, dict)
            and isinstance(record.get("iteration"), int | np.integer)
            and not isinstance(record["iteration"], bool)
            and is_number(record.get("objective"))
            and all(value is None or is_number(value) for value in record.values())
        )

    return isinstance(history, list) and all(map(is_record, history))


def _vectors_fit(fitted: FittedEmbedding) -> bool:
    """Whether all arrays are of numbers and have the shapes of a model of these ingredients."""
    parameters = fitted.parameters
    rho, alpha, intercept = parameters.rho, parameters.alpha, parameters.intercept
    if any(array.dtype.kind != "f" for array in parameters.arrays()) or rho.ndim not in (2, 3):
        return False
    n_dims = 1 if rho.ndim == 2 else rho.shape[2]
    dims = (fitted.n_entities, fitted.n_slots, n_dims, fitted.n_components)
    space = ParameterSpace(fitted.spec, *dims)
    shape, of_intercept = space.shape_of("rho"), space.shape_of("intercept")
    assert shape is not None  # every model has embeddings
    if fitted.spec.zeros.tree:
        shape = (len(rho), *shape[1:])  # one vector per node
    return (
        rho.shape == shape
        and alpha.shape[1:] == shape[1:]
        and len(alpha) % space.n_alpha == 0
        and len(alpha) >= space.n_alpha * (1 if space.positional else fitted.n_slots)
        and (None if intercept is None else intercept.shape) == of_intercept
        and (parameters.position is not None) == space.positional
        and {name: array.shape for name, array in parameters.terms.items()}
        == {array.name: array.shape for array in space.layout if array.name in space.of_terms}
    )


def _rows_fit(positions: Any, size: int) -> bool:
    return positions.ndim == 2 and len(positions) == size and bool(np.isfinite(positions).all())


def _lists_fit(lists: Lists, size: int) -> bool:
    arrays = (lists.ptr, lists.members, lists.offset, lists.slot)
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in arrays):
        return False
    n_edges = len(lists.members)
    inside = (lists.members >= 0) & (lists.members < size) & (lists.slot >= 0)
    return (
        len(lists.ptr) == size + 1
        and bool(lists.ptr[0] == 0 and lists.ptr[-1] == n_edges and (np.diff(lists.ptr) >= 0).all())
        and len(lists.offset) == len(lists.slot) == n_edges
        and all(_numbers_fit(getattr(lists, name), n_edges) for name in _OF_EDGES)
        and bool(inside.all())
        and lists.scale in SCALES
        and isinstance(lists.binary, bool)
    )


def _numbers_fit(values: Any, size: int) -> bool:
    """Whether an array that may be absent holds a finite number for each edge."""
    if values is None:
        return True
    return values.dtype.kind == "f" and values.shape == (size,) and bool(np.isfinite(values).all())
