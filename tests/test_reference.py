"""The reference pages name everything that is public: names of the library and commands."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import efemb
import efemb.cli

DOCS = Path(__file__).parent.parent / "docs"
# Everything in these is public; of other modules, what the reference names.
MODULES = [
    "efemb",
    "efemb.baselines",
    "efemb.data",
    "efemb.datasets",
    "efemb.engine.optimizers",
    "efemb.estimators",
    "efemb.evaluation",
    "efemb.export",
    "efemb.inference",
    "efemb.model.contexts",
    "efemb.model.families",
    "efemb.plots",
    "efemb.simulation",
    "efemb.storage",
]


def reference() -> list[tuple[str, str]]:
    """Module and name of each entry of `api.rst`, in its order."""
    found, module = [], ""
    for line in (DOCS / "api.rst").read_text("utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            found.append((module, line.strip()))
    return found


def public(module: str) -> dict[str, Any]:
    home = importlib.import_module(module)
    names = {name: getattr(home, name) for name in getattr(home, "__all__", vars(home))}
    return {name: value for name, value in names.items() if not isinstance(value, ModuleType)}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    documented = {id(getattr(importlib.import_module(home), name)) for home, name in reference()}
    missing = [name for name, value in public(module).items() if id(value) not in documented]
    assert not missing


def test_the_reference_names_what_is_public_once() -> None:
    entries = reference()
    assert len(entries) > 100
    unknown = [entry for entry in entries if entry[1] not in public(entry[0])]
    assert not unknown
    values = [id(public(home)[name]) for home, name in entries]
    assert len(set(values)) == len(values)


def test_every_public_name_says_what_it_is() -> None:
    silent = [name for home, name in reference() if not public(home)[name].__doc__]
    assert not silent


def test_the_page_of_commands_has_all_of_them_in_the_words_of_the_program() -> None:
    commands = get_command(efemb.cli.build()).commands  # type: ignore[attr-defined]
    said = {name: one.get_short_help_str(200) for name, one in commands.items()}
    page = (DOCS / "commands.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `efemb ([\w-]+)` \| (.*?) \|", page, re.MULTILINE))
    assert told == said
