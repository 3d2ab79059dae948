"""Create, fit and score a model for a command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import efemb
from efemb.cli._inputs import Reading
from efemb.cli._output import Say
from efemb.errors import ParameterError

BASKET = "basket"  # `BasketEmbedding`
LEAST_BASKETS = 50  # minimum, because some are held out to fit the weights
MAX_COMPONENTS = {BASKET: 100}
USUAL_COMPONENTS = 50
LEAST_SEEN = 3  # observations per component of an item; longer vectors overfit
N_ROW_COMPONENTS = 20
N_WEEK_COMPONENTS = 10
NEIGHBOR_MODELS = ("g-emb", "ng-emb")
WEIGHED = ("p-emb", "p-emb-dw", "ap-emb", "categorical")  # accept fractional quantities


def choose_model(
    name: str | None,
    data: Any,
    say: Say,
    neighbors: int | None = None,
    reading: Reading | None = None,
) -> str:
    """The specified name, or the model that suits the data; `BASKET` only with `reading`."""
    from efemb.estimators.names import OF_FAMILY, guess_family

    if name is not None:
        return name
    if reading is not None and _are_plain_baskets(data, reading):
        say(f"model: {BASKET}, since the data are transactions")
        return BASKET
    if isinstance(data, efemb.Corpus):
        say("model: b-emb, the default for text")
        return "b-emb"
    family, why = guess_family(data)
    # Raw fluorescence often consists of integers, but positions and neighbors mean a recording.
    if data.positions is not None:
        family, why = "gaussian", "the columns have positions"
    elif neighbors is not None and not data.is_sparse:
        family, why = "gaussian", "--neighbors is set"
    say(f"model: {OF_FAMILY[family]}, since {why}")
    return OF_FAMILY[family]


def _are_plain_baskets(data: Any, reading: Reading) -> bool:
    """Whether there are enough baskets, and no options that `BasketEmbedding` cannot use."""
    if isinstance(data, efemb.Corpus) or not data.is_sparse or data.n_rows < LEAST_BASKETS:
        return False
    return not _names_more_than_customers(reading)


def choose_components(
    k: int | None, n_observations: int, n_entities: int, say: Say, model: str = ""
) -> int:
    """The specified length, or one for which the data are large enough."""
    if k is not None:
        return k
    largest = MAX_COMPONENTS.get(model, USUAL_COMPONENTS)
    per_entity = n_observations // max(1, n_entities)
    k = max(1, min(largest, n_entities // 4, per_entity // LEAST_SEEN))
    say(f"components: {k}" + (", since the data are small" if k < largest else ""))
    return k


def count_observations(data: Any) -> int:
    """Entries of baskets, cells of arrays, words of text."""
    if isinstance(data, efemb.Corpus):
        return int(data.n_tokens)
    return int(data.values.nnz if data.is_sparse else data.n_rows * data.n_entities)


def check_context(
    name: str | None, neighbors: int | None, window: int | None, positions: Any = None
) -> None:
    """Reject a context that does not suit a model, before any data are read."""
    from efemb.estimators.names import TEXT_MODELS

    if window is not None and name is not None and name not in TEXT_MODELS:
        raise ParameterError(f"--window applies to text, not to {name}")
    if name is None or name in NEIGHBOR_MODELS:
        return
    for option, value in {"--neighbors": neighbors, "--positions": positions}.items():
        if value is not None:
            raise ParameterError(f"{option} applies to g-emb and ng-emb, not to {name}")


def make_model(
    name: str,
    k: int,
    data: Any,
    neighbors: int | None = None,
    window: int | None = None,
    **options: Any,
) -> Any:
    """An estimator for the data."""
    from efemb.estimators.names import model_named

    text = isinstance(data, efemb.Corpus)
    check_context(name, neighbors, window)
    if name == BASKET:
        if text or not data.is_sparse:
            raise ParameterError(f"{BASKET} is a model of transactions, which these data are not")
        return efemb.BasketEmbedding(k, **options)
    if window is not None:
        if not text:
            raise ParameterError("--window applies to text, but these data are numbers")
        options["context"] = efemb.Window(window)
    if neighbors is not None:
        options["context"] = efemb.Neighbors(neighbors)
    if not text and data.is_sparse and name in WEIGHED:  # such as kilograms
        options["allow_real"] = True
    return model_named(name, k, text=text, **options)


def choose_structure(data: Any, say: Say) -> Any:
    """Structure with all features of the items that vary."""
    columns = {name: column.tolist() for name, column in data.features.items()}
    names = [name for name, column in columns.items() if len(set(map(str, column))) > 1]
    if not names:
        raise ParameterError("--features: no feature differs between items")
    structure = efemb.Featured(names)
    say(f"structure: {structure!r}")
    return structure


def further_options(name: str, reading: Reading, data: Any, say: Say) -> dict[str, Any]:
    """Options of a model for columns other than baskets, items and counts."""
    if name == BASKET:
        if _names_more_than_customers(reading):
            raise ParameterError(
                f"{BASKET} takes a single --row, the customer, and neither --week, --price nor "
                "--features: choose --model p-emb or b-emb"
            )
        return {"user": reading.rows[0] if reading.rows else None}
    options: dict[str, Any] = {}
    if terms := make_terms(reading, say):
        options["terms"] = terms
    if reading.features is not None:
        options["structure"] = choose_structure(data, say)
    return options


def _names_more_than_customers(reading: Reading) -> bool:
    options = (reading.week, reading.price, reading.features)
    return len(reading.rows) > 1 or any(other is not None for other in options)


def make_terms(reading: Reading, say: Say) -> list[Any]:
    """Terms of the predictor for the specified columns; all of them are reported."""
    terms: list[Any] = []
    for column in reading.rows:
        terms += [efemb.History(column), efemb.RowVectors(column, N_ROW_COMPONENTS)]
    if reading.week is not None:
        prior = efemb.Normal(100.0)  # seasonal effects are small compared with tastes
        terms.append(efemb.RowVectors(reading.week, N_WEEK_COMPONENTS, prior=prior))
    if reading.price is not None:
        terms.append(efemb.CellCovariate("price", log=True))
    if terms:
        say(f"terms: {', '.join(map(repr, terms))}")
    return terms


@contextmanager
def warnings_as_remarks(say: Say) -> Iterator[None]:
    """Turn warnings, such as that a limit of passes was reached, into remarks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"note: {text.replace('raise max_iter', 'raise --max-iter')}")


