"""Serving an explorer: a free port, an address, and connections that do not wait for ever."""

from __future__ import annotations

import errno
import ipaddress
import logging
import re
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from efemb.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from efemb.explore.explorer import Explorer

TRIED_PORTS = 50
FIRST_REQUEST_SECONDS = 10.0
IDLE_SECONDS = 15
CONNECTIONS = 100
LEAST_TOKEN = 8
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")


def serve(
    explorer: Explorer,
    host: str,
    port: int,
    *,
    token: str | None,
    open_browser: bool,
    say: Callable[[str], None],
) -> None:
    """Run the server in this thread until it is interrupted."""
    local = check_exposure(host, token, say)
    listener = bind_free_port(host, port, say)
    try:
        say("preparing the page")
        server = make_server(explorer, None if not local else _names_of(host), token)
        address = make_address(host, listener.getsockname()[1], token)
        say(f"explorer: {address} (Ctrl-C to stop)")
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        server.run(sockets=[listener])
    finally:
        listener.close()


def check_exposure(host: str, token: str | None, say: Callable[[str], None]) -> bool:
    """Whether only this machine can connect; otherwise a token is necessary."""
    if token is not None and (not _TOKEN.fullmatch(token) or len(token) < LEAST_TOKEN):
        raise ParameterError(
            f"a token has at least {LEAST_TOKEN} letters and digits (and . _ ~ -), so that it can "
            "be part of an address"
        )
    local = _is_loopback(host)
    if not local:
        if token is None:
            raise ParameterError(
                f"host {host!r} lets other machines connect: pass a token as well (--token TEXT)"
            )
        say(
            f"warning: {host} lets other machines connect; anyone who knows the token can read "
            "all of the model and the data, and the connection is not encrypted"
        )
    return local


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _names_of(host: str) -> frozenset[str]:
    """What the Host header may say."""
    shown = f"[{host}]" if ":" in host else host
    return frozenset({shown.lower(), "localhost", "127.0.0.1", "[::1]"})


def bind_free_port(host: str, port: int, say: Callable[[str], None]) -> socket.socket:
    """A socket on the port, or on the next free one."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ParameterError(f"port must be a whole number from 0 to 65535, got {port!r}")
    for tried in range(port, min(port + TRIED_PORTS, 65536)):
        try:
            family, _, _, _, place = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM)[0]
        except (OSError, UnicodeError) as error:
            raise ParameterError(f"host {host!r} is not an address of this machine") from error
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(CONNECTIONS)
        except OSError as error:
            listener.close()
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise ParameterError(f"cannot listen at {host}: {error.strerror}") from error
        if tried != port:
            say(f"port {port} is in use; taking {tried}")
        return listener
    raise ParameterError(f"no port from {port} to {tried} is free: pass another port")


def make_address(host: str, port: int, token: str | None) -> str:
    """The address to open."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/" + (f"?token={quote(token)}" if token else "")


def make_server(
    explorer: Explorer, hosts: frozenset[str] | None, token: str | None, **guarding: Any
) -> Any:
    """A uvicorn server; `guarding` are further options of `Guard`."""
    from efemb.explore.server import make_app

    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError(
            "serving an explorer needs uvicorn: pip install 'efemb[explore]'"
        ) from error
    app = make_app(explorer, hosts=hosts, token=token, **guarding)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_impatient_protocol(),
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=2,
            limit_concurrency=CONNECTIONS,
            h11_max_incomplete_event_size=16_384,
            lifespan="off",
        )
    )


def _impatient_protocol() -> Any:
    """HTTP connections that are closed unless their first request arrives in time."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class ImpatientProtocol(H11Protocol):
        """uvicorn itself only limits the time between requests."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(FIRST_REQUEST_SECONDS, self._close_if_silent)

        def _close_if_silent(self) -> None:
            if self.cycle is None and not self.transport.is_closing():
                self.transport.close()

    return ImpatientProtocol
