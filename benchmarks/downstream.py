"""Are the vectors useful for other tasks? Documents, movies, places in a brain, purchases.

Every task is a scikit-learn pipeline on top of fixed vectors, the same for all of them. Differences
are paired: the same test documents, genres, regions or products. Results of fits with several seeds
are averaged for each of these; what needs no seed is fitted once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import file_of
from benchmarks.harness import Report, Settings
from benchmarks.rivals.gensim import Gensim, skip_gram_vectors
from benchmarks.text_data import newsgroups, table_lines

Array = NDArray[Any]
K_MOVIES, FEWEST, FOLDS = 20, 20, 10
K_NEURONS, K_HOUSEHOLDS = 10, 20
LAST_WEEK, N_TYPES = 48, 20  # of the training trips; product types asked about
LEAST_TRIPS = 100  # with a product type, of those that are modeled
PENALTIES = [0.01, 0.1, 1.0, 10.0]
RIDGES = [0.1, 1.0, 10.0, 100.0, 1000.0]


def run(settings: Settings) -> Report:
    """Every task, or those that `--only` names: documents, genres, places, purchases."""
    report = Report("downstream", settings)
    if settings.quick:
        report.add("tasks need real data", 0.0)
        return report
    for name, task in TASKS.items():
        if not settings.only or name in settings.only:
            task(report)
    return report


def _classify_documents(report: Report) -> None:
    """20 newsgroups: the group of a test document from the mean of its word vectors."""
    import efemb

    settings = report.settings
    text, _ = newsgroups(settings)
    parts = [_read_part(settings, part, text.vocabulary) for part in ("train", "test")]
    labels = [groups for groups, _ in parts]

    def judge(seed: int) -> dict[str, Array]:
        models = {
            "words: skip-gram": efemb.SkipGram(100, random_state=seed),
            "words: b-emb (CBOW with negatives)": efemb.BernoulliTextEmbedding(
                100, random_state=seed
            ),
        }
        vectors = {name: _words(model, text) for name, model in models.items()}
        if Gensim.available():
            vectors["words: gensim's skip-gram"] = skip_gram_vectors(text, seed)[0]
        return {
            name: _classify(*(document_means(codes, words) for _, codes in parts), labels)
            for name, words in vectors.items()
        }

    weighted = _tf_idf(*(codes for _, codes in parts), len(text.vocabulary))
    once = {"TF-IDF of words": _classify(*weighted, labels)}
    _add_paired(report, "20 newsgroups, accuracy", judge, once, "words: skip-gram")


def _read_part(settings: Settings, part: str, vocabulary: Any) -> tuple[Array, list[Array]]:
    """Groups and codes of the known words of every document, empty ones included."""
    path = file_of(settings, f"20newsgroups/20newsgroups-{part}.tab.xz")
    place = {word: code for code, word in enumerate(vocabulary)}
    lines = [line.partition("\t") for line in table_lines(path)]
    codes = [
        np.array([place[word] for word in text.split() if word in place], dtype=np.int64)
        for _, _, text in lines
    ]
    return np.array([group for group, _, _ in lines]), codes


def _words(model: Any, text: Any) -> Array:
    return np.asarray(model.fit(text).rho_)


def document_means(documents: list[Array], words: Array) -> Array:
    """Mean of the unit vectors of the words of each document, 0 for an empty one."""
    unit = words / np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-12)
    means = np.zeros((len(documents), words.shape[1]))
    for i, codes in enumerate(documents):
        if len(codes):
            means[i] = unit[codes].mean(axis=0)
    return means


def _tf_idf(train: list[Array], test: list[Array], n_words: int) -> tuple[Any, Any]:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfTransformer

    def count(documents: list[Array]) -> Any:
        codes = np.concatenate(documents)
        ptr = np.cumsum([0, *map(len, documents)])
        return csr_array((np.ones(len(codes)), codes, ptr), shape=(len(documents), n_words))

    weigh = TfidfTransformer(sublinear_tf=True).fit(count(train))
    return weigh.transform(count(train)), weigh.transform(count(test))


def _tuned_classifier(*, scaled: bool) -> Any:
    """Logistic regression, its penalty chosen on a fifth of the training part."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = [StandardScaler()] if scaled else []
    pipeline = make_pipeline(*steps, LogisticRegression(max_iter=300))
    held = StratifiedShuffleSplit(1, test_size=0.2, random_state=0)
    return GridSearchCV(pipeline, {"logisticregression__C": PENALTIES}, cv=held)


