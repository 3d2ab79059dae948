"""Settings and tools of these tests: no network but 127.0.0.1, a cache of its own, small files."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from efemb.datasets import download
from efemb.datasets.sources import DataSet

CONTENT = bytes(range(256)) * 1000


class Answers(http.server.BaseHTTPRequestHandler):
    """/<how>/<name>: the content, well or badly delivered."""

    asked: list[str]
    contents: dict[str, bytes]  # of names that have another one

    def log_message(self, *_: Any) -> None:
        """Silence."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        _, how, name = self.path.split("/")
        if how == "once" and self.asked.count(self.path) == 1:
            how = "killed"
        getattr(self, f"_{how}", self._good)(name)

    def _good(self, name: str, content: bytes = CONTENT, part: int | None = None) -> None:
        content = self.contents.get(name, content)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:part])

    def _wrong(self, name: str) -> None:
        self._good(name, CONTENT[::-1])

    def _truncated(self, name: str) -> None:
        self._good(name, part=len(CONTENT) // 2)

    def _shorter(self, name: str) -> None:
        """Half of the file, announced as a whole one."""
        self._good(name, CONTENT[: len(CONTENT) // 2])

    def _killed(self, name: str) -> None:
        self._good(name, part=len(CONTENT) // 2)
        self.wfile.flush()
        # No lingering: the connection is reset instead of closed.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _redirect(self, name: str) -> None:
        self.send_response(302)
        self.send_header("Location", f"/good/{name}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _local(self, name: str) -> None:
        self.send_response(302)
        self.send_header("Location", "file:///etc/hostname")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _endless(self, name: str) -> None:
        """Ever more bytes, of which nothing says how many there are."""
        self.send_response(200)
        self.end_headers()
        for _ in range(10_000):
            self.wfile.write(CONTENT)

    def _missing(self, name: str) -> None:
        self.send_error(404)


class Silent(http.server.ThreadingHTTPServer):
    """A connection that the test itself kills is no error."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silence."""


@dataclasses.dataclass
class Server:
    """Where the answers are, and what was asked."""

    address: str
    asked: list[str] = dataclasses.field(default_factory=list)
    contents: dict[str, bytes] = dataclasses.field(default_factory=dict)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server("")
    handler = type("Handler", (Answers,), {"asked": told.asked, "contents": told.contents})
    with Silent(("127.0.0.1", 0), handler) as running:
        told.address = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield told
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; nothing is asked outside of this machine."""
    folder = tmp_path / "the cache"
    monkeypatch.setenv("EFEMB_CACHE", str(folder))
    monkeypatch.delenv("EFEMB_DATA", raising=False)
    for variable in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "RETRIES", 0)
    return folder


Published = Callable[[DataSet, Path], DataSet]


@pytest.fixture
def published() -> Published:
    """Makes a data set whose published files are those in a folder."""

    def changed(data: DataSet, folder: Path) -> DataSet:
        copies = []
        for copy in data.copies:
            sha256 = {
                name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
                if (folder / name).is_file()
                else wanted
                for name, wanted in copy.sha256.items()
            }
            copies.append(dataclasses.replace(copy, sha256=sha256))
        return dataclasses.replace(data, copies=tuple(copies))

    return changed


def left_in(folder: Path) -> list[str]:
    """Every file below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.fixture(name="left_in")
def _left_in() -> Callable[[Path], list[str]]:
    return left_in


@pytest.fixture
def content() -> bytes:
    return CONTENT
