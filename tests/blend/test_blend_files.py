"""Blends and baselines on disk: the same answers, one sealed folder, typed errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file
from typer.testing import CliRunner

import efemb
import efemb.cli
from efemb import Blend, Dataset, PoissonEmbedding, baselines
from efemb.baselines import EASE, ItemKNN, PersonalPopularity, Popularity, WeightedMF
from efemb.baselines.base import Baseline
from efemb.baselines.baseline_files import kinds
from efemb.blend.blend_files import BLEND
from efemb.errors import DataError, ParameterError
from efemb.storage.folder import checksum, render, sha256

pytestmark = pytest.mark.slow  # fits of several models

LABELS = [f"item {i}" for i in range(8)]
REAL = ("FactorAnalysis",)


@pytest.fixture(scope="module")
def trips() -> Dataset:
    made = efemb.simulation.simulate("p-emb", n_rows=300, n_entities=8, n_components=2, seed=2).data
    return Dataset(made.values, entities=LABELS, users=np.arange(300) % 5)


@pytest.fixture(scope="module")
def blend(trips: Dataset) -> Blend:
    models = {
        "vectors": PoissonEmbedding(2),
        "pairs": EASE(penalty=5),
        "history": PersonalPopularity(kappa=3),
        "stack": Blend(
            {"popularity": Popularity(), "factors": WeightedMF(2, tol=0.01)}, how="log-linear"
        ),
    }
    return Blend(models, how="mixture").fit(trips)


def reseal(folder: Path, change: Any) -> None:
    """Change the manifest of a folder as a program that knows the format would."""
    body = json.loads((folder / "manifest.json").read_text())
    body.pop("checksum")
    change(body)
    (folder / "manifest.json").write_bytes(render({**body, "checksum": checksum(body)}))


def test_a_loaded_blend_answers_as_the_saved_one(
    blend: Blend, trips: Dataset, tmp_path: Path
) -> None:
    blend.save(tmp_path / "blend")
    again = efemb.load(tmp_path / "blend")
    assert isinstance(again, Blend)
    assert again.weights_ == blend.weights_
    assert again.powers_ == blend.powers_
    assert (again.how_, again.how) == ("mixture", "mixture")
    assert again.report_ == blend.report_
    assert again.vocabulary_ == blend.vocabulary_
    assert again.score(trips) == blend.score(trips)
    assert again.recommend(trips[:20], n=3) == blend.recommend(trips[:20], n=3)
    assert again.complete(LABELS[:2], user=3) == blend.complete(LABELS[:2], user=3)
    assert again.explain(LABELS[:2], LABELS[5], user=3) == blend.explain(
        LABELS[:2], LABELS[5], user=3
    )
    assert_array_equal(again.conditional(trips[:9]), blend.conditional(trips[:9]))
    again.save(tmp_path / "copy")
    assert efemb.load(tmp_path / "copy").score(trips) == blend.score(trips)


def test_a_blend_is_one_sealed_folder_without_pickle(blend: Blend, tmp_path: Path) -> None:
    blend.save(tmp_path / "blend")
    names = {path.name for path in (tmp_path / "blend").iterdir()}
    assert names == {"manifest.json", "arrays.safetensors"}
    manifest = json.loads((tmp_path / "blend" / "manifest.json").read_text())
    assert manifest["sha256"] == {
        "arrays.safetensors": sha256(tmp_path / "blend" / "arrays.safetensors")
    }
    arrays = load_file(tmp_path / "blend" / "arrays.safetensors")
    assert_array_equal(arrays["models.0.rho"], blend.models_["vectors"].embedding_)


def test_a_blend_replaces_a_blend_and_nothing_else(blend: Blend, tmp_path: Path) -> None:
    blend.save(tmp_path / "blend")
    blend.save(tmp_path / "blend")
    blend.models_["vectors"].save(tmp_path / "model")
    with pytest.raises(DataError, match="is not part of a blend"):
        blend.save(tmp_path / "model")
    with pytest.raises(DataError, match="not from a baseline that efemb wrote"):
        blend.models_["pairs"].save(tmp_path / "blend")


def test_a_damaged_blend_is_refused(blend: Blend, tmp_path: Path) -> None:
    blend.save(tmp_path / "blend")
    path = tmp_path / "blend" / "arrays.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged"):
        efemb.load(tmp_path / "blend")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda body: body["models"][1].update(format="efemb oracle"),
            "unknown format 'efemb oracle'",
        ),
        (lambda body: body["models"][1]["body"].update(model="EASY"), "did you mean 'EASE'"),
        (
            lambda body: body["models"][1]["body"]["state"].update(fit=1),
            "'fit' is not part of a fitted",
        ),
        (lambda body: body.update(pool="mixtures"), "did you mean 'mixture'"),
        (lambda body: body["models"].pop(), "one finite number per model"),
        (lambda body: body.pop("parameters"), "does not hold a blend that can be read"),
    ],
)
def test_what_this_version_cannot_read_is_a_typed_error(
    change: Any, match: str, blend: Blend, tmp_path: Path
) -> None:
    blend.save(tmp_path / "blend")
    reseal(tmp_path / "blend", change)
    with pytest.raises(DataError, match=match):
        efemb.load(tmp_path / "blend")


def test_models_that_a_file_cannot_describe_are_named(trips: Dataset, tmp_path: Path) -> None:
    class Own(Popularity):
        """A baseline of a user's own."""

    class Other:
        """Any model with log_means."""

        def __init__(self, model: Any) -> None:
            self.family, self.log_means = model.family_, model.log_means

    for model, kind in (
        (Own(), "Own"),
        (Other(Popularity().fit(trips)), "Other"),
    ):
        blend = Blend({"mine": model}).fit(trips[:200], validation=trips[200:])
        with pytest.raises(ParameterError, match=f"'mine' cannot be saved: {kind} cannot be saved"):
            blend.save(tmp_path / "blend")
    assert not (tmp_path / "blend").exists()