def _classify(train: Any, test: Any, labels: list[Array]) -> Array:
    """Whether each test document gets its label; TF-IDF is scaled as it is."""
    classifier = _tuned_classifier(scaled=isinstance(train, np.ndarray))
    return np.asarray(classifier.fit(train, labels[0]).predict(test) == labels[1], float)


def _predict_genres(report: Report) -> None:
    """MovieLens: each frequent genre from vectors of movies, by the area under the ROC curve."""
    from sklearn.decomposition import TruncatedSVD

    import efemb

    data = efemb.datasets.fetch_movielens_100k(report.settings.data, progress=False)
    genres = data.report["genres"]
    names = sorted({genre for label in data.entities for genre in genres[label]})
    flags = np.array([[genre in genres[label] for genre in names] for label in data.entities])
    flags = flags[:, flags.sum(axis=0) >= FEWEST]

    def judge(seed: int) -> dict[str, Array]:
        areas = {}
        for name, model in (
            ("p-emb", efemb.PoissonEmbedding(K_MOVIES, random_state=seed)),
            ("b-emb", efemb.BernoulliEmbedding(K_MOVIES, binarize=True, random_state=seed)),
        ):
            fitted = model.fit(data)
            areas[f"{name}, rho"] = _areas(fitted.rho_, flags)
            both = np.hstack([fitted.rho_, fitted.alpha_])
            areas[f"{name}, rho and alpha"] = _areas(both, flags)
        return areas

    factors = TruncatedSVD(K_MOVIES, random_state=0).fit_transform(np.log1p(data.values.T))
    once = {"SVD of log counts": _areas(factors, flags)}
    task = f"{flags.shape[1]} genres of movies, area"
    _add_paired(report, task, judge, once, "p-emb, rho")


def _areas(features: Array, flags: NDArray[np.bool_]) -> Array:
    """Area under the ROC curve of each genre, from predictions of left-out folds."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    areas = []
    for genre in flags.T:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        classifier = _tuned_classifier(scaled=True)
        p = cross_val_predict(classifier, features, genre, cv=folds, method="predict_proba")[:, 1]
        areas.append(roc_auc_score(genre, p))
    return np.array(areas)


def _locate_neurons(report: Report) -> None:
    """Zebrafish: where a region or a neuron lies, from its vectors; one is left out at a time."""
    from sklearn.decomposition import PCA, FactorAnalysis

    import efemb

    for which in ("regions", "tectum"):
        data = efemb.datasets.fetch_zebrafish(which, report.settings.data, progress=False)
        signals = np.asarray(data.values, dtype=np.float64)
        recorded = np.flatnonzero(np.nan_to_num(signals.std(axis=0)) > 0)
        signals = signals[:, recorded]
        signals = (signals - signals.mean(axis=0)) / signals.std(axis=0)
        places = np.asarray(data.positions, dtype=np.float64)[recorded]
        vectors = {
            "PCA": PCA(K_NEURONS, random_state=0).fit(signals).components_.T,
            "factor analysis": FactorAnalysis(K_NEURONS).fit(signals).components_.T,
            "correlations with all": np.corrcoef(signals.T),
        }
        once = {name: explain_places(each, places) for name, each in vectors.items()}
        task = f"{len(places)} {'regions' if which == 'regions' else 'neurons'}, place, R^2"
        judge = partial(_judge_neurons, signals, places)
        _add_paired(report, task, judge, once, "g-emb (c=all), rho")


def _judge_neurons(signals: Array, places: Array, seed: int) -> dict[str, Array]:
    import efemb

    explained = {}
    # Neighbors by correlation: contexts made of the nearest would give the places away.
    for name, size in (("g-emb (c=10)", 10), ("g-emb (c=all)", len(places) - 1)):
        context = efemb.Neighbors(size)
        model = efemb.GaussianEmbedding(K_NEURONS, context=context, random_state=seed).fit(signals)
        explained[f"{name}, rho"] = explain_places(model.rho_, places)
        both = np.hstack([model.rho_, model.alpha_])
        explained[f"{name}, rho and alpha"] = explain_places(both, places)
    return explained


def explain_places(features: Array, places: Array) -> Array:
    """1 - squared error over variance of each neuron's place, predicted from all other neurons."""
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import LeaveOneOut, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    regression = make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGES))
    predicted = cross_val_predict(regression, features, places, cv=LeaveOneOut())
    return np.asarray(1.0 - ((predicted - places) ** 2 / places.var(axis=0)).mean(axis=1))


