"""Files from the web, through pooch: verified, retried, never left half."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from efemb.errors import DataError, MissingExtraError

RETRIES = 2
_TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 16

Advance = Callable[[int], None]


def download(url: str, sha256: str, target: Path, advance: Advance) -> None:
    """Fetch one file; where its checksum is wrong or the line breaks, nothing is at `target`."""
    pooch = _pooch()
    fetcher = pooch.create(
        path=target.parent,
        base_url="",
        registry={target.name: f"sha256:{sha256}"},
        urls={target.name: url},
        retry_if_failed=RETRIES,
    )
    # Pooch leaves the connection open where a download fails.
    answers: list[Any] = []
    loader = pooch.HTTPDownloader(
        progressbar=_Bar(advance),
        chunk_size=_CHUNK_BYTES,
        timeout=_TIMEOUT_SECONDS,
        hooks={"response": lambda answer, **_: answers.append(answer)},
    )
    try:
        with _quiet(pooch.get_logger()):
            fetcher.fetch(target.name, downloader=loader)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        raise DataError(f"{url}: {_reason(error)}") from error
    finally:
        for answer in answers:
            answer.close()


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError('downloads need pooch: pip install "efemb[data]"') from error
    return pooch


def _reason(error: Exception) -> str:
    """What went wrong, in a few words."""
    # Pooch downloads by means of requests, which efemb itself does not require.
    exceptions: Any = import_module("requests.exceptions")
    if isinstance(error, exceptions.HTTPError):
        answer: Any = error.response
        return f"the server answers {answer.status_code} {answer.reason}"
    if isinstance(error, exceptions.Timeout):
        return "the server does not answer"
    if isinstance(error, exceptions.ConnectionError | exceptions.ChunkedEncodingError):
        return "there is no connection, or it broke off"
    if isinstance(error, ValueError):
        return "what came is not the published file (wrong sha256)"
    return " ".join(str(error).split())[:200]


class _Bar:
    """What pooch asks of a progress bar, on top of a function that moves one on."""

    def __init__(self, advance: Advance) -> None:
        self.total = 0
        self._advance = advance
        self._seen = 0

    def update(self, step: int) -> None:
        """Move on by `step` bytes."""
        self._seen += step
        self._advance(step)

    def reset(self) -> None:
        """Back to the start of this file."""
        self.update(-self._seen)

    def close(self) -> None:
        """The file is complete."""


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Without pooch's own messages: there is a progress bar, and errors are told in one."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
