"""What only a process shows: pipes, colors, interrupts, and what is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import efemb

RUN = "from efemb.cli import main; main()"
HEAVY = {"numba", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "rich"}


def command(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]


@pytest.mark.slow
def test_questions_are_light(model: Path) -> None:
    code = (
        "import sys\nfrom efemb.cli import main\ntry:\n    main()\n"
        "except SystemExit:\n    print('MODULES', *{n.partition('.')[0] for n in sys.modules})"
    )
    for asked in (["--help"], ["similar", model, "chips"]):
        done = subprocess.run(command(code, *asked), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert HEAVY.isdisjoint(done.stdout.partition("MODULES")[2].split())


@pytest.mark.slow
@pytest.mark.parametrize("module", ["efemb", "efemb.cli"])
def test_it_runs_as_a_module(module: str, model: Path) -> None:
    """Where the folder of scripts is not on the path, `python -m efemb` is the command."""
    asked = [sys.executable, "-W", "error", "-m", module, "similar", str(model), "chips"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    asked[-1] = "no such label"
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("efemb: ")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way")
def test_a_broken_pipe_is_quiet(model: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        command(RUN, "topics", model, "-n", "1000"),
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


LETTERS = ["日本", "Käse", "\U0001f600", "half \ud83d"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "latin-1"])
def test_letters_that_a_terminal_cannot_show(encoding: str, tmp_path: Path) -> None:
    truth = efemb.simulation.simulate("p-emb", n_rows=9, n_entities=4, n_components=2, sweeps=1)
    words = efemb.Vocabulary(LETTERS)
    efemb.fitted.FittedEmbedding(truth.parameters, truth.spec, vocabulary=words).save(
        tmp_path / "model"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding}

    def printed(*asked: str) -> str:
        done = subprocess.run(
            command(RUN, asked[0], tmp_path / "model", *asked[1:]),
            capture_output=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(encoding)

    for asked in (["topics"], ["info"], ["similar", "Käse"]):
        assert "\\ud83d" in printed(*asked)
    found = {row["label"] for row in json.loads(printed("similar", "Käse", "--json"))}
    assert found == set(LETTERS) - {"Käse"}


@pytest.mark.slow
def test_no_colors_in_a_pipe(model: Path) -> None:
    for asked in (["fit", "--help"], ["similar", model, "chips"], ["similar", "x", "y"]):
        done = subprocess.run(command(RUN, *asked), capture_output=True, text=True, check=False)
        assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [
        ("KeyboardInterrupt()", 130, "efemb: interrupted\n"),
        ("FileNotFoundError(2, 'No such file', 'x.csv')", 2, "efemb: x.csv: No such file\n"),
        ("OSError(28, 'No space left on device', 'm')", 2, "efemb: m: No space left on device\n"),
        ("efemb.StorageError('disk full')", 2, "efemb: disk full\n"),
        ("MemoryError()", 2, "efemb: not enough memory\n"),
    ],
)
def test_failures_are_one_line(run, monkeypatch, raised: str, code: int, line: str) -> None:
    def fail(model: object) -> None:
        raise eval(raised)

    monkeypatch.setattr(efemb, "load", fail)
    assert run("info", "somewhere") == (code, "", line)


def test_the_package_runs_as_a_module(model: Path) -> None:
    asked = [sys.executable, "-m", "efemb.cli", "similar", str(model), "chips", "-n", "1"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)  # what the table holds
    assert done.stdout.startswith("label")


@pytest.mark.slow
def test_labels_with_accents_where_the_locale_is_not_utf8(tmp_path: Path) -> None:
    data = efemb.simulation.simulate("p-emb", n_rows=60, n_entities=4, n_components=1, seed=0).data
    labels = ["cr\u00e8me fra\u00eeche", "th\u00e9", "pain", "\u8336"]
    trips = efemb.Dataset(data.values, entities=labels)
    efemb.PoissonEmbedding(1, random_state=0).fit(trips).save(tmp_path / "mod\u00e8le")
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain.pop("PYTHONIOENCODING", None)
    asked = [sys.executable, "-W", "ignore", "-m", "efemb", "similar", tmp_path / "mod\u00e8le"]
    for extra in ([], ["--json"]):
        command = [*map(str, asked), "cr\u00e8me fra", *extra]
        done = subprocess.run(
            [os.fsencode(part) for part in command], env=plain, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode("utf-8")
        assert "pain" in text
        assert "th\u00e9" in text or "th\\u00e9" in text
