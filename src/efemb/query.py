"""Questions to a fitted model: similar entities, analogies, what comes in a context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from efemb.contexts.window import Window
from efemb.errors import DataError, InputTypeError, ParameterError, suggest
from efemb.labelled import LabelledVectors
from efemb.nearest import checked_number
from efemb.objective import expected_value
from efemb.prediction import normalizer_of_words
from efemb.table import Table
from efemb.tree import Huffman
from efemb.types import Floats, Ints
from efemb.zeros import Hierarchical

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding

Which = Literal["auto", "rho", "alpha", "both"]
WHICH = ("auto", "rho", "alpha", "both")


class Queries:
    """Methods of anything that can give a `FittedEmbedding`."""

    if TYPE_CHECKING:

        def fitted(self) -> FittedEmbedding:
            """The fitted model."""

        def conditional(self, X: Any) -> Floats:
            """Conditional means."""

    def vectors(self, which: Which = "auto") -> LabelledVectors:
        """The vectors with their labels.

        Parameters
        ----------
        which : {"auto", "rho", "alpha", "both"}
            Embeddings, context vectors, or one after the other. "auto" is rho, but in a
            hierarchical softmax, whose predicting vectors belong to nodes, the words' own.
        """
        return labelled_vectors(self.fitted(), which)

    def similar(self, query: Any, n: int = 10, *, which: Which = "auto", **options: Any) -> Table:
        """The entities whose vectors point the same way; see `LabelledVectors.similar`."""
        return self.vectors(which).similar(query, n, **options)

    def analogy(
        self,
        positive: Any,
        negative: Any = (),
        n: int = 10,
        *,
        which: Which = "auto",
        **options: Any,
    ) -> Table:
        """Entities near the sum of some and far from others; see `LabelledVectors.analogy`."""
        return self.vectors(which).analogy(positive, negative, n, **options)

    def doesnt_match(self, labels: Any, *, which: Which = "auto", **options: Any) -> Any:
        """The label that is least like the others."""
        return self.vectors(which).doesnt_match(labels, **options)

    def predict(self, context: Any, top: int = 10, *, unknown: str = "error") -> Any:
        """Entities that belong into a context, the most probable first.

        Parameters
        ----------
        context : list of labels, or mapping of labels to amounts
            For a positional window: the words before the gap and after it, half of each. An array
            or a Dataset of rows x entities gives what `conditional` gives.
        top : int
        unknown : {"error", "skip"}
            What to do with labels that the model does not know.

        Returns
        -------
        Table of label and probability (share of the conditional means)
        """
        if len(getattr(context, "shape", ())) > 1:
            return self.conditional(context)
        return predicted(self.fitted(), context, top, unknown)


def labelled_vectors(fitted: FittedEmbedding, which: Which = "auto") -> LabelledVectors:
    """The vectors of a fitted model with their labels (numbers where it has none)."""
    if which not in WHICH:
        raise ParameterError(f"unknown vectors {which!r}; {suggest(which, WHICH)}")
    rho, alpha = fitted.parameters.rho, fitted.parameters.alpha
    if rho.ndim > 2 or len(rho) != fitted.n_entities or len(alpha) != fitted.n_entities:
        raise ParameterError("similarity needs one vector pair an entity")
    nodes = isinstance(fitted.spec.zeros, Hierarchical)
    of_nodes = "alpha" if fitted.spec.combine.reverse else "rho"
    if nodes and which in (of_nodes, "both"):
        raise ParameterError(f"{of_nodes} of a hierarchical softmax belongs to nodes, not words")
    if which == "auto":
        which = "alpha" if nodes and of_nodes == "rho" else "rho"
    table = {"rho": rho, "alpha": alpha}.get(which)
    found = np.concatenate([rho, alpha], axis=1) if table is None else table
    labels: Any = fitted.vocabulary
    return LabelledVectors(range(fitted.n_entities) if labels is None else labels, found)


def predicted(fitted: FittedEmbedding, context: Any, top: int, unknown: str) -> Table:
    """The most probable entities in a context."""
    top = checked_number(top)
    codes, amounts = _members(fitted, context, unknown)
    Z = _context_vector(fitted, codes, amounts)
    spec, p = fitted.spec, fitted.parameters
    target = p.alpha if spec.combine.reverse else p.rho
    u = np.nan_to_num(target.astype(np.float64) @ Z)
    if p.intercept is not None:
        u += p.intercept
    share = _shares(fitted, u)
    order = np.argsort(-share, kind="stable")[:top]
    labels = fitted.vocabulary
    names = order.tolist() if labels is None else labels.labels[order].tolist()
    return Table({"label": names, "probability": share[order]})


def _shares(fitted: FittedEmbedding, u: Floats) -> Floats:
    """Probabilities of all entities from their inner products."""
    spec, normalizer = fitted.spec, None
    counts = None if fitted.vocabulary is None else fitted.vocabulary.counts
    if isinstance(spec.context, Window) and counts is not None:
        normalizer = normalizer_of_words(spec, counts)
    if isinstance(normalizer, Huffman):
        return np.asarray(normalizer.probabilities(u[None])[0])
    if normalizer is not None or (spec.family.exponential_mean and spec.link.name() == "identity"):
        u = u if normalizer is None else u + normalizer
        mean = np.exp(u - u.max())
    else:
        mean = np.asarray(expected_value(spec.family, spec.link, u))
        mean = np.maximum(mean, np.finfo(np.float64).tiny)  # all may underflow
    return np.asarray(mean / mean.sum())


def _members(fitted: FittedEmbedding, context: Any, unknown: str) -> tuple[Ints, Floats]:
    if isinstance(context, str):
        context = context.split() if isinstance(fitted.spec.context, Window) else [context]
    if not isinstance(context, Iterable):
        raise InputTypeError(f"context must be a list of labels or a mapping, got {context!r}")
    context = context if isinstance(context, Mapping) else list(context)
    amounts = list(context.values()) if isinstance(context, Mapping) else [1.0] * len(context)
    if unknown not in ("error", "skip"):
        raise ParameterError(f"unknown={unknown!r}; {suggest(unknown, ('error', 'skip'))}")
    labels = fitted.vocabulary
    found = []
    for label, amount in zip(context, amounts, strict=True):
        if labels is not None and unknown == "skip" and label not in labels:
            found.append((0, 0.0))  # keeps its place in the window, and adds nothing
            continue
        code = int(label) if labels is None else labels.index_of(label)
        if not isinstance(amount, (int, float, np.number)) or not np.isfinite(amount):
            raise DataError(f"the amount of {label!r} must be a finite number, got {amount!r}")
        found.append((code, float(amount)))
    if not any(amount for _, amount in found):
        raise DataError("the context is empty: give at least one label that the model knows")
    codes, values = zip(*found, strict=True)
    return np.array(codes), np.array(values)


def _context_vector(fitted: FittedEmbedding, codes: Ints, amounts: Floats) -> Floats:
    spec, p = fitted.spec, fitted.parameters
    table = p.rho if spec.combine.reverse or spec.structure.tied else p.alpha
    members = table[codes].astype(np.float64)
    if p.position is not None:
        places, half = len(p.position), len(codes) // 2
        if len(codes) > places:
            raise ParameterError(f"the window holds {places} words, got {len(codes)}")
        first = places // 2 - half
        members = members * p.position[first : first + len(codes)]
    if getattr(spec.context, "binary", False):
        amounts = (amounts != 0).astype(np.float64)
    total = amounts @ members
    mean = spec.combine.reverse and isinstance(spec.context, Window)
    if spec.context.scale == "items" or mean:
        total = total / np.count_nonzero(amounts)
    elif spec.context.scale == "total":
        total = total / amounts.sum()
    return np.asarray(total)
