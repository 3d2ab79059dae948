"""Groups of rows with vectors of their own, such as slices of time: what a page knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.errors import EfembError
from efemb.explore.pair_lists import add_answers
from efemb.explore.payload import Payload, Quantized
from efemb.fitted.group_models import of_group, trajectory

if TYPE_CHECKING:
    from efemb.explore.contents import Contents
    from efemb.fitted.embedding import FittedEmbedding

MOST_LABELS = 5_000  # that a page lists
MOST_NUMBERS = 2_000_000  # of the vectors of all slices in a page: about 6 MB with 24 bits
MOVED = 30
LEAST_Q = 1e-4  # smaller q-values are not told apart


def plain_labels(labels: Any) -> list[Any] | None:
    """Labels as JSON has them, None if they are too many or of other types."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return plain if len(plain) <= MOST_LABELS and all(map(_is_plain, plain)) else None


def _is_plain(label: Any) -> bool:
    return isinstance(label, str | int | float)


def add_slices(payload: Payload, contents: Contents) -> None:
    """Labels of the slices and, for a page that answers itself, their vectors."""
    model = contents.model
    structure = model.spec.structure
    labels = plain_labels(structure.labels) if structure.grouped else None
    if not labels:
        return
    column = structure.columns[0]
    size = len(labels) * model.n_entities * model.n_components
    moving = model.spec.combine.reverse or structure.contexts  # a page has one alpha
    if contents.vectors and (size > MOST_NUMBERS or moving):
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
    if contents.vectors:
        _add_vectors(payload, model, contents.bits)
    if not structure.in_order:
        return
    if contents.vectors:
        items = np.arange(model.n_entities)
        place = np.repeat(items, len(labels))
        add_answers(payload, "trajectory", place, len(items), follow_items(contents, items))
    payload.arrays["drift"] = distance = _distances(model)
    moved = None if contents.errors is None else _tested_drift(contents)
    payload.header["slices"]["drift"] = {
        "title": f"Moved most from {column} {labels[0]} to {labels[-1]} "
        f"({'in standard errors' if moved else 'distance'})",
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


def _tested_drift(contents: Contents) -> list[dict[str, Any]] | None:
    """Items that moved most by their standard errors, None where a model has none."""
    try:
        table = contents.model.drift(contents.data, MOVED, progress=contents.progress)
    except EfembError:
        return None
    return [
        {
            "code": contents.model.entities.index_of(row["label"]),
            "distance": float(row["distance"]),
            "ratio": float(row["ratio"]),
            "q_value": f"{row['q_value']:.2g}" if row["q_value"] >= LEAST_Q else f"<{LEAST_Q:.4f}",
        }
        for row in table
    ]


def follow_items(contents: Contents, items: Ints) -> dict[str, Floats | Ints]:
    """Items in every slice: the cosine with the first slice, the nearest item, and the rows."""
    entities = contents.model.entities
    path = trajectory(contents.model, entities.labels[items])
    nearest = [entities.index_of(label) for label in path["nearest"]]
    columns = {"similarity": path["similarity"], "nearest": np.array(nearest, dtype=np.int64)}
    if contents.slice_counts is not None:
        columns["count"] = contents.slice_counts[:, items].T.ravel()
    return columns