def fitted(name: str, trips: Dataset) -> Baseline:
    cls = kinds()[name]
    model = cls(2) if "n_components" in cls().get_params() else cls()
    if name in REAL:
        noise = np.random.default_rng(0).normal(size=trips.shape)
        return model.fit(Dataset(noise, entities=LABELS))
    return model.fit(trips)


@pytest.mark.parametrize("name", kinds())
def test_every_baseline_is_saved_and_loaded(name: str, trips: Dataset, tmp_path: Path) -> None:
    model = fitted(name, trips)
    model.save(tmp_path / "baseline")
    again = efemb.load(tmp_path / "baseline")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    data = trips[:20]
    if name in REAL:
        data = Dataset(np.random.default_rng(1).normal(size=(9, 8)), entities=LABELS)
    assert again.score(data) == model.score(data)
    assert_allclose(again.conditional(data), model.conditional(data), rtol=0)
    other = data.take_entities(np.arange(8)[::-1])
    with pytest.raises(DataError, match="same order"):
        again.score(other)


@pytest.mark.parametrize("name", kinds())
def test_forged_numbers_of_entities_are_refused_by_load(
    name: str, trips: Dataset, tmp_path: Path
) -> None:
    """The checksums hold, but the arrays belong to a model of other entities."""
    fitted(name, trips).save(tmp_path / "baseline")
    for n in (7, 10**12, -1, "8", {}):
        with_n = lambda body, n=n: body["state"].update(n_features_in_=n)  # noqa: E731
        reseal(tmp_path / "baseline", with_n)
        with pytest.raises(DataError):
            efemb.load(tmp_path / "baseline")


@pytest.mark.parametrize("change", [lambda mean: mean[:-1], lambda mean: mean * np.nan])
def test_forged_arrays_are_refused_by_load(change: Any, trips: Dataset, tmp_path: Path) -> None:
    model = Popularity().fit(trips)
    model.mean_ = change(model.mean_)
    model.save(tmp_path / "baseline")
    with pytest.raises(DataError):
        efemb.load(tmp_path / "baseline")


def test_forged_indices_of_a_sparse_matrix_are_refused_by_load(
    trips: Dataset, tmp_path: Path
) -> None:
    """SciPy trusts them, and would write outside its arrays."""
    ItemKNN().fit(trips).save(tmp_path / "baseline")
    shape = lambda body: body["state"]["weights_"].update({"$sparse": [8, 3]})  # noqa: E731
    reseal(tmp_path / "baseline", shape)
    with pytest.raises(DataError, match="sparse matrix of the model is inconsistent"):
        efemb.load(tmp_path / "baseline")


def test_there_are_baselines_to_save() -> None:
    assert {"EASE", "Popularity", "HPF"} <= set(kinds()) < set(baselines.__all__)


def test_a_baseline_of_a_frame_knows_its_columns_when_loaded(tmp_path: Path) -> None:
    import pandas

    frame = pandas.DataFrame(np.eye(4) + 1, columns=list("abcd"))
    model = Popularity().fit(frame)
    model.save(tmp_path / "baseline")
    again = efemb.load(tmp_path / "baseline")
    assert again.score(frame) == model.score(frame)
    with pytest.raises(DataError, match="same order"):
        again.score(frame[list("dcba")])


def test_generators_are_not_kept(trips: Dataset, tmp_path: Path) -> None:
    model = WeightedMF(2, random_state=np.random.default_rng(0)).fit(trips)
    model.save(tmp_path / "baseline")
    assert efemb.load(tmp_path / "baseline").random_state is None


def test_commands_that_need_vectors_refuse_a_blend(blend: Blend, tmp_path: Path) -> None:
    blend.save(tmp_path / "blend")
    done = CliRunner().invoke(efemb.cli.build(), ["similar", str(tmp_path / "blend"), "item 1"])
    assert done.exit_code != 0
    assert "holds a Blend" in f"{done.output}{done.exception}"


def test_the_format_is_named(blend: Blend, tmp_path: Path) -> None:
    blend.save(tmp_path / "blend")
    manifest = json.loads((tmp_path / "blend" / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"]) == (BLEND.format, 1)
