"""Findings: results of a diagnosis in words and numbers, and checks of the data."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np

from efemb._typing import Bools, Floats, Ints
from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.matrices import dense, far_from_zero, sparse, stored_cells
from efemb.data.vocabulary import shorten
from efemb.errors import DataError
from efemb.fitted.embedding import FittedEmbedding
from efemb.model.contexts.base import BoundContext
from efemb.table import Table

Level = Literal["ok", "note", "warning"]
SIGNS = {"ok": "ok", "note": "note", "warning": "LOOK"}
WIDTH = 96
FEW = 10  # observations that an entity should have at least
LONG_TAIL = 20.0  # ratio to the median
MOSTLY = 0.5  # share of missing values
# Predictions of a group are wrong if they are off by this factor and by so many standard errors.
FAR_FROM_OBSERVED, CERTAIN, FEWEST_HITS = 1.5, 3.0, 5.0


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    topic : what was checked;  level : "ok", "note" or "warning";  text : the result in a sentence
    advice : what to do, "" if nothing needs to be done;  numbers : the figures behind the text
    """

    topic: str
    level: Level
    text: str
    advice: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The finding as a dictionary."""
        return {
            "topic": self.topic,
            "level": self.level,
            "text": self.text,
            "advice": self.advice,
            **self.numbers,
        }


@dataclass(frozen=True, repr=False)
class Report:
    """All findings about a model; prints as text, with warnings in capitals."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that call for action."""
        return tuple(finding for finding in self.findings if finding.level == "warning")

    def __getitem__(self, topic: str) -> Finding:
        """The finding about a topic."""
        for finding in self.findings:
            if finding.topic == topic:
                return finding
        raise KeyError(topic)

    def __contains__(self, topic: object) -> bool:
        """Whether a topic was checked."""
        return any(finding.topic == topic for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as dictionaries, lists, numbers and text."""
        return {"model": self.model, "findings": [finding.to_dict() for finding in self.findings]}

    def _repr_html_(self) -> str:
        cells = [(SIGNS[each.level], each.topic, each.text, each.advice) for each in self.findings]
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><caption>{escape(self.model)}</caption>{body}</table>"

    def __repr__(self) -> str:
        """A paragraph per finding."""
        width = max(len(finding.topic) for finding in self.findings)
        lines = [self.model]
        for finding in self.findings:
            text = finding.text + (f" {finding.advice}" if finding.advice else "")
            first = f"{SIGNS[finding.level]:<5} {finding.topic:<{width}}  "
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first)
            )
        return "\n".join(lines)


def count_entities(fitted: FittedEmbedding, data: Any) -> Floats | None:
    """Number of rows in which each entity is observed (real data) or non-zero (counts)."""
    if isinstance(data, Corpus) or data is None:
        return None if fitted.vocabulary is None else fitted.vocabulary.counts
    if not isinstance(data, Dataset):
        return None
    if data.is_sparse:
        return np.bincount(data.values.indices, minlength=data.n_entities).astype(np.float64)
    values = data.values.reshape(data.n_rows, data.n_entities, -1)
    counted = ~np.isnan(values)
    if fitted.spec.family.support.low == 0:
        counted &= values != 0
    return np.asarray(counted.any(axis=2).sum(axis=0), dtype=np.float64)


def check_rare(fitted: FittedEmbedding, counts: Floats) -> Finding:
    """Entities with few observations."""
    rare = np.flatnonzero(counts < FEW)
    never = int((counts == 0).sum())
    order = rare[np.argsort(counts[rare], kind="stable")]
    vocabulary = fitted.vocabulary
    labels = order if vocabulary is None else vocabulary.labels[order]
    names = [str(i) if vocabulary is None else shorten(vocabulary[int(i)]) for i in order[:5]]
    numbers = {
        "rare": len(rare),
        "never": never,
        "fewest": float(counts.min()),
        "median": float(np.median(counts)),
        "entities": labels[:100].tolist(),
    }
    if len(rare) == 0:
        text = f"Every entity has at least {FEW} observations (median {np.median(counts):,.0f})."
        return Finding("rare entities", "ok", text, numbers=numbers)
    unseen = f", {never:,} of them in none" if never else ""
    text = (
        f"{len(rare):,} of {len(counts):,} entities occur in fewer than {FEW} rows{unseen}: "
        f"{', '.join(names)}{', ...' if len(rare) > 5 else ''}. The prior determines most of "
        "their vectors."
    )
    level = "warning" if len(rare) > 0.1 * len(counts) else "note"
    advice = "Drop them (min_count=), or check efemb.inference.laplace before using them."
    return Finding("rare entities", level, text, advice, numbers)  # type: ignore[arg-type]


def check_contexts(fitted: FittedEmbedding, bound: BoundContext) -> list[Finding]:
    """Distribution of the number of observed members per context."""
    sizes = _measure_contexts(bound)
    if sizes is None or len(sizes) == 0:
        return []
    median, far, largest = (float(np.quantile(sizes, q)) for q in (0.5, 0.99, 1.0))
    empty = float((sizes == 0).mean())
    scale = fitted.spec.context.scale
    numbers = {"median": median, "99%": far, "largest": largest, "empty": empty, "scale": scale}
    text = (
        f"A context has {median:,.0f} observed members (median), at most {far:,.0f} in 99% of the "
        f"cases and never more than {largest:,.0f}; {empty:.1%} are empty."
    )
    if scale == "none" and largest > LONG_TAIL * max(median, 1.0):
        scaled = f"{fitted.model}(context=efemb.Basket(scale='total'))"
        advice = f"A few long contexts dominate: use {scaled}."
        return [Finding("contexts", "warning", text, advice, numbers)]
    if empty > 0.2 and not bound.shares_rows:
        advice = (
            "Most members of such contexts are missing: take more neighbors, or drop columns that "
            "are mostly missing."
        )
        return [Finding("contexts", "warning", text, advice, numbers)]
    if empty > 0.2:
        advice = "Empty contexts inform only intercepts: group the data into larger rows."
        return [Finding("contexts", "note", text, advice, numbers)]
    return [Finding("contexts", "ok", text, numbers=numbers)]


def _measure_contexts(bound: BoundContext) -> Ints | Floats | None:
    """Observed members of the context of each stored entry (rows) or observed cell (lists)."""
    if bound.shares_rows:
        block = bound.block(np.arange(bound.n_rows))
        others = block.members[block.row_of_entry] - (block.own != 0)
        return np.asarray(others[block.seen])
    sizes = bound.context_sizes()
    if sizes is None:
        return None
    return np.asarray(sizes[~np.isnan(dense(bound.data)).reshape(*sizes.shape, -1).any(axis=2)])


def check_columns(fitted: FittedEmbedding, data: Dataset) -> list[Finding]:
    """Real data: columns that are constant, mostly missing, or far from 0 without centering."""
    if not fitted.spec.family.missing or data.n_dims > 1:
        return []
    values = dense(data)
    observed = ~np.isnan(values)
    missing = 1.0 - observed.mean(axis=0)
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    constant = low == high
    centered = any(part.column_center is not None for part in fitted.lists or ())
    uncentered = far_from_zero(values) & ~constant
    numbers = {
        "constant": int(constant.sum()),
        "mostly_missing": int((missing > MOSTLY).sum()),
        "uncentered": 0 if centered else int(uncentered.sum()),
        "missing": float(missing.mean()),
        "centered": centered,
    }
    problems = [
        (f"constant: {_names(fitted, constant)}", constant.any(), "Drop constant columns."),
        (
            f"mostly missing: {_names(fitted, missing > MOSTLY)}",
            (missing > MOSTLY).any(),
            "Drop columns with hardly any value.",
        ),
        (
            f"far from 0 on average: {_names(fitted, uncentered)}",
            numbers["uncentered"],
            "A missing member counts as 0, far from its mean: use GaussianEmbedding(center=True), "
            "or subtract the means.",
        ),
    ]
    texts = [text for text, applies, _ in problems if applies]
    if not texts:
        words = "measured from their means" if centered else "close to 0 on average"
        text = f"All columns vary, are mostly observed, and are {words}."
        return [Finding("columns", "ok", text, numbers=numbers)]
    advice = " ".join(words for _, applies, words in problems if applies)
    return [Finding("columns", "warning", f"Columns {'; '.join(texts)}.", advice, numbers)]


def _names(fitted: FittedEmbedding, chosen: Bools) -> str:
    codes = np.flatnonzero(chosen)
    labels = fitted.entities
    shown = ", ".join(shorten(labels[int(code)]) for code in codes[:3])
    return f"{len(codes):,} ({shown}{', ...' if len(codes) > 3 else ''})"


def check_popularity(model: Any, fitted: FittedEmbedding, bound: BoundContext) -> list[Finding]:
    """Whether contexts predict better than popularity, or than the means of the columns.

    The rival is fitted to the same data, which is in its favor.
    """
    data = bound.data
    if data.n_dims > 1 or fitted.spec.combine.reverse:
        return []
    if not fitted.spec.family.normalized_score:
        return _check_means(fitted, data) if fitted.spec.family.missing else []
    if not bound.shares_rows:
        return []
    try:
        score = model.score(data)
    except DataError:  # no row has two entries
        return []
    matrix = sparse(data)
    rows, entities = stored_cells(matrix)
    with_context = np.diff(matrix.indptr)[rows] >= 2
    units = matrix.data[with_context].astype(np.float64)
    totals = np.bincount(entities, matrix.data, data.n_entities)
    shares = totals[entities[with_context]] / totals.sum()
    rival = float(units @ np.log(shares) / units.sum())
    text = f"Entries score {score:.4f} per unit given their context, and {rival:.4f} by popularity."
    return [_judge_rival(text, score, rival, score > rival, "popularity")]


def _check_means(fitted: FittedEmbedding, data: Dataset) -> list[Finding]:
    values = dense(data)
    observed = ~np.isnan(values)
    if not observed.any():
        return []
    means = np.where(observed, values, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    ours, plain = (
        float(((values - predicted)[observed] ** 2).mean())
        for predicted in (fitted.conditional(data), means)
    )
    text = f"The squared error is {ours:.4g} given the context, and {plain:.4g} by column means."
    return [_judge_rival(text, ours, plain, ours < plain, "the means of the columns")]


def _judge_rival(text: str, score: float, rival: float, better: bool, name: str) -> Finding:
    numbers = {"score": score, "without_context": rival, "better": better}
    if better:
        return Finding("popularity", "ok", text, numbers=numbers)
    advice = (
        f"The model is no better than {name}: its vectors do not help. Use more rows, "
        "larger contexts, fewer components, or another family."
    )
    return Finding("popularity", "warning", text, advice, numbers)


def check_reliability(table: Table) -> Finding:
    """Whether predicted probabilities of next items were right, from a `reliability_` table."""
    predicted, observed, n = (
        np.asarray(table[name], dtype=np.float64) for name in ("predicted", "observed", "n")
    )
    expected, hits = predicted * n, observed * n
    reliable = np.maximum(expected, hits) >= FEWEST_HITS
    ratio = (hits + 0.5) / (expected + 0.5)
    far = np.abs(np.log(ratio)) > np.log(FAR_FROM_OBSERVED)
    far &= reliable & (np.abs(hits - expected) > CERTAIN * np.sqrt(np.maximum(hits, expected)))
    numbers = {
        "predicted": predicted.tolist(),
        "observed": observed.tolist(),
        "n": n.astype(int).tolist(),
        "groups": int(reliable.sum()),
        "far": int(far.sum()),
    }
    curve = ", ".join(
        f"{p:.2g} -> {o:.2g}" for p, o in zip(predicted[reliable], observed[reliable], strict=True)
    )
    text = f"Predicted and observed probabilities of items outside held-out baskets: {curve}."
    if not far.any():
        return Finding("calibration", "ok", text, numbers=numbers)
    advice = "Some are far off: fit again with more rows, or pass rows like yours as validation."
    return Finding("calibration", "warning", text, advice, numbers)
