"""Hold-outs: data excluded from training to decide when to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.sparse import csr_array

from efemb._typing import Floats, Ints
from efemb.data.corpus import FEW_DOCUMENTS
from efemb.engine.solvers.base import Solver
from efemb.engine.solvers.choice import Setup
from efemb.engine.validation import (
    EntryValidation,
    SolverValidation,
    Validation,
    entries_given_rows,
    rows_given_themselves,
)
from efemb.errors import DataError, ParameterError, check_number
from efemb.model.contexts.base import BoundContext
from efemb.model.contexts.bound.entities import EntityLists
from efemb.model.contexts.bound.rows import RowBags
from efemb.model.contexts.window import WindowBags
from efemb.model.predict import normalizer_of

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

DEFAULT_FRACTION, MOST_ENTRIES = 0.05, 20_000
MOST_CELLS, FEWEST_ENTRIES = 1 << 31, 1000  # each entry is compared with every entity
MOST_STRETCHES = 10  # of held-out rows if contexts reach other rows


@dataclass(frozen=True)
class Split:
    """A solver on the training data, and a score of the rest."""

    bound: Any
    solver: Solver[Any]
    validation: Validation | None


def no_split(bound: BoundContext, weight: Floats | None, setup: Setup) -> Split:
    """Train on everything."""
    return Split(bound, setup(bound, weight), None)


def hold_out(
    bound: Any,
    fraction: float | None,
    weight: Floats | None,
    setup: Setup,
    rng: np.random.Generator,
) -> Split:
    """Hold out some entries (row contexts) or rows (other contexts) for validation."""
    share = DEFAULT_FRACTION if fraction is None else fraction
    check_number("validation_fraction", share, above=0, below=1)
    if bound.is_text:
        return _hold_out_documents(bound, share, fraction is None, setup, rng)
    if bound.shares_rows and not setup.spec.family.judged_by_density:
        held = _draw_entries(bound, share, fraction is None, weight, rng)
        split = None if held is None else _mask_entries(bound, held, weight, setup)
        return split or no_split(bound, weight, setup)
    eligible = np.arange(bound.n_rows) if weight is None else np.flatnonzero(weight > 0)
    n_held = max(1, round(share * len(eligible)))
    if setup.spec.context.reaches_other_rows:
        rows = _draw_stretches(eligible, n_held, rng)
    else:
        rows = np.sort(rng.permutation(eligible)[:n_held])
    if len(eligible) < 10:
        return no_split(bound, weight, setup)
    if bound.shares_rows:
        return _separate_rows(bound, rows, weight, setup)
    return _hold_out_rows(bound, rows, weight, setup)


def _separate_rows(bound: Any, rows: Ints, weight: Floats | None, setup: Setup) -> Split:
    """Held-out rows with contexts within themselves, by the log-density of all their cells."""
    base = np.ones(bound.n_rows) if weight is None else weight
    others = np.setdiff1d(np.arange(bound.n_rows), rows)
    train, held = (setup.spec.context.bind(bound.data.take_rows(index)) for index in (others, rows))
    solver = setup(held, base[rows])
    score = SolverValidation(solver, None, solver.total_weight)
    return Split(train, setup(train, base[others]), score)


def _draw_stretches(eligible: Ints, n_held: int, rng: np.random.Generator) -> Ints:
    """About this many rows in stretches, so that few rows lose the context of a neighbor."""
    length = max(1, n_held // MOST_STRETCHES)
    n_stretches = -(-len(eligible) // length)
    chosen = rng.permutation(n_stretches)[: max(1, round(n_held / length))]
    return eligible[np.isin(np.arange(len(eligible)) // length, chosen)]


def given_split(bound: Any, validation: Dataset, weight: Floats | None, setup: Setup) -> Split:
    """The user's own validation data: entries of the training rows, or other rows."""
    if validation.n_entities != bound.n_entities or validation.n_dims != bound.n_dims:
        raise DataError(
            f"validation has {validation.n_entities} entities of {validation.n_dims} numbers, the "
            f"data {bound.n_entities} of {bound.n_dims}"
        )
    if bound.shares_rows and setup.spec.family.judged_by_density:
        solver = setup(setup.spec.context.bind(validation), None)
        score: Validation = SolverValidation(solver, None, solver.total_weight)
        return Split(bound, setup(bound, weight), score)
    if bound.shares_rows:
        held = None if bound.is_text else _stored(validation)
        if (
            held is not None
            and validation.n_rows == bound.n_rows
            and not _overlaps(_stored(bound.data), held)
        ):
            return _mask_entries(bound, held, weight, setup) or _refuse_unscorable()
        other: Any = setup.spec.context.bind(validation)
        entries = rows_given_themselves(setup.spec, other)
        if entries.empty.all():
            raise DataError("validation has no row with two or more non-zero entities")
        score = EntryValidation(entries, setup.spec, setup.pool, normalizer_of(setup.spec, other))
        return Split(bound, setup(bound, weight), score)
    if bound.lists is None:
        raise ParameterError("validation= needs a Basket, Neighbors, Graph or Lagged context")
    if _fills_gaps(bound.data, validation):
        lists = EntityLists(bound.data, bound.lists, private=bound.private, targets=validation)
        solver = setup(lists, weight)
    else:
        solver = setup(bound.rebind(validation), None)
    if not solver.total_weight > 0:
        _refuse_unscorable()
    return Split(bound, setup(bound, weight), SolverValidation(solver, None, solver.total_weight))


