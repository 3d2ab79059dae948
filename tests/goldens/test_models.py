"""Models that older versions saved load, and give the answers they gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import efemb
from goldens.make_models import FOLDER
from goldens.saved import QUESTIONS, SAVED, ask

VERSIONS = sorted(FOLDER.glob("models-*"))
MODELS = [path for version in VERSIONS for path in sorted(version.iterdir()) if path.is_dir()]


def asked_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads(folder.with_name(f"{folder.name}.json").read_text("utf-8")))


def close(answer: Any, golden: Any) -> bool:
    """Whether nested lists agree: numbers nearly, everything else exactly, with its type."""
    if isinstance(golden, list):
        same = isinstance(answer, list) and len(answer) == len(golden)
        return same and all(map(close, answer, golden))
    if isinstance(golden, float):
        return bool(answer == pytest.approx(golden, rel=1e-4, abs=1e-5, nan_ok=True))
    return type(answer) is type(golden) and bool(answer == golden)


def test_every_model_is_there() -> None:
    names = {path.name for path in (FOLDER / "models-0.2.0").iterdir() if path.is_dir()}
    assert names == set(SAVED)
    questions = {question for path in MODELS for question in asked_of(path)["answers"]}
    assert questions == set(QUESTIONS)


@pytest.mark.parametrize("folder", MODELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_saved_model_gives_the_answers_it_gave(folder: Path) -> None:
    model, asked = efemb.load(folder), asked_of(folder)
    assert asked["answers"]
    for question, golden in asked["answers"].items():
        answer = ask(model, question, asked)
        assert close(answer, golden), (question, answer, golden)


@pytest.mark.quick_one_in(4)
@pytest.mark.parametrize("folder", MODELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_saved_model_is_saved_again(folder: Path, tmp_path: Path) -> None:
    asked = asked_of(folder)
    efemb.load(folder).save(tmp_path / "again")
    model = efemb.load(tmp_path / "again")
    assert close(ask(model, "score", asked), asked["answers"]["score"])
    assert close(ask(model, "labels", asked), asked["answers"]["labels"])


@pytest.mark.quick_one_in(4)
@pytest.mark.parametrize("folder", MODELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_estimator_continues_from_a_saved_model(folder: Path) -> None:
    model, asked = efemb.load(folder), asked_of(folder)
    estimator = getattr(efemb, model.model).from_fitted(model)
    assert close(ask(estimator, "score", asked), asked["answers"]["score"])


@pytest.mark.parametrize(
    ("answer", "golden"),
    [
        (1.001, 1.0),
        ("1", 1),
        ([1.0], [1.0, 1.0]),
        ([["a", 2.0]], [["b", 2.0]]),
        (1.0, float("nan")),
    ],
)
def test_other_answers_are_noticed(answer: Any, golden: Any) -> None:
    assert close(golden, golden)
    assert not close(answer, golden)
