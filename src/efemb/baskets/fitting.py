"""The fit of a basket model: rows to hold out, the family, the parts and their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb._terminal import progress_bar
from efemb._typing import Ints
from efemb.baselines.arrays import Holdout, log_shares
from efemb.baskets.experts import (
    AMOUNTS,
    BASES,
    HISTORY,
    LOG_LINEAR,
    PERSONAL,
    POPULARITY,
    SMOOTHED,
    VECTORS,
    Questions,
    SizeMixture,
    describe_products,
)
from efemb.baskets.new_items import fit_new_items, log_shares_by_kind
from efemb.baskets.parts import (
    DRAWN_ZEROS,
    FAMILIES,
    MOST_NUMBERS,
    PartOptions,
    Parts,
    Passes,
    answer_questions,
    draw_questions,
    draws_zeros,
    fit_vectors,
)
from efemb.blend.members import LARGEST_WEIGHT
from efemb.data.columns import distinct_labels
from efemb.data.matrices import sparse
from efemb.errors import DataError
from efemb.model.item_regressions import check_memory, dense_size, sparse_size
from efemb.table import Table

if TYPE_CHECKING:
    from efemb.data.dataset import Dataset
    from efemb.fitted.embedding import FittedEmbedding

AUTO = "auto"
WAY_OUT = "drop rare items, or pass n_neighbors=100, for pairs without an array of N^2 numbers"
SPARSE_WAY_OUT = (
    "drop rare items, pass a smaller n_neighbors, or fit a PoissonEmbedding with "
    "terms=[ItemPairs(sparse=True)] and zeros=Sampled(8192)"
)
SHORT_SIZES = (0, 1, 3, 10, 30, 100)  # of contexts that are drawn beside whole ones
WHOLE_QUESTIONS, SHORT_QUESTIONS, LEAST_QUESTIONS = 1000, 200, 40
MOST_TIMES = 5  # as many questions, if there are few items
QUESTION_CELLS = 1 << 24  # questions x items
HELD_OUT_ROWS, FEW_ROWS, FOLDS = 1500, 5000, 4
# The best penalty of few items differs, and is cheap to find; of many it hardly does.
USUAL_PENALTY, PENALTIES, FEW_ITEMS = 100.0, (30.0, 100.0, 200.0, 500.0, 1000.0), 4000
LEAST_GAIN = 0.01  # nats per entry by which pairs of counts must be better than those of 0 and 1
LEAST_KNOWN_ROWS = 20  # held-out rows of known customers, to fit their weights
RACE_ROWS, RACE_HELD_OUT, RACE_COMPONENTS, RACE_PASSES = 10_000, 300, 20, 6
RELIABILITY_QUESTIONS = 500
RELIABILITY_EDGES = 10.0 ** np.arange(-5.0, 0.5, 0.5)

Fold = tuple["Dataset", "Dataset"]  # rows to train on, and rows that are held out


@dataclass(frozen=True)
class BasketFit:
    """What the fit of a basket model leaves.

    mixture, personal : of any basket, and of one whose customer has a history
    new_items : of what is new to such a customer
    """

    parts: Parts
    mixture: SizeMixture
    personal: SizeMixture | None
    new_items: SizeMixture | None
    reliability: Table
    report: dict[str, Any]


def fit_baskets(
    options: PartOptions, data: Dataset, folds: list[Fold], rng: np.random.Generator, verbose: int
) -> BasketFit:
    """Fit the parts on each fold, and to all rows if there are several; then the weights."""
    _check_memory(options, data, len(folds))
    for_race, for_questions = rng.spawn(2)
    known = _rows_of_known_customers(options.user, folds)
    chosen = options if known >= LEAST_KNOWN_ROWS else replace(options, user=None)
    penalties = PENALTIES if options.penalty is None else (options.penalty,)
    chosen = replace(chosen, penalty=options.penalty or USUAL_PENALTY)
    chosen, scores = choose_family(chosen, *folds[0], for_race)
    interrupted = False
    n_fits, questions, passes = len(folds) + (len(folds) > 1), list[Questions](), list[Passes]()
    with progress_bar("fitting a basket model", n_fits, bool(verbose)) as advance:
        for train, held in folds:
            parts = Parts.fit(train, held, chosen)
            if not passes:
                parts, chosen = choose_pairs(parts, chosen, penalties, (train, held), for_race)
            questions += _ask(parts, held, len(folds), for_questions, chosen.user)
            passes.append(parts.passes)
            interrupted |= parts.interrupted
            if interrupted:  # finish soon: what is left takes a single pass
                chosen = replace(chosen, max_iter=1)
            advance(1)
        if len(folds) > 1:
            most = Passes(*np.maximum(1, np.median(passes, axis=0)).astype(int).tolist())
            parts = Parts.fit(data, None, replace(chosen, passes=most))
            advance(1)
    questions = _merged(questions)
    unused = {AMOUNTS} if (sparse(data).data == 1).all() else set()
    bases = tuple(base for base in LOG_LINEAR if base not in unused)
    of_anybody = tuple(base for base in bases if base not in (HISTORY, PERSONAL))
    mixture, held_out_score = SizeMixture.fit_and_score(questions, of_anybody)
    personal, new_items, used = None, None, mixture
    absent, why = describe_products(questions, of_anybody), "no history of customers is used"
    if chosen.user is not None:
        questions = [part if part.known.all() else part.take(part.known) for part in questions]
        personal, held_out_score = SizeMixture.fit_and_score(questions, bases)
        absent = describe_products(questions, bases)
        new_items, gains, why = fit_new_items(questions, bases, personal)
        held_out_score = {name: score + gains[name] for name, score in held_out_score.items()}
        used = personal
    report = {
        "family": chosen.family,
        "family_chosen_by": _reason(options.family, scores),
        "pairs": "dense" if chosen.n_neighbors is None else f"{chosen.n_neighbors} per item",
        "zeros": f"{DRAWN_ZEROS:,} per minibatch" if draws_zeros(folds[0][0]) else "all",
        "counts_in_pairs": "log2(1 + count)" if chosen.damped else "0/1",
        "penalty": chosen.penalty,
        "entries_above_10": int((sparse(data).data > LARGEST_WEIGHT).sum()),
        "history": chosen.user,
        "held_out_rows_of_known_customers": known,
        "pseudo_count": chosen.pseudo_count,
        "held_out": {"rows": int(sum(held.n_rows for _, held in folds)), "folds": len(folds)},
        "passes": parts.passes.vectors,
        "interrupted": interrupted or parts.interrupted,
        "absent_items": absent,
        "new_items": why,
        "weights": _largest_weights(used),
        "weights_of_new_items": None if new_items is None else _largest_weights(new_items),
        "held_out_score": held_out_score,
    }
    reliability = measure_reliability(used, new_items, questions)
    return BasketFit(parts, mixture, personal, new_items, reliability, report)


def _check_memory(options: PartOptions, data: Dataset, n_folds: int) -> None:
    """Refuse before the first fit what does not fit into memory: pairs, or questions."""
    n_items, neighbors = data.n_entities, options.n_neighbors
    pairs = dense_size(n_items) if neighbors is None else sparse_size(sparse(data), neighbors)
    questions = n_folds * sum(_count_questions(n_items, n_folds)) * len(BASES) * n_items
    at_work = 4 * min(questions, MOST_NUMBERS)  # copies of one piece of them
    need = max(pairs, np.dtype(np.float32).itemsize * (questions + at_work))
    check_memory(need, "BasketEmbedding", n_items, SPARSE_WAY_OUT if neighbors else WAY_OUT)


def _rows_of_known_customers(user: str | None, folds: list[Fold]) -> int:
    """How many held-out rows belong to customers who have other rows."""
    if user is None:
        return 0
    return sum(
        int(np.isin(held.rows[user], distinct_labels(train.rows[user].tolist())).sum())
        for train, held in folds
    )


def make_folds(
    data: Dataset, validation: Dataset | None, fraction: float, rng: np.random.Generator
) -> list[Fold]:
    """Training and held-out rows: the user's own, one hold-out, or several turns of few rows."""
    if validation is not None:
        if Holdout.of(data, validation, missing=False).others is None:
            raise DataError(
                "validation holds entries of the training rows, which item pairs have seen as "
                "zeros: pass other rows, or none"
            )
        return [(data, validation)]
    sizes = np.diff(sparse(data).indptr)
    if not (sizes >= 2).any():
        raise DataError(
            "no row has two or more items, so there is no context to predict from: each row "
            "must be a whole basket"
        )
    order = rng.permutation(data.n_rows)
    turns = np.array_split(order, FOLDS)
    if data.n_rows >= FEW_ROWS:
        turns = [order[: min(HELD_OUT_ROWS, max(1, int(fraction * data.n_rows)))]]
    folds = []
    for turn in turns:
        held = np.zeros(data.n_rows, dtype=bool)
        held[turn] = True
        if (sizes[held] >= 2).any() and (sizes[~held] >= 2).any() and (~held).sum() >= 2:
            folds.append((data.take_rows(~held), data.take_rows(held)))
    if not folds:
        raise DataError(
            f"{data.n_rows} rows are too few to hold out any with two or more items: pass "
            "other rows as validation"
        )
    return folds


