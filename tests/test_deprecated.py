"""Names and modules of version 0.2: they still work, and say what to write instead."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import efemb
import efemb.fitted
from efemb._deprecated import MODULES, NAMES

# The flat names of 0.2.0 that are not flat any more, and its documented modules, by hand.
FLAT = [
    "LBFGS",
    "SGD",
    "Adagrad",
    "Adam",
    "Checkpoint",
    "Combine",
    "Context",
    "EarlyStopping",
    "Family",
    "FittedEmbedding",
    "Identity",
    "Interval",
    "JsonLinesLog",
    "LabelledVectors",
    "Linear",
    "Link",
    "Log",
    "LogSoftplus",
    "Parameters",
    "Predictions",
    "Prior",
    "Reverse",
    "ShiftedPPMI",
    "SimulatedRecording",
    "SimulatedTrips",
    "Simulation",
    "Softplus",
    "Structure",
    "Zeros",
    "aligned",
    "analogies",
    "held_out_entries",
    "held_out_words",
    "leave_fold_out",
    "leave_one_out",
    "model_named",
    "read_glove",
    "read_word2vec",
    "score_grid",
    "simulate",
    "simulate_baskets",
    "simulate_iri",
    "simulate_zebrafish",
    "split",
    "to_keyedvectors",
    "word_similarity",
    "write_projector",
    "write_vectors",
    "write_word2vec",
]
IN_MODULES = {
    "efemb.combine": "Combine Linear Reverse",
    "efemb.contexts": "Basket BoundContext Context ContextSum RowBags Window WindowBags",
    "efemb.families": "Bernoulli Family Gaussian Interval Poisson",
    "efemb.labelled": "Choice LabelledVectors Options check_labelled",
    "efemb.links": "Identity Link Log LogSoftplus Softplus",
    "efemb.parameters": "Parameters",
    "efemb.priors": "HalfNormal LogNormal Normal Prior",
    "efemb.query": "Queries complements complete explain labelled_vectors predict similar what_if",
    "efemb.structures": "PerEntity Shared Structure Tied",
    "efemb.zeros": "All Hierarchical NegativeSampling Sampled Zeros",
}


@pytest.fixture
def _not_imported() -> Iterator[None]:
    """Forget old modules, which warn only when they are first imported."""
    for name in MODULES:
        sys.modules.pop(name, None)
        vars(efemb).pop(name.partition(".")[2], None)
    yield
    for name in MODULES:
        sys.modules.pop(name, None)
        vars(efemb).pop(name.partition(".")[2], None)


def test_the_tables_are_complete() -> None:
    assert sorted(NAMES) == sorted(FLAT)
    assert sorted(MODULES) == sorted(IN_MODULES)
    assert not set(NAMES) & set(efemb.__all__)


@pytest.mark.parametrize("name", FLAT)
def test_flat_name_warns_and_works(name: str) -> None:
    home, _, new = NAMES[name].rpartition(".")
    with pytest.warns(FutureWarning, match=re.escape(f"efemb.{name} is now {NAMES[name]};")):
        value = getattr(efemb, name)
    assert value is getattr(importlib.import_module(home), new)


def test_flat_name_warns_where_it_is_used() -> None:
    with pytest.warns(FutureWarning) as caught:
        from efemb import Softplus  # noqa: F401
    assert {Path(record.filename).name for record in caught} == {Path(__file__).name}


@pytest.mark.parametrize("module", IN_MODULES)
@pytest.mark.usefixtures("_not_imported")
def test_old_module_warns_and_forwards(module: str) -> None:
    with pytest.warns(FutureWarning, match=f"{module} is now {MODULES[module]};"):
        old = importlib.import_module(module)
    new = importlib.import_module(MODULES[module])
    for name in IN_MODULES[module].split():
        if "labelled" in name.lower():
            with pytest.warns(FutureWarning, match="is now efemb.fitted"):
                assert getattr(old, name) is getattr(new, name.replace("abelled", "abeled"))
        else:
            assert getattr(old, name) is getattr(new, name)
    with pytest.raises(AttributeError, match="no_such_name"):
        old.no_such_name  # noqa: B018


@pytest.mark.parametrize("module", IN_MODULES)
@pytest.mark.usefixtures("_not_imported")
def test_old_module_is_an_attribute_too(module: str) -> None:
    with pytest.warns(FutureWarning, match=module):
        assert isinstance(getattr(efemb, module.partition(".")[2]), types.ModuleType)


@pytest.mark.usefixtures("_not_imported")
def test_nothing_is_imported_twice_from_below_an_old_module() -> None:
    """A second copy of a class would not be an instance of the first."""
    with (
        pytest.warns(FutureWarning, match="efemb.contexts"),
        pytest.raises(ModuleNotFoundError, match="not a package"),
    ):
        importlib.import_module("efemb.contexts.window")


@pytest.mark.parametrize("name", ["LabelledVectors", "check_labelled", "labelled_vectors"])
def test_british_spelling_warns_and_works(name: str) -> None:
    new = name.replace("abelled", "abeled")
    with pytest.warns(FutureWarning, match=f"efemb.fitted.{name} is now efemb.fitted.{new};"):
        assert getattr(efemb.fitted, name) is getattr(efemb.fitted, new)


def test_other_missing_modules_are_missing() -> None:
    code = "import efemb.no_such_module"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: No module named 'efemb.no_such_module'" in done.stderr


@pytest.mark.slow
def test_the_package_does_not_use_its_old_modules() -> None:
    sources = (Path(__file__).parent.parent / "src").rglob("*.py")
    imported = {
        node.module
        for path in sources
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
    }
    assert imported.isdisjoint(MODULES)


@pytest.fixture(scope="module")
def model() -> efemb.GaussianEmbedding:
    X = np.random.default_rng(0).normal(size=(60, 5))
    data = efemb.Dataset(X, entities=list("abcde"), positions=np.arange(5.0)[:, None])
    return efemb.GaussianEmbedding(2, context=efemb.Neighbors(2), random_state=0).fit(data)


def test_top_is_now_n(model: efemb.GaussianEmbedding) -> None:
    context = {"a": 1.0, "b": -1.0}
    for asked in (model, model.fitted()):
        with pytest.warns(FutureWarning, match="top= is now n=;"):
            answer = asked.predict(context, top=2)
        assert answer == model.predict(context, n=2) == model.predict(context, 2)
        assert len(answer) == 2


def test_weights_of_an_entity_are_those_of_an_item(model: efemb.GaussianEmbedding) -> None:
    with pytest.warns(FutureWarning, match="entity= is now item=;"):
        answer = model.weights(entity="c")
    assert answer == model.weights("c")
    assert set(answer["label"]) == {"c"}
    with pytest.warns(FutureWarning, match="column 'neighbour' is now 'neighbor';"):
        assert sorted(answer["neighbour"]) == ["b", "d"]


def test_vectors_have_the_names_of_the_paper_and_the_old_ones(
    model: efemb.GaussianEmbedding,
) -> None:
    assert model.rho_ is model.embedding_ is model.parameters_.rho
    assert model.alpha_ is model.context_ is model.parameters_.alpha
