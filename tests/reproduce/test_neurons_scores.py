"""Parts of the study of neurons: splits, folds, rows, readings and verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from efemb import GaussianEmbedding, Neighbors, Normal
from efemb.data.dataset import Dataset
from efemb.evaluation import leave_one_out
from efemb.evaluation.protocols import draw_folds
from efemb.reproduce import neurons_recordings
from efemb.reproduce.jobs import Job, Outcome
from efemb.reproduce.neurons_fits import (
    FOLDS,
    connect_other_folds,
    make_estimator,
    summarize_errors,
)
from efemb.reproduce.neurons_models import (
    PRINTED,
    NeuronModel,
    Plan,
    list_main_models,
    list_minibatch_models,
    list_other_readings,
    make_nonnegative,
)
from efemb.reproduce.neurons_recordings import Source
from efemb.reproduce.neurons_scores import (
    NeuronRow,
    choose_steps,
    collect_neuron_rows,
    compare_errors,
    find_main_model,
    judge_errors,
)
from efemb.simulation import simulate_zebrafish

PLAN = Plan(("simulated",), (2,), n_simulated=60, n_frames=90, iterations=8, steps=(0.3,))


def source(**changes) -> Source:
    return replace(Source("simulated", True, 0, PLAN), **changes)


@pytest.fixture
def counted(monkeypatch):
    """A recording whose frames can be told: neuron 0 counts them."""
    values = np.random.default_rng(0).normal(size=(101, 60))
    values[:, 0] = np.arange(101.0) ** 2
    data = Dataset(values, positions=np.random.default_rng(1).random((60, 3)))
    monkeypatch.setattr(neurons_recordings, "load_recording", lambda *_: data)
    neurons_recordings._load_frames.cache_clear()
    yield data
    neurons_recordings._load_frames.cache_clear()


def test_frames_are_split_as_the_protocol_says(counted):
    order = np.random.default_rng(3).permutation(100)
    wanted = np.diff(counted.values, axis=0)
    wanted /= wanted.std()
    found = source(seed=3).frames()
    for part, rows in ((found.train, order[:90]), (found.validation, order[90:95])):
        assert np.allclose(part.values, wanted[rows])
    assert np.allclose(found.test.values, wanted[order[95:]])
    assert found.variance == pytest.approx(np.diff(counted.values, axis=0).var())


def test_activity_is_centered_by_its_training_frames(counted):
    found = source(differenced=False).frames()
    assert np.allclose(found.train.values.mean(axis=0), 0, atol=1e-12)
    every = np.concatenate([part.values for part in (found.train, found.validation, found.test)])
    assert len(every) == 101
    assert (every * np.sqrt(found.variance)).std() == pytest.approx(np.sqrt(found.variance))


def test_blocks_are_held_out_whole(counted):
    found = source(blocks=True).frames()
    parts = [set(part.recordings.tolist()) for part in (found.train, found.validation, found.test)]
    assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]
    assert set.union(*parts) == {0, 1, 2}
    assert found.test.n_rows in (20, 40)


def test_neighbors_of_other_folds_are_the_nearest_ones():
    positions = np.random.default_rng(0).random((30, 2))
    fold = np.empty(30, dtype=int)
    for number, part in enumerate(draw_folds(30, FOLDS, 5)):
        fold[part] = number
    found = connect_other_folds(positions, 4, 5)
    for n in range(30):
        gaps = np.linalg.norm(positions - positions[n], axis=1)
        gaps[fold == fold[n]] = np.inf
        assert set(found[[n]].indices) == set(np.argsort(gaps)[:4])


def test_models_have_the_paper_s_figures_exactly_where_it_has_them():
    models = list_main_models((10, 100))
    printed = {(m.model, m.c, m.k) for m in models if m.printed()[0]}
    assert printed == set(PRINTED)
    assert not any(m.printed()[0] for m in list_other_readings((10, 100)))
    assert len({m.name for m in [*models, *list_other_readings((10, 100))]}) == 12


def test_other_readings_belong_to_a_model_of_the_main_table():
    main = list_main_models((10, 100))
    for model in [*list_other_readings((10, 100)), *list_minibatch_models(main[1:])]:
        assert find_main_model(model) in main or model.model == "FA"


def test_means_of_neighbors_with_lambda_over_c_are_the_same_model():
    data = simulate_zebrafish(n_neurons=40, n_frames=60, n_fields=4).data
    train, test = data.take_rows(slice(0, 50)), data.take_rows(slice(50, 60))
    fits = [
        GaussianEmbedding.paper(2, context=around, prior=prior, random_state=0, dtype="float64")
        for around, prior in (
            (Neighbors(5), Normal(10.0)),
            (Neighbors(5, scale="items"), Normal(2.0)),
        )
    ]
    means = [fit.set_params(tol=1e-9).fit(train, validation=test).conditional(test) for fit in fits]
    assert np.corrcoef(means[0].ravel(), means[1].ravel())[0, 1] > 0.99


def test_minibatch_steps_are_about_as_many_as_the_paper_s():
    model = make_estimator(replace(NeuronModel("g-emb", 2, 10), step=0.3), source(), 1, n_rows=250)
    assert (model.solver, model.batch_size) == ("generic", 100)
    assert model.max_iter * 250 / 100 == pytest.approx(8, rel=0.5)
    assert model.optimizer.step == 0.3
    assert make_estimator(make_nonnegative(2), source(), 1, 80).prior.precision == 0.1


def test_errors_are_those_of_the_plain_definition():
    data = simulate_zebrafish(n_neurons=30, n_frames=60, n_fields=4).data
    model = GaussianEmbedding.paper(2, context=Neighbors(5), random_state=0, max_iter=3)
    with pytest.warns(UserWarning, match="still improving"):
        model.fit(data)
    square = (model.conditional(data) - data.values) ** 2
    found = summarize_errors(leave_one_out(model, data))
    assert found["error"] == pytest.approx(square.mean())
    assert found["se_frames"] == pytest.approx(square.mean(axis=1).std() / np.sqrt(60))
    assert found["se_entries"] == pytest.approx(square.std() / np.sqrt(square.size))
    assert found["context_sizes"] == {"size": [5], "n": [square.size]}


# -- rows ------------------------------------------------------------------------------------------


def outcome(model: NeuronModel, frames: list[float], seed: int = 0, **figures) -> Outcome:
    array = np.array(frames)
    told = {"error": float(array.mean()), "se_frames": 0.1, "se_entries": 0.01}
    settings = {
        "model": model.settings(),
        "source": {"recording": "thunder", "differenced": True, "seed": seed},
    }
    job = Job("neurons", "a fit", settings, lambda: ({}, {}))
    figures = {"one_out": told, "fold_out": told, "variance": 4.0, **figures}
    return Outcome(job, figures, {"one_out": array, "fold_out": array + 1}, 0.0)


def test_gain_is_paired_by_frame_and_averaged_over_common_splits():
    good, bad = NeuronModel("g-emb", 10, 50), NeuronModel("FA", 10)
    mine = [outcome(good, [1.0, 2.0], 0), outcome(good, [1.0, 1.0], 1), outcome(good, [9.0], 2)]
    yours = [outcome(bad, [2.0, 5.0], 0), outcome(bad, [2.0, 4.0], 1)]
    one, two = collect_neuron_rows([*mine, *yours])
    found = compare_errors(one, two, "one_out")
    assert found.value == pytest.approx((2.0 + 2.0) / 2)
    assert found.error == pytest.approx(np.hypot(1 / np.sqrt(2), 1 / np.sqrt(2)) / 2)
    assert one.error("one_out") == pytest.approx((1.5 + 1.0 + 9.0) / 3)
    assert one.standard_error("one_out", "frames") == pytest.approx(0.1 * np.sqrt(3) / 3)
    assert np.isnan(one.mean("sigma2"))


def test_the_constant_of_adagrad_is_chosen_on_validation():
    model = NeuronModel("g-emb", 10, 50)
    tried = [
        outcome(replace(model, step=step), [error], validation=held)
        for step, error, held in ((0.1, 1.0, 0.5), (0.3, 2.0, 0.4), (1.0, 0.5, 0.6))
    ]
    (found,) = choose_steps(collect_neuron_rows([*tried, outcome(model, [1.0])]))
    assert found.model.step == 0.3


def test_context_sizes_of_splits_are_added():
    model = NeuronModel("g-emb", 10, 10)
    both = [outcome(model, [1.0], seed) for seed in (0, 1)]
    told = ({"size": [0, 3], "n": [1, 2]}, {"size": [3], "n": [5]})
    for one, sizes in zip(both, told, strict=True):
        one.figures["fold_out"] = {**one.figures["fold_out"], "context_sizes": sizes}
    (row,) = collect_neuron_rows(both)
    assert row.context_sizes("fold_out") == {0: 1, 3: 7}


def test_verdicts_follow_from_the_figures():
    frames = {"FA": 5.0, "g-emb": 1.0, "ng-emb": 3.0}
    noise = np.array([0.0, 0.1, -0.1, 0.05])
    models = [model for model in list_main_models((10, 100)) if model.k]
    found = [outcome(m, list(frames[m.model] + 1.0 / m.k - m.c / 100 + noise)) for m in models]
    rows: list[NeuronRow] = collect_neuron_rows(found)
    told = [claim.verdict for claim in judge_errors(rows, (10, 100))]
    assert set(told) == {"holds"}
    assert len(told) == 5  # undifferenced rows are missing, and so is what rests on them
    worse = [outcome(m, [1.0 if m.model == "FA" else 4.0 + m.c] * 3) for m in models]
    told = [claim.verdict for claim in judge_errors(collect_neuron_rows(worse), (10, 100))]
    assert told[:2] == ["does not hold", "does not hold"]
