"""Households: what it is worth to know who shops, on three splits of the trips of a year.

Random trips, the last five weeks, and households that were never seen. Every job (a split, a seed
and a few models) runs in a process of its own and leaves its answers in a file, from which figures
are made; with `--work` finished jobs are not run again. Shares are of all entries of 1,500 test
trips, recall is of at most four entries per trip; errors are paired and clustered by trip.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import MissingDataError
from benchmarks.harness import (
    Report,
    Settings,
    Spread,
    fit_watched,
    in_new_process,
    interleaved,
    peak_memory,
    stopwatch,
)
from benchmarks.questions import Questions

Array = NDArray[Any]
SPLITS = RANDOM, LATER, NEW = "random trips", "last five weeks", "new households"
OURS, PERSONAL, PLAIN = "BasketEmbedding", "personal popularity", "p-emb"
WITHOUT = "BasketEmbedding without households"
BASKETS = {"baskets": OURS, "without": WITHOUT}  # jobs of a single fit, whose memory is measured
JOBS = (*BASKETS, "rivals", "terms")
TEST_ROWS, CAP, COMPONENTS, KAPPA, PENALTY = 1500, 4, 100, 1000.0, 100.0
HISTORY_KAPPA, CUSTOMER_COMPONENTS = 300.0, 20
LAST_WEEKS, PASSES = 5, 3
# What is wanted of nats per unit: above personal popularity, and themselves.
WANTED = {RANDOM: (0.55, -6.49), LATER: (0.35, -6.96)}


@dataclass(frozen=True)
class Parts:
    """Trips to train on, for validation and to test."""

    train: Any
    validation: Any
    test: Any


@cache
def trips_of(settings: Settings) -> Any:
    """Trips with the household ("user") and the week of each."""
    from efemb import Dataset, read_baskets
    from efemb.datasets import fetch_complete_journey
    from efemb.errors import MissingExtraError
    from efemb.simulation import simulate_shop

    if settings.quick:
        with tempfile.TemporaryDirectory() as folder:
            lines, _ = simulate_shop(n_trips=4000, seed=0).write(folder)
            names = {"basket": "basket", "item": "item", "count": "count"}
            columns = {"user": "household", "week": "week"}
            return read_baskets(lines, **names, rows=columns, min_items_per_basket=2)
    try:
        trips = fetch_complete_journey(settings.data)
    except MissingExtraError as error:
        raise MissingDataError(str(error)) from error
    rows = {"user": trips.rows["household"], "week": trips.rows["week"]}
    return Dataset(trips.values.astype(np.float32), rows=rows)


def split_trips(trips: Any, split: str, seed: int) -> Parts:
    """5% of the trips, those of five weeks, or those of a tenth of the households are test trips.

    Another 1% of the trips are for validation: random ones, or of the week before the test.
    """
    order = np.random.default_rng(seed).permutation(trips.n_rows)
    first, second = int(0.05 * trips.n_rows), int(0.06 * trips.n_rows)
    users, place = np.asarray(trips.rows["user"])[order], np.arange(trips.n_rows)
    if split == RANDOM:
        test, watched = place < first, (place >= first) & (place < second)
    elif split == LATER:
        week = np.asarray(trips.rows["week"]).astype(np.int64)[order]
        last = int(week.max()) - LAST_WEEKS
        test, watched = week > last, week == last
    else:
        homes = np.unique(users)
        held = np.random.default_rng(seed).permutation(homes)[: len(homes) // 10]
        test = np.isin(users, held)
        watched = ~test
    validation = watched & (np.cumsum(watched) <= second - first)
    train = ~test & ~validation & ~(watched & (split == LATER))
    return Parts(*(trips.take_rows(order[rows]) for rows in (train, validation, test)))


def run(settings: Settings) -> Report:
    """Two seeds of each split; terms one by one, and the time of a pass, with the first."""
    report = Report("households", settings)
    trips_of(settings)
    with tempfile.TemporaryDirectory() as temporary:
        folder = settings.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for split in SPLITS:
            for seed in settings.seeds[: 1 if settings.quick else 2]:
                _hold(report, folder, split, seed)
        _add_passes(report, _outcome(settings, folder, RANDOM, settings.seeds[0], "passes"))
    return report


def _hold(report: Report, folder: Path, split: str, seed: int) -> None:
    """Run the jobs of a split, and add their figures."""
    settings, outcomes = report.settings, dict[str, Any]()
    for job in JOBS:
        needed = job in BASKETS or (split != NEW and (job == "rivals" or seed == 0))
        if needed and (not settings.only or job in settings.only):
            outcomes[job] = _outcome(settings, folder, split, seed, job)
    label, tables = f"{split}, seed {seed}", dict[str, dict[str, Array]]()
    for job, outcome in outcomes.items():
        with np.load(_stem(folder, split, seed, job).with_suffix(".npz")) as file:
            for key in file.files:
                model, questions = key.split(": ")
                tables.setdefault(model, {})[questions] = file[key]
        peak = (outcome["peak_bytes_of_fits"] or 0) / 1e9
        limit = 2.0 if job in BASKETS else None
        spent = ", ".join(f"{name} {cpu:.0f}" for name, cpu in outcome["cpu"].items())
        about = f"CPU-s of fits: {spent}"
        report.add(f"{label}: {job}: peak memory, GB", peak, beside=about, at_most=limit)
    _add_shares(report, label, split, tables)
    _add_recall(report, label, split, tables)


def _stem(folder: Path, split: str, seed: int, job: str) -> Path:
    return folder / f"{split}-{seed}-{job}".replace(" ", "-")


def _outcome(settings: Settings, folder: Path, split: str, seed: int, job: str) -> dict[str, Any]:
    """What a job returns, from a file where an earlier run has left one."""
    stem = _stem(folder, split, seed, job)
    path = stem.with_suffix(".json")
    if not path.is_file():
        source = [settings.quick, None if settings.data is None else str(settings.data)]
        options = {"split": split, "seed": seed, "job": job, "source": source}
        outcome = in_new_process(compete, **options, answers=str(stem.with_suffix(".npz")))
        path.write_text(json.dumps(outcome), encoding="utf-8")
    return dict(json.loads(path.read_text(encoding="utf-8")))


# -- figures ---------------------------------------------------------------------------------------


def _predictions(table: Array) -> Any:
    from efemb.evaluation import Predictions

    row, entity, x, log_share, rank = table
    places = (row.astype(np.int64), entity.astype(np.int64))
    return Predictions(*places, x, log_share=log_share, rank=rank)


def _compare(tables: dict[str, Array], metric: str, against: str) -> Iterator[dict[str, Any]]:
    from efemb.evaluation import compare

    models = {name: _predictions(table) for name, table in tables.items()}
    reference = against if against in models else None
    for row in compare(models, metric=metric, reference=reference, bootstrap=1):
        yield dict(row)


def _add_shares(
    report: Report, label: str, split: str, tables: dict[str, dict[str, Array]]
) -> None:
    """Nats per unit of all entries, and the paired difference to personal popularity."""
    against = WITHOUT if split == NEW else PERSONAL
    every = {name: answers["all"] for name, answers in tables.items() if "all" in answers}
    for row in _compare(every, "normalized_log_likelihood", against):
        gap, error = row["difference"], row["difference_error"]
        beside = f"error {row['row_error']:.4f}, n {row['n']:.0f} units"
        ours = row["model"] == OURS
        least = WANTED[split][1] if ours and split != NEW else None
        name = f"{label}: {row['model']}"
        report.add(f"{name}: nats per unit", row["score"], beside=beside, at_least=least)
        if row["model"] != against:
            limits = {"at_least": WANTED.get(split, (-0.005,))[0]} if ours else {}
            report.add(f"{name}: above {against}", gap, beside=f"error {error:.4f}", **limits)


def _add_recall(
    report: Report, label: str, split: str, tables: dict[str, dict[str, Array]]
) -> None:
    """recall@10 of the capped entries: all, bought before and new, and each among its kind."""
    kinds = {"": "capped", ", among its kind": "kind"}
    repeated = next(iter(tables.values()))["repeat"].astype(bool)
    groups = {"bought before": repeated, "new to the household": ~repeated}
    for among, questions in kinds.items():
        asked = {name: answers[questions] for name, answers in tables.items()}
        parts = {"all entries": np.ones(len(repeated), dtype=bool)} if not among else {}
        for group, chosen in {**parts, **groups}.items():
            if not chosen.any():
                continue
            few = {name: table[:, chosen] for name, table in asked.items()}
            for row in _compare(few, "recall@10", OURS):
                gap = f"{row['difference']:.4f} (error {row['difference_error']:.4f})"
                beside = f"error {row['row_error']:.4f}, to {OURS} {gap}, n {row['n']:.0f}"
                best = row["model"] == OURS and group == "all entries" and split != NEW
                limits = {"at_least": 0.27} if best else {}
                name = f"{label}: {row['model']}: recall@10, {group}{among}"
                report.add(name, row["score"], beside=beside, **limits)


def _add_passes(report: Report, outcome: dict[str, Any]) -> None:
    """CPU-seconds of a pass of p-emb, and how many times as long it takes with terms."""
    plain = Spread.of(outcome["passes"][PLAIN])
    report.add("p-emb: CPU-s of a pass", plain)
    for name, seconds in outcome["passes"].items():
        if name != PLAIN:
            ratio = Spread.of([each / plain.median for each in seconds])
            limit = 1.35 if name.endswith("both") else None
            report.add(f"{name}: CPU of a pass over that of p-emb", ratio, at_most=limit)


# -- in a process of its own -----------------------------------------------------------------------


def compete(
    split: str, seed: int, job: str, source: tuple[bool, str | None], answers: str
) -> dict[str, Any]:
    """Fit the models of a job and write their answers to a file."""
    quick, folder = source
    settings = Settings(quick, None if folder is None else Path(folder))
    parts = split_trips(trips_of(settings), split, seed)
    if job == "passes":
        return {"passes": _time_passes(parts, 1 if quick else 2)}
    models, cpu = dict[str, Any](), dict[str, float]()
    for name, make in _contestants(job, seed, models):
        train, validation = (_strip(part, name) for part in (parts.train, parts.validation))
        with stopwatch() as timing:
            models[name] = make().fit(train, validation=validation)
        cpu[name] = timing.cpu
    peak = peak_memory()
    np.savez(answers, **_answers(models, parts))
    return {"cpu": cpu, "peak_bytes_of_fits": peak}


def _strip(trips: Any, name: str) -> Any:
    """The trips, without their households for a model that shall not know them."""
    from efemb import Dataset

    return Dataset(trips.values, entities=trips.entities) if name == WITHOUT else trips


def _terms(name: str) -> list[Any]:
    import efemb

    history = efemb.History("user", kappa=HISTORY_KAPPA)
    vectors = efemb.RowVectors("user", CUSTOMER_COMPONENTS)
    named = {"History": [history], "RowVectors": [vectors], "both": [history, vectors]}
    return named.get(name.removeprefix(f"{PLAIN} + "), [])


def _contestants(job: str, seed: int, fitted: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and makers of the models of a job; later ones may combine those that are fitted."""
    import efemb
    from efemb.baselines import EASE, PersonalPopularity, Popularity

    def embedding(name: str) -> Any:
        terms = _terms(name)
        return lambda: efemb.PoissonEmbedding(COMPONENTS, terms=terms, random_state=seed)

    def blend() -> Any:
        parts = {name: fitted[name] for name in (PLAIN, "EASE", PERSONAL, "popularity")}
        return efemb.Blend(parts, how="log-linear")

    if job in BASKETS:
        yield BASKETS[job], lambda: efemb.BasketEmbedding(COMPONENTS, random_state=seed)
    elif job == "rivals":
        yield "popularity", lambda: Popularity("poisson")
        yield PERSONAL, lambda: PersonalPopularity(kappa=KAPPA)
        yield "EASE", lambda: EASE(penalty=PENALTY)
        yield PLAIN, embedding(PLAIN)
        yield "Blend, personal", blend
    else:
        for name in ("History", "RowVectors", "both"):
            yield f"{PLAIN} + {name}", embedding(f"{PLAIN} + {name}")


