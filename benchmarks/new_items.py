"""New items: products that were never sold, described by their place in the hierarchy.

200 products are taken out of the training trips and added by `add_items` from department, category
and type. Log shares, among all products, of their purchases in test trips are compared with the
mean popularity of the other products of their category; then all products are in training, with
and without the tree. Precisions of the tree are chosen on validation trips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import MissingDataError
from benchmarks.harness import Report, Settings, stopwatch
from benchmarks.questions import predict_entries

Array = NDArray[Any]
HIDDEN, COMPONENTS, PRECISIONS = 200, 20, (10.0, 100.0)
GAIN, LOSS = 0.1, -0.005  # what is wanted: above popularity, and of all products together


@dataclass(frozen=True)
class Hidden:
    """Trips, and which products are hidden: in `order`, the known products come first."""

    train: Any
    validation: Any
    test: Any
    known: Array
    hidden: Array

    @property
    def order(self) -> Array:
        """The products of a model to which hidden ones were added."""
        return np.concatenate([self.known, self.hidden])


def hide_items(settings: Settings, seed: int) -> tuple[Hidden, list[str]]:
    """Trips with the hierarchy of their products, coarsest level first."""
    trips, levels = _trips(settings)
    train, rest = trips.split(test=0.1, seed=seed)
    validation, test = rest.split(test=0.5, seed=seed)
    n_hidden = HIDDEN if not settings.quick else 6
    rng = np.random.default_rng(seed)
    hidden = np.sort(rng.choice(trips.n_entities, n_hidden, replace=False))
    known = np.setdiff1d(np.arange(trips.n_entities), hidden)
    return Hidden(train, validation, test, known, hidden), levels


def _trips(settings: Settings) -> tuple[Any, list[str]]:
    from efemb import Dataset
    from efemb.errors import MissingExtraError

    if settings.quick:
        return _simulated(), ["department", "type"]
    from efemb.datasets import fetch_complete_journey

    try:
        trips = fetch_complete_journey(settings.data)
    except MissingExtraError as error:
        raise MissingDataError(str(error)) from error
    levels = ["department", "category", "type"]
    features = {level: trips.features[level] for level in levels}
    return Dataset(trips.values, entities=trips.entities, features=features), levels


def _simulated() -> Any:
    import tempfile

    from efemb import read_baskets
    from efemb.simulation import simulate_shop

    with tempfile.TemporaryDirectory() as folder:
        lines, products = simulate_shop(n_trips=4000, seed=0).write(folder)
        names = {"basket": "basket", "item": "item", "count": "count"}
        return read_baskets(lines, **names, features=str(products), min_items_per_basket=2)


def run(settings: Settings) -> Report:
    """Hidden products, and all of them, for two seeds."""
    report = Report("new_items", settings)
    for seed in settings.seeds[:1] if settings.quick else settings.seeds[:2]:
        shop, levels = hide_items(settings, seed)
        _add_hidden(report, shop, levels, seed)
        _add_all(report, shop, levels, seed)
    return report


def _make(levels: list[str], precision: float | None, seed: int, quick: bool) -> Any:
    import efemb

    structure: Any = "per-entity" if precision is None else efemb.Tree(levels, precision)
    size = 5 if quick else COMPONENTS
    return efemb.PoissonEmbedding(size, structure=structure, random_state=seed)


def _add_hidden(report: Report, shop: Hidden, levels: list[str], seed: int) -> None:
    """Purchases of hidden products: from the tree, and by the popularity of their category."""
    from efemb.evaluation import compare

    few = shop.train.take_entities(shop.known)
    few = few.take_rows(np.flatnonzero(np.diff(few.values.indptr) >= 2))
    table = {"item": [shop.train.entities[i] for i in shop.hidden]}
    table |= {level: [shop.train.features[level][i] for i in shop.hidden] for level in levels}
    best: tuple[float, float, Any] = (-np.inf, 0.0, None)
    with stopwatch() as timing:
        for precision in PRECISIONS:
            model = _make(levels, precision, seed, report.settings.quick).fit(few)
            grown = model.add_items(table)
            score = _ask(grown, shop, shop.validation).score("normalized_log_likelihood").value
            best = max(best, (score, precision, grown), key=lambda each: each[0])
    _, precision, grown = best
    models = {f"popularity of the {level}": _shares(shop, level) for level in levels}
    answers = {name: _look_up(shop, shares) for name, shares in models.items()}
    answers["tree"] = _ask(grown, shop, shop.test)
    for row in compare(answers, reference=f"popularity of the {levels[-2]}", bootstrap=1):
        beside = f"error {row['row_error']:.4f}, n {row['n']:.0f} units"
        label = f"seed {seed}: hidden products, {row['model']}"
        report.add(f"{label}: nats per unit", row["score"], beside=beside)
        if row["model"] == "tree":
            beside = f"error {row['difference_error']:.4f}, precision {precision:g}"
            beside += f", {timing.cpu:.0f} CPU-s of {len(PRECISIONS)} fits"
            name = f"{label}: above popularity of the {levels[-2]}"
            report.add(name, row["difference"], beside=beside, at_least=GAIN)


def _entries(shop: Hidden, trips: Any) -> tuple[Any, Array, Array, Array]:
    """Trips in the order of the grown model, and the entries of hidden products in them."""
    ordered = trips.take_entities(shop.order)
    cells = ordered.values.tocoo()
    asked = (cells.col >= len(shop.known)) & (np.diff(ordered.values.indptr)[cells.row] > 1)
    places = (cells.row[asked].astype(np.int64), cells.col[asked].astype(np.int64))
    return ordered, *places, cells.data[asked].astype(np.float64)


def _ask(model: Any, shop: Hidden, trips: Any) -> Any:
    from efemb import Dataset

    ordered, *entries = _entries(shop, trips)
    return predict_entries(model, Dataset(ordered.values, entities=model.vocabulary), *entries)


def _shares(shop: Hidden, level: str) -> Array:
    """Log shares in the order of the grown model; hidden ones as the mean of their category."""
    units = np.asarray(shop.train.values[:, shop.known].sum(axis=0), dtype=np.float64).ravel()
    kinds = np.array([str(kind) for kind in shop.train.features[level]])
    hidden = []
    for kind in kinds[shop.hidden]:
        same = units[kinds[shop.known] == kind]
        hidden.append(same.mean() if same.sum() > 0 else units.mean())
    counts = np.maximum(np.concatenate([units, hidden]), 0.5)
    return np.asarray(np.log(counts / counts.sum()))


def _look_up(shop: Hidden, shares: Array) -> Any:
    from efemb.evaluation import Predictions

    _, row, entity, x = _entries(shop, shop.test)
    return Predictions(row, entity, x, log_share=shares[entity])


def _add_all(report: Report, shop: Hidden, levels: list[str], seed: int) -> None:
    """All products in training: the tree must not cost anything."""
    from efemb.evaluation import compare

    quick, trees = report.settings.quick, dict[float, Any]()
    for precision in PRECISIONS:
        trees[precision] = _make(levels, precision, seed, quick).fit(shop.train)
    precision = max(trees, key=lambda each: trees[each].score(shop.validation))
    plain = _make(levels, None, seed, quick).fit(shop.train)
    models = {"tree": trees[precision], "no tree": plain}
    for row in compare(models, shop.test, reference="no tree", bootstrap=1):
        beside = f"error {row['row_error']:.4f}, n {row['n']:.0f} units"
        label = f"seed {seed}: all products, {row['model']}"
        report.add(f"{label}: nats per unit", row["score"], beside=beside)
        if row["model"] == "tree":
            beside = f"error {row['difference_error']:.4f}, precision {precision:g}"
            report.add(f"{label}: gain", row["difference"], beside=beside, at_least=LOSS)
