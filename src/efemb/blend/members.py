"""Members: the models of a blend, each with its own order of the entities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from efemb._typing import Floats, Ints
from efemb.baselines.base import cell_blocks
from efemb.blend.pools import Sample
from efemb.data.matrices import sparse, stored_cells
from efemb.data.vocabulary import Vocabulary, shorten
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.evaluation.adapter import Judged, family_of, vocabulary_of

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset

CACHED_NUMBERS = 1 << 26  # float32: log shares of held-out entries are kept up to 256 MB
LARGEST_WEIGHT = 10.0  # maximum weight of an entry in the fit of weights, whatever its count


def is_fitted(model: Any) -> bool:
    """Whether a model can predict: it is fitted, or has no `fit` (a `FittedEmbedding`)."""
    if not hasattr(model, "fit"):
        return True
    return any(name.endswith("_") and not name.startswith("_") for name in vars(model))


def check_models(models: Any) -> None:
    """Reject anything but a mapping of names to models with log_means."""
    if not isinstance(models, Mapping) or not all(isinstance(name, str) for name in models):
        raise InputTypeError(f"models must be a mapping of names to models, got {models!r:.80}")
    if not models:
        raise ParameterError("models is empty: a blend needs at least one model")
    for name, model in models.items():
        if isinstance(model, type) or not hasattr(model, "log_means"):
            raise InputTypeError(
                f"{name!r} has no log_means method, which a blend needs: pass an embedding of "
                f"rows, a baseline or another model of counts, not {model!r:.80}"
            )


def check_fitted(name: str, model: Any, data: Dataset, entities: Vocabulary | None) -> None:
    """Reject models of real data, and models with other entities."""
    if not family_of(model).normalized_score:
        raise ParameterError(
            f"{name!r} is a model of real numbers ({family_of(model).name()}), which do "
            "not have shares: blend models of counts or binary data"
        )
    own = vocabulary_of(model)
    size = len(own) if own is not None else getattr(model, "n_features_in_", None)
    if size is None:
        size = getattr(model, "n_entities", data.n_entities)
    if size != data.n_entities:
        raise DataError(
            f"{name!r} has {size:,} entities, but the data have {data.n_entities:,}: blend "
            "models that were fitted to the same entities"
        )
    if own is None or entities is None:
        return
    strange = [label for label in own if label not in entities]
    if strange:
        raise DataError(
            f"{name!r} has {shorten(strange[0])} and {len(strange) - 1:,} other entities that "
            "the blend does not have: blend models that were fitted to the same entities"
        )


def fit_models(
    models: Mapping[str, Any],
    train: Dataset | None,
    held: Dataset,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Clones of the unfitted models, fitted to `train`; fitted ones as they are.

    Every model draws one seed from the generator, whether it needs one or not, so that its result
    does not depend on the others.
    """
    fitted = {}
    for name, model in models.items():
        seed = int(rng.integers(1 << 31))
        if is_fitted(model):
            fitted[name] = model
            continue
        fresh = clone(model)
        if "random_state" in fresh.get_params() and fresh.random_state is None:
            fresh.set_params(random_state=seed)
        fitted[name] = fresh.fit(train, validation=held)
    return fitted


def log_shares(models: Mapping[str, Any], data: Dataset, rows: Ints, entities: Ints) -> Floats:
    """Log shares of all entities in each model, (cells, P, N).

    If all means of a row are 0 in a model, the shares are equal.
    """
    logs = np.empty((len(rows), len(models), data.n_entities))
    for i, (name, model) in enumerate(models.items()):
        judged = Judged.of(model, data)
        code = judged.codes(np.arange(data.n_entities))
        for cells, means in model.log_means(judged.data, rows, judged.codes(entities)):
            logs[cells, i] = means[:, code]
        logs[:, i] -= _log_totals(name, logs[:, i])
    return logs


def _log_totals(name: str, log_means: Floats) -> Floats:
    """Log of the sum of the means of each row; rows of zero means are set to equal ones."""
    top = log_means.max(axis=1, keepdims=True)
    if np.isnan(top).any() or (top == np.inf).any():
        raise DataError(
            f"the means of {name!r} are not finite (NaN or infinity): has its fit diverged?"
        )
    silent = top[:, 0] == -np.inf
    log_means[silent], top[silent] = 0.0, 0.0
    return np.asarray(top + np.log(np.exp(log_means - top).sum(axis=1, keepdims=True)))


def share_blocks(
    models: Mapping[str, Any], data: Dataset, rows: Ints, entities: Ints
) -> Iterator[tuple[slice, Floats]]:
    """Yield (slice of the queried cells, log shares (cells, P, N)) in blocks of bounded size."""
    for cells in cell_blocks(len(rows), len(models) * data.n_entities):
        # Models process all rows that they receive: pass only those of this block.
        distinct, index = np.unique(rows[cells], return_inverse=True)
        yield cells, log_shares(models, data.take_rows(distinct), index, entities[cells])


def sample_of(
    models: Mapping[str, Any], held: Dataset, max_entries: int, rng: np.random.Generator
) -> Sample:
    """Draw at most `max_entries` entries of held-out rows, with their log shares in the models."""
    matrix = sparse(held)
    rows, entities = stored_cells(matrix)
    chosen = np.flatnonzero(np.diff(matrix.indptr)[rows] >= 2)
    if not len(chosen):
        raise DataError(
            "no held-out row has two or more entities, so no entry has a context: pass longer "
            "rows as validation"
        )
    if len(chosen) > max_entries:
        chosen = np.sort(rng.permutation(chosen)[:max_entries])
    rows, entities = rows[chosen], entities[chosen].astype(np.int64)
    units = np.minimum(matrix.data[chosen].astype(np.float64), LARGEST_WEIGHT)

    def blocks() -> Iterator[tuple[slice, Floats]]:
        for cells, logs in share_blocks(models, held, rows, entities):
            yield cells, logs.astype(np.float32)

    if len(rows) * len(models) * held.n_entities > CACHED_NUMBERS:
        return Sample(entities, units, blocks)
    cached = list(blocks())
    return Sample(entities, units, lambda: iter(cached))
