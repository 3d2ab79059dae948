"""The study of neurons, from jobs to the page, on small simulated recordings."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from efemb.errors import DataError
from efemb.reproduce import neurons_recordings
from efemb.reproduce.jobs import Runner
from efemb.reproduce.neurons_models import NeuronModel, Plan
from efemb.reproduce.neurons_study import NeuronStudy, choose_inner_neurons, rebuild_model
from efemb.reproduce.study import Options, Results
from efemb.simulation import simulate_zebrafish

pytestmark = pytest.mark.slow

PLAN = Plan(ks=(2,), n_simulated=60, n_frames=60, iterations=2, steps=(0.1, 0.3), few_steps=(0.3,))
OPTIONS = Options(quick=True, n_jobs=1)


def fetched(which, *_, **__):
    """Small stand-ins of the real recordings."""
    size = {"thunder": 80, "tectum": 70}[which]
    n_frames = {"thunder": 50, "tectum": 130}[which]
    return simulate_zebrafish(n_neurons=size, n_frames=n_frames, n_fields=6, seed=1).data


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("efemb.datasets.fetch_zebrafish", fetched)
    for cached in (neurons_recordings.load_recording, neurons_recordings._load_frames):
        cached.cache_clear()
    yield
    for cached in (neurons_recordings.load_recording, neurons_recordings._load_frames):
        cached.cache_clear()


def run(study, folder):
    from efemb.plots import Page

    page = Page("Test")
    results = Results(folder / study.name, page)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's number of iterations is part of its settings
        outcomes = Runner(folder / "jobs").run(study.jobs(OPTIONS))
    study.report(outcomes, OPTIONS, results)
    return outcomes, page


def rows(folder, name):
    return json.loads((folder / "neurons" / f"{name}.json").read_text())


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """One run for all tests that read its tables."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("efemb.datasets.fetch_zebrafish", fetched)
        for cached in (neurons_recordings.load_recording, neurons_recordings._load_frames):
            cached.cache_clear()
        outcomes, page = run(NeuronStudy(quick=PLAN), folder)
    return folder, outcomes, page


def test_every_recording_and_protocol_has_a_table(ran):
    folder, _, page = ran
    for name in ("thunder", "tectum", "simulated"):
        for protocol in ("one_out", "fold_out"):
            found = rows(folder, f"{name}_{protocol}")
            names = ["mean", "FA", "g-emb (c=10)", "g-emb (c=50)", "ng-emb (c=10)"]
            assert [row["model"] for row in found] == names
            assert all(0 < row["error"] < 10 for row in found)
            assert found[3]["difference"] is None
    assert "could not be had" not in page.html()


def test_differences_are_those_of_the_errors(ran):
    folder, _, _ = ran
    for row in rows(folder, "thunder_one_out"):
        base = rows(folder, "thunder_one_out")[3]["error"]
        if row["difference"] is not None:
            assert row["difference"] == pytest.approx(row["error"] - base, abs=1e-6)


def test_shrunken_contexts_are_counted(ran):
    folder, _, _ = ran
    for row in rows(folder, "context_sizes"):
        assert row["least"] <= row["5%"] <= row["median"] <= row["95%"] <= row["most"] <= row["c"]
        # A quarter of the others is hidden, less those of the target's own fold.
        assert row["mean"] / row["c"] == pytest.approx(0.75, abs=0.05)
    whole = rows(folder, "context_sizes_all")
    assert sum(row["share"] for row in whole) == pytest.approx(6)


def test_contexts_of_other_folds_lose_nothing(ran):
    _, outcomes, _ = ran
    found = [one for one in outcomes if one.job.settings.get("model", {}).get("outside")]
    assert len(found) == 4
    for one in found:
        c = one.job.settings["model"]["c"]
        assert one.figures["fold_out"]["context_sizes"]["size"] == [c]
        assert np.allclose(one.arrays["one_out"], one.arrays["fold_out"])


def test_raw_errors_are_in_the_units_of_the_recording(ran):
    folder, _, _ = ran
    told = rows(folder, "differenced_or_not")[0]
    values = fetched("thunder").difference().values
    ratio = told["one_out_differences_raw"] / told["one_out_differences"]
    assert ratio == pytest.approx(float(values.var()), rel=1e-5)


def test_the_past_is_compared_on_tectum_only(ran):
    folder, outcomes, _ = ran
    found = rows(folder, "past")
    assert len(found) == 4
    assert found[0]["difference"] == 0
    lagged = [one.job.settings["source"] for one in outcomes if "lags" in one.job.settings]
    assert {one["recording"] for one in lagged} == {"tectum"}


def test_minibatches_choose_among_constants(ran):
    folder, _, _ = ran
    tried = [row for row in rows(folder, "adagrad") if row["recording"] == "tectum"]
    assert {row["step"] for row in tried} == {0.1, 0.3}
    used = [row for row in rows(folder, "readings") if "minibatches" in row["model"]]
    assert len(used) == 4


def test_the_figure_is_there_in_both_palettes(ran):
    folder, _, page = ran
    for palette in ("paper", "colorblind"):
        content = (folder / "neurons" / f"weights_{palette}.png").read_bytes()
        assert content.startswith(b"\x89PNG")
    assert page.html().count("data:image/png") == 2


def test_kept_vectors_give_the_fitted_model_back(ran):

    _, outcomes, _ = ran
    (kept,) = (one for one in outcomes if "rho" in one.arrays)
    model = NeuronModel(**kept.job.settings["model"])
    fitted = rebuild_model(model, kept.arrays)
    weight = fitted.weights(5)
    first = weight[0]
    wanted = kept.arrays["rho"][5] @ kept.arrays["alpha"][first["neighbor"]]
    assert first["weight"] == pytest.approx(float(wanted), rel=1e-5)
    gaps = np.linalg.norm(kept.arrays["positions"] - kept.arrays["positions"][5], axis=1)
    assert set(weight["neighbor"]) == set(np.argsort(gaps)[1:51])
    assert len(set(choose_inner_neurons(fitted))) == 3


def test_a_second_run_reads_what_the_first_left(ran, monkeypatch):
    folder, outcomes, _ = ran

    def never(*_):
        raise AssertionError("a finished job ran again")

    monkeypatch.setattr("efemb.reproduce.neurons_fits._fit", never)
    again, _ = run(NeuronStudy(quick=PLAN), folder)
    assert [one.figures for one in again] == [json.loads(json.dumps(o.figures)) for o in outcomes]


def test_a_recording_that_cannot_be_had_is_named(tmp_path, monkeypatch):
    def missing(which, *_, **__):
        if which == "thunder":
            raise DataError("not here")
        return fetched(which)

    monkeypatch.setattr("efemb.datasets.fetch_zebrafish", missing)
    plan = Plan(("thunder", "simulated"), (2,), n_simulated=60, n_frames=60)
    _, page = run(NeuronStudy(quick=plan), tmp_path)
    assert "Not available, and therefore omitted: zebrafish-thunder." in page.html()
    assert not (tmp_path / "neurons" / "thunder_one_out.csv").exists()
