"""Basket models on disk: one sealed folder with all parts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from efemb.baselines.baseline_files import check_usable
from efemb.baselines.personal import PersonalPopularity
from efemb.baskets.embedding import BasketEmbedding
from efemb.baskets.experts import BASES, SizeMixture
from efemb.baskets.parts import Parts, Passes
from efemb.blend.blend_files import pack_members, unpack_members
from efemb.errors import DataError
from efemb.fitted.embedding import FittedEmbedding
from efemb.storage.encoding import decode, encode
from efemb.storage.folder import Contents, SealedKind
from efemb.table import Table

BASKETS = SealedKind(
    format="efemb basket model",
    noun="basket model",
    version=1,
    tensors="arrays.safetensors",
    replaces=("efemb model",),
)
_STATE = ("vocabulary_", "n_features_in_", "report_")
_MEMBERS = ("vectors", "personal", "history")


def save(model: BasketEmbedding, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to the folder `path`; an older one there is replaced as a whole."""
    BASKETS.replaceable(path)
    BASKETS.write(path, *pack(model))


def read(path: str | os.PathLike[str]) -> BasketEmbedding:
    """Read the folder that `save` wrote; anything that changed since then is an error."""
    return BASKETS.load(path, unpack)


def pack(model: BasketEmbedding) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The manifest (still without checksums), the arrays and the JSON files of a model."""
    arrays: dict[str, Any] = {}
    options, parts, mixture = model.get_params(deep=False), model.parts_, model.mixture_
    if not isinstance(options["random_state"], int | None):
        options["random_state"] = None  # the state of a generator is not needed after the fit
    body = {
        "options": encode(options, arrays, "options"),
        "state": encode({name: getattr(model, name) for name in _STATE}, arrays, "state"),
        "mixtures": {
            name: encode({**vars(each), "names": list(each.names)}, arrays, name)
            for name, each in (
                ("mixture", mixture),
                ("personal", model.personal_),
                ("new_items", model.new_items_),
            )
            if each is not None
        },
        "reliability": encode(_columns(model.reliability_), arrays, "reliability"),
        "parts": encode(
            {
                "pairs": parts.pairs,
                "log_popularity": parts.log_popularity,
                "log_amounts": parts.log_amounts,
                "density": parts.density,
                "damped": parts.damped,
                "passes": list(parts.passes),
            },
            arrays,
            "parts",
        ),
    }
    members = {name: getattr(parts, name) for name in _MEMBERS}
    known = {name: member for name, member in members.items() if member is not None}
    body["models"] = pack_members(known, arrays)
    return body, arrays, {}


def unpack(contents: Contents) -> BasketEmbedding:
    """Undo `pack`."""
    body, arrays = contents.body, contents.arrays
    model = BasketEmbedding(**decode(body["options"], arrays))
    model.__dict__.update(decode(body["state"], arrays))
    mixtures = {
        name: _checked(SizeMixture(**{**each, "names": tuple(each["names"])}))
        for name, each in decode(body["mixtures"], arrays).items()
    }
    model.mixture_, model.personal_ = mixtures["mixture"], mixtures.get("personal")
    model.new_items_ = mixtures.get("new_items")  # which earlier revisions did not have
    members = unpack_members(contents)
    vectors, personal, history = (members.get(name) for name in _MEMBERS)
    if history is not None and not isinstance(history, PersonalPopularity):
        raise DataError("the history of a basket model must be a PersonalPopularity")
    if not isinstance(vectors, FittedEmbedding):
        raise DataError("a basket model needs vectors")
    parts = decode(body["parts"], arrays)
    parts["passes"] = Passes(*parts["passes"])
    if (model.personal_ is None) != (personal is None or history is None):
        raise DataError("a basket model knows customers with both their vectors and their history")
    model.parts_ = Parts(vectors=vectors, personal=personal, history=history, **parts)
    if np.shape(parts["pairs"]) != (vectors.n_entities, vectors.n_entities):
        raise DataError("pairs must have one row and one column per entity")
    model.reliability_ = Table(decode(body["reliability"], arrays))
    model.family_ = model._family()
    check_usable(model, arrays)
    return model


def _checked(mixture: SizeMixture) -> SizeMixture:
    """Reject arrays of other shapes, and numbers that are not finite."""
    n_experts, n_sizes = len(mixture.names), len(mixture.sizes)
    shapes = {
        "experts": (n_sizes, n_experts, len(BASES)),
        "of_all": (n_sizes, n_experts),
        "of_absent": (n_sizes, n_experts),
    }
    for name, shape in shapes.items():
        values = getattr(mixture, name)
        if np.shape(values) != shape or not np.isfinite(values).all():
            raise DataError(f"{name} of the mixture must be finite numbers of shape {shape}")
    return mixture


def _columns(table: Table) -> dict[str, Any]:
    return {name: table[name] for name in table.columns}
