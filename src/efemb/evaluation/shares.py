"""Shares and ranks of entries from the logarithms of all conditional means, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from efemb.contexts.base import gather_rows
from efemb.errors import DataError
from efemb.evaluation.densities import log_density_at
from efemb.evaluation.entries import stored_entries
from efemb.evaluation.models import Judged
from efemb.scoring import CACHED_NUMBERS, log_sums
from efemb.types import Bools, Floats, Ints


def scored_entries(
    judged: Judged, row: Ints, code: Ints, x: Floats, advance: Callable[[int], None]
) -> dict[str, Any]:
    """log_share, log_density and rank of entries, each given its row without itself."""
    n_entities, (context, _) = judged.data.n_entities, stored_entries(judged.data)
    found = {name: np.full(len(row), np.nan) for name in ("log_share", "log_mean", "rank")}
    for part, log_means in judged.model.log_means(judged.data, row, code):
        _check_block(judged, part, log_means)
        step = max(1, CACHED_NUMBERS // n_entities)
        for start in range(part.start, part.stop, step):
            some = slice(start, min(start + step, part.stop))
            values = log_means[start - part.start : some.stop - part.start]
            own = values[np.arange(len(values)), code[some]]
            found["log_share"][some] = own - log_sums(values)
            found["log_mean"][some] = own
            found["rank"][some] = ranks(values, own, context, row[some], code[some])
        advance(part.stop - part.start)
    log_mean, log_share = found["log_mean"], found["log_share"]
    bad = np.flatnonzero(np.isnan(log_share))
    if len(bad):
        raise DataError(
            f"{type(judged.model).__name__}.log_means gave no number (NaN) for {len(bad):,} "
            f"entries, the first in row {row[bad[0]]}: has the fit diverged?"
        )
    density = log_density_at(judged.family, x, log_mean, log_share)
    return {"log_share": log_share, "log_density": density, "rank": found["rank"]}


def ranks(values: Floats, own: Floats, context: Any, row: Ints, code: Ints) -> Floats:
    """1 + how many entities outside the context have a larger value, ties counting half."""
    ptr, where = gather_rows(context.indptr, row)
    place = np.repeat(np.arange(len(row)), np.diff(ptr))
    member = context.indices[where]
    other = member != code[place]
    place, member = place[other], member[other]
    in_context = values[place, member]
    larger = _counts(values > own[:, None])
    larger = larger - np.bincount(place, in_context > own[place], len(row))
    as_large = _counts(values >= own[:, None])  # itself included
    as_large = as_large - np.bincount(place, in_context >= own[place], len(row))
    return np.asarray((larger + as_large + 1.0) / 2.0)


def _counts(true: Bools) -> Ints:
    """How many of each row; `count_nonzero` would first widen every byte to eight."""
    return np.asarray(true.view(np.uint8).sum(axis=1, dtype=np.uint32))


def _check_block(judged: Judged, part: slice, log_means: Floats) -> None:
    wanted = (part.stop - part.start, judged.data.n_entities)
    if log_means.shape != wanted:
        raise DataError(
            f"{type(judged.model).__name__}.log_means gave a block of shape {log_means.shape}, "
            f"not {wanted}: is it a model of other entities?"
        )
