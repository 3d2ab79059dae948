"""Predictions in the page: what it needs to compute u and its mean, checked against the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._typing import Floats
from efemb.data.dataset import Dataset
from efemb.errors import EfembError
from efemb.explore.payload import Payload
from efemb.explore.slices import plain_labels
from efemb.fitted.query_context import QueryContext
from efemb.fitted.vectors import nodes_of
from efemb.model.predict import normalizer_of_words
from efemb.model.terms.base import Term, arrays_of

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding

FAMILIES = ("poisson", "bernoulli", "negative-binomial", "categorical", "gaussian")
LINKS = ("identity", "log", "softplus", "log-softplus")
CLOSE = 1e-3  # of u: single precision
VECTORS_ONLY = (
    "These probabilities are those of the vectors alone. The whole model (pairs, popularity and "
    "history too) answers in the served explorer: run efemb explore MODEL, or model.explore()."
)
FACTOR = {
    "name": "factor",
    "value": 1,
    "input": {"type": "range", "min": 0.5, "max": 1.5, "step": 0.05},
}
ASK_SERVER = "only the served explorer answers this: run efemb explore MODEL, or model.explore()"


def add_prediction(
    payload: Payload, model: FittedEmbedding, whole: Any = None, *, vectors: bool
) -> None:
    """The header of predictions and, if the page computes them, their arrays."""
    if whole is not None and not vectors:
        payload.header["prediction"] = describe_whole(whole)
        return
    header = payload.header["prediction"] = describe_prediction(model)
    if whole is not None:
        header["remark"] = VECTORS_ONLY
    terms = header["terms"] = [_describe_term(term) for term in model.spec.terms]
    structure = model.spec.structure
    if not vectors and structure.grouped and "slices" not in payload.header:
        terms.append(_text_input(structure.columns[0], structure.columns))
    asked = {term["columns"][0]: term for term in terms if term["columns"]}  # once for each column
    for term in asked.values():
        term["asked"] = True
    if not vectors:
        # Of logarithms a change is a factor, which a slider can choose.
        logged = [term for term in model.spec.terms if getattr(term, "log", False)]
        header["tables"] = {
            name: {column: asked[column].get("choices", ["unknown"])[-1] for column in term.columns}
            for term in logged
            for name in term.tables
        }
        return
    if "refused" in header:
        return
    reason = _page_reason(model)
    if reason is not None:
        header["refused"] = f"{reason}; {ASK_SERVER}"
        return
    intercept = model.parameters.intercept
    payload.arrays["intercept"] = (
        np.zeros(model.n_entities) if intercept is None else intercept.astype(np.float64)
    )
    header["has_intercept"] = intercept is not None
    header["family"], header["link"] = model.spec.family.name(), model.spec.link.name()
    header |= _scaling(model)
    header["pseudo_count"] = float(model.spec.context.pseudo_count)
    noise = _noise(model)
    if noise is not None:  # u plus these is the logarithm of a share
        payload.arrays["noise"] = noise.astype(np.float64)
        header["family"], header["link"] = "odds", "identity"
    for number, term in enumerate(model.spec.terms):
        _add_term(payload, model, term, number, header["terms"][number])
    if not _formula_holds(payload, model):
        header["refused"] = f"the prediction has parts that a page lacks; {ASK_SERVER}"


def describe_prediction(model: FittedEmbedding) -> dict[str, Any]:
    """Columns of an answer, or why there is none."""
    spec, question = model.spec, QueryContext(np.arange(1), np.ones(1))
    header: dict[str, Any] = {
        "explains": nodes_of(model) is None,
        "text": spec.context.reads_text,
        "total": "the linear predictor u",
        "tables": {},  # of prices, for example, and the row whose prices are usual
        "factor": FACTOR,
    }
    if spec.one_of_all:
        header["columns"] = ["probability"]
    else:
        header["columns"] = ["probability", "mean"] if spec.family.normalized_score else ["mean"]
    try:
        question.bind(model)
    except EfembError as error:
        header["refused"] = str(error)
    return header


def describe_whole(whole: Any) -> dict[str, Any]:
    """The same of a model that completes baskets by a mixture of experts."""
    user = {**_text_input("customer", ["user"]), "asked": True}
    return {
        "explains": True,
        "text": False,
        "columns": ["probability"],
        "total": "the shares that its experts have in this probability",
        "tables": {},
        "terms": [user] if whole.parts_.history is not None else [],
    }


def row_columns(model: FittedEmbedding, whole: Any = None) -> set[str]:
    """Row columns that a question may give values of."""
    if whole is not None:
        return {"user"}
    of_terms = {column for term in model.spec.terms for column in term.columns}
    return of_terms.union(model.spec.structure.columns)


def _page_reason(model: FittedEmbedding) -> str | None:
    """Why a page cannot compute the predictions of a model, None if it can."""
    spec = model.spec
    ours = all(
        type(part).__module__.startswith("efemb.")
        for part in (spec.family, spec.link, spec.context)
    )
    if not ours or spec.family.name() not in FAMILIES or spec.link.name() not in LINKS:
        return f"the page does not know {spec.family!r} with link {spec.link.name()!r}"
    if not spec.combine.inner_product:
        return "the page computes inner products only"
    if spec.combine.reverse:
        return "a reverse model predicts the context from the item"
    if spec.zeros.tree or model.parameters.position is not None:
        return "words are predicted by a tree or by their places"
    if model.lists is not None or not (spec.context.reads_text or spec.context.rest_of_row):
        return f"contexts are of the kind {spec.context!r}"
    if spec.context.length_offset:
        return "means depend on the length of the text"
    return None


def _scaling(model: FittedEmbedding) -> dict[str, bool]:
    """Whether sums of contexts are divided by something, and that by the number of items."""
    context = model.spec.context
    return {
        "scaled": context.scale != "none",
        # Every word of a text is a term of its own.
        "counted": context.scale == "items" and not context.reads_text,
        "binary": bool(getattr(context, "binary", False)) or model.binarize,
    }


def _noise(model: FittedEmbedding) -> Floats | None:
    """Logarithms that turn the odds of words against noise into shares."""
    if not model.spec.context.reads_text:
        return None
    counts = model.entities.counts
    noise = normalizer_of_words(model.spec, np.ones(model.n_entities) if counts is None else counts)
    return noise if isinstance(noise, np.ndarray) else None


# -- terms ----------------------------------------------------------------------------------------


def _text_input(label: str, columns: Iterable[str]) -> dict[str, Any]:
    """A term whose values a person types; `name` is that of the value in the address."""
    names = list(columns)
    asked = {"placeholder": "any known one, or empty"}
    name = f"row.{names[0]}" if names else ""
    return {"label": label, "name": name, "columns": names, "kind": "text", "input": asked}


def _describe_term(term: Term) -> dict[str, Any]:
    """What a person chooses for a term: one of its groups, a number, or any text."""
    described = _text_input(term.label, term.columns)
    groups, center = getattr(term, "groups", None), getattr(term, "center", None)
    if groups is None and term.tables:
        groups = (getattr(term, "frozen", None) or {}).get("groups")
    choices = None if groups is None else plain_labels(groups)
    if choices is not None:
        described |= {"kind": "choice", "choices": choices}
        described["input"] = {"placeholder": f"one of {len(choices):,}, or empty"}
    elif isinstance(center, float):
        scale = float(getattr(term, "scale", 1.0))
        described |= {"kind": "number", "value": center}
        limits = {"min": center - 3 * scale, "max": center + 3 * scale, "step": scale / 10}
        described["input"] = {"type": "range", **limits}
    return described


def _add_term(
    payload: Payload, model: FittedEmbedding, term: Term, number: int, described: dict[str, Any]
) -> None:
    """Entity side L and the row sides R of all choices, or R at the numbers 0 and 1."""
    if described["kind"] == "text" or len(described["columns"]) != 1:
        return
    n = model.n_entities
    arrays = arrays_of(term, model.parameters.terms)
    asked = described.get("choices", [0.0, 1.0])
    data = Dataset(
        np.zeros((len(asked), n)), rows={described["columns"][0]: np.array(asked, dtype=object)}
    )
    rows = term.bind(data).row_columns(arrays, np.arange(len(asked)))
    entities = term.entity_columns(arrays, n)
    payload.arrays[f"term.{number}.entities"] = np.asarray(entities, dtype=np.float32)
    payload.arrays[f"term.{number}.rows"] = np.asarray(rows, dtype=np.float64)


def _formula_holds(payload: Payload, model: FittedEmbedding) -> bool:
    """Whether target . s / d + intercept + L . R is the model's u, in a small question.

    A part of the model that the page does not know (a term of cells, a grouped structure) shows
    here, so that the page says so instead of giving another answer.
    """
    from efemb.fitted.prediction import _predictors
    from efemb.fitted.vectors import predicting_vectors

    header = payload.header["prediction"]
    target, bag = predicting_vectors(model)
    codes = np.arange(min(3, max(model.n_entities - 1, 1)))
    amounts = np.ones(len(codes))
    row: dict[str, Any] = {}
    u = target.astype(np.float64) @ bag[codes].sum(axis=0, dtype=np.float64)
    u = u / (len(codes) + header["pseudo_count"] if header["scaled"] else 1.0)
    u += payload.arrays["intercept"]
    for number, described in enumerate(header["terms"]):
        if f"term.{number}.rows" not in payload.arrays:
            return False
        choices = described.get("choices", [0.0])
        if choices:
            row[described["columns"][0]] = choices[0]
            sides = (payload.arrays[f"term.{number}.{side}"] for side in ("entities", "rows"))
            entities, rows = sides
            u += entities.astype(np.float64) @ rows[0].astype(np.float64)
    exact, _ = _predictors(model, QueryContext(codes, amounts, row))
    others = np.ones(model.n_entities, dtype=bool)
    others[codes] = False
    scale = 1.0 + np.abs(exact[0])
    return bool((np.abs(u - exact[0]) <= CLOSE * scale)[others].all())
