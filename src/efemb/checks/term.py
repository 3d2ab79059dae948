"""check_term: a term's columns and their transposes, through the solvers."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.testing import assert_allclose

from efemb._typing import Floats
from efemb.checks.common import check_gradient, check_options
from efemb.data.dataset import Dataset
from efemb.model.contexts.basket import Basket
from efemb.model.spec import Spec
from efemb.model.terms.base import Term
from efemb.model.terms.cell_values import GroupTable, ScaledRows, SparseRows


def check_term(term: Term, data: Dataset) -> None:
    """Check that a term can be fitted and predicted with.

    Parameters
    ----------
    term : Term
    data : Dataset of counts
        Rows with the columns that the term needs; a dozen rows are enough.

    Raises
    ------
    AssertionError
        If options are not stored untouched, columns have wrong shapes, cells lie outside the data
        or occur twice, `pull_back_entities`, `pull_back_rows` or `pull_back_cells` is not a
        transpose, the gradient of a fit differs from finite differences for some scale of the
        context, or the fast solver from the general one.
    """
    check_options(term, Term)
    frozen = term.freeze(data)
    assert type(frozen) is type(term), f"{type(term).__name__}.freeze gives another class"
    assert frozen.freeze(data) == frozen, f"{type(term).__name__}: freezing twice changes the term"
    _check_transposes(frozen, data)
    _check_cells(frozen, data)
    for scale in ("none", "items", "total"):
        spec = Spec.resolve(context=Basket(scale), family="poisson", terms=[frozen])
        check_gradient(spec, data, f"{frozen!r} with scale={scale!r}")


def _check_transposes(term: Term, data: Dataset) -> None:
    name, n = type(term).__name__, data.n_entities
    rng, rows = np.random.default_rng(0), np.arange(data.n_rows)[::-1]
    arrays: dict[str, Floats] = {
        array.name: rng.normal(size=array.shape) for array in term.arrays(n)
    }
    bound = term.bind(data)
    sides = {
        "entity_columns": (term.entity_columns(arrays, n), (n, term.width)),
        "row_columns": (bound.row_columns(arrays, rows), (len(rows), term.width)),
    }
    for method, (columns, shape) in sides.items():
        assert columns.shape == shape, f"{name}.{method} must give {shape}, got {columns.shape}"
    if term.entity_array is not None:
        same = np.array_equal(sides["entity_columns"][0], arrays[term.entity_array])
        assert same, f"{name}.entity_array is {term.entity_array!r}, which entity_columns is not"
    zero = {key: np.zeros_like(array) for key, array in arrays.items()}
    for method, fixed, pull_back in (
        ("entity", term.entity_columns(zero, n), term.pull_back_entities),
        ("row", bound.row_columns(zero, rows), partial(bound.pull_back_rows, arrays, rows)),
    ):
        columns = sides[f"{method}_columns"][0] - fixed  # the part that is linear in parameters
        b = rng.normal(size=columns.shape)
        back = pull_back(b)
        right = sum(np.vdot(arrays[key], array) for key, array in back.items())
        message = f"{name}: pulling back the {method} side is not the transpose of its columns"
        assert_allclose(np.vdot(columns, b), right, rtol=1e-9, atol=1e-12, err_msg=message)


def _check_cells(term: Term, data: Dataset) -> None:
    """Check that cells exist and occur once, and that their linear part has its transpose."""
    name, bound = type(term).__name__, term.bind(data)
    rng, rows = np.random.default_rng(0), np.append(np.arange(data.n_rows)[::-1], 0)
    layout = term.arrays(data.n_entities)
    arrays: dict[str, Floats] = {array.name: rng.normal(size=array.shape) for array in layout}
    cells = bound.cells(arrays, rows)
    claim = f"{name}.has_cells is {term.has_cells}"
    assert term.has_cells == (cells is not None), f"{claim}, but `cells` says otherwise"
    if cells is None:
        return
    kinds = SparseRows | ScaledRows | GroupTable
    assert isinstance(cells, kinds), f"{name}.cells is {type(cells).__name__}"
    if not isinstance(cells, GroupTable):
        stored = cells.weights.rows if isinstance(cells, ScaledRows) else cells
        _check_sparse(name, stored, len(rows), data.n_entities)
    else:
        shape = (len(rows), (len(cells.values), data.n_entities))
        cell_shapes = (len(cells.code), cells.values.shape)
        assert cell_shapes == shape, f"{name}.cells must have shapes {shape}, got {cell_shapes}"
    fixed = bound.cells({key: np.zeros_like(array) for key, array in arrays.items()}, rows)
    assert fixed is not None
    b = rng.normal(size=cells.values.shape)
    back = bound.pull_back_cells(arrays, rows, b)
    right = sum(np.vdot(arrays[key], array) for key, array in back.items())
    message = f"{name}: pulling back cells is not the transpose of them"
    left = np.vdot(cells.values - fixed.values, b)
    assert_allclose(left, right, rtol=1e-6, atol=1e-9, err_msg=message)


def _check_sparse(name: str, cells: SparseRows, n_rows: int, n_entities: int) -> None:
    shapes = f"{name}.cells must give {n_rows + 1} pointers and one value per id"
    assert len(cells.ptr) == n_rows + 1, shapes
    assert cells.ptr[-1] == len(cells.ids) == len(cells.values), shapes
    inside = (cells.ids >= 0) & (cells.ids < n_entities)
    assert inside.all(), f"{name}.cells has ids that are not entities"
    flat_index = cells.row * n_entities + cells.ids
    assert (np.diff(flat_index) > 0).all(), f"{name}.cells: the ids of a row must ascend, each once"
