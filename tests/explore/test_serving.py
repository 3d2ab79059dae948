"""How an explorer is served: where, to whom, and for how long a silent client is waited for."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import efemb
from efemb.explore import prepare, serving
from explore.scenes import plain


@contextmanager
def running(**options: Any) -> Iterator[int]:
    """A server in a thread; its port."""
    listener = serving.bind_free_port("127.0.0.1", 0, lambda _: None)
    hosts = frozenset({"127.0.0.1"})
    server = serving.make_server(prepare(plain(), methods="pca"), hosts, None, **options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
    assert not thread.is_alive()


def test_a_port_in_use_is_left_alone() -> None:
    heard: list[str] = []
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with serving.bind_free_port("127.0.0.1", port, heard.append) as listener:
            taken = listener.getsockname()[1]
    assert taken > port
    assert heard == [f"port {port} is in use; taking {taken}"]


@pytest.mark.parametrize("port", [-1, 70_000, True, "80"])
def test_ports_that_do_not_exist(port: Any) -> None:
    with pytest.raises(efemb.ParameterError, match="from 0 to 65535"):
        serving.bind_free_port("127.0.0.1", port, lambda _: None)


def test_hosts_that_are_not_here() -> None:
    with pytest.raises(efemb.ParameterError, match=r"not an address of this machine|cannot listen"):
        serving.bind_free_port("no host", 8765, lambda _: None)


def test_other_machines_need_a_token() -> None:
    heard: list[str] = []
    assert serving.check_exposure("127.0.0.1", None, heard.append)
    assert serving.check_exposure("::1", None, heard.append)
    assert serving.check_exposure("localhost", None, heard.append)
    assert not heard
    for host in ("0.0.0.0", "192.168.1.2", "shop.example"):
        with pytest.raises(efemb.ParameterError, match="pass a token"):
            serving.check_exposure(host, None, heard.append)
    assert not serving.check_exposure("0.0.0.0", "long-enough", heard.append)
    assert "other machines" in heard[0]
    for token in ("short", "with space in it", "semi;colon;here"):
        with pytest.raises(efemb.ParameterError, match="letters and digits"):
            serving.check_exposure("127.0.0.1", token, heard.append)


def test_addresses() -> None:
    assert serving.make_address("0.0.0.0", 80, "abc") == "http://127.0.0.1:80/?token=abc"
    assert serving.make_address("::1", 80, None) == "http://[::1]:80/"


@pytest.mark.slow
def test_a_browser_is_answered_and_a_silent_client_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUEST_SECONDS", 0.5)
    with running() as port:
        silent = socket.create_connection(("127.0.0.1", port), timeout=10)
        slow = socket.create_connection(("127.0.0.1", port), timeout=10)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as response:
            assert b"efemb explorer" in response.read()
            assert "server" not in response.headers
        start = time.monotonic()
        assert silent.recv(100) == b""  # closed
        assert slow.recv(100) == b""
        again = socket.create_connection(("127.0.0.1", port), timeout=10)
        again.sendall(b"GET /none HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HTTP/1.1\r\nHost: 127")
        answer = b""
        while part := again.recv(10_000):  # until the connection is closed
            answer += part
        assert answer.count(b"HTTP/1.1 ") == 1  # its second request never came
        assert time.monotonic() - start < 16
        again.close()
        silent.close()
        slow.close()


@pytest.mark.slow
def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    with running(body_seconds=0.3) as port:
        slow = socket.create_connection(("127.0.0.1", port), timeout=10)
        head = "POST /api/similar HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        slow.sendall(f"{head}Content-Length: 50\r\n\r\n{{".encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
        slow.close()


@pytest.mark.slow
def test_serve_prints_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    class Stopped:
        def run(self, sockets: Any) -> None:
            time.sleep(0.8)

    monkeypatch.setattr(serving, "make_server", lambda *_: Stopped())
    prepare(plain(), methods="pca").serve(port=0, say=heard.append)
    assert opened[0].startswith("http://127.0.0.1:")
    assert any(opened[0] in text for text in heard)


def test_explore_shows_itself_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.explore.explorer._in_notebook", lambda: True)
    shown = plain().explore(methods="pca")
    assert "<iframe" in shown._repr_html_()
    monkeypatch.setattr("efemb.explore.explorer._in_notebook", lambda: False)
    served: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "efemb.explore.Explorer.serve", lambda self, **options: served.append(options)
    )
    plain().explore(methods="pca", port=9, open_browser=False)
    assert served == [{"port": 9, "open_browser": False}]


def test_to_html_replaces_a_file_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "map.html"
    target.write_text("older")
    with pytest.raises(efemb.ParameterError):
        plain().to_html(target, methods="circle")
    assert target.read_text() == "older"
    assert plain().to_html(target, methods="pca") == target
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")
