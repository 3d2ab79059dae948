"""The web application of a served explorer: its page, its payloads and its answers.

Requests name items by their number; nothing in a request is a path or a name of a function. Bodies
are JSON of a limited size, of plain types and finite numbers; everything else is answered by 4xx.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from efemb.errors import EfembError, MissingExtraError
from efemb.explore.contents import Contents
from efemb.explore.page import STYLES, join_modules, page_file, plotly_script, served_page
from efemb.explore.serving import Guard
from efemb.fitted.cooccurrence import Support
from efemb.fitted.relation import PairOptions

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from efemb.explore.explorer import Explorer
    from efemb.table import Table

MOST_ANSWERS = 200
MOST_MEMBERS = 1_000
MOST_DEPTH = 20
Check = Callable[[Any], Any]


class BadRequestError(Exception):
    """A request that cannot be answered; the message tells why."""


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
        self.payloads = served.encoded
        self.files = {
            "explorer.js": (join_modules(), "text/javascript"),
            **{name: (page_file(name), "text/css") for name in STYLES},
        }

    async def page(self, request: Request) -> Response:
        """The document."""
        from starlette.responses import HTMLResponse

        return HTMLResponse(served_page(len(self.desks)))

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
            desk = self.desks[_integer(0, len(self.desks))(body.pop("model", 0))]
            answer = await run_in_threadpool(desk.ask, question, body)
        except BadRequestError as error:
            return _refuse(400, str(error))
        except EfembError as error:  # the model cannot answer that
            return _refuse(422, str(error))
        return Response(_json(answer), media_type="application/json")


class Desk:
    """Answers questions about one model; each question takes named, checked values."""

    QUESTIONS = (
        *("similar", "analogy", "complements", "substitutes", "complete", "explain"),
        *("what_if", "share", "weights", "map"),
    )

    def __init__(self, contents: Contents) -> None:
        self.contents, self.model, self.whole = contents, contents.model, contents.whole
        self.labels = contents.model.entities.labels
        self.busy = threading.Lock()
        support = contents.support
        self.pair_options: PairOptions = {}
        if isinstance(support, Support):
            self.pair_options["data"] = support  # counted once, not for every question
        if hasattr(contents.errors, "standard_errors"):
            self.pair_options["errors"] = contents.errors

    def ask(self, question: str, body: dict[str, Any]) -> Any:
        """Answer a question of `QUESTIONS`."""
        return getattr(self, f"_{question}")(body)

    # -- checked values -------------------------------------------------------------------------

    def _take(self, body: dict[str, Any], **checks: tuple[Check, Any]) -> list[Any]:
        """Checked values by name; a default of `...` makes one necessary."""
        values = []
        for name, (check, default) in checks.items():
            if name not in body and default is ...:
                raise BadRequestError(f"{name} is missing")
            values.append(check(body.pop(name)) if name in body else default)
        if body:
            raise BadRequestError(f"unknown: {', '.join(sorted(body))[:200]}")
        return values

    @property
    def _code(self) -> Check:
        return _integer(0, len(self.labels))

    def _codes(self, most: int) -> Check:
        def check(value: Any) -> list[int]:
            if not isinstance(value, list) or len(value) > most:
                raise BadRequestError(f"expected a list of up to {most:,} items")
            return [self._code(code) for code in value]

        return check

    def _basket(self, value: Any) -> dict[Any, float]:
        if not isinstance(value, list) or len(value) > MOST_MEMBERS:
            raise BadRequestError(f"a basket is a list of up to {MOST_MEMBERS:,} pairs")
        basket: dict[Any, float] = {}
        for pair in value:
            if not isinstance(pair, list) or len(pair) != 2:
                raise BadRequestError("a basket is a list of pairs of an item and its amount")
            label = self.labels[self._code(pair[0])]
            basket[label] = basket.get(label, 0.0) + _number(pair[1])
        return basket

    def _context(self, basket: dict[Any, float]) -> Any:
        """A basket as the model takes it: words of a text are repeated."""
        if not self.model.spec.context.reads_text:
            return basket
        if sum(basket.values()) > MOST_MEMBERS:
            raise BadRequestError(f"a gap has up to {MOST_MEMBERS:,} words around it")
        return [word for word, amount in basket.items() for _ in range(round(amount))]

    def _row(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or len(value) > 50:
            raise BadRequestError("row takes names and values of row columns")
        spec = self.model.spec
        known = {column for term in spec.terms for column in term.columns}
        known.update(spec.structure.columns)
        if self.whole is not None:
            known = {"user"}
        for name, one in value.items():
            if name not in known:
                raise BadRequestError(f"the model has no row column {name[:60]!r}")
            if isinstance(one, bool) or not isinstance(one, str | int | float):
                raise BadRequestError(f"the value of {name[:60]!r} must be a text or a number")
        return value

    def _rows(self, table: Table, *names: str) -> list[dict[str, Any]]:
        """Rows of a table with the number of the item, and those columns that it has."""
        columns = [name for name in names if name in table.columns]
        index_of = self.model.entities.index_of
        return [
            {"code": index_of(row["label"]), **{name: row[name] for name in columns}}
            for row in table
        ]

    # -- questions ------------------------------------------------------------------------------

    def _similar(self, body: dict[str, Any]) -> Any:
        item, space, n = self._take(
            body, item=(self._code, ...), space=(_one_of("rho", "alpha"), "rho"), n=(_most, 10)
        )
        table = self.model.similar(self.labels[item], n, which=space)
        return self._rows(table, "similarity", "count")

    def _analogy(self, body: dict[str, Any]) -> Any:
        words = self._codes(MOST_MEMBERS)
        positive, negative, n = self._take(
            body, positive=(words, ...), negative=(words, []), n=(_most, 10)
        )
        if not positive:
            raise BadRequestError("positive needs at least one item")
        plus, minus = ([self.labels[code] for code in side] for side in (positive, negative))
        return self._rows(self.model.analogy(plus, minus, n), "similarity", "count")

    def _complements(self, body: dict[str, Any]) -> Any:
        item, n = self._take(body, item=(self._code, ...), n=(_most, 10))
        table = self.model.complements(self.labels[item], n, **self.pair_options)
        return self._rows(table, "score", "kind", "low", "high", *SUPPORT)

    def _substitutes(self, body: dict[str, Any]) -> Any:
        item, n = self._take(body, item=(self._code, ...), n=(_most, 10))
        table = self.model.substitutes(self.labels[item], n, apart=True, **self.pair_options)
        return self._rows(table, "score", "context_similarity", "kind", *SUPPORT)

    def _complete(self, body: dict[str, Any]) -> Any:
        basket, row, n = self._take(
            body, basket=(self._basket, ...), row=(self._row, {}), n=(_most, 10)
        )
        model = self.model if self.whole is None else self.whole
        table = model.complete(self._context(basket), n, **row)
        return self._rows(table, "probability", "mean")

    def _what_if(self, body: dict[str, Any]) -> Any:
        tables = [name for term in self.model.spec.terms for name in term.tables]
        basket, row, table, item, factor, n = self._take(
            body,
            basket=(self._basket, []),
            row=(self._row, {}),
            table=(_one_of(*tables), ...),
            item=(self._code, ...),
            factor=(_number, ...),
            n=(_most, 10),
        )
        changes: dict[str, Any] = {table: {self.labels[item]: factor}}
        answer = self.model.what_if(self._context(dict(basket)), n=n, **row, **changes)
        return self._rows(answer, "before", "after", "change", "ratio")

    def _explain(self, body: dict[str, Any]) -> Any:
        basket, item, row = self._take(
            body, basket=(self._basket, ...), item=(self._code, ...), row=(self._row, {})
        )
        if self.whole is not None:
            return [
                {"term": share["expert"], "code": None, "contribution": share["responsibility"]}
                for share in self.whole.explain(basket, self.labels[item], **row)
            ]
        table = self.model.explain(self._context(basket), self.labels[item], **row)
        known = {str(label): label for label in basket}
        return [
            {
                "term": str(one["term"]),
                "code": self.model.entities.index_of(known[str(one["term"])])
                if str(one["term"]) in known
                else None,
                "amount": one["amount"],
                "contribution": one["contribution"],
            }
            for one in table
        ]

    def _share(self, body: dict[str, Any]) -> Any:
        (codes,) = self._take(body, items=(self._codes(len(self.labels)), ...))
        if not codes:
            raise BadRequestError("items needs at least one item")
        chosen = np.unique(codes)
        unit = self.model.vectors().unit_vectors[chosen]
        middle = unit.sum(axis=0, dtype=np.float64)
        inside, outside = (np.zeros(len(self.labels), dtype=bool) for _ in range(2))
        inside[chosen], outside[chosen] = True, True
        central = self.model.similar(middle, 5, where=inside)
        near = self.model.similar(middle, 5, where=~outside) if not outside.all() else None
        return {
            "central": self._rows(central, "similarity", "count"),
            "near": [] if near is None else self._rows(near, "similarity", "count"),
        }

    def _weights(self, body: dict[str, Any]) -> Any:
        (item,) = self._take(body, item=(self._code, ...))
        table = self.model.weights(self.labels[item])
        index_of = self.model.entities.index_of
        return [{"code": index_of(row["neighbor"]), "weight": row["weight"]} for row in table]

    def _map(self, body: dict[str, Any]) -> Any:
        space, method = self._take(
            body, space=(_one_of("rho", "alpha", ""), ...), method=(_one_of(*METHODS), ...)
        )
        with self.busy:  # a map takes a while: one at a time
            points = self.contents.maps.points(space, method)
        return points.ravel().round(5).tolist()


METHODS = ("pca", "tsne", "umap", "positions")
SUPPORT = ("count", "together", "lift", "lift_low", "lift_high")


def _integer(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < high:
            raise BadRequestError(f"expected a whole number from {low} to {high - 1}")
        return value

    return check


_most = _integer(1, MOST_ANSWERS + 1)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e9:
        raise BadRequestError("an amount must be a number of at most 1e9")
    return float(value)


def _one_of(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise BadRequestError(f"expected one of {', '.join(filter(None, choices))}")
        return str(value)

    return check


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
