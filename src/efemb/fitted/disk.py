"""Models on disk: a folder of safetensors and JSON, written at once, checked when read."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from efemb.data.vocabulary import Vocabulary
from efemb.errors import DataError
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts.base import SCALES
from efemb.model.contexts.bound.entities import Lists
from efemb.model.parameters import CORE, Parameters
from efemb.model.space import ParameterSpace
from efemb.model.spec import Spec
from efemb.storage.encoding import decode, encode, register
from efemb.storage.folder import Contents, SealedKind

__all__ = ["read", "register", "save"]

LABELS = "vocabulary.json"
MODEL = SealedKind(
    format="efemb model",
    noun="model",
    version=1,
    tensors="parameters.safetensors",
    texts=(LABELS,),
)
TERMS = "terms/"  # before the names of their arrays, apart from those of ingredients
_LISTS = ("ptr", "members", "offset", "slot")


def save(fitted: FittedEmbedding, path: str | os.PathLike[str]) -> None:
    """Write a model to the folder `path`; an older model there is replaced as a whole.

    What `read` would refuse is refused here, while the older model is still there.
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
    parts = {one.name: getattr(fitted.spec, one.name) for one in fields(Spec)}
    body = {
        "model": fitted.model,
        "binarize": bool(fitted.binarize),
        "ingredients": {name: encode(one, arrays, name) for name, one in parts.items()},
        "lists": [_encode_lists(part, arrays, i) for i, part in enumerate(fitted.lists or ())],
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


def _encode_lists(part: Lists, arrays: dict[str, Any], number: int) -> dict[str, Any]:
    for name in _LISTS:
        encode(np.asarray(getattr(part, name)), arrays, f"lists.{number}.{name}")
    return {"scale": part.scale, "binary": part.binary}


def _check_parameters(parameters: Parameters) -> None:
    for name, value in parameters.named().items():
        if not np.isfinite(value).all():
            raise DataError(f"{name} holds NaN or infinite numbers: this is not a usable model")


def unpack(found: Contents) -> FittedEmbedding:
    """Undo `pack`."""
    manifest, arrays = found.body, found.arrays
    spec = _spec({key: decode(one, arrays) for key, one in manifest["ingredients"].items()})
    core = {name: arrays[name] for name in CORE if name in arrays}
    of_terms = {
        name.removeprefix(TERMS): array for name, array in arrays.items() if name.startswith(TERMS)
    }
    parameters = Parameters(**core, terms=of_terms)
    _check_parameters(parameters)
    vocabulary = None
    if LABELS in found.texts:
        labels = decode(found.texts[LABELS], {})
        if not isinstance(labels, list):
            raise DataError(f"{LABELS} holds no list of labels")
        vocabulary = Vocabulary(labels, counts=arrays.get("counts"))
    lists = None
    if manifest["fixed"]:
        lists = tuple(_decode_lists(one, arrays, i) for i, one in enumerate(manifest["lists"]))
    model = FittedEmbedding(
        parameters=parameters,
        spec=spec,
        vocabulary=vocabulary,
        positions=arrays.get("positions"),
        lists=lists,
        history=decode(manifest["history"], arrays),
        model=manifest["model"],
        binarize=bool(manifest.get("binarize", False)),  # older files do not say it
    )
    _check_shapes(model)
    return model


def _spec(parts: dict[str, Any]) -> Spec:
    """The ingredients, each checked to be of its kind."""
    names = {one.name: one.default is MISSING for one in fields(Spec)}
    needed = {name for name, required in names.items() if required}
    if missing := needed - set(parts):
        raise DataError(f"{min(missing)!r} is missing among the ingredients")
    if unknown := set(parts) - set(names):
        raise DataError(
            f"{min(unknown)!r} is not an ingredient that this version knows: the model was saved "
            "by a newer version of efemb; upgrade it to load the model"
        )
    priors = parts.pop("prior_rho"), parts.pop("prior_alpha")
    return Spec.resolve(prior=priors, **parts)


def _decode_lists(options: dict[str, Any], arrays: dict[str, Any], number: int) -> Lists:
    ptr, members, offset, slot = (arrays[f"lists.{number}.{name}"] for name in _LISTS)
    return Lists(ptr, members, offset, slot, **options)


def _check_shapes(found: FittedEmbedding) -> None:
    size = found.n_entities
    checks: dict[str, Callable[[], bool]] = {
        "rho and alpha": lambda: _vectors_fit(found),
        "positions": lambda: found.positions is None or _rows_fit(found.positions, size),
        "labels": lambda: found.vocabulary is None or len(found.vocabulary) == size,
        "lists": lambda: all(_lists_fit(part, size) for part in found.lists or ()),
    }
    for name, holds in checks.items():
        if not holds():
            raise DataError(f"{name} do not fit a model of {size} entities")
    records = found.history if isinstance(found.history, list) else [found.history]
    if not isinstance(found.model, str) or not all(isinstance(one, dict) for one in records):
        raise DataError("the name or the history of the model is not what a fit leaves")


def _vectors_fit(found: FittedEmbedding) -> bool:
    """Whether all arrays are of numbers and have the shapes of a model of these ingredients."""
    given = found.parameters
    rho, alpha, intercept = given.rho, given.alpha, given.intercept
    if any(array.dtype.kind != "f" for array in given.arrays()) or rho.ndim not in (2, 3):
        return False
    n_dims = 1 if rho.ndim == 2 else rho.shape[2]
    dims = (found.n_entities, found.n_slots, n_dims, found.n_components)
    space = ParameterSpace(found.spec, *dims)
    shape, of_intercept = space.shape_of("rho"), space.shape_of("intercept")
    assert shape is not None  # every model has embeddings
    if found.spec.zeros.tree:
        shape = (len(rho), *shape[1:])  # one vector a node
    return (
        rho.shape == shape
        and alpha.shape[1:] == shape[1:]
        and len(alpha) % space.n_alpha == 0
        and len(alpha) >= space.n_alpha * (1 if space.positional else found.n_slots)
        and (None if intercept is None else intercept.shape) == of_intercept
        and (given.position is not None) == space.positional
        and {name: array.shape for name, array in given.terms.items()}
        == {array.name: array.shape for array in space.layout if array.name in space.of_terms}
    )


def _rows_fit(positions: Any, size: int) -> bool:
    return positions.ndim == 2 and len(positions) == size and bool(np.isfinite(positions).all())


def _lists_fit(part: Lists, size: int) -> bool:
    arrays = (part.ptr, part.members, part.offset, part.slot)
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in arrays):
        return False
    n_edges = len(part.members)
    inside = (part.members >= 0) & (part.members < size) & (part.slot >= 0)
    return (
        len(part.ptr) == size + 1
        and bool(part.ptr[0] == 0 and part.ptr[-1] == n_edges and (np.diff(part.ptr) >= 0).all())
        and len(part.offset) == len(part.slot) == n_edges
        and bool(inside.all())
        and part.scale in SCALES
        and isinstance(part.binary, bool)
    )
