"""Making, fitting and judging a model for a command."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from efemb.errors import ParameterError

MOST_COMPONENTS = 50
LEAST_SEEN = 3  # observations of an entity for each of its components; longer vectors overfit
NEIGHBOR_MODELS = ("g-emb", "ng-emb")
WEIGHED = ("p-emb", "p-emb-dw", "ap-emb", "categorical")  # take quantities between counts


def chosen_model(
    name: str | None, data: Any, say: Callable[[str], None], neighbors: int | None = None
) -> str:
    """The name that was given, or the model that suits the data."""
    from efemb.data.corpus import Corpus
    from efemb.data.readers.guess import guess_family
    from efemb.estimators.names import OF_FAMILY

    if name is not None:
        return name
    if isinstance(data, Corpus):
        say("model: b-emb, the default for text")
        return "b-emb"
    family, why = guess_family(data)
    # Raw fluorescence is often whole numbers, but places and neighbours are those of a recording.
    if data.positions is not None:
        family, why = "gaussian", "the columns have positions"
    elif neighbors is not None and not data.is_sparse:
        family, why = "gaussian", "its context are neighbours"
    say(f"model: {OF_FAMILY[family]}, since {why}")
    return OF_FAMILY[family]


def chosen_components(k: int | None, data: Any, say: Callable[[str], None]) -> int:
    """The length that was given, or one that the size of the data bears."""
    if k is not None:
        return k
    seen = observations(data) // max(1, int(data.n_entities))
    found = max(1, min(MOST_COMPONENTS, int(data.n_entities) // 4, seen // LEAST_SEEN))
    fewer = ", since the data are small" if found < MOST_COMPONENTS else ""
    say(f"components: {found}{fewer}")
    return found


def observations(data: Any) -> int:
    """Entries of baskets, cells of arrays, words of text."""
    from efemb.data.corpus import Corpus

    if isinstance(data, Corpus):
        return int(data.n_tokens)
    return int(data.values.nnz if data.is_sparse else data.n_rows * data.n_entities)


def check_context(
    name: str | None, neighbors: int | None, window: int | None, positions: Any = None
) -> None:
    """Refuse a context that does not go with a model, before any data are read."""
    from efemb.estimators.names import TEXT_MODELS

    if window is not None and name is not None and name not in TEXT_MODELS:
        raise ParameterError(f"--window goes with text, not with {name}")
    if name is None or name in NEIGHBOR_MODELS:
        return
    for option, value in {"--neighbors": neighbors, "--positions": positions}.items():
        if value is not None:
            raise ParameterError(f"{option} goes with g-emb and ng-emb, not with {name}")


def made(
    name: str,
    k: int,
    data: Any,
    neighbors: int | None = None,
    window: int | None = None,
    **options: Any,
) -> Any:
    """An estimator for the data."""
    from efemb.data.corpus import Corpus
    from efemb.estimators.names import model_named
    from efemb.model.contexts import Neighbors, Window

    text = isinstance(data, Corpus)
    check_context(name, neighbors, window)
    if window is not None:
        if not text:
            raise ParameterError("--window goes with text, and these data are numbers")
        options["context"] = Window(window)
    if neighbors is not None:
        options["context"] = Neighbors(neighbors)
    if not text and data.is_sparse and name in WEIGHED:  # kilograms beside pieces
        options["allow_real"] = True
    return model_named(name, k, text=text, **options)


@contextmanager
def without_warnings(say: Callable[[str], None]) -> Iterator[None]:
    """A limit of passes that was reached is a remark, not a warning with a file name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(one.message) for one in caught):
        say(f"note: {text.replace('raise max_iter', 'raise --max-iter')}")


def held_out_scores(model: Any, train: Any, test: Any) -> dict[str, float]:
    """Score of held-out data, beside a model that knows no context where there is one."""
    from efemb.data.corpus import Corpus

    found = {"score": float(model.score(test))}
    if not isinstance(train, Corpus):
        from efemb.evaluation.comparison import fit_popularity

        rival, seen = fit_popularity(model, train, test)
        found["popularity"] = float(rival.score(seen))
    return found