def _hold_out_documents(
    bound: WindowBags, share: float, capped: bool, setup: Setup, rng: np.random.Generator
) -> Split:
    """Hold out documents (stretches if there are few), by default at most `MOST_ENTRIES` words."""
    if capped:
        share = min(share, MOST_ENTRIES / bound.n_rows)
    n_documents = bound.data.n_documents
    single = n_documents >= FEW_DOCUMENTS and share * n_documents < 1  # long ones: one at least
    try:
        train, held = bound.data.split(test=1 if single else share, seed=int(rng.integers(2**31)))
    except DataError:  # too little text to hold out any
        return no_split(bound, None, setup)
    # Noise and trees are those of the whole text, whose counts the model will use.
    words = bound.data.vocabulary
    train_bound, held_bound = (
        WindowBags(text.with_vocabulary(words), bound.window) for text in (train, held)
    )
    entries = rows_given_themselves(setup.spec, held_bound)
    if entries.empty.all():
        return no_split(bound, None, setup)
    normalizer = normalizer_of(setup.spec, train_bound)
    score = EntryValidation(entries, setup.spec, setup.pool, normalizer)
    return Split(train_bound, setup(train_bound, None), score)


def _stored(data: Dataset) -> Any:
    if data.is_sparse:
        return data.values
    return csr_array(np.nan_to_num(data.values.reshape(data.n_rows, data.n_entities)))


def _fills_gaps(data: Dataset, held: Dataset) -> bool:
    """Whether `held` has values only where the data of the same rows have none."""
    if data.is_sparse or held.is_sparse or data.shape != held.shape:
        return False
    return not bool((~np.isnan(data.values) & ~np.isnan(held.values)).any())


def _overlaps(left: Any, right: Any) -> bool:
    return bool((left.astype(bool).multiply(right.astype(bool))).nnz)


