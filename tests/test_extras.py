"""Optional packages: what the code imports, what messages tell to install, what the project says.

The messages themselves are tested where the package is used.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# For users; the others are for those who work on the package.
FEATURES = sorted(set(EXTRAS) - {"all", "dev", "docs"})
SOURCES = {path: path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Where a package is imported by another name, or comes with one that is asked for.
IMPORTED_AS = {"scikit-learn": "sklearn", "umap-learn": "umap"}
COMES_WITH = {"llvmlite": "numba", "requests": "pooch"}
# Programs that a result is handed over to: whoever wants that has them.
RECEIVERS = {"gensim"}


def packages(requirements: list[str]) -> set[str]:
    """Import names of the packages that are asked for."""
    names = [re.split(r"[<>=\[;]", one)[0].strip() for one in requirements]
    return {IMPORTED_AS.get(name, name) for name in names}


def imported(tree: ast.AST) -> Iterator[str]:
    """Whatever is imported by a statement, or by its name in quotes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant))


def foreign() -> set[str]:
    """Packages that the source imports and that are neither Python's nor ours."""
    found = {name for text in SOURCES.values() for name in imported(ast.parse(text))}
    return {name.partition(".")[0] for name in found} - sys.stdlib_module_names - {"efemb", ""}


@pytest.mark.slow
def test_everything_imported_is_asked_for() -> None:
    asked = packages(PROJECT["dependencies"]).union(*(packages(EXTRAS[one]) for one in FEATURES))
    carried = {name for name, carrier in COMES_WITH.items() if carrier in asked}
    assert foreign() <= asked | carried | RECEIVERS


@pytest.mark.parametrize("extra", FEATURES)
def test_every_extra_is_used(extra: str) -> None:
    text = "\n".join(SOURCES.values())
    unused = {name for name in packages(EXTRAS[extra]) if not re.search(rf"\b{name}\b", text)}
    assert not unused


def test_extras_that_are_named_exist() -> None:
    told = [*SOURCES.values(), *(page.read_text("utf-8") for page in PAGES)]
    named = {name for text in told for name in re.findall(r"efemb\[(\w+)\]", text)}
    named |= {name for text in told for name in re.findall(r'extra="(\w+)"', text)}
    assert named
    assert named <= set(EXTRAS)


def test_a_message_names_the_extra_that_has_the_package() -> None:
    """Such as: Parquet files need pyarrow: pip install "efemb[io]"."""
    pairs = [
        pair
        for text in SOURCES.values()
        for pair in re.findall(r"""needs? ([\w-]+): pip install ["']efemb\[(\w+)\]["']""", text)
    ]
    assert {extra for _, extra in pairs} == set(FEATURES)
    for package, extra in pairs:
        assert packages([package]) <= packages(EXTRAS[extra]), package


def test_all_is_all_of_them() -> None:
    (everything,) = EXTRAS["all"]
    assert sorted(re.findall(r"\w+", everything.removeprefix("efemb"))) == FEATURES


def test_no_test_waits_for_what_every_checkout_has() -> None:
    """A test that is skipped where pandas is missing would hide that it was not installed."""
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    awaited = set(re.findall(r'importorskip\("(\w+)', tests))
    assert awaited.isdisjoint(packages([*EXTRAS["dev"], *EXTRAS["io"], *EXTRAS["plot"]]))
    assert awaited.isdisjoint(packages(EXTRAS["data"]))