def _predict_purchases(report: Report) -> None:
    """Complete Journey: what a household buys in the week after the last training week."""
    from sklearn.decomposition import TruncatedSVD

    import efemb

    data = efemb.datasets.fetch_complete_journey(report.settings.data, progress=False)
    trips = by_type(data)
    week = np.asarray(trips.rows["week"], dtype=np.int64)
    train = trips.take_rows(np.flatnonzero(week <= LAST_WEEK))
    labels = np.unique(np.asarray(train.rows["household"]))
    place = {home: i for i, home in enumerate(labels.tolist())}
    counts = _by_household(train, place)
    later = _by_household(trips.take_rows(np.flatnonzero(week == LAST_WEEK + 1)), place) > 0
    frequent = np.argsort(-later.sum(axis=0), kind="stable")[:N_TYPES]
    later, logs = later[:, frequent], np.log1p(counts)

    def beside(vectors: Array) -> Array:
        pairs = zip(frequent, later.T, strict=True)
        return np.array([_areas(np.c_[vectors, logs[:, n]], y[:, None])[0] for n, y in pairs])

    def judge(seed: int) -> dict[str, Array]:
        term, options = efemb.RowVectors("household", K_HOUSEHOLDS), {"random_state": seed}
        model = efemb.PoissonEmbedding(K_HOUSEHOLDS, terms=[term], **options).fit(train)
        homes = model.rows("household")
        own = homes.theta[[homes.labels.index_of(home) for home in place]]
        means = efemb.PoissonEmbedding(K_HOUSEHOLDS, **options).fit(train).transform(counts)
        return {
            "household vectors": _areas(own, later),
            "mean vectors of purchases": _areas(means, later),
            "both": _areas(np.hstack([own, means]), later),
            "household vectors, and how often": beside(own),
        }

    factors = TruncatedSVD(K_HOUSEHOLDS, random_state=0).fit_transform(logs)
    once = {
        "SVD of log counts": _areas(factors, later),
        "how often it was bought": beside(np.empty((len(logs), 0))),
        "SVD of log counts, and how often": beside(factors),
    }
    task = f"{N_TYPES} purchases of next week, area"
    _add_paired(report, task, judge, once, "household vectors")


def by_type(data: Any, least: int = LEAST_TRIPS) -> Any:
    """Trips with counts of product types instead of products, those of at least so many trips."""
    from scipy.sparse import csr_array

    import efemb

    types, code = np.unique(np.asarray(data.features["type"], dtype=str), return_inverse=True)
    shape = (len(code), len(types))
    merge = csr_array((np.ones(len(code)), (np.arange(len(code)), code)), shape=shape)
    counts = csr_array(data.values) @ merge
    often = np.flatnonzero((counts > 0).sum(axis=0) >= least)
    return efemb.Dataset(csr_array(counts[:, often]), entities=types[often], rows=dict(data.rows))


def _by_household(trips: Any, place: dict[Any, int]) -> Array:
    """Units of each household and type; trips of unknown households are left out."""
    code = np.array([place.get(home, -1) for home in trips.rows["household"].tolist()])
    known = np.flatnonzero(code >= 0)
    total = np.zeros((len(place), trips.n_entities))
    entries = trips.values.tocsr()[known].tocoo()
    np.add.at(total, (code[known][entries.coords[0]], entries.coords[1]), entries.data)
    return total


def _add_paired(
    report: Report,
    task: str,
    judge: Callable[[int], dict[str, Array]],
    once: dict[str, Array],
    reference: str,
) -> None:
    """Means over seeds, paired differences from a reference, and those of each seed.

    judge : results of the fits with a seed, one number per unit;  once : those without a seed
    """
    fits = [judge(seed) for seed in report.settings.seeds]
    results = {name: np.stack([one[name] for one in fits]) for name in fits[0]}
    for name, values in {**results, **once}.items():
        gaps = values - results[reference]  # (seeds, units)
        gap, error = gaps.mean(), gaps.mean(axis=0).std(ddof=1) / np.sqrt(gaps.shape[1])
        each = ", ".join(f"{one:+.4f}" for one in gaps.mean(axis=1))
        beside = "" if name == reference else f"{gap:+.4f} ± {error:.4f} from {reference} ({each})"
        report.add(f"{task}: {name}", float(values.mean()), beside=beside)


TASKS = {
    "documents": _classify_documents,
    "genres": _predict_genres,
    "places": _locate_neurons,
    "purchases": _predict_purchases,
}
