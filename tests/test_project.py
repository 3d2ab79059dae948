"""The package as a project: its namespace, import cost, versions and wheel."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tarfile
import tomllib
import types
import zipfile
from pathlib import Path

import pytest

import efemb

ROOT = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
HEAVY = {"sklearn", "scipy", "pandas", "numba", "matplotlib", "polars", "pyarrow"}
HEAVY |= {"starlette", "uvicorn", "plotly"}


def run_python(*arguments: str) -> str:
    """Standard output of a fresh interpreter in which warnings are errors."""
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_is_the_public_namespace() -> None:
    assert sorted(set(efemb.__all__)) == efemb.__all__
    exported = {name: getattr(efemb, name) for name in efemb.__all__}
    # What the file itself needs and submodules, which the import system binds as a side effect,
    # are not exports.
    bound = {
        name
        for name, value in vars(efemb).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert bound <= set(exported)
    assert set(exported) == set(dir(efemb))


def test_the_stub_lists_every_name_it_loads() -> None:
    """Type checkers read `__all__` of the stub; at run time only its imports count."""
    tree = ast.parse((ROOT / "src" / "efemb" / "__init__.pyi").read_text("utf-8"))
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    (listed,) = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)]
    assert sorted(imported) == sorted(listed) == efemb.__all__


def test_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        efemb.no_such_name  # noqa: B018


def test_import_is_light() -> None:
    code = "import sys, efemb; print(*{name.partition('.')[0] for name in sys.modules})"
    assert HEAVY.isdisjoint(run_python("-c", code).split())


def test_versions_agree() -> None:
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    headings = re.findall(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert citation is not None
    assert citation[1] == VERSION
    assert headings[0] == VERSION
    assert efemb.__version__ == VERSION


def test_metadata_version_agrees() -> None:
    assert importlib.metadata.version("efemb") == VERSION


def test_wheel_is_pure_python(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    command += ["--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"efemb-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"efemb/py.typed", "efemb/__init__.pyi"} <= set(names)
    assert f"efemb-{VERSION}.dist-info/licenses/LICENSE" in names
    assert {name.partition("/")[0] for name in names} == {"efemb", f"efemb-{VERSION}.dist-info"}
    assert not [name for name in names if name.endswith((".so", ".pyd", ".dylib", ".nbc", ".pkl"))]


def test_make_lists_what_it_can_do() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split())
    told = set(re.findall(r'^\t@echo "make (\S+) ', text, re.M))
    assert told == targets - {"help", "venv"}
    assert re.search(r"^\t.* -m sphinx .*-W ", text, re.M), "a warning must stop the site"


@pytest.mark.slow
def test_source_archive_is_the_whole_project(tmp_path: Path) -> None:
    """Whoever unpacks it can run what the documents say: tests, benchmarks, the site."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist"]
    command += ["--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    folders = ("src/efemb", "tests", "benchmarks", "docs")
    wanted = {
        path.relative_to(ROOT).as_posix() for one in folders for path in (ROOT / one).glob("*.py")
    }
    assert wanted | {"Makefile", "README.md", "LICENSE", "docs/index.md", "docs/api.rst"} <= names
    assert not [
        name for name in names if re.search(r"__pycache__|\.so$|docs/(build|gallery|api/)", name)
    ]
