"""Labels, column names and paths with control characters never command the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import efemb
from cli.conftest import Ran

RED = "\x1b[31m"
LABELS = [f"beer{RED}", "chips\x9b31m", "salsa\u202egnp", "milk\x07", "tea\x7f", "eggs"]
COMMANDING = set("\x1b\x07\x7f\x9b\u202e\r\x08")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    counts = np.random.default_rng(0).poisson(1.0, (60, len(LABELS)))
    folder = tmp_path_factory.mktemp("shop") / f"model{RED}"
    data = efemb.Dataset(counts, entities=LABELS)
    efemb.PoissonEmbedding(2, random_state=0).fit(data).save(folder)
    return folder


def table(path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = [f"{b},{LABELS[i]}" for b in range(80) for i in rng.permutation(len(LABELS))[:3]]
    path.write_text("\n".join([f"basket{RED},item{RED}", *lines]), "utf-8")
    return path


QUESTIONS: list[Callable[[Path], list[str]]] = [
    lambda model: ["similar", str(model), "eggs"],
    lambda model: ["similar", str(model), "eggs", "--json"],
    lambda model: ["similar", str(model), "beer"],
    lambda model: ["similar", str(model), f"x{RED}"],
    lambda model: ["predict", str(model), "eggs"],
    lambda model: ["explain", str(model), "eggs", "--item", "beer"],
    lambda model: ["explain", str(model), "beer", "eggs"],
    lambda model: ["info", str(model)],
    lambda model: ["info", f"{model}{RED}"],
    lambda model: ["fit", f"nothing{RED}.csv"],
    lambda model: [
        "fit",
        str(table(model.parent / f"t{RED}.csv")),
        "--out",
        f"{model}-2",
        "-k",
        "2",
    ],
    lambda model: ["fit", str(table(model.parent / "t.csv")), "--item", f"x{RED}"],
    lambda model: [f"command{RED}"],
    lambda model: ["similar", str(model), "eggs", f"--where={RED}"],
    lambda model: ["topics", str(model), "-n", RED],
    lambda model: ["export", str(model), f"{model}.csv{RED}"],
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_commands_the_terminal(
    run: Callable[..., Ran], model: Path, question: Callable[[Path], list[str]]
) -> None:
    done = run(*question(model))
    assert not COMMANDING & set(done.out + done.err)
    assert (done.out + done.err).strip()


def test_programs_get_the_labels_as_they_are(run: Callable[..., Ran], model: Path) -> None:
    done = run("similar", model, "eggs", "--json")
    assert {line["label"] for line in json.loads(done.out)} == set(LABELS[:-1])


def test_tables_escape_the_names_of_columns() -> None:
    assert "\x1b" not in repr(efemb.Table({f"a{RED}": ["b"]}))
