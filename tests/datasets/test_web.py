"""Downloads from a server that behaves well or badly; nothing half is ever left behind."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

import efemb
from efemb.datasets import download
from efemb.datasets.download import find_files
from efemb.datasets.sources import Archive, Copy, DataSet


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def data_set(server: Any, content: bytes, *hows: str) -> DataSet:
    """One file for each way of delivering it."""
    return DataSet(
        name="numbers",
        folder="numbers",
        title="Numbers of nobody",
        shape="3 x 4",
        terms="free for all",
        size=len(content),
        copies=(
            Copy(
                {f"{how}.bin": sha256(content) for how in hows},
                urls={f"{how}.bin": f"{server.address}/{how}/{how}.bin" for how in hows},
            ),
        ),
    )


def fetched(data: DataSet, **options: Any) -> Any:
    return find_files(data, None, download=True, **{"progress": False, **options})


@pytest.mark.parametrize("how", ["good", "redirect"])
def test_good_and_redirected(server: Any, content: bytes, how: str, cache: Path) -> None:
    found = fetched(data_set(server, content, how))
    assert found[f"{how}.bin"] == cache / "numbers" / f"{how}.bin"
    assert found[f"{how}.bin"].read_bytes() == content
    assert (found.place, found.where) == ("cache", str(cache / "numbers"))


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("truncated", "interrupted"),
        ("killed", "interrupted"),
        ("shorter", "wrong sha256"),
        ("wrong", "wrong sha256"),
        ("missing", "404"),
        ("local", "redirects to 'file:///etc/hostname'"),
        ("endless", r"larger than 10,512,000 bytes"),
    ],
)
def test_bad_deliveries_leave_nothing(
    server: Any, content: bytes, how: str, reason: str, cache: Path, left_in: Any
) -> None:
    with pytest.raises(efemb.DataError, match=reason) as caught:
        fetched(data_set(server, content, how))
    assert left_in(cache) == []
    message = str(caught.value)
    assert "\n" not in message
    assert f"{server.address}/{how}/{how}.bin" in message
    assert "put" in message
    assert "folder numbers of data_home or EFEMB_DATA" in message


def test_no_server(content: bytes, server: Any, cache: Path, left_in: Any) -> None:
    data = data_set(server, content, "good")
    urls = {"good.bin": "http://127.0.0.1:9/good.bin"}
    copy = Copy(data.copies[0].sha256, urls=urls)
    gone = DataSet(**{**vars(data), "copies": (copy,)})
    with pytest.raises(efemb.DataError, match="the connection failed"):
        fetched(gone)
    assert left_in(cache) == []


def test_whole_files_of_an_interrupted_run_are_not_fetched_again(
    server: Any, content: bytes, cache: Path, left_in: Any
) -> None:
    data = data_set(server, content, "good", "once")
    with pytest.raises(efemb.DataError):
        fetched(data)
    assert left_in(cache) == ["good.bin"]
    assert fetched(data)["once.bin"].read_bytes() == content
    assert server.asked.count("/good/good.bin") == 1
    assert server.asked.count("/once/once.bin") == 2


@pytest.mark.slow
def test_a_broken_connection_is_tried_again(
    server: Any, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RETRIES", 1)
    assert fetched(data_set(server, content, "once"))["once.bin"].read_bytes() == content
    assert len(server.asked) == 2


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("inside/numbers.bin", content)
        archive.writestr("inside/other.bin", b"not wanted")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("member", "reason"),
    [("numbers.bin", None), ("other.bin", "not the published file"), ("none.bin", "lacks a file")],
)
def test_archives(server: Any, cache: Path, left_in: Any, member: str, reason: str | None) -> None:
    server.contents["numbers.zip"] = packed = zipped(b"the data")
    archive = Archive(
        f"{server.address}/good/numbers.zip", sha256(packed), {"numbers.bin": f"inside/{member}"}
    )
    copy = Copy({"numbers.bin": sha256(b"the data")}, archive=archive)
    data = DataSet("numbers", "numbers", "Numbers", "3 x 4", "free", 1, (copy,))
    if reason is None:
        assert fetched(data)["numbers.bin"].read_bytes() == b"the data"
        assert left_in(cache) == ["numbers.bin"]
    else:
        with pytest.raises(efemb.DataError, match=reason):
            fetched(data)
        assert left_in(cache) == []


def test_an_archive_that_is_none(server: Any, content: bytes, cache: Path, left_in: Any) -> None:
    archive = Archive(f"{server.address}/good/x.zip", sha256(content), {"numbers.bin": "x"})
    copy = Copy({"numbers.bin": sha256(content)}, archive=archive)
    with pytest.raises(efemb.DataError, match="cannot be extracted"):
        fetched(DataSet("numbers", "numbers", "Numbers", "3 x 4", "free", 1, (copy,)))
    assert left_in(cache) == []


def test_an_interrupt_leaves_nothing(
    server: Any, content: bytes, cache: Path, left_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(bar: Any, step: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(download._Bar, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetched(data_set(server, content, "good"))
    assert left_in(cache) == []


def test_what_a_killed_process_left_is_removed_later(
    server: Any, content: bytes, cache: Path, left_in: Any
) -> None:
    for name, age in (("old", 2 * 3600.0), ("new", 60.0)):
        folder = cache / f".partial-{name}"
        folder.mkdir(parents=True)
        (folder / f"{name}.bin").write_bytes(content[:10])
        for path in (folder / f"{name}.bin", folder):
            os.utime(path, (time.time() - age,) * 2)
    fetched(data_set(server, content, "good"))
    assert left_in(cache) == ["good.bin", "new.bin"]


def test_the_bar_ends_at_the_size_of_the_file(server: Any, content: bytes, tmp_path: Path) -> None:
    steps: list[int] = []
    url = f"{server.address}/good/x.bin"
    download._download_file(url, sha256(content), tmp_path / "x.bin", steps.append, 10**9)
    assert len(steps) > 3
    assert sum(steps) == len(content)


def test_the_bar_is_shown_on_stderr_only(
    server: Any, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    fetched(data_set(server, content, "good"), progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "Numbers of nobody. Terms: free for all" in shown.err
    assert "INFO" not in shown.err  # pooch has messages of its own
    assert "ownloading data from" not in shown.err


def test_without_pooch(
    server: Any, content: bytes, monkeypatch: pytest.MonkeyPatch, cache: Path, left_in: Any
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(efemb.MissingExtraError, match=r'pip install "efemb\[data\]"'):
        fetched(data_set(server, content, "good"))
    assert left_in(cache) == []


def test_a_cache_that_cannot_be_written(
    server: Any, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("EFEMB_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(efemb.DataError, match="EFEMB_CACHE"):
        fetched(data_set(server, content, "good"))
