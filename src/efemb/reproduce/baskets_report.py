"""What was found about baskets: scores, claims, and lists of goods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from efemb.reproduce.claims import (
    HOLDS,
    NOT,
    PARTLY,
    Check,
    Claim,
    above,
    checks_table,
    gap_text,
    show,
    verdict_of,
)
from efemb.reproduce.fitting import as_table
from efemb.reproduce.goods import ALIKE, PAIRS, SUPPORT
from efemb.reproduce.printed import KNOWN_BASKETS, LEAST_GAIN_BASKETS, PRINTED_BASKETS
from efemb.reproduce.runner import Outcome
from efemb.reproduce.settings import FOLDED_IN, SAMPLED, TRIP_PASSES
from efemb.reproduce.showing import (
    RISING,
    bars,
    printed_table,
    show_fits,
)
from efemb.reproduce.study import Options, Results
from efemb.reproduce.tables import (
    Row,
    best_of,
    gap,
    row_of,
    score_table,
    sizes_of,
)
from efemb.table import Table

SCORES = (
    "Normalised log-likelihood per unit of held-out trips, each item given the others of its trip, "
    "± the standard error over units, as in the paper. K is in brackets. Gains to p-emb of the "
    "same K are paired, on the same entries; ± is their standard error over trips. The paper's "
    "data (IRI) are not public: its figures are of other trips and items and compare only in their "
    "order. The paper's settings are fitted in minibatches of rows for at most "
    f"{TRIP_PASSES} passes; {RISING} marks fits that were still rising when they ended. HPF and "
    "Poisson PCA, whose trip factors must be found anew for each left-out entry, are scored, and "
    f"compared, on the first {FOLDED_IN:,} test trips."
)


def report_scores(rows: Sequence[Row], options: Options, out: Results) -> None:
    """Scores, what they were made with, and claims."""
    out.write("scores", score_table(rows, PRINTED_BASKETS, KNOWN_BASKETS))
    out.page.table(printed_table(rows, PRINTED_BASKETS), SCORES)
    caption = (
        "Our scores on Complete Journey (filled) and the paper's on IRI (open); arrows point to "
        "scores off the picture."
    )
    out.figure("scores", bars(rows, PRINTED_BASKETS), caption)
    show("claims", score_claims(rows), out)
    if not options.quick:
        caption = "What our best model must gain over HPF, in nats a unit."
        out.table("checks", checks_table(score_checks(rows)), caption)
    chosen = "The Adagrad constant of each model and K, chosen on validation after short fits."
    show_fits(rows, out, chosen, "The fits; seconds include the choice of the constant.")


def score_checks(rows: Sequence[Row]) -> list[Check]:
    """Our best model against HPF, the best K of each."""
    rival = best_of(rows, lambda row: row.key[0] == "HPF")
    ours = best_of(rows, lambda row: "emb" in row.key[0])
    if rival is None or ours is None:
        return []
    what = f"{ours.key[0]}, K = {ours.key[1]}, less HPF, K = {rival.key[1]}"
    return [Check(what, gap(ours, rival).value, LEAST_GAIN_BASKETS)]


def score_claims(rows: Sequence[Row]) -> list[Claim]:
    """The paper's sentences about this table."""
    found = []
    sentence = "In both applications the p-emb model outperforms HPF and Poisson PCA"
    rivals = ("HPF", "Poisson PCA, positive", "Poisson PCA")
    for name, rival in product(("p-emb", "p-emb, defaults"), rivals):
        found += above(rows, name, rival, f"{sentence}. ({name}; {rival})")
    zeros = "Downweighting the contribution of the zeros gives more accurate estimates."
    found += above(rows, "p-emb (dw)", "p-emb", zeros)
    found += above(rows, "p-emb (dw), defaults", "p-emb, defaults", f"{zeros} (our settings)")
    found += above(rows, "HPF", "ap-emb", "Table: HPF scores above ap-emb.")
    found += _longer(rows)
    found += _sampled(rows)
    return found + _positive(rows)


def _longer(rows: Sequence[Row]) -> list[Claim]:
    found = []
    sizes = sizes_of(rows)
    for name in ("p-emb", "p-emb, defaults"):
        short, long = row_of(rows, name, sizes[0]), row_of(rows, name, sizes[-1])
        if short is None or long is None or short is long:
            continue
        less = gap(long, short)
        text = f"{name}, K = {sizes[-1]} less K = {sizes[0]}: {gap_text(less)}."
        sentence = f"On shopping data p-emb with K=100 provides the best predictions. ({name})"
        found.append(Claim(sentence, verdict_of([less]), text))
    return found