def score_held_out(model: Any, train: Any, test: Any) -> dict[str, float]:
    """Score on held-out data, beside a model without context if there is one."""
    if isinstance(train, efemb.Corpus):
        words = efemb.evaluation.held_out_words(model, test)
        return {"score": words.log_likelihood, "popularity": words.unigram}
    scores = {"score": float(model.score(test))}
    from efemb.evaluation.comparison import fit_popularity

    rival, train_as_read = fit_popularity(model, train, test)
    if not rival.family_.missing:
        return {**scores, "popularity": float(rival.score(train_as_read))}
    return {**scores, **_score_real(model, test, rival, train_as_read)}


def _score_real(model: Any, test: Any, rival: Any, seen: Any) -> dict[str, float]:
    """Squared errors, R^2, and the log-density without context at the model's single variance."""
    import numpy as np

    from efemb.baselines.arrays import normal_log_density
    from efemb.evaluation import leave_one_out

    with_context, without = (leave_one_out(*pair) for pair in ((model, test), (rival, seen)))
    gap = without.x - without.known("mean")
    density = normal_log_density(gap, np.array(rival.family_.variance))
    error = with_context.mean_squared_error().value
    plain = without.mean_squared_error().value
    return {
        "popularity": float(density.mean()),
        "squared_error": error,
        "squared_error_without_context": plain,
        "r2": 1.0 - error / plain if plain > 0 else float("nan"),
    }


def describe_useless(score: float, rival: float, *, larger_is_better: bool = True) -> str:
    """A remark about a model that is no better than one without context; else empty."""
    better = score > rival if larger_is_better else score < rival
    if better:
        return ""
    return (
        "the model is no better than one without context (popularity, frequencies of words, or the "
        "means of columns): do not trust its answers; use more data, larger baskets, longer "
        "documents or fewer components (-k), or leave out --row and --week where you passed them"
    )
