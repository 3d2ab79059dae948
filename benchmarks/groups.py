"""Do groups of documents or trips, or slices of time, need embeddings of their own?

Each contest has these sides: one model; one model with intercepts by group; embeddings by group
(`Grouped`) or slice (`Dynamic`), whose precision is chosen on validation words or trips; and a fit
per group, whose passes are. Text has two sides more: embeddings and context vectors by group, and
the one model that each group tunes for itself. All models of text end with the same passes of
falling steps, so that none has more of them. All see the same test words or trips; errors are
clustered by document or trip, and fits of several seeds are averaged word by word. Slices of time
begin with one model, as those of Rudolph and Blei do. "speed" compares the CPU time of whole fits
of one pass with and without groups.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.downstream import by_type
from benchmarks.harness import Report, Settings
from benchmarks.text_data import brown_genres, newsgroups_by_group, papers
from benchmarks.word_scores import WordScores, score_words, show_gap

Array = NDArray[Any]
K, PASSES, NEGATIVES = 50, 5, 10
PRECISIONS = (10.0, 100.0, 1000.0, 10_000.0)
FIXED = 1e8  # a precision at which embeddings stay together, so that intercepts alone differ
PASSES_APART = (2, 5, 15)
TUNING, STEP = 3, 0.01  # passes of falling steps, and the first; of 1, 3 and .005 to .03, on arXiv
N_WORDS, N_CHOOSING = 24_000, 12_000  # test and validation words
OF_SLICES, STEPS = (10.0, 30.0, 100.0), (0.005, 0.01, 0.02, 0.03)  # precisions and first steps
SHARED = (0.0, 0.1)  # steps of vectors that slices share, in units of those of their own
MOST_TRIPS, TRIP_PASSES = 28_000, 25
LEAST_TRIPS = 1500  # with a product type
ONE, SHIFTED = "one model", "intercepts by group"
OWN, BOTH = "embeddings by group", "embeddings and contexts by group"
APART, TUNED = "a fit per group", "one model, tuned by each group"


def run(settings: Settings) -> Report:
    """Every contest, or those that `--only` names."""
    report = Report("groups", settings)
    for name, contest in CONTESTS.items():
        if not settings.only or name in settings.only:
            contest(report)
        if settings.quick:
            break
    return report


class TextContest:
    """A text in groups: train, validation and test words, and how a model of groups is made.

    structure : function of a precision and of whether contexts are by group
    options : of the estimator
    parts : the three texts, cut by group, with the vocabulary of the whole training text
    """

    def __init__(
        self,
        report: Report,
        name: str,
        texts: Sequence[Any],
        column: str,
        structure: Callable[..., Any],
        **options: Any,
    ) -> None:
        self.report, self.name, self.train = report, name, texts[0]
        self.structure, self.options = structure, options
        self.labels, vocabulary = np.unique(self.train.rows[column]), self.train.vocabulary

        def of_group(text: Any, label: Any) -> Any:
            documents = np.flatnonzero(text.rows[column] == label)
            return text.take(documents).with_vocabulary(vocabulary)

        self.parts = [[of_group(text, label) for label in self.labels] for text in texts]

    def play(self) -> None:
        """Choose on validation words, score test words, and print differences."""
        seeds = self.report.settings.seeds
        fits: dict[str, Callable[[int, float], list[Any]]] = {
            OWN: lambda seed, value: self.fit(seed, self.structure(value)),
            BOTH: lambda seed, value: self.fit(seed, self.structure(value, contexts=True)),
        }
        precision = {
            side: self._best(f"precision of {side}", self._try(PRECISIONS, partial(fit, seeds[0])))
            for side, fit in fits.items()
        }
        passes = self._passes_apart(seeds[0])
        sides: dict[str, Callable[[int], list[Any]]] = {
            ONE: self.fit,
            SHIFTED: lambda seed: self.fit(seed, self.structure(FIXED)),
            **{side: lambda seed, s=side: fits[s](seed, precision[s]) for side in fits},
            TUNED: self.fit_tuned,
            APART: lambda seed: self.fit_apart(seed, passes),
        }
        self._show({name: self._mean(fit, seeds) for name, fit in sides.items()})

    def make(self, seed: int, passes: int = PASSES, **more: Any) -> Any:
        """An estimator."""
        import efemb

        settings = {"zeros": efemb.NegativeSampling(NEGATIVES, "smoothed"), "intercept": True}
        settings |= {"max_iter": passes, "early_stopping": False, "n_jobs": 1, **self.options}
        return efemb.BernoulliTextEmbedding(K, random_state=seed, **{**settings, **more})

    def fit(self, seed: int, structure: Any = "per-entity") -> list[Any]:
        """One model, as that of every group."""
        model = self._tune(self.make(seed, structure=structure).fit(self.train), self.train, seed)
        return [model] * len(self.labels)

    def fit_tuned(self, seed: int) -> list[Any]:
        """One model that every group tunes for itself."""
        model = self.make(seed).fit(self.train)
        return [self._tune(model, text, seed) for text in self.parts[0]]

    def _tune(
        self,
        model: Any,
        text: Any,
        seed: int,
        step: float = STEP,
        shared: float = 1.0,
        **more: Any,
    ) -> Any:
        """Some passes of falling steps over a text."""
        from efemb.engine import optimizers

        options = {"max_iter": TUNING, "early_stopping": False, "n_jobs": 1, **more}
        optimizer = optimizers.SGD(step, decay="linear", shared=shared)
        tuned = type(model).from_fitted(
            model.fitted(), optimizer=optimizer, random_state=seed, **options
        )
        return tuned.fit(text)

    def fit_apart(self, seed: int, passes: int) -> list[Any]:
        """A model of every group by itself."""
        return [self._tune(self.make(seed, passes).fit(text), text, seed) for text in self.parts[0]]

    def _score(self, models: Sequence[Any], which: int) -> WordScores:
        parts = self.parts[which]
        total = sum(part.n_tokens for part in parts)
        n_words = N_CHOOSING if which == 1 else N_WORDS
        sizes = [max(200, round(n_words * part.n_tokens / total)) for part in parts]
        given = zip(models, parts, sizes, strict=True)
        return WordScores.join([score_words(model, part, size) for model, part, size in given])

    def _passes_apart(self, seed: int) -> int:
        """Passes of the fits per group."""
        tried = self._try(PASSES_APART, partial(self.fit_apart, seed))
        return int(self._best("passes apart", tried))

    def _try(self, values: Sequence[Any], fit: Callable[[Any], list[Any]]) -> dict[Any, WordScores]:
        """Scores of validation words."""
        return {value: self._score(fit(value), 1) for value in values}

    def _best(self, what: str, tried: dict[Any, WordScores], measure: str = "share") -> Any:
        """The value with the best scores of validation words."""
        means = {value: float(scores.of(measure).mean()) for value, scores in tried.items()}
        best = max(means, key=means.__getitem__)
        beside = ", ".join(f"{value}: {mean:.4f}" for value, mean in means.items())
        label = f"{self.name}: {what} of the best validation {measure}"
        self.report.add(label, str(best), beside=beside)
        return best

    def _mean(self, fit: Callable[[int], list[Any]], seeds: Sequence[int]) -> WordScores:
        """Scores of the test words, averaged over fits of several seeds."""
        every = [self._score(fit(seed), 2) for seed in seeds]
        columns = (
            np.mean([getattr(scores, name) for scores in every], axis=0)
            for name in ("share", "positive", "negative")
        )
        return WordScores(*columns, every[0].document, every[0].text)

    def _show(self, scores: dict[str, WordScores]) -> None:
        """Means and paired differences; gains in the smaller and in the larger groups."""
        one = scores[ONE]
        for name, each in scores.items():
            for what in ("share", "positive", "both"):
                gap = each.of(what) - one.of(what)
                beside = "" if name == ONE else f"{show_gap(gap, one.document)} from {ONE}"
                label = f"{self.name}, {what}: {name}"
                self.report.add(label, float(each.of(what).mean()), beside=beside)
        rank = np.argsort(np.argsort([part.n_tokens for part in self.parts[0]], kind="stable"))
        small = (rank < len(rank) // 2)[one.text]
        for side, rivals in ((OWN, (SHIFTED, TUNED, APART)), (BOTH, (SHIFTED, OWN, TUNED, APART))):
            for rival in rivals:
                self._compare(side, rival, scores, small)

    def _compare(self, side: str, rival: str, scores: dict[str, WordScores], small: Array) -> None:
        """Paired differences of two sides; of shares, also by the size of the group."""
        own, other = scores[side], scores[rival]
        name, gap = f"{self.name}, share: {side} less {rival}", own.share - other.share
        self.report.add(name, show_gap(gap, own.document))
        positive = show_gap(own.positive - other.positive, own.document)
        self.report.add(name.replace("share", "positive", 1), positive)
        for kind, some in (("smaller", small), ("larger", ~small)):
            value = show_gap(gap[some], own.document[some])
            self.report.add(f"{name}, {kind} half of the groups", value)


class SliceContest(TextContest):
    """The contest of Rudolph and Blei: every model goes on from the same passes of the static one.

    What follows are passes of falling steps, over the whole text or over a slice. Their first step,
    the precision and the steps of what slices share are chosen on validation words, for each
    measure by that measure. Only a fit per slice begins at random, as it does in the paper.
    """

    def play(self) -> None:
        """Choose on validation words, score test words, and print differences."""
        seeds = self.report.settings.seeds
        self.begun = {seed: self.make(seed).fit(self.train) for seed in seeds}
        scores = {side: self._play(side, seeds) for side in (ONE, TUNED, SHIFTED, OWN, BOTH)}
        passes = self._passes_apart(seeds[0])
        scores[APART] = self._mean(lambda seed: self.fit_apart(seed, passes), seeds)
        self._show(scores)

    def _play(self, side: str, seeds: Sequence[int]) -> WordScores:
        precisions = OF_SLICES if side in (OWN, BOTH) else (FIXED,)
        shared = (1.0,) if side in (ONE, TUNED) else SHARED
        choices = list(itertools.product(precisions, STEPS, shared))
        tried = self._try(choices, lambda choice: self.go_on(seeds[0], side, *choice))
        what = f"precision, first step and shared steps of {side}"
        best = [self._best(what, tried, measure) for measure in ("share", "positive")]
        scores = {
            choice: self._mean(lambda seed, choice=choice: self.go_on(seed, side, *choice), seeds)
            for choice in dict.fromkeys(best)
        }
        return replace(scores[best[1]], share=scores[best[0]].share)

    def go_on(
        self, seed: int, side: str, precision: float, step: float, shared: float
    ) -> list[Any]:
        """The models of the slices."""
        model = self.begun[seed]
        if side == TUNED:
            return [self._tune(model, text, seed, step) for text in self.parts[0]]
        structure = self.structure(precision, contexts=side == BOTH)
        more = {} if side == ONE else {"structure": structure}
        return [self._tune(model, self.train, seed, step, shared, **more)] * len(self.labels)


def _speed(report: Report) -> None:
    """CPU time of whole fits of one pass: the plain model's over that of one with groups."""
    import efemb

    cases: tuple[tuple[str, Any, Any], ...] = (
        ("20 Newsgroups", newsgroups_by_group, efemb.Grouped("group", min_rows=1)),
        ("arXiv-ML", papers, efemb.Dynamic("year")),
        ("arXiv-ML", papers, efemb.Dynamic("year", contexts=True)),
    )
    for name, read, structure in cases:
        text = read(report.settings)[0]
        for k in (K, 2 * K):
            ratios = []
            for turn in range(1 + report.settings.repeats):
                seconds = [_fit_seconds(text, k, each) for each in ("per-entity", structure)]
                if turn:  # the first compiles
                    ratios.append(seconds[0] / seconds[1])
            each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            label = f"{name}, K={k}: speed of {structure!r} in units of the plain model's"
            report.add(label, float(np.median(ratios)), beside=each)


