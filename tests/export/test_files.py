"""Files appear whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pytest

from efemb._files import check_writable, complete_or_absent, file_target
from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.fitted.disk import MODEL


@pytest.mark.parametrize(
    ("ending", "unpack"),
    [("", bytes), (".gz", gzip.decompress), (".bz2", bz2.decompress), (".xz", lzma.decompress)],
)
def test_packing_goes_by_the_name(tmp_path: Path, ending: str, unpack) -> None:
    target = tmp_path / "new" / f"x.txt{ending}"
    with complete_or_absent(target) as stream:
        stream.write(b"words")
        assert not target.exists()
    assert unpack(target.read_bytes()) == b"words"
    assert [one.name for one in target.parent.iterdir()] == [target.name]


def test_a_failure_keeps_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    target.write_text("old")

    def fail() -> None:
        with complete_or_absent(target) as stream:
            stream.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert target.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["x.txt"]


def test_targets(tmp_path: Path) -> None:
    real = tmp_path / "real.txt"
    real.touch()
    (tmp_path / "link.txt").symlink_to(real)
    assert file_target(tmp_path / "link.txt") == real.resolve()
    with pytest.raises(DataError, match="directory"):
        file_target(tmp_path)
    for wrong in ("", None, 3):
        with pytest.raises(InputTypeError):
            file_target(wrong)


def test_writable(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="cannot write"):
        check_writable(tmp_path / "file" / "x")


def test_a_home_that_nobody_has_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    odd = "~no-such-user-here/x"
    assert file_target(odd) == Path(os.path.realpath(tmp_path)) / odd
    assert MODEL.check_path(odd) == Path(odd)
    assert MODEL.check_path("~/x") == tmp_path / "home" / "x"
