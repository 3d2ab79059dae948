"""The web application of a served explorer: its page, its payloads and its answers.

Bodies are JSON of a limited size, of plain types and finite numbers; everything else is answered by
4xx.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.errors import EfembError, MissingExtraError
from efemb.explore.desk import BadRequestError, Desk, check_integer
from efemb.explore.page import STYLES, join_modules, page_file, plotly_script, served_page
from efemb.explore.serving import Guard

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from efemb.explore.explorer import Explorer

MOST_DEPTH = 20


def make_app(explorer: Explorer, **guarding: Any) -> Starlette:
    """The application; `guarding` are the options of `Guard`."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError(
            "serving an explorer needs starlette: pip install 'efemb[explore]'"
        ) from error
    site = Site(explorer)
    routes = [
        Route("/", site.page),
        Route("/surface", site.surface),
        Route("/plotly.js", site.plotly),
        Route("/page/{name}", site.asset),
        Route("/api/payload/{number:int}", site.payload),
        Route("/api/{question}", site.answer, methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, **guarding)])


class Site:
    """Everything that is served, made once."""

    def __init__(self, explorer: Explorer) -> None:
        served = explorer.without_vectors()
        self.desks = [Desk(contents) for contents in explorer.contents]
        self.document = served_page(served.payloads)
        self.payloads = [payload.encode() for payload in served.payloads]
        self.files = {
            "explorer.js": (join_modules(), "text/javascript"),
            **{name: (page_file(name), "text/css") for name in STYLES},
        }

    async def page(self, request: Request) -> Response:
        """The document."""
        from starlette.responses import HTMLResponse

        return HTMLResponse(self.document)

    async def surface(self, request: Request) -> Response:
        """The document that plotly draws into."""
        from starlette.responses import HTMLResponse

        return HTMLResponse(page_file("surface.html"))

    async def plotly(self, request: Request) -> Response:
        """plotly.js from its package."""
        from starlette.responses import Response

        cached = {"Cache-Control": "private, max-age=3600"}
        return Response(plotly_script(), media_type="text/javascript", headers=cached)

    async def asset(self, request: Request) -> Response:
        """One of the files of the page, by its name in a table."""
        from starlette.responses import Response

        known = self.files.get(request.path_params["name"])
        if known is None:
            return _refuse(404, "there is no such file")
        text, kind = known
        return Response(text, media_type=kind)

    async def payload(self, request: Request) -> Response:
        """Labels, maps and counts of a model, compressed."""
        from starlette.responses import Response

        number = request.path_params["number"]
        if number >= len(self.payloads):
            return _refuse(404, "there is no such model")
        packed = {"Content-Encoding": "gzip"}
        return Response(
            self.payloads[number], media_type="application/octet-stream", headers=packed
        )

    async def answer(self, request: Request) -> Response:
        """The answer to a question, computed in a thread, so that the server stays responsive."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        question = request.path_params["question"]
        if question not in Desk.QUESTIONS:
            return _refuse(404, "there is no such question")
        try:
            body = await _read_body(request)
            desk = self.desks[check_integer(0, len(self.desks))(body.pop("model", 0))]
            answer = await run_in_threadpool(desk.ask, question, body)
        except BadRequestError as error:
            return _refuse(400, str(error))
        except EfembError as error:  # the model cannot answer that
            return _refuse(422, str(error))
        return Response(_json(answer), media_type="application/json")


async def _read_body(request: Request) -> dict[str, Any]:
    """A JSON object of finite numbers that is not nested too deeply."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadRequestError("the body must be application/json")
    content = await request.body()

    def refuse(name: str) -> Any:
        raise BadRequestError(f"{name} is not a number of JSON")

    try:
        _check_depth(content)
        body = json.loads(content, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadRequestError("the body is not valid JSON") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body must be an object")
    return body


def _check_depth(content: bytes) -> None:
    """Refuse brackets that are opened too often, before anything is parsed."""
    depth = 0
    for byte in content:
        if byte in b"[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise BadRequestError("the body is nested too deeply")
        elif byte in b"]}":
            depth -= 1


def _json(value: Any) -> bytes:
    """JSON in which numbers that are not finite are null."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value if not isinstance(value, float) or abs(value) < float("inf") else None


def _refuse(status: int, message: str) -> Response:
    from starlette.responses import Response

    text = json.dumps({"error": message})
    return Response(text, status_code=status, media_type="application/json")
