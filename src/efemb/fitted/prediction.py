"""Predictions from a context: what comes next, why, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._deprecated import warn_renamed
from efemb._typing import Floats, Ints
from efemb.data.array_checks import list_first
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, InputTypeError, ParameterError, check_integer
from efemb.fitted.nearest import largest
from efemb.fitted.query_context import (
    QueryContext,
    is_table,
    number_of,
    read_context,
    read_contexts,
    read_keywords,
)
from efemb.fitted.selection import Choice
from efemb.fitted.vectors import nodes_of
from efemb.model.predict import means_of, normalizer_of, shares_of
from efemb.model.predictor import Predictor
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.fitted.queries.base import HasFitted
    from efemb.model.huffman import Huffman

INTERCEPT = "(intercept)"


def predict(
    model: HasFitted,
    context: Any,
    n: int = 10,
    *,
    top: int | None = None,
    **keywords: Any,
) -> Any:
    """List the items that fit a context, the most probable first.

    The method `predict` of fitted models calls it, and documents the parameters and the result.
    """
    if is_table(context):
        return model.conditional(context)
    if top is not None:
        warn_renamed("top=", "n=")
        n = top
    return _list_items(model, context, n, keywords, "predict")


def complete(model: HasFitted, basket: Any, n: int = 10, **keywords: Any) -> Table:
    """List the best items to add to a basket: `predict` without the items already in it.

    The method `complete` of fitted models calls it, and documents the parameters and the result.
    """
    if is_table(basket):
        return model.recommend(basket, n, **keywords)
    return _list_items(model, basket, n, keywords, "complete")


def explain(model: HasFitted, context: Any, item: Any, **keywords: Any) -> Table:
    """Decompose the prediction of an item: what each part of the context contributes.

    The method `explain` of fitted models calls it, and documents the parameters and the result.
    """
    fitted = model.fitted()
    if nodes_of(fitted) is not None:
        raise ParameterError("in a hierarchical softmax, inner products belong to nodes, not words")
    options, row = read_keywords(fitted, keywords, "explain", ["context", "item"])
    choice = Choice(fitted.entities, **options)
    question = read_context(fitted, context, choice, row, empty=bool(row))
    codes = choice.codes(item)
    tables, notes = [], ["contributions add up to the predictor of the item"]
    for code in codes.tolist():
        columns, without_effect = _explain_item(fitted, question, code)
        tables.append(columns)
        if len(without_effect):
            names = [shorten(fitted.entities[int(each)]) for each in without_effect]
            notes.append(
                f"without effect on {shorten(fitted.entities[code])}, since they are outside its "
                f"context: {list_first(np.array(names))}"
            )
    several = isinstance(item, Iterable) and not isinstance(item, str)
    sizes = [len(table["term"]) for table in tables]
    first = {"item": np.repeat(fitted.entities.labels[codes], sizes)} if several else {}
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return Table({**first, **columns}, "; ".join(notes))


def what_if(
    model: HasFitted,
    context: Any,
    add: Any = (),
    remove: Any = (),
    n: int | None = None,
    **keywords: Any,
) -> Table:
    """Show how the mean of every item changes when a context changes.

    The method `what_if` of fitted models calls it, and documents the parameters and the result.
    """
    fitted = model.fitted()
    if fitted.parameters.position is not None:
        raise ParameterError(
            "what_if does not take positional windows: compare the results of two predict() calls"
        )
    size = None if n is None else check_integer("n", n)
    names = [name for term in fitted.spec.terms for name in term.tables]
    tables = {name: keywords.pop(name) for name in names if name in keywords}
    options, row = read_keywords(fitted, keywords, "what_if", ["add", "remove", "n", *names])
    choice = Choice(fitted.entities, **options)
    question = read_context(fitted, context, choice, row, empty=True)
    changed = _remove(fitted, _add(fitted, question, add, choice), remove, choice)
    if changed is question and not tables:
        raise DataError("nothing changes: name what to add or to remove")
    changed = replace(
        changed, tables={name: _table_changes(name, tables[name], choice) for name in tables}
    )
    before, after = (_means(fitted, *_predictors(fitted, each)) for each in (question, changed))
    rows = np.arange(len(before)) if choice.rows is None else choice.rows
    rows = rows[np.argsort(-np.abs(after - before)[rows], kind="stable")[:size]]
    columns = {
        "label": fitted.entities.labels[rows],
        "before": before[rows],
        "after": after[rows],
        "change": (after - before)[rows],
    }
    if fitted.spec.family.support.low >= 0:
        columns["ratio"] = (after / np.maximum(before, np.finfo(float).tiny))[rows]
    return Table(columns, "expected amount of each item before and after the change")


def _table_changes(name: str, changes: Any, choice: Choice) -> tuple[Ints, Floats]:
    """Codes of items, and a number for each."""
    if not isinstance(changes, Mapping) or not changes:
        raise InputTypeError(
            f"{name} maps items to numbers, such as {name}={{'milk': 0.8}}, got {changes!r:.60}"
        )
    codes = [choice.code(item) for item in changes]
    numbers = [number_of(item, number) for item, number in changes.items()]
    return np.array(codes, dtype=np.int64), np.array(numbers)


# -- inside -------------------------------------------------------------------------------------


def _list_items(
    model: HasFitted, context: Any, n: int, keywords: dict[str, Any], method: str
) -> Table:
    """The items that fit each context; `complete` leaves out those that are in it."""
    fitted, size = model.fitted(), check_integer("n", n)
    new = method == "complete"
    options, row = read_keywords(fitted, keywords, method, ["n"])
    choice = Choice(fitted.entities, **options)
    several, questions = read_contexts(fitted, context, choice, row)
    codes: list[Ints] = []
    columns: dict[str, list[Floats]] = {}
    for question in questions:
        members = question.members if new else question.codes[:0]
        answer = _ranked_columns(fitted, question, members)
        rows = choice.without(members)
        rows = np.arange(fitted.n_entities) if rows is None else rows
        best = next(iter(answer.values()))
        codes.append(rows[largest(best[rows], size)])
        for name, values in answer.items():
            columns.setdefault(name, []).append(values[codes[-1]])
    sizes = [len(listed) for listed in codes]
    first = {"context": np.repeat(np.arange(len(codes)), sizes)} if several else {}
    labels = fitted.entities.labels[np.concatenate(codes)]
    joined = {name: np.concatenate(values) for name, values in columns.items()}
    note = f"mean: expected {'amount' if fitted.spec.family.support.integer else 'value'}"
    if "probability" in joined:
        among = "the items outside the basket" if new else "all items"
        note = f"probability: that this is the next item, among {among}"
        note += "; mean: expected amount" if "mean" in joined else ""
    return Table({**first, "label": labels, **joined}, note)


def _ranked_columns(
    model: FittedEmbedding, question: QueryContext, members: Ints
) -> dict[str, Floats]:
    """Columns of all entities, the first of which ranks them; `members` get no share."""
    spec, (u, normalizer) = model.spec, _predictors(model, question)
    if not (spec.one_of_all or spec.family.normalized_score):
        return {"mean": _means(model, u, normalizer)}
    share = shares_of(spec, u, normalizer)[0]
    if len(members):
        share[members] = 0.0
        share /= share.sum() or 1.0
    columns = {"probability": share}
    return columns if spec.one_of_all else {**columns, "mean": _means(model, u, normalizer)}


def _predictors(
    model: FittedEmbedding, question: QueryContext
) -> tuple[Floats, Huffman | Floats | None]:
    """u of every entity, (1, N), and the normalizer that turns it into shares."""
    # Vectors of a fit that nearly diverged overflow; the answer is then extreme, but a number.
    with np.errstate(over="ignore", invalid="ignore"):
        bound, factors, row = question.bind(model)
        u = Predictor(factors).cells(model.spec, bound, np.array([row]))
    bounded = np.nan_to_num(u.astype(np.float64), posinf=1e300, neginf=-1e300)
    return bounded, normalizer_of(model.spec, bound)


def _means(model: FittedEmbedding, u: Floats, normalizer: Huffman | Floats | None) -> Floats:
    """E[x | context] of every entity, (N,); shares if exactly one of them occurs."""
    convert = shares_of if model.spec.one_of_all else means_of
    return np.asarray(convert(model.spec, u, normalizer)[0])


def _explain_item(
    model: FittedEmbedding, question: QueryContext, entity: int
) -> tuple[dict[str, Any], Ints]:
    """Columns of the contributions, and codes of members that the context does not reach."""
    labels = model.entities.labels
    bound, factors, row = question.bind(model)
    terms = Predictor(factors).explain(model.spec, bound, row, entity)
    if len(terms.vector) == 0 and not question.row:
        raise DataError(
            f"nothing in the context affects {shorten(labels[entity])}: its own amount, and "
            "entities outside its list, are not part of its context"
        )
    codes = terms.vector % model.n_entities
    text = model.spec.context.reads_text  # in which every occurrence of a word counts separately
    amounts = [1.0 if text else question.amount_of(int(code)) for code in codes]
    names = [
        name if isinstance(name, str) else f"through the pair {labels[name[1]]} - {labels[entity]}"
        for name in terms.terms
    ]
    others = list(terms.terms.values())
    if model.parameters.intercept is not None or terms.intercept:  # that of a group of rows, too
        names, others = [INTERCEPT, *names], [terms.intercept, *others]
    unknown = np.full(len(names), np.nan)
    contribution = np.append(terms.contribution, others)
    order = np.argsort(-np.abs(contribution), kind="stable")
    term = (
        np.concatenate([labels[codes], np.array(names, dtype=object)]) if names else labels[codes]
    )
    columns = {
        "term": term[order],
        "amount": np.append(amounts, unknown)[order],
        "weight": np.append(terms.product, unknown)[order],
        "contribution": contribution[order],
    }
    return columns, np.setdiff1d(question.members, np.append(codes, entity))


def _add(
    model: FittedEmbedding, question: QueryContext, labels: Any, choice: Choice
) -> QueryContext:
    new = read_context(model, labels, choice, empty=True)
    if len(new.codes) == 0:
        return question
    if model.spec.context.reads_text:  # words are appended, even ones that are there already
        return question.append(new)
    amounts = [question.amount_of(int(code)) for code in new.codes]
    return question.set_amounts(new.codes, new.amounts + amounts)


def _remove(
    model: FittedEmbedding, question: QueryContext, labels: Any, choice: Choice
) -> QueryContext:
    taken, known = read_context(model, labels, choice, empty=True), model.entities.labels
    for code in taken.codes:
        if code not in question.codes:
            raise DataError(
                f"{shorten(known[code])} is not in the context, so it cannot be removed from it"
            )
    if not isinstance(labels, Mapping):
        return question.remove(taken.codes) if len(taken.codes) else question
    remaining = np.array([question.amount_of(int(code)) for code in taken.codes]) - taken.amounts
    for code in taken.codes[remaining < 0] if model.spec.family.support.low >= 0 else ():
        present = question.amount_of(int(code))
        raise DataError(f"only {present:g} of {shorten(known[code])} is in the context")
    return question.set_amounts(taken.codes, remaining) if len(remaining) else question
