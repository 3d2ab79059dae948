"""Tables of the neuron study: all figures for files, few columns for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from efemb.reproduce.claims import EMPTY, NAN, Gap, format_gap, format_number, make_table
from efemb.reproduce.jobs import Outcome
from efemb.reproduce.neurons_fits import PROTOCOLS, is_lag_job
from efemb.reproduce.neurons_models import KNOWN, SETTINGS, NeuronModel
from efemb.reproduce.neurons_scores import (
    NeuronRow,
    compare_errors,
    find_neuron_row,
    pair_readings,
    pair_undifferenced,
)
from efemb.table import Table

# -- for files ------------------------------------------------------------------------------------


QUANTILES = (0.05, 0.5, 0.95)


def tabulate_errors(rows: Sequence[NeuronRow], protocol: str) -> Table | None:
    """The paper's figure, ours, and the paired difference from g-emb (c=50) with the same K."""
    lines = []
    for row in rows:
        gap = _compare_to_reference(row, rows, protocol)
        cells = {
            "model": row.model.name,
            "K": float(row.model.k) if row.model.k else NAN,
            "paper": row.model.printed()[PROTOCOLS.index(protocol)],
            "error": row.error(protocol),
            "se_frames": row.standard_error(protocol, "frames"),
            "se_entries": row.standard_error(protocol, "entries"),
            "difference": gap.value,
            "se_difference": gap.error,
            "fit_seconds": round(row.mean("fit_seconds"), 1),
            "splits": len(row.outcomes),
        }
        lines.append(cells)
    return make_table(lines)


def _compare_to_reference(row: NeuronRow, rows: Sequence[NeuronRow], protocol: str) -> Gap:
    """Difference from g-emb (c=50) with the same K (for the mean: with the largest K)."""
    k = row.model.k or max(other.model.k for other in rows)
    base = find_neuron_row(rows, row.recording, NeuronModel("g-emb", k, 50), row.differenced)
    if base is None or base is row:
        return Gap(NAN, NAN, NAN)
    return compare_errors(base, row, protocol)


def tabulate_undifferenced(rows: Sequence[NeuronRow]) -> Table | None:
    """Errors of differences and of activity itself: as shares of the variance, and raw."""
    lines = []
    for row, other in pair_undifferenced(rows):
        cells: dict[str, Any] = {
            "recording": row.recording,
            "model": row.model.name,
            "K": float(row.model.k) if row.model.k else NAN,
        }
        for protocol in PROTOCOLS:
            for kind, tested in (("differences", row), ("activity", other)):
                cells[f"{protocol}_{kind}"] = tested.error(protocol)
                cells[f"{protocol}_{kind}_raw"] = tested.error(protocol) * tested.mean("variance")
        lines.append(cells)
    return make_table(lines)


def tabulate_known(rows: Sequence[NeuronRow]) -> Table | None:
    """Figures of an independent program on split 0, next to ours."""
    lines = []
    for row in rows:
        key = (row.recording, row.model.model, row.model.c, row.model.k)
        if key in KNOWN and row.differenced and not row.model.differences() and 0 in row.outcomes:
            ours = row.outcomes[0].figures["one_out"]["error"]
            cells = {"recording": row.recording, "model": row.model.name, "K": row.model.k}
            lines.append(cells | {"independent": KNOWN[key], "ours": ours})
    return make_table(lines)


def tabulate_readings(rows: Sequence[NeuronRow]) -> Table | None:
    """Other readings of the paper and its optimizer, compared with the main table."""
    lines = []
    for row, base in pair_readings(rows):
        cells: dict[str, Any] = {
            "recording": row.recording,
            "model": row.model.name,
            "K": float(row.model.k),
            "sigma2": row.mean("sigma2"),
            "step": NAN if row.model.step is None else row.model.step,
        }
        for protocol in PROTOCOLS:
            gap = compare_errors(base, row, protocol)
            cells |= {
                protocol: row.error(protocol),
                f"{protocol}_less_main": gap.value,
                f"{protocol}_se": gap.error,
            }
        cells["fit_seconds"] = round(row.mean("fit_seconds"), 1)
        lines.append(cells)
    return make_table(lines)


def tabulate_contexts(rows: Sequence[NeuronRow], k: int) -> Table | None:
    """How many neighbors are left when a quarter of the neurons is hidden."""
    lines = []
    for row in _find_shrinking(rows, k):
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
        lines.append(cells)
    return make_table(lines)


def _find_shrinking(rows: Sequence[NeuronRow], k: int) -> list[NeuronRow]:
    """One row per context size; the sizes do not depend on K."""
    models = [NeuronModel("g-emb", k, c) for c in (10, 50)]
    return [row for row in rows if row.differenced and row.model in models]


