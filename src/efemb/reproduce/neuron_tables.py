"""Tables of the study of neurons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from efemb.reproduce.neuron_fits import PROTOCOLS
from efemb.reproduce.neuron_rows import NeuronRow, gain, readings, row_of, twins
from efemb.reproduce.neuron_settings import KNOWN, SETTINGS, NeuronModel
from efemb.reproduce.tables import Gap
from efemb.table import Table

NAN = float("nan")
QUANTILES = (0.05, 0.5, 0.95)


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table | None:
    """A table from rows with the same names; None if there is no row."""
    if not rows:
        return None
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def error_table(rows: Sequence[NeuronRow], protocol: str) -> Table | None:
    """The paper's figure, ours, and the paired difference to g-emb (c=50) of the same K."""
    found = []
    for row in rows:
        less = _difference(row, rows, protocol)
        cells = {
            "model": row.model.name,
            "K": float(row.model.k) if row.model.k else NAN,
            "paper": row.model.printed()[PROTOCOLS.index(protocol)],
            "error": row.error(protocol),
            "se_frames": row.standard_error(protocol, "frames"),
            "se_entries": row.standard_error(protocol, "entries"),
            "difference": less.value,
            "se_difference": less.error,
            "fit_seconds": round(row.mean("fit_seconds"), 1),
            "splits": len(row.outcomes),
        }
        found.append(cells)
    return table_of(found)


def _difference(row: NeuronRow, rows: Sequence[NeuronRow], protocol: str) -> Gap:
    """Error of the row less that of g-emb (c=50) of the same K (of the largest K for the mean)."""
    k = row.model.k or max(one.model.k for one in rows)
    base = row_of(rows, row.recording, NeuronModel("g-emb", k, 50), row.differenced)
    if base is None or base is row:
        return Gap(NAN, NAN, NAN)
    return gain(base, row, protocol)


def undifferenced_table(rows: Sequence[NeuronRow]) -> Table | None:
    """Errors of differences and of activity itself: as shares of the variance, and raw."""
    found = []
    for row, other in twins(rows):
        cells: dict[str, Any] = {
            "recording": row.recording,
            "model": row.model.name,
            "K": float(row.model.k) if row.model.k else NAN,
        }
        for protocol in PROTOCOLS:
            for kind, one in (("differences", row), ("activity", other)):
                cells[f"{protocol}_{kind}"] = one.error(protocol)
                cells[f"{protocol}_{kind}_raw"] = one.error(protocol) * one.mean("variance")
        found.append(cells)
    return table_of(found)


def known_table(rows: Sequence[NeuronRow]) -> Table | None:
    """Figures of an independent program on split 0 beside ours."""
    found = []
    for row in rows:
        key = (row.recording, row.model.model, row.model.c, row.model.k)
        if key in KNOWN and row.differenced and not row.model.differences() and 0 in row.outcomes:
            ours = row.outcomes[0].figures["one_out"]["error"]
            cells = {"recording": row.recording, "model": row.model.name, "K": row.model.k}
            found.append(cells | {"independent": KNOWN[key], "ours": ours})
    return table_of(found)


def readings_table(rows: Sequence[NeuronRow]) -> Table | None:
    """Other readings of the paper and its optimiser, each beside the main table's model."""
    found = []
    for row, base in readings(rows):
        cells: dict[str, Any] = {
            "recording": row.recording,
            "model": row.model.name,
            "K": float(row.model.k),
            "sigma2": row.mean("sigma2"),
            "step": NAN if row.model.step is None else row.model.step,
        }
        for protocol in PROTOCOLS:
            less = gain(base, row, protocol)
            cells |= {
                protocol: row.error(protocol),
                f"{protocol}_less_main": less.value,
                f"{protocol}_se": less.error,
            }
        cells["fit_seconds"] = round(row.mean("fit_seconds"), 1)
        found.append(cells)
    return table_of(found)


def context_table(rows: Sequence[NeuronRow], k: int) -> Table | None:
    """How many neighbours are left where a quarter of the neurons is hidden."""
    found = []
    for row in _shrinking(rows, k):
        sizes = row.context_sizes("fold_out")
        size, n = np.array(list(sizes)), np.array(list(sizes.values()))
        share = np.cumsum(n) / n.sum()
        low, middle, high = (int(size[np.searchsorted(share, q)]) for q in QUANTILES)
        cells = {
            "recording": row.recording,
            "c": row.model.c,
            "least": int(size[0]),
            "5%": low,
            "median": middle,
            "95%": high,
            "most": int(size[-1]),
            "mean": float(size @ n / n.sum()),
            "emptied": int(sizes.get(0, 0)),
            "entries": int(n.sum()),
        }
        found.append(cells)
    return table_of(found)


def _shrinking(rows: Sequence[NeuronRow], k: int) -> list[NeuronRow]:
    """A row of each context size; sizes do not depend on K."""
    models = [NeuronModel("g-emb", k, c) for c in (10, 50)]
    return [row for row in rows if row.differenced and row.model in models]


def size_table(rows: Sequence[NeuronRow], k: int) -> Table | None:
    """Every size of a shrunken context, and how many entries have it."""
    found = []
    for row in _shrinking(rows, k):
        sizes = row.context_sizes("fold_out")
        total = sum(sizes.values())
        for size, n in sizes.items():
            cells = {"recording": row.recording, "c": row.model.c, "size": size, "n": n}
            found.append(cells | {"share": n / total})
    return table_of(found)


def step_table(rows: Sequence[NeuronRow]) -> Table | None:
    """Validation error of each constant of Adagrad."""
    return table_of(
        [
            {
                "recording": row.recording,
                "model": f"{row.model.name}, K={row.model.k}",
                "step": row.model.step,
                "validation": row.mean("validation"),
                "best_iter": row.mean("best_iter"),
                "n_iter": row.mean("n_iter"),
            }
            for row in rows
            if row.model.step is not None
        ]
    )


def settings_table() -> Table:
    """The paper's settings and ours."""
    names = ("what", "paper", "ours", "why")
    return Table({name: [row[place] for row in SETTINGS] for place, name in enumerate(names)})
