"""Softmaxes among drawn entities on rows: what they are on average, and with every entity drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import efemb
from efemb.engine.random import RoundKey
from efemb.engine.solvers.rows.softmax import _compete
from efemb.engine.solvers.rows.zero_stages import HIDDEN
from efemb.model.factors import Factors
from efemb.model.spec import Spec
from engine import models, plain

N, N_DRAWS = 8, 1500
X = models.counts("p-emb", 9, N)
NOISE = np.array([3.0, 1.0, 0.5, 2.0, 1.0, 1.0, 0.7, 1.3])


def solver_of(zeros: Any, data: Any = X) -> Any:
    spec = Spec.resolve(
        context=efemb.Basket(), family="categorical", link="identity", prior="normal", zeros=zeros
    )
    return models.solver("rows", models.bind(data, spec), spec)


def predictors(x: Any, n: int, vectors: Factors) -> Any:
    """u of every entity given the row without entity n."""
    s = plain.context(x, n, vectors.bag, "total")
    return np.array([vectors.target[j] @ s + vectors.intercept[j] for j in range(N)])


def softmax(u: Any, n: int) -> float:
    return float(u[n] - np.log(np.exp(u).sum()))


def contrast(u: Any, n: int, n_noise: int, q: Any) -> float:
    """Expected log-probability of distinguishing entity n from `draws` of q."""
    odds = np.exp(u) / (n_noise * q)
    return float(np.log(odds[n] / (1 + odds[n])) - n_noise * q @ np.log(1 + odds))


def value_of(density: Any, data: Any, vectors: Factors) -> float:
    """The sum over units by plain loops."""
    return sum(
        data[t, n] * density(predictors(data[t], n, vectors), n)
        for t, n in zip(*np.nonzero(data), strict=True)
    )


def differences(function: Any, vectors: Factors, step: float = 1e-5) -> Any:
    """Central differences of a function of the vectors."""
    slopes = []
    for array in (vectors.target, vectors.bag, vectors.intercept):
        for place in np.ndindex(array.shape):
            kept, sides = array[place], []
            for nudge in (step, -step):
                array[place] = kept + nudge
                sides.append(function(vectors))
            array[place] = kept
            slopes.append((sides[0] - sides[1]) / (2 * step))
    return np.array(slopes)


@pytest.mark.parametrize("n", [N, 50])
def test_with_every_entity_drawn_the_softmax_is_exact(n: int) -> None:
    vectors = models.vectors(N)
    value, slopes = solver_of(efemb.SampledSoftmax(n)).value_and_gradient(vectors)
    assert_allclose(value, value_of(softmax, X, vectors), rtol=1e-9)
    wanted = differences(lambda one: value_of(softmax, X, one), vectors)
    assert_allclose(plain.flat(slopes, N), wanted, atol=1e-6)


@pytest.mark.parametrize("zeros", [efemb.SampledSoftmax(3), efemb.NoiseContrastive(2, "sqrt")])
def test_gradients_are_those_of_what_was_drawn(zeros: Any) -> None:
    solver, vectors = solver_of(zeros), models.vectors(N)

    def value_and_gradient(one: Factors) -> Any:
        solver.start_round(RoundKey(3))  # the same draw every time
        return solver.value_and_gradient(one)

    slopes = plain.flat(value_and_gradient(vectors)[1], N)
    wanted = differences(lambda one: value_and_gradient(one)[0], vectors)
    assert_allclose(slopes, wanted, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 5])
def test_the_sum_over_drawn_entities_is_unbiased(n: int) -> None:
    """Of an entry, whether it is drawn itself or not."""
    solver, vectors = solver_of(efemb.SampledSoftmax(3, NOISE)), models.vectors(N)
    u = predictors(X[3], n, vectors)
    totals = []
    for _ in range(N_DRAWS):
        drawn = solver.draws(1)
        inner = u[drawn.index][None].copy()
        inner[:, drawn.index == n] = HIDDEN
        log_density = _compete(inner, u[[n]], drawn.weight, np.empty(1))
        totals.append(np.exp(u[n] - log_density[0]))
    error = np.std(totals) / np.sqrt(N_DRAWS)
    assert error > 0, "nothing was drawn"
    assert abs(np.mean(totals) - np.exp(u).sum()) < 4 * error


@pytest.mark.slow
def test_contrast_with_noise_is_unbiased() -> None:
    n_noise, q, vectors = 4, NOISE / NOISE.sum(), models.vectors(N)
    solver = solver_of(efemb.NoiseContrastive(n_noise, NOISE))
    draws = []
    for _ in range(N_DRAWS):
        value, slopes = solver.value_and_gradient(vectors)
        draws.append(np.append(plain.flat(slopes, N), value))

    def expected(one: Factors) -> float:
        return value_of(lambda u, n: contrast(u, n, n_noise, q), X, one)

    wanted = np.append(differences(expected, vectors), expected(vectors))
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(N_DRAWS)
    assert (error > 0).any(), "nothing was drawn"
    assert_allclose((mean - wanted) / (4 * error + 1e-6), 0, atol=1.0)


@pytest.mark.parametrize("zeros", [efemb.SampledSoftmax(3), efemb.NoiseContrastive(2)])
def test_scores_are_those_of_the_softmax_over_all_entities(zeros: Any) -> None:
    vectors = models.vectors(N)
    value, slopes = solver_of(zeros).value_and_gradient(vectors, exact=True)
    exact, wanted = solver_of("all").value_and_gradient(vectors)
    assert value == exact
    assert_allclose(plain.flat(slopes, N), plain.flat(wanted, N), rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("zeros", "loss"), [(efemb.SampledSoftmax(20), 0.03), (efemb.NoiseContrastive(20), 0.05)]
)
def test_fits_come_close_to_the_exact_softmax(zeros: Any, loss: float) -> None:
    trips = efemb.simulation.simulate_baskets(
        n_rows=1500, n_entities=60, n_lines=9000, n_topics=4, seed=0
    )
    train, test = trips.split(test=0.2, seed=0)
    options = {"random_state": 0, "n_jobs": 1, "batch_size": 256}
    exact = efemb.CategoricalEmbedding(5, **options).fit(train).score(test)
    drawn = efemb.CategoricalEmbedding(5, zeros=zeros, **options).fit(train).score(test)
    nothing = efemb.baselines.Popularity().fit(train).score(test)
    assert drawn > exact - loss
    assert drawn > nothing + 0.5 * (exact - nothing)


@pytest.mark.filterwarnings("ignore:.*max_iter=2")
def test_draws_do_not_depend_on_threads() -> None:
    trips = efemb.simulation.simulate_baskets(
        n_rows=300, n_entities=40, n_lines=1500, n_topics=4, seed=0
    )
    options = {"zeros": efemb.SampledSoftmax(10), "max_iter": 2, "random_state": 0}
    fits = [efemb.CategoricalEmbedding(3, n_jobs=n, **options).fit(trips) for n in (1, 2)]
    assert np.array_equal(fits[0].rho_, fits[1].rho_)


HISTORY = [efemb.History("household")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "poisson"}, "needs the categorical family"),
        ({"combine": "reverse"}, "combine='reverse' needs a Window"),
        ({"zeros": efemb.Hierarchical()}, "needs a Window"),
        ({"zeros": efemb.Sampled(5)}, "'all', 'noise-contrastive', 'sampled-softmax'"),
        ({"solver": "generic"}, "solver 'rows'"),
        ({"terms": HISTORY}, "single cells"),
    ],
    ids=["family", "reverse", "tree", "zeros", "solver", "terms"],
)
def test_what_draws_do_not_go_with(options: dict[str, Any], message: str) -> None:
    trips = efemb.Dataset(X, rows={"household": ["a", "b", "a"] * 3, "week": list(range(9))})
    settings = {"family": "categorical", "zeros": efemb.SampledSoftmax(3), "context": "basket"}
    with pytest.raises(efemb.ParameterError, match=message):
        efemb.Embedding(2, **{**settings, **options}).fit(trips)
