"""report: what to know about a fitted model before trusting it."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats, Ints
from efemb.data.corpus import Corpus
from efemb.data.dataset import Dataset
from efemb.data.vocabulary import shorten
from efemb.fitted.embedding import FittedEmbedding
from efemb.inference.findings import Finding, Report
from efemb.inference.residuals import residual_findings
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.contexts.window import Window

FEW = 10  # observations that an entity should have at least
LONG_TAIL = 20.0  # times the median


def report(model: Any, data: Any = None, *, seed: int = 0, progress: bool = False) -> Report:
    """Diagnose a fitted model, in plain words.

    Parameters
    ----------
    model : fitted estimator or FittedEmbedding
        An estimator also knows whether its fit had converged.
    data : Dataset, array or Corpus, optional
        Rows of the fit, or others: how far the family's variance and share of zeros are from the
        data's, how long contexts are, and which entities are too rare. Without data only what the
        fit left behind is looked at.
    seed : int, default=0
        Of the rows that are looked at where there are too many.
    progress : bool, default=False

    Returns
    -------
    Report
        Prints as text; `to_dict()` has the numbers.

    Examples
    --------
    >>> import efemb
    >>> from efemb.inference import report
    >>> trips = efemb.simulation.simulate(
    ...     "p-emb", n_rows=400, n_entities=8, n_components=2, seed=0
    ... ).data
    >>> found = report(efemb.PoissonEmbedding(2, random_state=0).fit(trips), trips)
    >>> [one.topic for one in found.findings][:3]
    ['convergence', 'gradient', 'rare entities']
    """
    fitted: FittedEmbedding = model.fitted()
    findings = [_convergence(model, fitted), _gradient(model, fitted)]
    text = isinstance(fitted.spec.context, Window)
    bound: BoundContext | None = None
    if data is not None and not text:
        bound = model._bind(data)[1]  # as the model reads its data
        data = bound.data
    counts = _counts(fitted, data)
    if counts is not None:
        findings.append(_rare(fitted, counts))
    if bound is not None:
        findings += _contexts(fitted, bound)
        findings += residual_findings(fitted, data, np.random.default_rng(seed), progress=progress)
    size = f"{fitted.n_entities:,} entities, K = {fitted.n_components}"
    return Report(f"{fitted.model}: {size}, {fitted.spec.family!r}", tuple(findings))


def _convergence(model: Any, fitted: FittedEmbedding) -> Finding:
    history = fitted.history
    if not history:
        return Finding("convergence", "note", "Nothing is known about how the model was fitted.")
    tried = [(one.get("validation"), one["iteration"]) for one in history]
    scores = [(score, place) for score, place in tried if score is not None]
    last = int(history[-1]["iteration"])
    numbers: dict[str, Any] = {"iterations": last, "held_out": bool(scores)}
    if scores:
        best, place = max(scores)
        numbers |= {"best_iteration": int(place), "best_score": float(best)}
        done = bool(getattr(model, "converged_", place < scores[-1][1]))
        text = (
            f"The best held-out score, {best:.4f}, was in pass {place} of {last}; those "
            "parameters are kept."
        )
    else:
        done = bool(getattr(model, "converged_", _flat(history)))
        text = f"{last} passes, no data held out; the objective ended at {_last(history):.6g}."
    numbers["converged"] = done
    if done:
        return Finding("convergence", "ok", text, numbers=numbers)
    advice = "It was still improving: increase max_iter, or continue with warm_start=True."
    return Finding("convergence", "warning", text, advice, numbers)


def _last(history: list[dict[str, Any]]) -> float:
    return float(history[-1]["objective"])


def _flat(history: list[dict[str, Any]]) -> bool:
    """Whether the last tenth of the passes gained next to nothing of all that was gained."""
    values = [float(one["objective"]) for one in history]
    gained = max(values) - values[0]
    before = values[-max(2, len(values) // 10)]
    return len(values) > 2 and max(values) - before <= 1e-3 * max(gained, 1e-12)


def _gradient(model: Any, fitted: FittedEmbedding) -> Finding:
    kind = str(getattr(model, "gradient_", fitted.spec.zeros.gradient))
    numbers = {"gradient": kind, "zeros": repr(fitted.spec.zeros)}
    if kind == "exact":
        return Finding("gradient", "ok", "Every zero was counted exactly.", numbers=numbers)
    if kind == "unbiased":
        text = "Zeros were sampled and weighted: the gradient is noisy, but right on average."
        return Finding("gradient", "ok", text, numbers=numbers)
    text = "Observations were told from noise, as in word2vec: means are relative, not counts."
    advice = "For means and intervals use zeros=All() or Sampled()."
    return Finding("gradient", "note", text, advice, numbers)


def _counts(fitted: FittedEmbedding, data: Any) -> Floats | None:
    """In how many rows each entity is observed (real data) or not zero (counts)."""
    if isinstance(data, Corpus) or data is None:
        return None if fitted.vocabulary is None else fitted.vocabulary.counts
    if not isinstance(data, Dataset):
        return None
    if data.is_sparse:
        return np.bincount(data.values.indices, minlength=data.n_entities).astype(np.float64)
    values = data.values.reshape(data.n_rows, data.n_entities, -1)
    seen = ~np.isnan(values)
    if fitted.spec.family.support.low == 0:
        seen &= values != 0
    return np.asarray(seen.any(axis=2).sum(axis=0), dtype=np.float64)


def _rare(fitted: FittedEmbedding, counts: Floats) -> Finding:
    rare = np.flatnonzero(counts < FEW)
    never = int((counts == 0).sum())
    order = rare[np.argsort(counts[rare], kind="stable")]
    words = fitted.vocabulary
    names = [shorten(words[int(i)]) if words is not None else str(i) for i in order[:5]]
    numbers = {
        "rare": len(rare),
        "never": never,
        "fewest": float(counts.min()),
        "median": float(np.median(counts)),
        "entities": order[:100].tolist() if words is None else words.labels[order[:100]].tolist(),
    }
    if len(rare) == 0:
        text = f"Every entity has {FEW} observations or more (median {np.median(counts):,.0f})."
        return Finding("rare entities", "ok", text, numbers=numbers)
    unseen = f", {never:,} of them in none" if never else ""
    text = (
        f"{len(rare):,} of {len(counts):,} entities are in fewer than {FEW} rows{unseen}: "
        f"{', '.join(names)}{', ...' if len(rare) > 5 else ''}. Their vectors are mostly prior."
    )
    level = "warning" if len(rare) > 0.1 * len(counts) else "note"
    advice = "Leave them out (min_count=), or look at efemb.inference.laplace before using them."
    return Finding("rare entities", level, text, advice, numbers)  # type: ignore[arg-type]


def _contexts(fitted: FittedEmbedding, bound: BoundContext) -> list[Finding]:
    sizes = _context_sizes(bound)
    if sizes is None or len(sizes) == 0:
        return []
    median, far, largest = (float(np.quantile(sizes, q)) for q in (0.5, 0.99, 1.0))
    empty = float((sizes == 0).mean())
    scale = fitted.spec.context.scale
    numbers = {"median": median, "99%": far, "largest": largest, "empty": empty, "scale": scale}
    text = (
        f"A context has {median:,.0f} members (median), at most {far:,.0f} in 99% of the cases and "
        f"{largest:,.0f} in all; {empty:.1%} are empty."
    )
    if scale == "none" and largest > LONG_TAIL * max(median, 1.0):
        advice = "A few long contexts outweigh all others: use scale='total' or scale='items'."
        return [Finding("contexts", "warning", text, advice, numbers)]
    if empty > 0.2:
        advice = "Empty contexts only teach intercepts: group the data into larger rows."
        return [Finding("contexts", "note", text, advice, numbers)]
    return [Finding("contexts", "ok", text, numbers=numbers)]


def _context_sizes(bound: BoundContext) -> Ints | None:
    """Members of the context of each stored entry (rows), or of each entity (lists)."""
    if isinstance(bound, RowBags) and bound.n_dims == 1:
        block = bound.block(np.arange(bound.n_rows))
        others = block.members[block.row_of_entry] - (block.own != 0)
        return np.asarray(others[block.seen])
    if isinstance(bound, EntityLists):
        return np.asarray(sum(np.diff(part.ptr) for part in bound.lists))
    return None
