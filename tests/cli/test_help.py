"""Help: plain, no wider than a terminal, and it teaches by example."""

from __future__ import annotations

import pkgutil
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

import efemb
import efemb.cli

COMMANDS = sorted(
    module.name.replace("_", "-")
    for module in pkgutil.iter_modules(efemb.cli.__path__)
    if not module.name.startswith("_")
)
ISSUED = {
    *("fit", "evaluate", "compare", "similar", "complements", "substitutes", "topics", "predict"),
    *("explain", "plot", "export", "info", "reproduce", "datasets", "demo"),
    *("explore", "recommend", "update", "diff", "shards"),
}


@pytest.fixture(autouse=True)
def _terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


def test_every_command_is_there(run) -> None:
    assert set(COMMANDS) == ISSUED
    done = run("--help")
    assert done.code == 0
    listed = {line.split()[0] for line in done.out.split("Commands:")[1].splitlines() if line}
    assert listed >= ISSUED
    assert "..." not in done.out.split("Commands:")[1], "a summary is cut"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_plain_and_narrow(run, command: str) -> None:
    done = run(*([command] if command else []), "--help")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(run, command: str) -> None:
    lines = run(command, "--help").out.splitlines()
    assert any(
        line.startswith(f"    efemb {command} ") or line == "    efemb demo" for line in lines
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_speaks_json(run, command: str) -> None:
    assert "--json" in run(command, "--help").out


def test_version(run) -> None:
    assert run("--version").out == f"efemb {efemb.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["simlar"], "similar"),
        (["similar"], "MODEL"),
        (["similar", "m", "x", "--wher", "3"], "--where"),
        (["similar", "m", "x", "--n", "0"], "--n"),
        (["similar", "m", "x", "--n", "three"], "--n"),
        (["fit", "x.csv", "--test", "2"], "--test"),
    ],
)
def test_usage_errors(run, arguments: list[str], word: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert word in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_of_the_help_are_understood(run, command: str) -> None:
    """Every example parses: its options exist, and their values are of the right kind."""
    program = get_command(efemb.cli.build())
    lines = run(command, "--help").out.splitlines()
    examples = [line.split("  ")[0] for line in map(str.strip, lines) if line.startswith("efemb ")]
    assert examples
    for example in examples:
        _, name, *arguments = shlex.split(example)
        program.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]


def test_the_old_name_of_n_works_and_warns(run, model: Path) -> None:
    expected = run("similar", model, "chips", "--n", "2")
    for old in (["--number", "2"], ["--number=2"]):
        done = run("similar", model, "chips", *old)
        assert (done.code, done.out) == (0, expected.out)
        assert done.err.startswith(
            "efemb: --number is deprecated and will be removed in version 0.4; use --n\n"
        )
    assert "--number" not in run("similar", "--help").out
    # After a double dash it is a label like any other.
    assert "unknown label '--number'" in run("similar", model, "--", "--number").err
