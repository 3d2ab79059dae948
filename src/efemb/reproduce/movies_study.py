"""Movies: the paper's MovieLens-100K table and its topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from efemb.data.dataset import Dataset
from efemb.datasets import fetch_movielens_100k
from efemb.reproduce.claims import (
    Check,
    Claim,
    format_gap,
    judge_count,
    judge_gaps,
    show_claims,
    tabulate_checks,
)
from efemb.reproduce.counts_fits import Split, Task, split_movies, split_ratings
from efemb.reproduce.counts_models import LETTER, MOVIES, P_EMB, SIZES, TOPIC_SIZE, Recipe
from efemb.reproduce.counts_report import RISING, draw_scores, show_fits, tabulate_like_paper
from efemb.reproduce.counts_scores import (
    Row,
    claim_above,
    collect_rows,
    compare_rows,
    find_row,
    tabulate_scores,
)
from efemb.reproduce.jobs import Job, Later, Outcome
from efemb.reproduce.movies_topics import make_topic_job, report_topics
from efemb.reproduce.published import KNOWN_MOVIES, LEAST_MOVIES, PRINTED_MOVIES, TOLERANCE
from efemb.reproduce.study import Options, Results, Study
from efemb.table import Table

NAME = "movies"
QUICK_SIZES, QUICK_TOPICS = (5,), 8
QUICK_MODELS = (
    "popularity",
    "p-emb",
    "p-emb (dw)",
    "ap-emb",
    "HPF",
    "Poisson PCA",
    "p-emb, defaults",
)
QUICK_USERS, QUICK_PASSES = 300, 200
ONE_SIZE = {"categorical": SIZES[0]}  # the exact softmax is slow, and longer vectors do not help


class Movies(Study):
    """Ratings of MovieLens-100K: five models of the paper, K = 20 and 100, and topics."""

    name = NAME
    title = "Movies: MovieLens-100K"
    minutes = 6
    side_by_side = True
    has_literal = True

    def jobs(self, options: Options) -> Sequence[Job]:
        """Models on splits, then fits for the topics; or the paper's inference and split."""
        data = Later(partial(_data, options))
        if options.literal:
            return [task.job() for task in _list_literal_tasks(data, options)]
        tasks = [task.job() for task in _list_tasks(data, options)]
        k = QUICK_TOPICS if options.quick else TOPIC_SIZE
        # Stability over initial vectors needs two fits, even in a quick run.
        seeds = options.used_seeds() if len(options.used_seeds()) > 1 else (0, 1)
        return tasks + [
            make_topic_job(NAME, data, _describe_data(options), k, seed) for seed in seeds
        ]

    def report(self, outcomes: Sequence[Outcome], options: Options, out: Results) -> None:
        """Scores, claims and topics."""
        data = Later(partial(_data, options))
        if options.literal:
            report_literal(_list_literal_tasks(data, options), outcomes, out)
            return
        tasks = _list_tasks(data, options)
        rows = collect_rows(tasks, outcomes[: len(tasks)])
        report_scores(rows, data.value, options, out)
        report_topics(outcomes[len(tasks) :], data.value, out)


def _data(options: Options) -> Dataset:
    data = fetch_movielens_100k(options.data_home, progress=False)
    return data.take_rows(slice(0, QUICK_USERS)) if options.quick else data


def _describe_data(options: Options) -> dict[str, object]:
    return {"name": "movielens_100k", "users": QUICK_USERS if options.quick else None}


def _list_tasks(data: Later, options: Options) -> list[Task]:
    def split(seed: int) -> Split:
        return split_movies(data.value, seed)

    seeds = options.used_seeds()
    passes = QUICK_PASSES if options.quick else None
    splits = {seed: Later(partial(split, seed)) for seed in seeds}
    return [
        Task(NAME, recipe, k, seed, splits[seed], _describe_data(options), passes=passes)
        for recipe in MOVIES
        if not options.quick or recipe.name in QUICK_MODELS
        for k in _list_sizes(recipe, options)
        for seed in seeds
    ]


SPLITS = {"users": split_movies, "ratings": split_ratings}


def _list_literal_tasks(data: Later, options: Options) -> list[Task]:
    """Models with the paper's inference on both readings of the split, with the smaller K."""

    def make_split(reading: str, seed: int) -> Split:
        return SPLITS[reading](data.value, seed)

    k = QUICK_SIZES[0] if options.quick else SIZES[0]
    passes = QUICK_PASSES if options.quick else None
    return [
        Task(
            NAME,
            recipe,
            k if recipe.sized else None,
            seed,
            Later(partial(make_split, reading, seed)),
            {**_describe_data(options), "split": reading},
            passes=passes,
        )
        for reading in SPLITS
        for recipe in LETTER
        for seed in options.used_seeds()
    ]


def _list_sizes(recipe: Recipe, options: Options) -> tuple[int | None, ...]:
    if not recipe.sized:
        return (None,)
    if options.quick:
        return QUICK_SIZES
    return (ONE_SIZE[recipe.name],) if recipe.name in ONE_SIZE else SIZES


LITERAL = (
    "Normalized log-likelihood per unit, mean over splits. `users`: a fifth of the users is held "
    "out and each of their ratings predicted from their others (our reading). `ratings`: a fifth "
    "of the ratings is held out, of which 5% validate (to the letter). Gains over p-emb with exact "
    "zeros on the same split are paired; ± is their standard error over users."
)


