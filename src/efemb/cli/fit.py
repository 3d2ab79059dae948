"""`efemb fit`: from a file to a saved model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from efemb.cli import _arguments as of


def command(
    data: of.Data,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the model.", metavar="FOLDER")
    ] = Path("model"),
    model: Annotated[
        str | None, typer.Option(help="The paper's name; else by the data.", metavar="NAME")
    ] = None,
    components: Annotated[
        int | None,
        typer.Option("--components", "-k", help="Length of the vectors.", min=1, metavar="K"),
    ] = None,
    basket: of.Basket = None,
    item: of.Item = None,
    count: of.Count = None,
    positions: of.Positions = None,
    neighbors: Annotated[
        int | None, typer.Option(help="Size of a neuron's context.", min=1, metavar="N")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Words on either side.", min=1, metavar="N")
    ] = None,
    min_count: of.Rarest = 5,
    test: Annotated[
        float,
        typer.Option(help="Part of the rows to hold out and score.", min=0, max=0.9, metavar="X"),
    ] = 0.05,
    max_iter: of.MaxIter = None,
    seed: of.Seed = 0,
    jobs: of.Jobs = -1,
    encoding: of.Encoding = "utf-8",
    strict: of.Strict = False,
    quiet: of.Quiet = False,
    as_json: of.Json = False,
) -> None:
    """Fit a model to a file and save it.

    What is not told is guessed from the data, and said. Transactions have a line for each item
    of each basket, an array has a row for each time or user, text a document on each line.

    \b
      efemb fit trips.csv --out model
      efemb fit trips.csv --basket order --item sku --count quantity -k 100
      efemb fit ratings.csv --basket user --item title --model ap-emb
      efemb fit activity.npy --positions xyz.npy --neighbors 50 --model g-emb
      efemb fit corpus.txt.gz --model cbow --window 5

    \b
    Models:
      real numbers  g-emb, ng-emb
      counts        p-emb, p-emb-dw, ap-emb, categorical
      0 and 1       b-emb
      text          b-emb, cbow, skip-gram, poisson-text

    \b
    Then:
      efemb similar model milk
      efemb complements model milk --data trips.csv
      efemb plot model map --out map.png
    """
    from efemb.cli._models import check_context, chosen_components, chosen_model, held_out_scores
    from efemb.cli._reading import Reading, sizes
    from efemb.cli._show import nothing, remark
    from efemb.estimators.names import canonical_name
    from efemb.files import check_writable
    from efemb.storage import MODEL

    say = nothing if quiet else remark
    wanted = None if model is None else canonical_name(model)
    check_context(wanted, neighbors, window, positions)
    check_writable(MODEL.replaceable(out).parent)
    reading = Reading(basket, item, count, encoding, positions, min_count, strict, not quiet, say)
    found = reading.read(data, wanted)
    say(sizes(found))
    name = chosen_model(wanted, found, say, neighbors)
    k = chosen_components(components, found, say)
    train, held = _split(found, test, seed, say)
    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": int(not quiet)}
    if max_iter is not None:
        options["max_iter"] = max_iter
    context = {"neighbors": neighbors, "window": window}
    estimator, seconds = _fitted(name, k, train, {**context, **options}, say)
    _say_unseen(estimator, say)
    if estimator.report_["interrupted"]:
        say(f"interrupted in pass {estimator.n_iter_}: the best vectors up to then are kept")
    estimator.save(out)
    scores = {} if held is None else held_out_scores(estimator, train, held)
    told = {"model": name, "components": k, "passes": estimator.n_iter_, "seconds": seconds}
    _tell({**told, **scores, "saved": str(out)}, as_json)


def _split(data: Any, test: float, seed: int, say: Any) -> tuple[Any, Any]:
    """Data to fit and data to score; None where the part is less than a row.

    Text may be a single long document, of which stretches are held out.
    """
    from efemb.data.corpus import Corpus

    if test == 0:
        return data, None
    if not isinstance(data, Corpus) and not int(test * len(data)):
        say(f"{len(data):,} rows are too few to hold {test:g} of them out: there is no score")
        return data, None
    train, held = data.split(test=test, seed=seed)
    return train, held


def _fitted(name: str, k: int, train: Any, options: dict[str, Any], say: Any) -> tuple[Any, float]:
    from efemb.cli._models import made, without_warnings

    start = time.perf_counter()
    with without_warnings(say):
        estimator = made(name, k, train, **options).fit(train)
    return estimator, time.perf_counter() - start


def _say_unseen(estimator: Any, say: Any) -> None:
    """What the fit could learn nothing about: its vectors are no answer to any question."""
    report = estimator.report_
    found = [*report.get("constant_entities", ()), *report.get("unused_entities", ())]
    if found:
        labels = estimator.vocabulary_
        first = [str(n if labels is None else labels[n]) for n in found[:5]]
        more = ", ..." if len(found) > len(first) else ""
        say(
            f"{len(found):,} of {len(estimator.embedding_):,} never vary in the rows that are "
            f"fitted, and there is nothing to learn about them: {', '.join(first)}{more}"
        )


def _tell(told: dict[str, Any], as_json: bool) -> None:
    from efemb.cli._show import show_json

    if as_json:
        show_json(told)
        return
    typer.echo(
        f"{told['model']} with {told['components']} components: {told['passes']} passes in "
        f"{told['seconds']:.1f} s, saved in {told['saved']}"
    )
    if "score" in told:
        beside = f" (without context {told['popularity']:.4f})" if "popularity" in told else ""
        typer.echo(f"held-out score {told['score']:.4f}{beside}")