def _fit_seconds(text: Any, k: int, structure: Any) -> float:
    import efemb

    options = {"max_iter": 1, "early_stopping": False, "n_jobs": 1, "random_state": 0}
    options["intercept"] = True  # those of groups move in any case
    model = efemb.BernoulliTextEmbedding(
        k, zeros=efemb.NegativeSampling(NEGATIVES, "smoothed"), structure=structure, **options
    )
    began = time.process_time()
    model.fit(text)
    return time.process_time() - began


def _papers(report: Report) -> None:
    """arXiv-ML by year, the split of Rudolph and Blei: contexts of 2 and of 8 words."""
    import efemb

    texts = papers(report.settings)
    for size in (1, 4):
        SliceContest(
            report,
            f"arXiv-ML, {2 * size} words around",
            texts,
            "year",
            lambda precision, **more: efemb.Dynamic("year", precision=precision, **more),
            context=efemb.Window(size),
        ).play()


def _grouped(name: str, read: Callable[[Settings], Any], column: str) -> Callable[[Report], None]:
    """The contest of a text whose documents have groups."""

    def play(report: Report) -> None:
        import efemb

        def structure(precision: float, **more: Any) -> Any:
            return efemb.Grouped(column, precision=precision, min_rows=1, **more)

        TextContest(report, name, read(report.settings), column, structure).play()

    return play


