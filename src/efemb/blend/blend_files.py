"""Blends on disk: one sealed folder with the weights and all models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from efemb.baselines import baseline_files as baselines
from efemb.baselines.base import Baseline
from efemb.blend.blend import Blend
from efemb.blend.pools import POOLS
from efemb.errors import DataError, EfembError, ParameterError, suggest
from efemb.fitted import disk as storage
from efemb.fitted.embedding import FittedEmbedding
from efemb.storage.encoding import decode, encode
from efemb.storage.folder import Contents, SealedKind

BLEND = SealedKind(format="efemb blend", noun="blend", version=1, tensors="arrays.safetensors")
OPTIONS = ("how", "validation_fraction", "max_entries", "verbose")
_STATE = ("vocabulary_", "n_features_in_", "report_")
Packed = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def save(blend: Blend, path: str | os.PathLike[str]) -> None:
    """Write a fitted blend to the folder `path`; an older one there is replaced as a whole."""
    BLEND.replaceable(path)
    BLEND.write(path, *pack(blend))


def read(path: str | os.PathLike[str]) -> Blend:
    """Read the folder that `save` wrote; anything that changed since then is an error."""
    return BLEND.load(path, unpack)


def pack(blend: Blend) -> Packed:
    """The manifest (still without checksums), the arrays and the JSON files of a blend."""
    arrays: dict[str, Any] = {}
    members = pack_members(blend.models_, arrays)
    body = {
        "options": encode({name: getattr(blend, name) for name in OPTIONS}, arrays, "options"),
        "state": encode({name: getattr(blend, name) for name in _STATE}, arrays, "state"),
        "pool": blend.how_,
        "parameters": {
            field.name: encode(getattr(blend.pool_, field.name), arrays, field.name)
            for field in fields(blend.pool_)
        },
        "models": members,
    }
    return body, arrays, {}


def pack_members(models: Mapping[str, Any], arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Models inside a saved model, as JSON; their arrays go to `arrays`."""
    members = []
    for i, (name, model) in enumerate(models.items()):
        try:
            kind, (body, own, texts) = _pack_member(model)
        except EfembError as error:
            raise type(error)(f"{name!r} cannot be saved: {error}") from error
        arrays |= {f"models.{i}.{key}": array for key, array in own.items()}
        members.append({"name": name, "format": kind, "body": body, "texts": texts})
    return members


def unpack_members(contents: Contents) -> dict[str, Any]:
    """Undo `pack_members`."""
    return {
        member["name"]: _unpack_member(member, contents, f"models.{i}.")
        for i, member in enumerate(contents.body["models"])
    }


def _pack_member(model: Any) -> tuple[str, Packed]:
    """The format of a model and its contents."""
    if isinstance(model, Blend):
        return BLEND.format, pack(model)
    if isinstance(model, Baseline):
        return baselines.BASELINE.format, baselines.pack(model)
    fitted = model.fitted() if hasattr(model, "fitted") else model
    if isinstance(fitted, FittedEmbedding):
        return storage.MODEL.format, storage.pack(fitted)
    raise ParameterError(
        f"{type(model).__name__} cannot be saved: only embeddings and baselines of efemb can"
    )


def unpack(contents: Contents) -> Blend:
    """Undo `pack`."""
    body, arrays = contents.body, contents.arrays
    models = unpack_members(contents)
    blend = Blend(models, **decode(body["options"], arrays))
    if body["pool"] not in POOLS:
        raise DataError(f"the blend {body['pool']!r} is unknown; {suggest(body['pool'], POOLS)}")
    parameters = decode(body["parameters"], arrays)
    for name, values in parameters.items():
        if np.shape(values) != (len(models),) or not np.isfinite(values).all():
            raise DataError(f"{name} must be one finite number per model")
    blend.__dict__.update(decode(body["state"], arrays))
    blend.family_, blend.models_, blend.how_ = blend._family(), models, body["pool"]
    blend._keep(POOLS[blend.how_](**parameters))
    return blend


def _unpack_member(member: dict[str, Any], contents: Contents, prefix: str) -> Any:
    readers: dict[str, Callable[[Contents], Any]] = {
        BLEND.format: unpack,
        baselines.BASELINE.format: baselines.unpack,
        storage.MODEL.format: storage.unpack,
    }
    kind = member["format"]
    if kind not in readers:
        raise DataError(f"{member['name']!r} has the unknown format {kind!r}: upgrade efemb")
    own = {
        key.removeprefix(prefix): array
        for key, array in contents.arrays.items()
        if key.startswith(prefix)
    }
    return readers[kind](Contents(contents.folder, member["body"], own, member["texts"]))
