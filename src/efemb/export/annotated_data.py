"""Export of vectors into the AnnData that they were learned from."""

from __future__ import annotations

from typing import Any

import numpy as np

from efemb._typing import Floats
from efemb.data.containers import is_anndata
from efemb.errors import DataError, InputTypeError
from efemb.fitted import LabeledVectors


def write_anndata(model: Any, adata: Any, *, key: str = "efemb") -> None:
    """Store the vectors of a model in ``adata.varm``, matched by ``var_names``.

    Parameters
    ----------
    model : estimator or FittedEmbedding
        A model fitted to `adata` or to other data with the same names of variables.
    adata : AnnData
        Modified in place: ``varm[key]`` receives the embedding vectors and
        ``varm[f"{key}_context"]`` the context vectors, both of shape (n_vars, K). Rows of
        variables that the model does not know are NaN.
    key : str, default="efemb"
        Name in ``varm``.

    Raises
    ------
    DataError
        If the model knows none of the variables.
    """
    if not is_anndata(adata):
        raise InputTypeError(f"adata must be an AnnData, not {type(adata).__name__}")
    names = list(adata.var_names)
    for which, target in (("rho", key), ("alpha", f"{key}_context")):
        adata.varm[target] = _by_name(model.vectors(which), names)


def _by_name(labeled: LabeledVectors, names: list[Any]) -> Floats:
    """One row per name; NaN if a name has no vector."""
    own = labeled.vocabulary
    codes = np.array([own.index_of(name) if name in own else -1 for name in names], int)
    if not (codes >= 0).any():
        raise DataError(
            f"none of the {len(names):,} var_names is one of the model's {len(own):,} labels, "
            f"such as {own[0]!r}"
        )
    rows: Floats = np.full((len(names), labeled.vectors.shape[1]), np.nan, labeled.vectors.dtype)
    rows[codes >= 0] = labeled.vectors[codes[codes >= 0]]
    return rows
