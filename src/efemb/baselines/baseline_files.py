"""Baselines on disk: the options and the fitted state of any baseline."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from efemb import baselines
from efemb.baselines.base import Baseline
from efemb.errors import DataError, ParameterError, suggest
from efemb.storage.encoding import decode, encode
from efemb.storage.folder import Contents, SealedKind

BASELINE = SealedKind(
    format="efemb baseline", noun="baseline", version=1, tensors="arrays.safetensors"
)
# scikit-learn's copy of the labels, which `vocabulary_` also contains.
_LEFT_OUT = "feature_names_in_"


def save(model: Baseline, path: str | os.PathLike[str]) -> None:
    """Write a fitted baseline to the folder `path`; an older one there is replaced as a whole."""
    BASELINE.replaceable(path)
    BASELINE.write(path, *pack(model))


def read(path: str | os.PathLike[str]) -> Baseline:
    """Read the folder that `save` wrote; anything that changed since then is an error."""
    return BASELINE.load(path, unpack)


def kinds() -> dict[str, type[Baseline]]:
    """Classes of baselines that can be saved, by name."""
    shipped = {name: getattr(baselines, name) for name in baselines.__all__}
    return {name: cls for name, cls in shipped.items() if issubclass(cls, Baseline)}


def pack(model: Baseline) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The manifest (still without checksums), the arrays and the JSON files of a baseline."""
    check_is_fitted(model, "family_")
    kind = type(model).__name__
    if kinds().get(kind) is not type(model):
        raise ParameterError(
            f"{kind} cannot be saved, because it is not one of efemb's baselines: store what you "
            "need to fit it again"
        )
    options, arrays = model.get_params(deep=False), dict[str, Any]()
    if not isinstance(options.get("random_state"), int | None):
        options["random_state"] = None  # the state of a generator is not needed after the fit
    state = {
        name: value
        for name, value in vars(model).items()
        if name not in options and name != _LEFT_OUT
    }
    body = {
        "model": kind,
        "options": encode(options, arrays, "options"),
        "state": encode(state, arrays, "state"),
    }
    return body, arrays, {}


def unpack(contents: Contents) -> Baseline:
    """Undo `pack`."""
    body, classes = contents.body, kinds()
    kind, options, state = (
        decode(body[key], contents.arrays) for key in ("model", "options", "state")
    )
    if kind not in classes:
        raise DataError(f"the baseline {kind!r} is unknown; {suggest(kind, classes)}")
    strange = [name for name in state if hasattr(classes[kind], name)]
    if strange:
        raise DataError(f"{strange[0]!r} is not part of a fitted {kind}")
    model = classes[kind](**options)
    model.__dict__.update(state)
    return model