def choose_pairs(
    parts: Parts, options: PartOptions, penalties: tuple[float, ...], fold: Fold, rng: Any
) -> tuple[Parts, PartOptions]:
    """The parts with other pairs, and the options of these, by held-out entries of few items.

    Pairs are judged beside the vectors: alone they are the more likely the smoother they are, but
    what is smooth the vectors know already.
    """
    train, held = fold
    if train.n_entities > FEW_ITEMS or options.n_neighbors is not None:
        return parts, options
    asked = draw_questions(held, (None,), (WHOLE_QUESTIONS,), rng, options.user)
    if not len(asked[1]):
        return parts, options
    # Each entry counts once: what raises the likelihood of large counts does not rank better.
    questions = answer_questions(parts, asked[0], asked[1], np.ones(len(asked[1])))[0]
    binary = bool((sparse(train).data == 1).all())
    bases = (VECTORS, SMOOTHED, POPULARITY) if binary else (VECTORS, SMOOTHED, POPULARITY, AMOUNTS)

    def judge(choice: PartOptions) -> tuple[float, Parts, PartOptions]:
        made = parts if choice == options else parts.with_pairs(train, choice)
        scores = made.pair_scores(sparse(asked[0]), np.arange(len(asked[1])), asked[1])
        made.write_pair_logs(scores, questions.logs)
        return SizeMixture.fit_and_score([questions], bases)[1]["absent items"], made, choice

    judged = [judge(replace(options, penalty=penalty)) for penalty in penalties]
    best = max(judged, key=lambda each: each[0])
    if not binary:
        damped = judge(replace(best[2], damped=True))
        best = damped if damped[0] - best[0] > LEAST_GAIN else best
    return best[1], best[2]


