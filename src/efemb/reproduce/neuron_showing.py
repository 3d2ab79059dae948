"""Tables of neurons as the page shows them: few columns, errors as text."""

from __future__ import annotations

from collections.abc import Sequence

from efemb.reproduce.claims import gap_text
from efemb.reproduce.neuron_fits import PROTOCOLS
from efemb.reproduce.neuron_rows import NeuronRow, gain, readings, row_of, twins
from efemb.reproduce.neuron_settings import NeuronModel
from efemb.reproduce.neuron_tables import table_of
from efemb.reproduce.tables import EMPTY, number
from efemb.table import Table


def printed_table(rows: Sequence[NeuronRow], protocol: str) -> Table:
    """One line a model; for each K the paper's error, ours, and ours less that of g-emb (c=50)."""
    sizes = list(dict.fromkeys(row.model.k for row in rows if row.model.k))
    names = list(dict.fromkeys(row.model.name for row in rows))
    by_key = {(row.model.name, row.model.k): row for row in rows}
    columns: dict[str, list[str]] = {"model": names}
    for k in sizes:
        found = [by_key.get((name, k), by_key.get((name, 0))) for name in names]
        columns[f"paper, K = {k}"] = [_paper(row, protocol) for row in found]
        columns[f"ours, K = {k}"] = [_ours(row, protocol) for row in found]
        columns[f"less g-emb, K = {k}"] = [_less(rows, row, k, protocol) for row in found]
    return Table(columns)


def _paper(row: NeuronRow | None, protocol: str) -> str:
    told = "" if row is None else row.model.printed()[PROTOCOLS.index(protocol)]
    return told.replace("± 0.", "± .") or EMPTY


def _ours(row: NeuronRow | None, protocol: str) -> str:
    if row is None:
        return EMPTY
    return number(row.error(protocol), row.standard_error(protocol, "frames"))


def _less(rows: Sequence[NeuronRow], row: NeuronRow | None, k: int, protocol: str) -> str:
    base = row_of(rows, rows[0].recording, NeuronModel("g-emb", k, 50), rows[0].differenced)
    if row is None or base is None or row is base:
        return EMPTY
    return gap_text(gain(base, row, protocol))


def readings_shown(rows: Sequence[NeuronRow]) -> Table | None:
    """Other readings and the paper's optimiser: errors, and less those of the main model."""
    found = []
    for row, base in readings(rows):
        cells = {"recording": row.recording, "model": row.model.name, "K": str(row.model.k)}
        for said, protocol in zip(("one out", "25% out"), PROTOCOLS, strict=True):
            cells[said] = number(row.error(protocol))
            cells[f"less main, {said}"] = gap_text(gain(base, row, protocol))
        found.append(cells)
    return table_of(found)


def undifferenced_shown(rows: Sequence[NeuronRow]) -> Table | None:
    """One neuron out: errors of differences and of activity, as shares and raw."""
    found = []
    for row, other in twins(rows):
        cells = {"recording": row.recording, "model": row.model.name}
        cells["K"] = str(row.model.k or EMPTY)
        both = (("differences", row), ("activity", other))
        cells |= {kind: _ours(one, "one_out") for kind, one in both}
        raw = {kind: one.error("one_out") * one.mean("variance") for kind, one in both}
        cells |= {f"{kind}, raw": f"{error:.3g}" for kind, error in raw.items()}
        found.append(cells)
    return table_of(found)