def tabulate_sizes(rows: Sequence[NeuronRow], k: int) -> Table | None:
    """Every size of a reduced context, and the number of entries that have it."""
    lines = []
    for row in _find_shrinking(rows, k):
        sizes = row.context_sizes("fold_out")
        total = sum(sizes.values())
        for size, n in sizes.items():
            cells = {"recording": row.recording, "c": row.model.c, "size": size, "n": n}
            lines.append(cells | {"share": n / total})
    return make_table(lines)


def tabulate_steps(rows: Sequence[NeuronRow]) -> Table | None:
    """Validation error of each Adagrad constant."""
    return make_table(
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


def tabulate_settings() -> Table:
    """The paper's settings and ours."""
    names = ("what", "paper", "ours", "why")
    return Table({name: [row[column] for row in SETTINGS] for column, name in enumerate(names)})


def tabulate_lags(outcomes: Sequence[Outcome]) -> Table | None:
    """Errors, and paired differences from neighbors alone (standard errors over blocks)."""
    by_name: dict[str, list[Outcome]] = {}
    for outcome in filter(is_lag_job, outcomes):
        by_name.setdefault(outcome.job.settings["context"], []).append(outcome)
    lines = []
    for name, repeats in by_name.items():
        pairs = zip(repeats, by_name["neighbors"], strict=True)
        gaps = np.concatenate(
            [outcome.arrays["one_out"] - base.arrays["one_out"] for outcome, base in pairs]
        )
        lines.append(
            {
                "context": name,
                "error": float(
                    np.mean([outcome.figures["one_out"]["error"] for outcome in repeats])
                ),
                "difference": float(gaps.mean()),
                "se_difference": float(gaps.std() / np.sqrt(len(gaps))),
                "fit_seconds": round(
                    float(np.mean([o.figures["fit_seconds"] for o in repeats])), 2
                ),
                "splits": len(repeats),
            }
        )
    return make_table(lines)


# -- for the page ---------------------------------------------------------------------------------


def tabulate_errors_like_paper(rows: Sequence[NeuronRow], protocol: str) -> Table:
    """One line per model; for each K the paper's error, ours, and ours minus g-emb (c=50)."""
    sizes = list(dict.fromkeys(row.model.k for row in rows if row.model.k))
    names = list(dict.fromkeys(row.model.name for row in rows))
    by_key = {(row.model.name, row.model.k): row for row in rows}
    columns: dict[str, list[str]] = {"model": names}
    for k in sizes:
        model_rows = [by_key.get((name, k), by_key.get((name, 0))) for name in names]
        columns[f"paper, K = {k}"] = [_paper(row, protocol) for row in model_rows]
        columns[f"ours, K = {k}"] = [_format_ours(row, protocol) for row in model_rows]
        columns[f"minus g-emb, K = {k}"] = [
            _format_difference(rows, row, k, protocol) for row in model_rows
        ]
    return Table(columns)


def _paper(row: NeuronRow | None, protocol: str) -> str:
    printed = "" if row is None else row.model.printed()[PROTOCOLS.index(protocol)]
    return printed.replace("± 0.", "± .") or EMPTY


def _format_ours(row: NeuronRow | None, protocol: str) -> str:
    if row is None:
        return EMPTY
    return format_number(row.error(protocol), row.standard_error(protocol, "frames"))


def _format_difference(
    rows: Sequence[NeuronRow], row: NeuronRow | None, k: int, protocol: str
) -> str:
    base = find_neuron_row(
        rows, rows[0].recording, NeuronModel("g-emb", k, 50), rows[0].differenced
    )
    if row is None or base is None or row is base:
        return EMPTY
    return format_gap(compare_errors(base, row, protocol))


def tabulate_readings_for_page(rows: Sequence[NeuronRow]) -> Table | None:
    """Other readings and the paper's optimizer: errors, and differences from the main model."""
    lines = []
    for row, base in pair_readings(rows):
        cells = {"recording": row.recording, "model": row.model.name, "K": str(row.model.k)}
        for title, protocol in zip(("one out", "25% out"), PROTOCOLS, strict=True):
            cells[title] = format_number(row.error(protocol))
            cells[f"minus main, {title}"] = format_gap(compare_errors(base, row, protocol))
        lines.append(cells)
    return make_table(lines)


def tabulate_undifferenced_for_page(rows: Sequence[NeuronRow]) -> Table | None:
    """One neuron out: errors of differences and of activity, as shares and raw."""
    lines = []
    for row, other in pair_undifferenced(rows):
        cells = {"recording": row.recording, "model": row.model.name}
        cells["K"] = str(row.model.k or EMPTY)
        kinds = (("differences", row), ("activity", other))
        cells |= {kind: _format_ours(tested, "one_out") for kind, tested in kinds}
        raw = {kind: tested.error("one_out") * tested.mean("variance") for kind, tested in kinds}
        cells |= {f"{kind}, raw": f"{error:.3g}" for kind, error in raw.items()}
        lines.append(cells)
    return make_table(lines)
