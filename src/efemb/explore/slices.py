"""Groups of rows with vectors of their own, such as slices of time: what a page knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.errors import EfembError
from efemb.explore.payload import Payload, Quantized, small_integers
from efemb.fitted.group_models import counts_by_group, of_group, trajectory

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

MOST_LABELS = 5_000  # that a page lists
MOST_NUMBERS = 2_000_000  # of the vectors of all slices in a page: about 6 MB with 24 bits
MOVED, NEAREST = 30, 3


def plain_labels(labels: Any) -> list[Any] | None:
    """Labels as JSON has them, None if they are too many or of other types."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return plain if len(plain) <= MOST_LABELS and all(map(_is_plain, plain)) else None


def _is_plain(label: Any) -> bool:
    return isinstance(label, str | int | float)


def add_slices(
    payload: Payload,
    model: FittedEmbedding,
    data: Any,
    errors: Any,
    bits: int | None,
    progress: bool = False,
) -> None:
    """Labels of the slices and, for a page that answers itself, their vectors.

    data : rows of the fit, for counts by slice;  errors : if given, what moved is tested by them
    bits : precision of the vectors, None for a page that asks a server
    """
    structure = model.spec.structure
    labels = plain_labels(structure.labels) if structure.grouped else None
    if not labels:
        return
    column = structure.columns[0]
    size = len(labels) * model.n_entities * model.n_components
    moving = model.spec.combine.reverse or structure.contexts  # a page has one alpha
    if bits is not None and (size > MOST_NUMBERS or moving):
        payload.header["notes"].append(
            f"The page has the average of all groups of {column!r}. The served explorer answers "
            "for each of them (run efemb explore MODEL, or model.explore()), and of_group(label) "
            "is the model of one, which a page can show."
        )
        return
    payload.header["slices"] = {
        "column": column,
        "labels": labels,
        "in_order": structure.in_order,
    }
    if bits is not None:
        _add_vectors(payload, model, bits)
    if data is not None:
        payload.arrays["slices.counts"] = small_integers(counts_by_group(model, data))
    if structure.in_order:
        payload.arrays["drift"] = distance = _distances(model)
        moved = _tested_drift(model, data, progress) if errors is not None else None
        payload.header["slices"]["drift"] = {
            "title": f"Moved most from {column} {labels[0]} to {labels[-1]}",
            "value": "ratio" if moved else "distance",
            "rows": moved
            or [
                {"code": int(code), "distance": float(distance[code])}
                for code in np.argsort(-distance, kind="stable")[:MOVED]
            ],
        }


def _add_vectors(payload: Payload, model: FittedEmbedding, bits: int) -> None:
    slices = [of_group(model, label).parameters for label in model.spec.structure.labels]
    nothing = np.zeros(model.n_entities)
    payload.vectors["slices.rho"] = Quantized.of(np.concatenate([p.rho for p in slices]), bits)
    payload.arrays["slices.intercept"] = np.concatenate(
        [nothing if p.intercept is None else p.intercept for p in slices]
    ).astype(np.float64)


def _distances(model: FittedEmbedding) -> Floats:
    """How far each embedding moved from the first slice to the last."""
    labels = model.spec.structure.labels
    first, last = (of_group(model, label).parameters.rho for label in (labels[0], labels[-1]))
    return np.asarray(np.linalg.norm(last - first, axis=1), dtype=np.float32)


def _tested_drift(model: FittedEmbedding, data: Any, progress: bool) -> list[dict[str, Any]] | None:
    """Items that moved most by their standard errors, None where a model has none."""
    try:
        table = model.drift(data, MOVED, progress=progress)
    except EfembError:
        return None
    names = [name for name in table.columns if name != "label"]
    return [
        {
            "code": model.entities.index_of(row["label"]),
            **{name: float(row[name]) for name in names},
        }
        for row in table
    ]


def follow_item(model: FittedEmbedding, item: int) -> list[dict[str, Any]]:
    """An item in every slice: how similar it is to itself in the first, and its nearest there."""
    label, index_of = model.entities[item], model.entities.index_of
    path = []
    for code, row in enumerate(trajectory(model, label)):
        near = of_group(model, row["at"]).vectors().similar(label, NEAREST)
        rows = [{"code": index_of(one["label"]), "similarity": one["similarity"]} for one in near]
        path.append({"group": code, "similarity": row["similarity"], "near": rows})
    return path
