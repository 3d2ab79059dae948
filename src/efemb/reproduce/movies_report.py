"""What was found about movies: tables, pictures, claims, topics."""

from __future__ import annotations

from collections.abc import Sequence

from efemb.data.dataset import Dataset
from efemb.reproduce.claims import (
    Check,
    Claim,
    above,
    checks_table,
    gap_text,
    show,
    verdict_of,
    verdict_of_count,
)
from efemb.reproduce.printed import KNOWN_MOVIES, LEAST_MOVIES, PRINTED_MOVIES, TOLERANCE
from efemb.reproduce.settings import SIZES
from efemb.reproduce.showing import (
    RISING,
    bars,
    printed_table,
    show_fits,
)
from efemb.reproduce.study import Options, Results
from efemb.reproduce.tables import (
    Row,
    gap,
    row_of,
    score_table,
)

SCORES = (
    "Normalised log-likelihood per unit of held-out ratings, each given the other ratings of its "
    "user: mean over splits of the users ± the standard error of one split over units, as in the "
    "paper. K is in brackets. Gains to p-emb of the same K are paired: the same splits and "
    "entries; ± is their standard error over users. The splits are not the paper's, which were not "
    "published, and scores differ by .035 from split to split, so only gains compare. Validation "
    f"entries are masked in training. {RISING} marks fits that ended at the last pass allowed."
)


def report_scores(rows: Sequence[Row], data: Dataset, options: Options, out: Results) -> None:
    """Scores, what they were made with, and claims."""
    out.write("scores", score_table(rows, PRINTED_MOVIES, KNOWN_MOVIES))
    out.page.table(printed_table(rows, PRINTED_MOVIES), SCORES)
    caption = "Our scores (filled) and the paper's (open); arrows point to scores off the picture."
    out.figure("scores", bars(rows, PRINTED_MOVIES), caption)
    claims = score_claims(rows) + ([] if options.quick else data_claims(data))
    show("claims", claims, out)
    if not options.quick:
        caption = "Scores that this program must reach, from independent programs."
        out.table("checks", checks_table(score_checks(rows)), caption)
    chosen = "The Adagrad constant of each model and K is chosen on validation (first split)."
    show_fits(rows, out, chosen, "Each split; seconds of a fit include the choice of its constant.")


def score_checks(rows: Sequence[Row]) -> list[Check]:
    """Known scores of the embeddings less a tolerance, and the least of the rivals."""
    found = []
    for row in rows:
        name, k = row.key
        known = KNOWN_MOVIES.get(row.key)
        if k is None or known is None:
            continue
        if row.key in LEAST_MOVIES:
            found.append(Check(f"{name}, K = {k}", row.score, LEAST_MOVIES[name, k]))
        elif "emb" in name or name == "categorical":
            found.append(Check(f"{name}, K = {k}", row.score, known - TOLERANCE))
    return found


def data_claims(data: Dataset) -> list[Claim]:
    """The paper's sentence about the data."""
    share = data.values.nnz / (data.n_rows * data.n_entities)
    size = f"{data.n_rows} users and {data.n_entities} movies"
    found = f"{size} where ratings are filtered first, then movies, then users; {share:.1%} filled."
    holds = [size == "777 users and 516 movies", round(share, 2) == 0.05]
    sentence = "The dataset contains 777 users and 516 movies; the sparsity is about 5%."
    return [Claim(sentence, verdict_of_count(sum(holds), len(holds)), found)]


def score_claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper's sentences about this table."""
    found = []
    sentence = "In both applications the p-emb model outperforms HPF and Poisson PCA"
    for rival in ("HPF", "Poisson PCA, positive", "Poisson PCA"):
        found += above(rows, "p-emb", rival, f"{sentence}. ({rival})")
    found += above(rows, "p-emb", "p-emb (dw)", "Table: p-emb scores above p-emb (dw) on movies.")
    found += above(rows, "p-emb", "ap-emb", "Table: p-emb scores above ap-emb on movies.")
    small, large = (row_of(rows, "p-emb", k) for k in SIZES)
    if small is not None and large is not None:
        less = gap(small, large)
        text = f"p-emb K = {SIZES[0]} less K = {SIZES[1]}: {gap_text(less)}"
        found.append(Claim("On MovieLens p-emb with K=20 is best.", verdict_of([less]), text))
        best = max((row for row in rows if row.key[1] is not None), key=lambda row: row.score)
        ahead = gap(best, small)
        text = (
            f"the best here is {best.key[0]}, K = {best.key[1]}: {gap_text(ahead)} to p-emb K = 20"
        )
        verdict = verdict_of_count(int(best is small), 1)
        found.append(Claim("On MovieLens p-emb with K=20 is best (of all models).", verdict, text))
    return found