def _draw_entries(
    bound: RowBags, share: float, capped: bool, weight: Floats | None, rng: np.random.Generator
) -> Any | None:
    """A random sparse matrix of entries, or None if there are too few to hold out.

    Rows without weight are excluded, because they must not change anything.
    """
    stored = _stored(bound.data)
    sizes = np.diff(stored.indptr)
    eligible = sizes >= 2 if weight is None else (sizes >= 2) & (weight > 0)
    candidates = np.flatnonzero(np.repeat(eligible, sizes))
    n = round(share * len(candidates))
    if capped:
        n = min(n, MOST_ENTRIES, max(FEWEST_ENTRIES, MOST_CELLS // stored.shape[1]))
    if n < 1 or len(candidates) < 20:
        return None
    chosen = np.sort(rng.permutation(candidates)[:n])
    row = np.repeat(np.arange(stored.shape[0]), sizes)[chosen]
    chosen, row = _keep_one_per_row(chosen, row, sizes)
    cells = (row, stored.indices[chosen])
    return csr_array((stored.data[chosen], cells), shape=stored.shape)


def _keep_one_per_row(chosen: Ints, row: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Drop the first entry of each row that would otherwise lose all its context."""
    emptied = np.bincount(row, minlength=len(sizes)) == sizes
    first = np.r_[True, row[1:] != row[:-1]]
    spared = first & emptied[row]
    return chosen[~spared], row[~spared]


def _mask_entries(bound: RowBags, held: Any, weight: Floats | None, setup: Setup) -> Split | None:
    """Held-out entries are neither zero, target nor context; None if none of them has weight."""
    data = bound.data
    train = _stored(data).copy()
    train = train - train.multiply(held.astype(bool))
    train.eliminate_zeros()
    masked = held.astype(bool)
    if not data.is_sparse and np.isnan(data.values).any():
        masked = masked + _missing_cells(data)
    rest = bound.without(masked, data._replace(train))
    entries = entries_given_rows(setup.spec, rest, held)
    of_rows = None if weight is None else weight[np.diff(held.indptr) > 0]
    score = EntryValidation(entries, setup.spec, setup.pool, row_weight=of_rows)
    if not score.weight.sum() > 0:
        return None
    return Split(rest, setup(rest, weight), score)


def _refuse_unscorable() -> NoReturn:
    raise DataError(
        "validation has no entry with a context in a row whose sample_weight is not 0, so "
        "early stopping has no score: pass other entries, or none and early_stopping=False"
    )


def _missing_cells(data: Dataset) -> Any:
    return csr_array(np.isnan(data.values.reshape(data.n_rows, data.n_entities)))


def _hold_out_rows(bound: Any, rows: Ints, weight: Floats | None, setup: Setup) -> Split:
    """Held-out rows are neither target nor context; they see the training rows as context."""
    base = np.ones(bound.n_rows) if weight is None else weight
    others = np.setdiff1d(np.arange(bound.n_rows), rows)
    fixed = bound.lists is not None
    if fixed and not any(edges.offset.any() for edges in bound.lists):
        train, held = (bound.rebind(bound.data.take_rows(index)) for index in (others, rows))
        solver = setup(held, base[rows])
        if not solver.total_weight > 0:
            return no_split(bound, weight, setup)
        score = SolverValidation(solver, None, solver.total_weight)
        return Split(train, setup(train, base[others]), score)
    only = np.zeros(bound.n_rows)
    only[rows] = base[rows]
    watcher = setup(bound, only)
    if not watcher.total_weight > 0:
        return no_split(bound, weight, setup)
    blank = _blank_rows(bound.data, rows)
    train = bound.rebind(blank) if fixed else setup.spec.context.bind(blank)
    rest_weight = base.copy()
    rest_weight[rows] = 0.0
    every = rows if watcher.stochastic else None
    return Split(
        train, setup(train, rest_weight), SolverValidation(watcher, every, watcher.total_weight)
    )


def _blank_rows(data: Dataset, rows: Ints) -> Dataset:
    """The data with some rows missing; empty if the data are sparse, to save memory.

    Such rows have no weight, so that they are not targets in either case.
    """
    if data.is_sparse:
        keep = np.ones(data.n_rows)
        keep[rows] = 0.0
        values = data.values * keep[:, None]
        values = values.tocsr()
        values.eliminate_zeros()
        return data._replace(values)
    values = data.values.copy()
    values[rows] = np.nan
    return data._replace(values)