def _households(report: Report) -> None:
    """Trips of Complete Journey by the size of the household."""
    import efemb

    data = efemb.datasets.fetch_complete_journey(
        report.settings.data, demographics=True, progress=False
    )
    trips = by_type(data, LEAST_TRIPS)
    known = np.array([size is not None for size in trips.rows["household_size"].tolist()])
    order = np.random.default_rng(0).permutation(np.flatnonzero(known))
    cuts = np.split(order, [6000, 10_000, 10_000 + MOST_TRIPS])
    test, validation, train = (trips.take_rows(np.sort(rows)) for rows in cuts[:3])

    def structure(precision: float) -> Any:
        return efemb.Grouped("household_size", precision=precision)

    _contest_of_trips(report, "households by size", (train, validation, test), structure)


def _contest_of_trips(
    report: Report, name: str, parts: Sequence[Any], structure: Callable[[float], Any]
) -> None:
    import efemb

    train, validation, test = parts
    column = structure(1.0).column
    labels = np.unique(np.asarray(train.rows[column], dtype=str))

    def fit(structure: Any, rows: Any = train) -> Any:
        options = {"max_iter": TRIP_PASSES, "random_state": 0, "n_jobs": 1}
        return efemb.CategoricalEmbedding(30, structure=structure, **options).fit(rows)

    def of(rows: Any, label: Any) -> Any:
        return rows.take_rows(np.asarray(rows.rows[column], dtype=str) == label)

    models = {value: fit(structure(value)) for value in PRECISIONS}
    scores = {value: model.score(validation) for value, model in models.items()}
    best = max(scores, key=lambda value: scores[value])
    tried = ", ".join(f"{value:g}: {score:.4f}" for value, score in scores.items())
    report.add(f"{name}: precision of the best validation score", best, beside=tried)
    sides = {ONE: fit("per-entity"), SHIFTED: fit(structure(FIXED)), OWN: models[best]}
    apart = {label: fit("per-entity", of(train, label)) for label in labels}
    each = {
        side: [_score_trips(model, of(test, label)) for label in labels]
        for side, model in sides.items()
    }
    each[APART] = [_score_trips(apart[label], of(test, label)) for label in labels]
    for side, of_labels in each.items():
        units, sums = (np.concatenate(one) for one in zip(*of_labels, strict=True))
        against = np.concatenate([sums_of for _, sums_of in each[ONE]])
        report.add(
            f"{name}: {side}",
            float(sums.sum() / units.sum()),
            beside="" if side == ONE else f"{_ratio(sums - against, units)} from {ONE}",
        )
    for rival in (SHIFTED, APART):
        units, sums = (np.concatenate(one) for one in zip(*each[OWN], strict=True))
        gap = _ratio(sums - np.concatenate([against for _, against in each[rival]]), units)
        report.add(f"{name}: {OWN} less {rival}", gap)
    for i, label in enumerate(labels):
        units, sums = each[OWN][i]
        for rival in (SHIFTED, APART):
            gap = _ratio(sums - each[rival][i][1], units)
            size = f"{int((np.asarray(train.rows[column], dtype=str) == label).sum()):,} trips"
            report.add(f"{name}, {label} ({size}): by group less {rival}", gap)


def _score_trips(model: Any, trips: Any) -> tuple[Array, Array]:
    """Units and sum of the log-shares of the units of each trip, each given the rest."""
    from efemb.evaluation import leave_one_out

    predictions = leave_one_out(model, trips)
    units = np.bincount(predictions.row, predictions.x, trips.n_rows)
    return units, np.bincount(predictions.row, predictions.x * predictions.log_share, trips.n_rows)


def _ratio(sums: Array, units: Array) -> str:
    """Mean per unit with its error over trips."""
    mean = sums.sum() / units.sum()
    error = np.sqrt(((sums - mean * units) ** 2).sum()) / units.sum()
    return f"{mean:+.4f} ± {error:.4f}"


CONTESTS = {
    "arxiv": _papers,
    "brown": _grouped("Brown by genre", brown_genres, "genre"),
    "newsgroups": _grouped("20 Newsgroups by group", newsgroups_by_group, "group"),
    "households": _households,
    "speed": _speed,
}