def _sampled(rows: Sequence[Row]) -> list[Claim]:
    sentence = (
        "Subsampling the zero entries ... retains the strong information about the gradient that "
        "comes from the non-zero entries."
    )
    found = []
    for k in sizes_of(rows):
        few, all_of_them = row_of(rows, SAMPLED, k), row_of(rows, "p-emb, defaults", k)
        if few is None or all_of_them is None:
            continue
        less = gap(few, all_of_them)
        gained = all_of_them.score - rows[0].score  # above popularity
        kept = 1 + less.value / gained
        text = (
            f"K = {k}: {gap_text(less)} to all zeros, {kept:.0%} of the gain over popularity, in "
            f"{few.mean('fit_seconds'):.0f} s in place of {all_of_them.mean('fit_seconds'):.0f} s."
        )
        found.append(Claim(sentence, HOLDS if kept >= 0.9 else NOT, text))
    return found


def _positive(rows: Sequence[Row]) -> list[Claim]:
    """The smallest inner products of ap-emb and of p-emb."""
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


# -- goods ----------------------------------------------------------------------------------------


def report_goods(lists: Mapping[str, Outcome], missing: str, out: Results) -> None:
    """Similar items, complements and substitutes of each fit."""
    from efemb.plots import relations

    out.page.section("Goods: similar items, complements, substitutes")
    for place, (name, outcome) in enumerate(lists.items()):
        file = f"{place}-" + name.replace(", ", "-").replace(" ", "-")
        similar, all_pairs, supported = (
            as_table(one, outcome.arrays) for one in ("similar", "pairs", "supported")
        )
        out.write(f"similar-{file}", similar)
        caption = f"{name}: the {ALIKE} items most like an example, by the cosine of rho."
        out.page.table(examples_once(similar), caption)
        out.write(f"pairs-{file}", all_pairs)
        out.page.table(short_pairs(all_pairs), f"{name}: {ALL_PAIRS}")
        out.write(f"supported-{file}", supported)
        out.page.table(short_pairs(supported), f"{name}: {SUPPORTED}")
        caption = f"{name}: the pairs with support as a picture."
        out.figure(f"supported-{file}", relations(supported), caption)
    if missing:
        out.page.paragraph(f"Instacart, whose products have names, is left out: {missing}")
    out.table("goods", goods_table(lists), GOODS)
    show("goods-claims", goods_claims(lists), out)


ALL_PAIRS = (
    f"the {PAIRS} largest and {PAIRS} smallest inner products rho_label . alpha_given of all: "
    "label is more (less) probable when given is in the basket. Together: trips that hold both; "
    "lift: their number over that of independent items."
)
SUPPORTED = (
    f"the same among pairs with support: {SUPPORT:g} trips together (largest), or {SUPPORT:g} to "
    "be expected of independent items (smallest)."
)
GOODS = (
    "Of all items: share of the three most similar that are of the same kind (the product type of "
    "Complete Journey, the aisle of Instacart), beside that of any three; rank correlation of the "
    "inner product of a pair with its lift, how often it is bought together against chance, over "
    f"pairs to be expected in {SUPPORT:g} trips or more."
)


def goods_table(lists: Mapping[str, Outcome]) -> Table:
    """Figures about the lists."""
    found = [outcome.figures["goods"] for outcome in lists.values()]
    return Table(
        {
            "fit": list(lists),
            "same kind": [one["same_kind"] for one in found],
            "by chance": [one["same_kind_by_chance"] for one in found],
            "correlation with lift": [one["lift_correlation"] for one in found],
            "smallest product": [one["smallest_product"] for one in found],
        }
    )


def goods_claims(lists: Mapping[str, Outcome]) -> list[Claim]:
    """The paper's sentences about goods, for each fit."""
    found = []
    for name, outcome in lists.items():
        figures = outcome.figures["goods"]
        same, chance = figures["same_kind"], figures["same_kind_by_chance"]
        text = f"{name}: {same:.0%} of the {ALIKE} nearest are of the kind, {chance:.1%} of any."
        verdict = HOLDS if same > 0.5 else PARTLY if same > 2 * chance else NOT
        sentence = (
            "The most similar items to a soda are other sodas; the most similar items to a yogurt "
            "are (mostly) other yogurts."
        )
        found.append(Claim(sentence, verdict, text))
        rank = figures["lift_correlation"]
        text = f"{name}: rank correlation of the inner product and the lift {rank:.2f}."
        verdict = HOLDS if rank > 0.5 else PARTLY if rank > 0.1 else NOT
        sentence = (
            "Items that tend to be purchased together have high value of the inner product ... "
            "while items that are substitutes have negative value."
        )
        found.append(Claim(sentence, verdict, text))
    return found


def examples_once(similar: Table) -> Table:
    """Each example named on its first line only."""
    items = similar["item"].tolist()
    shown = [
        item if item != before else "" for item, before in zip(items, [None, *items], strict=False)
    ]
    return Table({"item": shown, "similar": similar["similar"], "cosine": similar["cosine"]})


def short_pairs(table: Table) -> Table:
    """What fits the page: the rest is in the file."""
    return Table({name: table[name] for name in ("label", "given", "product", "together", "lift")})
