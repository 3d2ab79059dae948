"""`efemb demo`: the main job on real data, from shopping trips to complements."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from efemb.data.dataset import Dataset
    from efemb.types import Floats

# The held-out score hardly rises after this many passes, and two cores manage them in time.
PASSES = 12
SHOWN_ITEMS = 4
SHOWN_NEIGHBOURS = 3
LEAST_BASKETS = 300  # vectors of rarely bought items say little


def command(
    components: Annotated[int, typer.Option(help="Length of the vectors.", min=1)] = 100,
    passes: Annotated[int, typer.Option(help="Most passes over the data.", min=1)] = PASSES,
    seconds: Annotated[float, typer.Option(help="Stop training after this time.", min=1)] = 130.0,
    jobs: Annotated[int, typer.Option(help="Threads; -1 uses every core.")] = -1,
    seed: Annotated[int, typer.Option(help="Of the split and of the first vectors.", min=0)] = 0,
    data_home: Annotated[
        Path | None, typer.Option(help="Folder of data sets; else EFEMB_DATA, else the package.")
    ] = None,
) -> None:
    """Fit shopping trips, score held-out trips, show what goes with what."""
    from rich.console import Console

    from efemb.datasets import fetch_complete_journey

    console = Console()
    console.print("[bold]Complete Journey[/bold]: shopping trips of 2,469 households in one year")
    data = fetch_complete_journey(data_home)
    train, test = data.split(test=0.05, seed=seed)
    console.print(
        f"{data.n_rows:,} trips x {data.n_entities:,} items, {data.values.nnz:,} lines; "
        f"{test.n_rows:,} trips are held out\n"
    )
    model, took = _fitted(train, components, passes, seconds, jobs, seed)
    console.print(
        f"PoissonEmbedding({components}): {model.n_iter_} passes in {took:.0f} s, "
        f"solver {model.solver_}, {model.gradient_} gradients\n"
    )
    _print_scores(console, model, train, test)
    _print_items(console, model, train)


def _fitted(
    train: Dataset, components: int, passes: int, seconds: float, jobs: int, seed: int
) -> tuple[Any, float]:
    from sklearn.exceptions import ConvergenceWarning

    from efemb import PoissonEmbedding

    def late(progress: Any) -> bool:
        return bool(progress.seconds > seconds)

    model = PoissonEmbedding(
        components,
        max_iter=passes,
        n_iter_no_change=2,
        n_jobs=jobs,
        random_state=seed,
        verbose=1,
        callbacks=[late],
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Cutting the passes short is the point of a demonstration.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train)
    return model, time.perf_counter() - start


def popularity_score(train: Dataset, test: Dataset) -> float:
    """Normalised log-likelihood per unit if every item is predicted by its share of all units."""
    import numpy as np

    units = np.asarray(train.values.sum(axis=0), dtype=np.float64).ravel()
    share = np.log(np.maximum(units, 0.5) / units.sum())
    # The first unit needs a context to be predicted from, as in `score`.
    known = np.repeat(np.diff(test.values.indptr) > 1, np.diff(test.values.indptr))
    x = test.values.data[known].astype(np.float64)
    return float(x @ share[test.values.indices[known]] / x.sum())


def _print_scores(console: Console, model: Any, train: Dataset, test: Dataset) -> None:
    import numpy as np
    from rich.table import Table

    table = Table(title="Held-out trips: mean log-probability of a unit", title_justify="left")
    table.add_column("model")
    table.add_column("score", justify="right")
    table.add_column("items it hesitates between", justify="right")
    scores = {
        "uniform": -float(np.log(train.n_entities)),
        "popularity": popularity_score(train, test),
        f"p-emb, K = {model.n_components}": model.score(test),
    }
    for name, score in scores.items():
        table.add_row(name, f"{score:.3f}", f"{np.exp(-score):,.0f}")
    console.print(table)
    console.print()


def _print_items(console: Console, model: Any, train: Dataset) -> None:
    """Neighbours, complements and substitutes of the most popular items."""
    import numpy as np
    from rich.table import Table

    assert train.entities is not None
    labels = train.entities.labels
    often = np.bincount(train.values.indices, minlength=train.n_entities)
    known = np.flatnonzero(often >= min(LEAST_BASKETS, np.median(often)))
    rho, alpha = (
        np.asarray(array, dtype=np.float64) for array in (model.embedding_, model.context_)
    )
    near, pairs = affinities(rho[known], alpha[known])
    table = Table(title="What the vectors say", title_justify="left")
    table.add_column("item", max_width=20)
    table.add_column("relation")
    table.add_column("with", overflow="ellipsis", no_wrap=True)
    for place in _examples(labels[known], often[known]):
        item = _short(labels[known[place]])
        for name, others in relations(near[place], pairs[place]).items():
            names = "\n".join(_short(labels[known[other]]) for other in others)
            table.add_row(item, name, names, end_section=name == "substitutes")
            item = ""
    console.print(table)
    console.print(
        "similar: cosine of rho; complements: rho.alpha; substitutes: alike, low rho.alpha"
    )


def relations(near: Floats, pairs: Floats) -> dict[str, list[int]]:
    """The first items of each column, given one item's affinities with the others."""
    n = min(SHOWN_NEIGHBOURS, len(near) - 1)
    alike = (-near).argsort(kind="stable")[: max(20, len(near) // 100)]
    alike = alike[near[alike] > -float("inf")]
    # Substitutes are alike, but one keeps the other out of the basket.
    instead = alike[pairs[alike].argsort(kind="stable")]
    together = (-pairs).argsort(kind="stable")
    found = {"similar": alike, "complements": together, "substitutes": instead}
    return {name: items[:n].tolist() for name, items in found.items()}


def _short(label: object) -> str:
    """The label without the number that makes it unique."""
    return str(label).partition(" #")[0]


def affinities(rho: Floats, alpha: Floats) -> tuple[Floats, Floats]:
    """Cosine of the rho of two items, and rho_n . alpha_m in both directions; never with itself."""
    import numpy as np

    unit = rho / np.maximum(np.linalg.norm(rho, axis=1, keepdims=True), 1e-12)
    product = rho @ (alpha - alpha.mean(axis=0)).T
    near, pairs = unit @ unit.T, product + product.T
    np.fill_diagonal(near, -np.inf)
    np.fill_diagonal(pairs, -np.inf)
    return near, pairs


def _examples(labels: Any, often: Any) -> list[int]:
    """The most popular items, one of each first word."""
    chosen: dict[str, int] = {}
    for place in (-often).argsort(kind="stable"):
        chosen.setdefault(str(labels[place]).split()[0], int(place))
        if len(chosen) == SHOWN_ITEMS:
            break
    return list(chosen.values())
