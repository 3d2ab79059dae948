"""A model that is replaced while it is read is read as one of the two, never as a mixture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

import efemb
from efemb.storage import folder as sealed
from storage import killing

MOST_OPENED = 12  # files that a load opens, at the most


def at_opening(
    monkeypatch: pytest.MonkeyPatch, folder: Path, act: Callable[[int], None]
) -> list[int]:
    """Call `act` with their number before files of `folder` are opened; the list counts them."""
    opened: list[int] = []
    original, acting = sealed.open_regular, [False]

    def watched(path: Path) -> IO[bytes]:
        if path.parent.name.strip(".").startswith(folder.name) and not acting[0]:
            opened.append(len(opened))
            acting[0] = True
            act(opened[-1])
            acting[0] = False
        return original(path)

    monkeypatch.setattr(sealed, "open_regular", watched)
    return opened


@pytest.mark.parametrize("moment", range(MOST_OPENED))
def test_a_replacement_at_any_moment(
    moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)

    def replace(number: int) -> None:
        if number == moment:
            killing.model(1).save(path)

    opened = at_opening(monkeypatch, path, replace)
    assert killing.whole(efemb.load(path)) == int(len(opened) > moment)


@pytest.mark.parametrize("moment", range(MOST_OPENED))
def test_a_load_between_the_two_renamings(
    moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with the old folder, which is then removed."""
    path = tmp_path / "model"
    killing.model(1).save(path)
    path.rename(tmp_path / "new")
    killing.model(0).save(path)
    path.rename(tmp_path / ".model.previous")

    def finish(number: int) -> None:
        if number == moment:
            (tmp_path / "new").rename(path)
            (tmp_path / ".model.previous").rename(tmp_path / "gone")

    opened = at_opening(monkeypatch, path, finish)
    assert killing.whole(efemb.load(path)) == int(len(opened) > moment)


def test_the_folder_appears_after_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    path.rename(tmp_path / "new")
    look, looked = sealed.find_stepped_aside, []

    def late(target: Path, file: str) -> Path | None:
        there = look(target, file)
        if not looked:
            looked.append(target)
            (tmp_path / "new").rename(path)
        return there

    monkeypatch.setattr(sealed, "find_stepped_aside", late)
    assert killing.whole(efemb.load(path)) == 0
    assert looked


def test_replacements_without_end_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    killing.model(0).save(path)
    opened = at_opening(monkeypatch, path, lambda number: killing.model(number + 1).save(path))
    with pytest.raises(efemb.DataError, match="keeps being replaced"):
        efemb.load(path)
    assert len(opened) > 2  # it was tried again