def choose_family(
    options: PartOptions, train: Dataset, held: Dataset, rng: np.random.Generator
) -> tuple[PartOptions, dict[str, float]]:
    """The family to fit, and the scores of both if they were compared."""
    if options.family != AUTO:
        return options, {}
    if (sparse(train).data == 1).all():
        return replace(options, family="bernoulli"), {}
    rows = np.sort(rng.permutation(train.n_rows)[:RACE_ROWS])
    few = replace(options, n_components=min(RACE_COMPONENTS, options.n_components))
    if train.n_rows > FEW_ROWS:
        few = replace(few, max_iter=RACE_PASSES)
    asked = draw_questions(held, (None,), (WHOLE_QUESTIONS // 2,), rng)
    scores, watched = {}, held.take_rows(np.arange(min(RACE_HELD_OUT, held.n_rows)))
    for name in FAMILIES:
        model = fit_vectors(train.take_rows(rows), watched, replace(few, family=name)).fitted()
        scores[name] = _entry_score(model, *asked[:2])
    best = max(scores, key=lambda name: scores[name])
    return replace(options, family=best), scores


def _reason(asked: str, scores: dict[str, float]) -> str:
    if scores:
        listed = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
        return f"held-out score of small models: {listed}"
    return "0/1 data" if asked == AUTO else "as specified"


def _ask(
    parts: Parts, held: Dataset, n_folds: int, rng: np.random.Generator, user: str | None
) -> list[Questions]:
    """Entries of held-out rows given whole and short contexts, with what the parts say."""
    numbers = _count_questions(held.n_entities, n_folds)
    asked = draw_questions(held, (None, *SHORT_SIZES), numbers, rng, user)
    if not len(asked[1]):
        raise DataError(
            "no held-out row has two or more items, so no entry has a context: pass "
            "longer rows as validation"
        )
    return answer_questions(parts, *asked)


def _count_questions(n_entities: int, n_folds: int) -> tuple[int, ...]:
    """How many questions of each size of the context a fold is asked."""
    room = QUESTION_CELLS // n_entities
    share = min(MOST_TIMES, room / (WHOLE_QUESTIONS + len(SHORT_SIZES) * SHORT_QUESTIONS))
    wanted = (WHOLE_QUESTIONS, *(SHORT_QUESTIONS for _ in SHORT_SIZES))
    return tuple(max(LEAST_QUESTIONS, int(share * n)) // n_folds + 1 for n in wanted)


def _entry_score(model: FittedEmbedding, contexts: Dataset, entities: Ints) -> float:
    """Mean log share of what questions ask for."""
    rows, total = np.arange(len(entities)), 0.0
    for cells, means in model.log_means(contexts, rows, entities):
        total += float(log_shares(np.array(means), entities[cells]).sum())
    return total / len(entities)


def _merged(questions: list[Questions]) -> list[Questions]:
    """Questions of several folds in one piece, if they are small."""
    cells = sum(len(part.entity) for part in questions) * questions[0].logs.shape[2]
    if len(questions) == 1 or cells > 2 * QUESTION_CELLS:
        return questions
    starts = np.cumsum([0, *(len(part.entity) for part in questions[:-1])])

    def shift(name: str) -> Ints:
        places = [getattr(part, name) + at for part, at in zip(questions, starts, strict=True)]
        return np.concatenate(places)

    arrays = {
        name: np.concatenate([getattr(part, name) for part in questions])
        for name in ("logs", "entity", "units", "size", "member", "known", "bought")
    }
    return [Questions(**arrays, member_cell=shift("member_cell"), bought_cell=shift("bought_cell"))]


def _largest_weights(mixture: SizeMixture) -> dict[str, dict[str, float]]:
    """By the size of the context, the weights among absent items that are not small."""
    return {
        f"{size:.0f} items": {
            name: round(float(weight), 3)
            for name, weight in zip(mixture.names, weights, strict=True)
            if weight >= 0.05
        }
        for size, weights in zip(mixture.sizes, mixture.of_absent, strict=True)
    }


def measure_reliability(
    mixture: SizeMixture, new_items: SizeMixture | None, questions: list[Questions]
) -> Table:
    """Mean predicted and observed probability of items outside the context, by the former."""
    edges = np.concatenate([[0.0], RELIABILITY_EDGES])
    predicted, hits, number = (np.zeros(len(edges)) for _ in range(3))
    step = -(-sum(len(part.entity) for part in questions) // RELIABILITY_QUESTIONS)
    for whole in questions:
        part = whole.take(np.arange(len(whole.entity)) % step == 0)
        kinds = (part.member_cell, part.member), (part.bought_cell, part.bought)
        given = (part.logs, part.size, *kinds)
        shares = np.exp(log_shares_by_kind(mixture, new_items, *given, absent=True))
        place = np.searchsorted(edges, shares.ravel(), side="right") - 1
        predicted += np.bincount(place, shares.ravel(), len(edges))
        number += np.bincount(place, minlength=len(edges))
        own = shares[np.arange(len(shares)), part.entity]
        hits += np.bincount(np.searchsorted(edges, own, side="right") - 1, minlength=len(edges))
    known = number > 0
    return Table(
        {
            "from": edges[known],
            "predicted": predicted[known] / number[known],
            "observed": hits[known] / number[known],
            "n": number[known].astype(np.int64),
        }
    )
