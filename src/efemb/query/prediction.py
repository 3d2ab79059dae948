"""Predictions from a context: what comes next, why, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from efemb.contexts.window import Window
from efemb.data.vocabulary import shorten
from efemb.errors import DataError, ParameterError
from efemb.labelled import Choice, Options
from efemb.nearest import checked_number, largest
from efemb.query.context import Given, read_context, read_contexts
from efemb.query.terms import inner_products, is_share, means, shares, terms_of
from efemb.query.vectors import nodes_of
from efemb.table import Table
from efemb.types import Floats, Ints

if TYPE_CHECKING:
    from efemb.fitted import FittedEmbedding
    from efemb.query.queries import Queries

INTERCEPT = "(intercept)"


def predict(model: Queries, context: Any, top: int = 10, **options: Unpack[Options]) -> Table:
    """Entities that belong into a context, the most probable first.

    Every entity is predicted from the others in the context, never from itself (words of a text
    may come again), so the means are those of `conditional`.

    Parameters
    ----------
    model : fitted model
    context : list of labels, mapping of labels to amounts, or list of such contexts
        For a positional window: the words before the gap and after it, half of each. With fixed
        lists of neighbours: the observed entities. Several contexts add a column `context`, their
        number.
    top : int
        Fewer rows come back where fewer entities are left.
    where, exclude, min_count, match, unknown
        Which entities are listed; see `Choice`. Probabilities are shares among all.

    Returns
    -------
    Table
        label, probability (share of the conditional means) and, for counts and binary data, mean;
        real data have a mean only.
    """
    return _listed(model, context, top, options, new=False)


def complete(model: Queries, basket: Any, n: int = 10, **options: Unpack[Options]) -> Table:
    """The next-best entities for a basket: `predict` without what is in it already.

    Probabilities are shares among the entities that are not in the basket. Parameters and result
    are those of `predict`.
    """
    return _listed(model, basket, n, options, new=True)


def explain(model: Queries, context: Any, item: Any, **options: Unpack[Options]) -> Table:
    """Why an entity is (not) expected in a context: the terms of its inner product u.

    u = intercept + sum over members m of x_m (rho . alpha_m) / d is a plain sum, so that the
    explanation is exact: `contribution` adds up to u, and eta = f(u).

    Parameters
    ----------
    model : fitted model
    context : list of labels, or mapping of labels to amounts
        The item itself is left out of its own context, as in the model.
    item : label or list of labels
        With a list, the table gets a column `item`.
    match, unknown
        How labels are looked up; see `Choice`.

    Returns
    -------
    Table
        term (a member, or "(intercept)"), amount x_m, product rho . alpha_m, contribution; the
        largest absolute contribution first.
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
    """How the mean of every entity changes when something is added to or taken from a context.

    Parameters
    ----------
    model : fitted model
    context : list of labels, or mapping of labels to amounts
        May be empty.
    add : label, list of labels, or mapping of labels to amounts
        Added to the amounts of the context.
    remove : label, list of labels, or mapping of labels to amounts
        Taken out, wholly or, in a mapping, by an amount; must be in the context.
    n : int, optional
        Only so many entities.
    where, exclude, min_count, match, unknown
        Which entities are listed; see `Choice`.

    Returns
    -------
    Table
        label, before, after (conditional means; probabilities in text and categorical models),
        change and, where means are positive, ratio; the largest absolute change first.
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


def _listed(model: Queries, context: Any, top: int, options: Options, *, new: bool) -> Table:
    fitted, size = model.fitted(), checked_number(top)
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
        joined = [
            np.concatenate(pair)
            for pair in ((given.codes, more.codes), (given.amounts, more.amounts))
        ]
        return Given(*joined)
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
