"""Predictions from a context: what comes next, why, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from efemb._deprecated import warn_renamed
from efemb._typing import Floats, Ints
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, ParameterError
from efemb.fitted.nearest import checked_number, largest
from efemb.fitted.query_context import Given, read_context, read_contexts
from efemb.fitted.selection import Choice, Options
from efemb.fitted.terms import inner_products, is_share, means, shares, terms_of
from efemb.fitted.vectors import nodes_of
from efemb.model.contexts.window import Window
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.fitted.embedding import FittedEmbedding
    from efemb.fitted.queries import Queries

INTERCEPT = "(intercept)"


def predict(
    model: Queries,
    context: Any,
    n: int = 10,
    *,
    top: int | None = None,
    **options: Unpack[Options],
) -> Table:
    """List the items that fit a context, the most probable first.

    The method `predict` of fitted models calls it, and documents the parameters and the result.
    """
    if top is not None:
        warn_renamed("top=", "n=")
        n = top
    return _listed(model, context, n, options, new=False)


def complete(model: Queries, basket: Any, n: int = 10, **options: Unpack[Options]) -> Table:
    """List the best items to add to a basket: `predict` without the items already in it.

    The method `complete` of fitted models calls it, and documents the parameters and the result.
    """
    return _listed(model, basket, n, options, new=True)


def explain(model: Queries, context: Any, item: Any, **options: Unpack[Options]) -> Table:
    """Decompose the prediction of an item: what each part of the context contributes.

    The method `explain` of fitted models calls it, and documents the parameters and the result.
    """
    fitted = model.fitted()
    if nodes_of(fitted) is not None:
        raise ParameterError("in a hierarchical softmax, inner products belong to nodes, not words")
    choice = Choice(fitted.entities, **options)
    given = read_context(fitted, context, choice)
    codes = choice.codes(item)
    found = [_explained(fitted, given, int(code)) for code in codes]
    several = isinstance(item, Iterable) and not isinstance(item, str)
    sizes = [len(one["term"]) for one in found]
    first = {"item": np.repeat(fitted.entities.labels[codes], sizes)} if several else {}
    names = ("term", "amount", "product", "contribution")
    return Table(
        {**first, **{name: np.concatenate([one[name] for one in found]) for name in names}}
    )


def what_if(
    model: Queries,
    context: Any,
    add: Any = (),
    remove: Any = (),
    n: int | None = None,
    **options: Unpack[Options],
) -> Table:
    """Show how the mean of every item changes when a context changes.

    The method `what_if` of fitted models calls it, and documents the parameters and the result.
    """
    fitted = model.fitted()
    if fitted.parameters.position is not None:
        raise ParameterError("in a positional window, say where words are: compare two predict()")
    size = None if n is None else checked_number(n)
    choice = Choice(fitted.entities, **options)
    given = read_context(fitted, context, choice, empty=True)
    changed = _removed(fitted, _added(fitted, given, add, choice), remove, choice)
    if changed is given:
        raise DataError("nothing changes: name what to add or to remove")
    before, after = (means(fitted, inner_products(fitted, one)) for one in (given, changed))
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
    return Table(columns)


# -- inside -------------------------------------------------------------------------------------


def _listed(model: Queries, context: Any, n: int, options: Options, *, new: bool) -> Table:
    fitted, size = model.fitted(), checked_number(n)
    choice = Choice(fitted.entities, **options)
    several, contexts = read_contexts(fitted, context, choice)
    codes: list[Ints] = []
    columns: dict[str, list[Floats]] = {}
    for given in contexts:
        members = given.members if new else given.codes[:0]
        found = _means(fitted, given, members)
        rows = choice.without(members)
        rows = np.arange(fitted.n_entities) if rows is None else rows
        best = next(iter(found.values()))
        codes.append(rows[largest(best[rows], size)])
        for name, values in found.items():
            columns.setdefault(name, []).append(values[codes[-1]])
    sizes = [len(one) for one in codes]
    first = {"context": np.repeat(np.arange(len(codes)), sizes)} if several else {}
    labels = fitted.entities.labels[np.concatenate(codes)]
    joined = {name: np.concatenate(values) for name, values in columns.items()}
    return Table({**first, "label": labels, **joined})


def _means(model: FittedEmbedding, given: Given, left_out: Ints) -> dict[str, Floats]:
    """Columns of all entities; the first one ranks them."""
    u = inner_products(model, given)
    if not (is_share(model) or model.spec.family.normalized_score):
        return {"mean": means(model, u)}
    share = shares(model, u)
    if len(left_out):
        share[left_out] = 0.0
        share /= share.sum() or 1.0
    found = {"probability": share}
    return found if is_share(model) else {**found, "mean": means(model, u)}


def _explained(model: FittedEmbedding, given: Given, entity: int) -> dict[str, Any]:
    labels = model.entities.labels
    place, product, contribution = terms_of(model, given, entity)
    if len(place) == 0:
        raise DataError(
            f"nothing in the context says anything about {shorten(labels[entity])}: its own "
            "amount, and entities outside its list, are no context"
        )
    term = labels[given.codes[place]]
    amount = given.amounts[place]
    intercept = model.parameters.intercept
    if intercept is not None:
        term = np.append(term, INTERCEPT)
        amount, product = np.append(amount, np.nan), np.append(product, np.nan)
        contribution = np.append(contribution, intercept[entity])
    order = np.argsort(-np.abs(contribution), kind="stable")
    return {
        "term": term[order],
        "amount": amount[order],
        "product": product[order],
        "contribution": contribution[order],
    }


def _added(model: FittedEmbedding, given: Given, add: Any, choice: Choice) -> Given:
    more = read_context(model, add, choice, empty=True)
    if len(more.codes) == 0:
        return given
    if isinstance(model.spec.context, Window):  # one more word, even of the same kind
        codes = np.concatenate([given.codes, more.codes])
        return Given(codes, np.concatenate([given.amounts, more.amounts]))
    amounts = [given.amount_of(int(code)) for code in more.codes]
    return given.changed(more.codes, more.amounts + amounts)


def _removed(model: FittedEmbedding, given: Given, remove: Any, choice: Choice) -> Given:
    less = read_context(model, remove, choice, empty=True)
    labels = model.entities.labels
    for code in less.codes:
        if code not in given.codes:
            raise DataError(f"{shorten(labels[code])} is not in the context, so it cannot leave it")
    if not isinstance(remove, Mapping):
        return given.without(less.codes) if len(less.codes) else given
    left = np.array([given.amount_of(int(code)) for code in less.codes]) - less.amounts
    for code in less.codes[left < 0] if model.spec.family.support.low >= 0 else ():
        here = given.amount_of(int(code))
        raise DataError(f"only {here:g} of {shorten(labels[code])} is in the context")
    return given.changed(less.codes, left) if len(left) else given
