"""Serving an explorer: a free port, an address, and a guard that every request passes."""

from __future__ import annotations

import asyncio
import errno
import hmac
import ipaddress
import json
import logging
import math
import re
import socket
import threading
import time
import webbrowser
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

from efemb.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from efemb.explore.explorer import Explorer

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MOST_BYTES = 1 << 20  # of a body
BODY_SECONDS = 10.0
REQUESTS, PER_SECOND = 300, 60.0  # at once, and then, of one client
MOST_CLIENTS = 1_000
COOKIE = "efemb_token"

_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
# plotly's WebGL compiles functions. Its document may do that, but it can reach nothing.
SURFACE_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
TRIED_PORTS = 50
REQUEST_SECONDS = 10.0
CONNECTIONS = 100
LEAST_TOKEN = 8
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")


class RateLimit:
    """A bucket of tokens for each client, filled at a constant rate."""

    def __init__(
        self,
        requests: float = REQUESTS,
        per_second: float = PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.requests, self.per_second, self._clock = requests, per_second, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        """Take a token of a client; False if there is none."""
        now = self._clock()
        tokens, before = self._buckets.pop(client, (self.requests, now))
        tokens = min(self.requests, tokens + (now - before) * self.per_second)
        allowed = tokens >= 1.0
        self._buckets[client] = (tokens - allowed, now)
        while len(self._buckets) > MOST_CLIENTS:  # the one that was heard of longest ago
            self._buckets.popitem(last=False)
        return allowed


class Guard:
    """ASGI middleware.

    hosts : values of the Host header that are answered, without ports; None answers all, which a
        token makes safe: another site cannot know it
    token : what a client has to present, first in the address, then as a cookie
    """

    def __init__(
        self,
        app: Any,
        hosts: frozenset[str] | None = frozenset({"127.0.0.1", "localhost", "[::1]"}),
        token: str | None = None,
        body_seconds: float = BODY_SECONDS,
        rate: RateLimit | None = None,
    ) -> None:
        self.app, self.hosts, self.token = app, hosts, token
        self.body_seconds = body_seconds
        self.rate = RateLimit() if rate is None else rate

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        answer = _Answer(scope, send, self._new_cookie(scope, headers))
        if refusal is not None:
            await answer.refuse(*refusal)
            return
        try:
            body = await asyncio.wait_for(_read_all(receive), self.body_seconds)
        except TimeoutError:
            await answer.refuse(408, "the request took too long")
            return
        if body is None:
            await answer.refuse(413, f"a request has up to {MOST_BYTES:,} bytes")
            return
        await self.app(scope, _replay(body, receive), answer.send)

    def _refusal(self, scope: Message, headers: dict[str, bytes]) -> tuple[int, str] | None:
        host = headers.get("host", b"").decode("latin-1").lower()
        if self.hosts is not None and _without_port(host) not in self.hosts:
            return 421, "this server does not answer for that host"
        client = scope.get("client") or ("unknown", 0)
        if not self.rate.allows(str(client[0])):
            return 429, "too many requests; try again in a second"
        length = headers.get("content-length", b"0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413, f"a request has up to {MOST_BYTES:,} bytes"
        if self.token is not None and not self._knows_token(scope, headers):
            return 401, "the address lacks the token: open the one that efemb explore printed"
        return None

    def _knows_token(self, scope: Message, headers: dict[str, bytes]) -> bool:
        assert self.token is not None
        presented = [_token_in_address(scope), _token_in_cookie(headers)]
        return any(_is_same(one, self.token) for one in presented)

    def _new_cookie(self, scope: Message, headers: dict[str, bytes]) -> str | None:
        """The cookie for a client that presented the token in the address."""
        if self.token is None or not _is_same(_token_in_address(scope), self.token):
            return None
        return f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"


class _Answer:
    """Sends with the headers that every answer has."""

    def __init__(self, scope: Message, send: Send, cookie: str | None) -> None:
        self._send = send
        policy = SURFACE_POLICY if scope["path"] == "/surface" else POLICY
        headers = {**_COMMON, "Content-Security-Policy": policy}
        if cookie is not None:
            headers["Set-Cookie"] = cookie
        self._headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *self._headers]
            if b"cache-control" not in names:
                message["headers"].append((b"cache-control", b"no-store"))
        await self._send(message)

    async def refuse(self, status: int, reason: str) -> None:
        """A short answer; the connection is closed, since its body may not have been read."""
        body = json.dumps({"error": reason}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _is_same(presented: str, token: str) -> bool:
    """Whether two texts are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(presented.encode("utf-8", "replace"), token.encode())


def _without_port(host: str) -> str:
    """`localhost:8765` and `[::1]:8765` without the port."""
    name, sign, port = host.rpartition(":")
    return name if sign and port.isdigit() and (not name.startswith("[") or "]" in name) else host


def _token_in_address(scope: Message) -> str:
    fields = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=20)
    return str(fields.get("token", [""])[0])


def _token_in_cookie(headers: dict[str, bytes]) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", b"").decode("latin-1"))
    except CookieError:
        return ""
    return str(cookie[COOKIE].value) if COOKIE in cookie else ""


async def _read_all(receive: Receive) -> bytes | None:
    """The body, None if it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A body that was read, for the application."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


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
            timeout_keep_alive=math.ceil(REQUEST_SECONDS),
            timeout_graceful_shutdown=2,
            limit_concurrency=CONNECTIONS,
            h11_max_incomplete_event_size=16_384,
            lifespan="off",
        )
    )


def _impatient_protocol() -> Any:
    """HTTP connections that are closed unless every request arrives in time."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class ImpatientProtocol(H11Protocol):
        """uvicorn itself waits forever for the rest of a request that has begun."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait_for_next()

        def _wait_for_next(self) -> None:
            self.loop.call_later(REQUEST_SECONDS, self._close_unless_next, self.cycle)

        def _close_unless_next(self, latest: Any) -> None:
            """Close if `latest` is answered, or there was none, and no request has come since."""
            is_answered = latest is None or latest.response_complete
            if self.transport.is_closing():
                return
            if self.cycle is latest and is_answered:
                self.transport.close()
            else:
                self._wait_for_next()

    return ImpatientProtocol
