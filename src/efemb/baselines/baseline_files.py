"""Baselines on disk: the options and the fitted state of any baseline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from efemb import baselines
from efemb.baselines.base import Baseline
from efemb.data.dataset import Dataset
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
    check_usable(model, contents.arrays)
    return model


def check_usable(model: Any, arrays: Mapping[str, Any]) -> None:
    """Reject a state whose parts do not fit together, by asking for the predictions of two rows."""
    n = model.n_features_in_
    labels, largest = model.vocabulary_, max((np.size(a) for a in arrays.values()), default=0)
    if not isinstance(n, int) or not 2 <= n <= largest or len(labels or range(n)) != n:
        raise DataError(f"n_features_in_={n!r} is not the number of entities of the arrays")
    owners = {model.column: 2 * list(model.users_)[:1]} if hasattr(model, "users_") else {}
    try:
        if model.family_.normalized_score:
            pairs = csr_array((np.ones(4), ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, n))
            data = Dataset(pairs, entities=labels, rows=owners)
            _, means = next(iter(model.log_means(data, [0, 1, 1], [0, 0, n - 1])))
        else:
            means = model.conditional(Dataset(np.zeros((2, n)), entities=labels))
        complete = np.shape(means)[1] == n and not np.isnan(means).any()
    except Exception as error:  # whatever a forged state leads to
        raise DataError(f"the parts of {type(model).__name__} do not fit: {error}") from error
    if not complete:
        raise DataError(f"{type(model).__name__} does not predict each of its {n:,} entities")