def _answers(models: dict[str, Any], parts: Parts) -> dict[str, Array]:
    """(5, n) row, entity, units, log share and rank of each model's answers."""
    from efemb.evaluation import AmongItsKind, is_repeat

    test = parts.test.take_rows(np.arange(min(TEST_ROWS, parts.test.n_rows)))
    users = np.asarray(test.rows["user"])
    every = Questions.leave_one_out(test.values, None, users)
    capped = Questions.leave_one_out(test.values, CAP, users)
    train, tables = replace_entities(parts.train), dict[str, Array]()
    for name, model in models.items():
        asked = {"all": (every, model), "capped": (capped, model)}
        asked["kind"] = (capped, AmongItsKind(model, train))
        for questions, (entries, judged) in asked.items():
            answer = entries.judge(judged)
            arrays = (answer.row, answer.entity, answer.x, answer.log_share, answer.rank)
            tables[f"{name}: {questions}"] = np.stack(arrays)
        if questions == "kind":
            answered = replace(answer, row=np.arange(len(answer.row)))
            tables[f"{name}: repeat"] = is_repeat(answered, entries.data, train)
    return tables


def replace_entities(trips: Any) -> Any:
    """The trips without labels of items, as questions have none."""
    from efemb import Dataset

    return Dataset(trips.values, users=np.asarray(trips.rows["user"]))


def _time_passes(parts: Parts, repeats: int) -> dict[str, list[float]]:
    """CPU-seconds of the passes of p-emb without and with terms, in turn."""
    import efemb

    def fit(name: str) -> list[float]:
        options: dict[str, Any]
        options = {"max_iter": PASSES, "early_stopping": False, "random_state": 0}
        model = efemb.PoissonEmbedding(COMPONENTS, terms=_terms(name), **options)
        return np.diff(fit_watched(model, parts.train).watch.ends).tolist()

    names = (PLAIN, *(f"{PLAIN} + {name}" for name in ("History", "RowVectors", "both")))
    for name in names:  # compiled, or loaded, before anything is timed
        few = parts.train.take_rows(np.arange(min(3000, parts.train.n_rows)))
        fit_watched(efemb.PoissonEmbedding(4, terms=_terms(name), max_iter=1), few)
    runs = interleaved({name: (lambda name=name: fit(name)) for name in names}, repeats)
    return {name: [each for run in passes for each in run] for name, passes in runs.items()}