def report_literal(tasks: Sequence[Task], outcomes: Sequence[Outcome], out: Results) -> None:
    """Both readings of the split side by side, with the inference of the paper and with ours."""
    columns: dict[str, list[object]] = {}
    for reading in SPLITS:
        pairs = [
            (task, outcome)
            for task, outcome in zip(tasks, outcomes, strict=True)
            if task.data["split"] == reading
        ]
        rows = collect_rows(*zip(*pairs, strict=True))
        reference = next(row for row in rows if row.key[0] == P_EMB.name)
        for row in rows:
            gain = compare_rows(row, reference)
            values = {
                "split": reading,
                "model": row.key[0],
                "K": row.key[1],
                "score": row.score,
                "standard_error": row.error,
                "gain": gain.value,
                "gain_error": gain.error,
                "constants": ", ".join(f"{step:g}" for step in row.each("step") if step),
                "seconds": row.mean("fit_seconds"),
            }
            for name, value in values.items():
                columns.setdefault(name, []).append(value)
    out.table("literal", Table(columns), LITERAL)


# -- report ---------------------------------------------------------------------------------------


SCORES = (
    "Normalized log-likelihood per unit of held-out ratings, each given the other ratings of its "
    "user: mean over splits of the users ± the standard error of one split over units, as in the "
    "paper. K is in parentheses. Gains over p-emb with the same K are paired: same splits and "
    "entries; ± is their standard error over users. The paper's splits were not published, and "
    "scores differ by .035 between splits, so only gains can be compared. Validation entries are "
    f"masked in training. {RISING} marks fits that reached the maximum number of passes."
)


def report_scores(rows: Sequence[Row], data: Dataset, options: Options, out: Results) -> None:
    """Scores, settings and claims."""
    out.write("scores", tabulate_scores(rows, PRINTED_MOVIES, KNOWN_MOVIES))
    out.page.table(tabulate_like_paper(rows, PRINTED_MOVIES), SCORES)
    caption = "Our scores (filled) and the paper's (open); arrows point to scores outside the plot."
    out.figure("scores", draw_scores(rows, PRINTED_MOVIES), caption)
    claims = judge_scores(rows) + ([] if options.quick else judge_data(data))
    show_claims("claims", claims, out)
    if not options.quick:
        caption = "Scores that this program must reach, from independent programs."
        out.table("checks", tabulate_checks(check_scores(rows)), caption)
    chosen = "The Adagrad constant of each model and K, chosen on validation (first split)."
    show_fits(rows, out, chosen, "Each split; seconds include choosing the constant.")


def check_scores(rows: Sequence[Row]) -> list[Check]:
    """Known scores of the embeddings minus a tolerance, and lower bounds for the rivals."""
    checks = []
    for row in rows:
        name, k = row.key
        expected = KNOWN_MOVIES.get(row.key)
        if k is None or expected is None:
            continue
        if row.key in LEAST_MOVIES:
            checks.append(Check(f"{name}, K = {k}", row.score, LEAST_MOVIES[name, k]))
        elif "emb" in name or name == "categorical":
            checks.append(Check(f"{name}, K = {k}", row.score, expected - TOLERANCE))
    return checks


def judge_data(data: Dataset) -> list[Claim]:
    """The paper's claim about the data."""
    share = data.values.nnz / (data.n_rows * data.n_entities)
    size = f"{data.n_rows} users and {data.n_entities} movies"
    figure = (
        f"{size} where ratings are filtered first, then movies, then users; {share:.1%} filled."
    )
    holds = [size == "777 users and 516 movies", round(share, 2) == 0.05]
    sentence = "The dataset contains 777 users and 516 movies; the sparsity is about 5%."
    return [Claim(sentence, judge_count(sum(holds), len(holds)), figure)]


def judge_scores(rows: Sequence[Row]) -> list[Claim]:
    """The paper's claims about this table."""
    claims = []
    sentence = "In both applications the p-emb model outperforms HPF and Poisson PCA"
    for rival in ("HPF", "Poisson PCA, positive", "Poisson PCA"):
        claims += claim_above(rows, "p-emb", rival, f"{sentence}. ({rival})")
    claims += claim_above(
        rows, "p-emb", "p-emb (dw)", "Table: p-emb scores higher than p-emb (dw) on movies."
    )
    claims += claim_above(
        rows, "p-emb", "ap-emb", "Table: p-emb scores higher than ap-emb on movies."
    )
    small, large = (find_row(rows, "p-emb", k) for k in SIZES)
    if small is not None and large is not None:
        gap = compare_rows(small, large)
        text = f"p-emb K = {SIZES[0]} minus K = {SIZES[1]}: {format_gap(gap)}"
        claims.append(Claim("On MovieLens p-emb with K=20 is best.", judge_gaps([gap]), text))
        best = max((row for row in rows if row.key[1] is not None), key=lambda row: row.score)
        ahead = compare_rows(best, small)
        name, k = best.key
        text = f"the best here is {name}, K = {k}: {format_gap(ahead)} over p-emb K = 20"
        verdict = judge_count(int(best is small), 1)
        claims.append(Claim("On MovieLens p-emb with K=20 is best (of all models).", verdict, text))
    return claims


STUDY = Movies()
