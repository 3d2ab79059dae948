"""The reference pages name everything that is public: names of the library and commands."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import efemb
import efemb.cli
import efemb.fitted
from efemb.fitted.queries.model_queries import PageOptions, ServedPageOptions
from efemb.fitted.relation import PairOptions
from efemb.fitted.selection import Options

DOCS = Path(__file__).parent.parent / "docs"
# Everything in these is public; of other modules, what the reference names.
MODULES = [
    "efemb",
    "efemb.baselines",
    "efemb.checks",
    "efemb.dask",
    "efemb.data",
    "efemb.datasets",
    "efemb.engine.optimizers",
    "efemb.estimators",
    "efemb.evaluation",
    "efemb.explore",
    "efemb.export",
    "efemb.inference",
    "efemb.model.contexts",
    "efemb.model.families",
    "efemb.plots",
    "efemb.shards",
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


STATE_EVERY_DEFAULT = (
    "data",
    "engine",
    "estimators",
    "inference",
    "model",
    "simulation",
    "storage",
)


def stated_defaults(text: str) -> dict[str, str]:
    """Default of each parameter as the help of a class or function states it, else empty."""
    section = text.partition("\nParameters\n----------\n")[2]
    section = re.split(r"\n\n\w+\n---", section)[0]
    entries: dict[str, str] = {}
    for names, kind in re.findall(r"^(\w+(?:, \w+)*) : (.*)$", section, re.MULTILINE):
        default = kind.partition("default=")[2]
        split = names.split(", ")
        defaults = re.split(r" and |, ", default) if len(split) > 1 else [default]
        defaults *= len(split) if len(defaults) == 1 else 1
        entries.update(zip(split, defaults, strict=True))
    return entries


@pytest.mark.parametrize(("home", "name"), reference())
def test_help_states_the_defaults_of_parameters(home: str, name: str) -> None:
    value = public(home)[name]
    stated = stated_defaults(inspect.getdoc(value) or "")
    if not stated or (isinstance(value, type) and issubclass(value, efemb.Embedding)):
        return
    parameters = inspect.signature(value).parameters
    assert set(stated) <= set(parameters)
    every = value.__module__.split(".")[1] in STATE_EVERY_DEFAULT
    for parameter in parameters.values():
        default, text = parameter.default, stated.get(parameter.name)
        if default not in (inspect.Parameter.empty, None) and (text or every):
            assert ast.literal_eval(text or "None") == default, parameter


OPTIONS = {kind.__name__: kind for kind in (Options, PairOptions, PageOptions, ServedPageOptions)}


@pytest.mark.parametrize(
    "name", [name for name in dir(efemb.fitted.Queries) if not name.startswith("_")]
)
def test_help_of_a_question_teaches(name: str) -> None:
    """All of it in one place: every parameter, the result and an example."""
    method = getattr(efemb.fitted.FittedEmbedding, name)
    text = inspect.getdoc(method) or ""
    for estimator in (efemb.PoissonEmbedding, efemb.SkipGram):
        assert inspect.getdoc(getattr(estimator, name)) == text
    assert "%(" not in text
    assert all(f"\n{title}\n---" in text for title in ("Parameters", "Returns", "Examples"))
    named = set(inspect.signature(method).parameters) - {"self", "options"}
    if (options := inspect.get_annotations(method).get("options", "")).startswith("Unpack["):
        kind = OPTIONS[options[7:-1]]
        named |= set(kind.__annotations__)
        # What selects answers is of no use where every term is listed.
        named -= {"where", "exclude", "min_count"} if name == "explain" else set()
        named -= {"group_column"}  # the entry of `groups` explains it
    entries = re.findall(r"^(\w+(?:, \w+)*) : ", text, re.MULTILINE)
    assert named <= {name for entry in entries for name in entry.split(", ")}


MODELS = [
    value
    for value in (getattr(efemb, name) for name in efemb.__all__)
    if isinstance(value, type) and issubclass(value, efemb.Embedding)
]


@pytest.mark.parametrize("model", MODELS)
def test_help_of_a_model_has_every_parameter_and_its_default(model: type[efemb.Embedding]) -> None:
    text = inspect.getdoc(model) or ""
    section = text.partition("\nParameters\n----------\n")[2].partition("\n\n")[0]
    documented = dict(re.findall(r"^(\w+) : (.*)$", section, re.MULTILINE))
    defaults = model().get_params(deep=False)
    assert set(documented) == set(defaults)
    for name, kind in documented.items():
        stated = kind.partition("default=")[2] or "None"
        assert ast.literal_eval(stated) == defaults[name], name
    assert not re.search(r"\n\w+ : .*\n(?=\w+ : |\Z)", section), "an entry says nothing"
    assert "\nAttributes\n---" in text


def test_the_page_of_commands_has_all_of_them_in_the_words_of_the_program() -> None:
    commands = get_command(efemb.cli.build()).commands  # type: ignore[attr-defined]
    said = {name: one.get_short_help_str(200) for name, one in commands.items()}
    page = (DOCS / "commands.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `efemb ([\w-]+)` \| (.*?) \|", page, re.MULTILINE))
    assert told == said
