"""The served explorer: the answers of the model, and 4xx for everything that is not a question."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from efemb.explore import prepare
from efemb.explore.desk import MOST_ANSWERS, Desk
from efemb.explore.server import make_app
from efemb.explore.serving import MOST_BYTES, REQUESTS, RateLimit
from efemb.fitted.embedding import FittedEmbedding
from explore.scenes import (
    dated_words,
    decode,
    fit,
    mixture,
    plain,
    priced,
    recording,
    trips,
    weekly,
    with_terms,
    words,
)

HOME = "http://127.0.0.1:8765"


def client_of(model: Any, guarding: dict[str, Any] | None = None, **options: Any) -> TestClient:
    app = make_app(prepare(model, methods="pca", **options), **(guarding or {}))
    return TestClient(app, base_url=HOME)


@pytest.fixture(scope="module")
def shop() -> TestClient:
    """Without a limit of requests, which has a test of its own."""
    unlimited = {"rate": RateLimit(requests=math.inf)}
    return client_of(with_terms(), unlimited, data=trips(), against=plain())


def ask(client: TestClient, question: str, **body: Any) -> Any:
    response = client.post(f"/api/{question}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def same_rows(answer: list[dict[str, Any]], table: Any, model: Any) -> None:
    """Rows of an answer are those of a table, with numbers for labels."""
    assert len(answer) == len(table)
    for mine, row in zip(answer, table, strict=True):
        assert model.fitted().entities[mine.pop("code")] == row["label"]
        for name, value in mine.items():
            if isinstance(value, float):
                assert value == pytest.approx(row[name])
            else:
                assert value == row[name] or (value is None and math.isnan(row[name]))


@pytest.mark.parametrize("item", [0, 5, 29])
def test_answers_are_those_of_the_model(shop: TestClient, item: int) -> None:
    model, labels = with_terms(), list(trips().entities)
    label = labels[item]
    same_rows(ask(shop, "similar", item=item), model.similar(label), model)
    # The page knows one count per item, that of the data; the model knows those of the training.
    assert set(ask(shop, "similar", item=item)[0]) == {"code", "similarity"}
    of_alpha = ask(shop, "similar", item=item, space="alpha", n=3)
    same_rows(of_alpha, model.similar(label, 3, which="alpha"), model)
    raised = [row for row in model.complements(label, data=trips()) if row["score"] > 0]
    same_rows(ask(shop, "complements", item=item), raised, model)
    table = model.substitutes(label, data=trips(), apart=True)
    close = [row for row in table if row["kind"] != "apart"]
    same_rows(ask(shop, "substitutes", item=item), close, model)
    analogy = ask(shop, "analogy", positive=[item, 1], negative=[2], n=4)
    same_rows(analogy, model.analogy([label, labels[1]], [labels[2]], 4), model)
    other = ask(shop, "similar", model=1, item=item)
    same_rows(other, plain().similar(label), plain())


def test_baskets_with_and_without_terms(shop: TestClient) -> None:
    model, labels = with_terms(), list(trips().entities)
    basket = {labels[3]: 2.0, labels[8]: 1.0}
    for row in ({}, {"household": 4}, {"household": 4, "price": 2.5}):
        answer = ask(shop, "complete", basket=[[3, 2], [8, 1]], row=row)
        same_rows(answer, model.complete(basket, **row), model)
        parts = ask(shop, "explain", basket=[[3, 2], [8, 1]], item=11, row=row)
        table = model.explain(basket, labels[11], **row)
        assert [part["term"] for part in parts] == [str(term) for term in table["term"]]
        np.testing.assert_allclose([part["contribution"] for part in parts], table["contribution"])


def test_what_a_selection_shares(shop: TestClient) -> None:
    answer = ask(shop, "share", items=[1, 4, 7, 10])
    unit = with_terms().vectors().unit_vectors.astype(float)
    middle = unit[[1, 4, 7, 10]].sum(axis=0)
    cosine = unit @ middle / np.linalg.norm(middle)
    inside = sorted([1, 4, 7, 10], key=lambda code: -cosine[code])
    assert [row["code"] for row in answer["central"]] == inside
    outside = [code for code in np.argsort(-cosine) if code not in inside][:5]
    assert [row["code"] for row in answer["near"]] == outside
    assert ask(shop, "share", items=list(range(30)))["near"] == []


def test_weights_and_maps_of_neurons() -> None:
    model, frames = recording()
    client = client_of(model, data=frames)
    answer = ask(client, "weights", item=3)
    table = model.weights(3)
    assert [row["code"] for row in answer] == table["neighbor"].tolist()
    np.testing.assert_allclose([row["weight"] for row in answer], table["weight"])
    points = ask(client, "map", space="", method="positions")
    np.testing.assert_allclose(np.reshape(points, (-1, 3)), model.positions_, atol=1e-4)
    assert client.post("/api/complements", json={"item": 3}).status_code == 422


def test_words_around_a_gap() -> None:
    model = words()
    client = client_of(model)
    names = list(model.fitted().entities)
    answer = ask(client, "complete", basket=[[1, 2], [4, 1]])
    same_rows(answer, model.complete([names[1], names[1], names[4]]), model)


@pytest.mark.slow
def test_the_whole_of_a_mixture_completes_baskets() -> None:
    model, labels = mixture(), list(trips().entities)
    client = client_of(model)
    for row in ({}, {"user": 4}):
        answer = ask(client, "complete", basket=[[3, 2]], row=row)
        same_rows(answer, model.complete({labels[3]: 2}, **row), model)
        parts = ask(client, "explain", basket=[[3, 2]], item=11, row=row)
        table = model.explain({labels[3]: 2}, labels[11], **row)
        assert parts[0]["term"] in table["expert"][0]
        for part in parts:  # powers of one kind of expert are one share
            kind = [row for row in table if row["expert"].startswith(part["term"])]
            whole = sum(row["responsibility"] for row in kind)
            assert part["contribution"] == pytest.approx(whole)
        assert sum(part["contribution"] for part in parts) == pytest.approx(1.0)
    same_rows(ask(client, "similar", item=3), model.similar(labels[3]), model)
    assert client.post("/api/complete", json={"basket": [], "row": {"x": 1}}).status_code == 400


def test_prices_and_groups_of_rows() -> None:
    model, labels = priced(), list(trips().entities)
    client = client_of(model)
    for row in ({}, {"week": 3}, {"week": 3, "kids": "yes"}):
        answer = ask(client, "complete", basket=[[3, 1]], row=row)
        same_rows(answer, model.complete({labels[3]: 1}, **row), model)
    answer = ask(
        client, "what_if", basket=[[3, 1]], row={"week": 3}, table="price", item=7, factor=0.5
    )
    expected = model.what_if({labels[3]: 1}, n=10, week=3, price={labels[7]: 0.5})
    same_rows(answer, [row for row in expected if row["change"] != 0], model)
    assert answer[0]["ratio"] != pytest.approx(1.0, abs=1e-6)
    for wrong in ({"table": "cost"}, {"factor": -1}, {"factor": "x"}, {"item": 99}):
        body = {"table": "price", "item": 7, "factor": 0.5, "row": {"week": 3}, **wrong}
        assert client.post("/api/what_if", json=body).status_code in (400, 422)
    header, _ = decode(prepare(model, methods="pca").without_vectors().payloads[0].encode())
    choices = {term["columns"][0]: term["choices"] for term in header["prediction"]["terms"]}
    assert choices == {"week": list(range(10))}
    assert header["slices"] == {"column": "kids", "labels": ["no", "yes"], "in_order": False}
    assert header["prediction"]["tables"] == {"price": {"week": 9}}
    header, _ = decode(prepare(model, methods="pca").payloads[0].encode())  # a page has neither
    assert "only the served explorer" in header["prediction"]["refused"]


def test_slices_of_time() -> None:
    model, data = weekly()
    client, names = client_of(model, data=data), list(trips().entities)
    for group, week in enumerate(model.fitted().spec.structure.labels):
        of_week = model.of_group(week)
        same_rows(ask(client, "similar", item=3, group=group), of_week.similar(names[3]), of_week)
        expected = [row for row in of_week.complements(names[3], data=data) if row["score"] > 0]
        same_rows(ask(client, "complements", item=3, group=group), expected, of_week)
    path = ask(client, "trajectory", item=3)
    table = model.trajectory(names[3], data=data)
    np.testing.assert_allclose([step["similarity"] for step in path], table["similarity"])
    assert [names[step["nearest"]] for step in path] == table["nearest"].tolist()
    assert [step["count"] for step in path] == table["count"].tolist()
    for wrong in (-1, 4, "0", None, 1.5):
        body = {"item": 3, "group": wrong}
        assert client.post("/api/similar", json=body).status_code == 400
    assert client_of(plain()).post("/api/trajectory", json={"item": 3}).status_code == 422
    body = {"item": 3, "group": 0}
    assert client_of(plain()).post("/api/similar", json=body).status_code == 400


def test_explanations_of_a_slice_have_its_intercept() -> None:
    """Words have no intercept of their own, but one in every slice of time."""
    model, _ = dated_words()
    names = list(model.fitted().entities)
    for year in model.fitted().spec.structure.labels:
        expected = model.of_group(year).explain([names[3]], names[7])
        row = {"year": year}
        parts = ask(client_of(model), "explain", basket=[[3, 1]], item=7, row=row)
        assert [part["term"] for part in parts] == expected["term"].tolist()
        np.testing.assert_allclose([p["contribution"] for p in parts], expected["contribution"])


def test_a_map_is_made_when_it_is_asked_for(shop: TestClient) -> None:
    points = np.reshape(ask(shop, "map", space="rho", method="tsne"), (-1, 2))
    assert points.shape == (30, 2)
    assert shop.post("/api/map", json={"space": "rho", "method": "circle"}).status_code == 400
    assert ask(shop, "map", space="rho", method="tsne") == points.ravel().tolist()


def test_other_maps_are_listed_and_made_later() -> None:
    explorer = prepare(plain(), methods="pca")
    header, content = decode(explorer.without_vectors().payloads[0].encode())
    titles = [entry["title"] for entry in header["maps"]]
    assert titles[:4] == ["rho · PCA", "alpha · PCA", "rho · t-SNE", "alpha · t-SNE"]
    assert "map.rho.tsne" not in content
    header, content = decode(explorer.payloads[0].encode())  # a page has no one to ask
    assert {entry["array"] for entry in header["maps"]} <= set(content)


def test_the_page_and_its_parts(shop: TestClient) -> None:
    home = shop.get("/")
    assert 'data-models="2"' in home.text
    policy = home.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    for name in ("page/explorer.js", "page/style.css", "page/surface.css", "plotly.js"):
        assert shop.get(f"/{name}").status_code == 200
        assert name in home.text or name == "plotly.js"
    surface = shop.get("/surface").headers["content-security-policy"]
    assert "connect-src" not in surface
    assert "default-src 'none'" in surface
    response = shop.get("/api/payload/0")
    assert response.headers["x-content-type-options"] == "nosniff"
    import gzip

    header, content = decode(gzip.compress(response.content))
    assert header["labels"] == [str(label) for label in trips().entities]
    assert not {"rho", "alpha", "support.items"} & set(content)


@pytest.mark.parametrize(
    "path",
    [
        "/api/payload/9",
        "/api/payload/x",
        "/page/../server.py",
        "/page/%2e%2e/server.py",
        "/page/..%2fserver.py",
        "/page//etc/passwd",
        "/api/ask",
        "/api/__init__",
        "/nothing",
        "/page/index.html",
    ],
)
def test_there_is_nothing_else(shop: TestClient, path: str) -> None:
    assert shop.get(path).status_code in (404, 405)
    assert shop.post(path, json={}).status_code in (404, 405)


@pytest.mark.parametrize(
    ("question", "body"),
    [
        ("similar", {}),
        ("similar", {"item": 30}),
        ("similar", {"item": -1}),
        ("similar", {"item": True}),
        ("similar", {"item": 1.0}),
        ("similar", {"item": "0"}),
        ("similar", {"item": 10**30}),
        ("similar", {"item": 0, "n": 0}),
        ("similar", {"item": 0, "n": MOST_ANSWERS + 1}),
        ("similar", {"item": 0, "space": "both"}),
        ("similar", {"item": 0, "path": "/etc/passwd"}),
        ("similar", {"item": 0, "model": 2}),
        ("analogy", {"positive": []}),
        ("analogy", {"positive": 3}),
        ("complete", {"basket": {}}),
        ("complete", {"basket": [[1]]}),
        ("complete", {"basket": [[1, "2"]]}),
        ("complete", {"basket": [[1, 1e300]]}),
        ("complete", {"basket": [[1, 1]], "row": {"__class__": 1}}),
        ("complete", {"basket": [[1, 1]], "row": {"household": [1]}}),
        ("complete", {"basket": [[1, 1]], "row": {"household": None}}),
        ("complete", {"basket": [[1, 1]] * 2000}),
        ("share", {"items": []}),
        ("share", {"items": [[1]]}),
        ("map", {"space": "rho"}),
    ],
)
def test_wrong_values_are_refused(shop: TestClient, question: str, body: Any) -> None:
    response = shop.post(f"/api/{question}", json=body)
    assert response.status_code == 400
    assert response.json()["error"]


@pytest.mark.parametrize("basket", [[], [[1, -1]]])
def test_questions_that_the_model_refuses_say_why(shop: TestClient, basket: Any) -> None:
    response = shop.post("/api/complete", json={"basket": basket})
    assert response.status_code == 422
    assert len(response.json()["error"]) > 20


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"item": NaN}',
        b'{"item": Infinity}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"item":' * 50_000,
        b'{"item": 1e999}',
        b'"' + b"a" * 100_000,
        b'{"item": 0, "n": -Infinity}',
    ],
)
def test_what_is_not_json_is_refused(shop: TestClient, content: bytes) -> None:
    kind = {"Content-Type": "application/json"}
    assert shop.post("/api/similar", content=content, headers=kind).status_code == 400


def test_other_kinds_of_bodies_are_refused(shop: TestClient) -> None:
    """A form of another site can send these without asking."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = shop.post("/api/similar", content=b'{"item": 0}', headers={"Content-Type": kind})
        assert response.status_code == 400


def test_long_bodies_are_refused(shop: TestClient) -> None:
    assert shop.post("/api/similar", content=b" " * (MOST_BYTES + 1)).status_code == 413

    def drip() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * (MOST_BYTES // 10)

    assert shop.post("/api/similar", content=drip()).status_code == 413  # without a length
    response = shop.post("/api/similar", content=b"", headers={"Content-Length": "x"})
    assert response.status_code in (400, 413)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost:80:80"])
def test_other_hosts_are_refused(shop: TestClient, host: str) -> None:
    """A name of another site that resolves to this machine (DNS rebinding)."""
    assert shop.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "LOCALHOST:8765", "[::1]:8765"])
def test_own_hosts_are_answered(shop: TestClient, host: str) -> None:
    assert shop.get("/", headers={"Host": host}).status_code == 200


def test_a_token_is_needed_once() -> None:
    client = client_of(plain(), {"hosts": None, "token": "secret-token"})
    assert client.get("/").status_code == 401
    assert client.get("/?token=wrong-token").status_code == 401
    assert client.get("/?token=%ff").status_code == 401
    assert client.get("/", headers={"Cookie": "efemb_token=wrong; =;;"}).status_code == 401
    entered = client.get("/?token=secret-token", headers={"Host": "shop.example"})
    assert entered.status_code == 200
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    again = client.get("/api/payload/0", headers={"Cookie": cookie.partition(";")[0]})
    assert again.status_code == 200


def test_too_many_requests_have_to_wait() -> None:
    now = 0.0
    limit = RateLimit(clock=lambda: now)
    assert all(limit.allows("a") for _ in range(REQUESTS))
    assert not limit.allows("a")
    assert limit.allows("b")
    now = 1.0
    assert limit.allows("a")
    client = client_of(plain(), {"rate": RateLimit(requests=5, per_second=1e-6)})
    codes = [client.get("/page/nothing").status_code for _ in range(9)]
    assert codes[0] == 404
    assert codes[-1] == 429


def test_positive_models_have_no_substitutes() -> None:
    client = client_of(fit("additive"))
    response = client.post("/api/substitutes", json={"item": 0})
    assert response.status_code == 422
    assert "positive" in response.json()["error"]


def test_an_unknown_error_is_not_told_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("inside")

    monkeypatch.setattr(Desk, "ask", fail)
    app = make_app(prepare(plain(), methods="pca"))
    client = TestClient(app, base_url=HOME, raise_server_exceptions=False)
    response = client.post("/api/similar", json={"item": 0})
    assert response.status_code == 500
    assert "inside" not in response.text


# -- anything at all ------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        "item",
        "n",
        "model",
        "space",
        "basket",
        "row",
        "items",
        "positive",
        "negative",
        "method",
        "group",
    ]
)
LIKELY = (
    st.integers(-2, 35) | st.lists(st.lists(st.integers(-1, 31), max_size=3), max_size=4) | VALUES
)
BODIES = st.dictionaries(NAMES | st.text(max_size=8), LIKELY, max_size=5)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.sampled_from(Desk.QUESTIONS), BODIES)
def test_no_request_breaks_the_server(shop: TestClient, question: str, body: Any) -> None:
    """Exceptions of the application reach this test; an answer is JSON without NaN."""
    if body.get("method") in ("umap", "tsne"):
        return  # right, but slow
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    headers = {"Content-Type": "application/json"}
    response = shop.post(f"/api/{question}", content=content, headers=headers)
    assert response.status_code in (200, 400, 422)
    json.loads(response.content, parse_constant=pytest.fail)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.binary(max_size=200), st.text(max_size=30))
def test_no_bytes_break_the_server(shop: TestClient, content: bytes, path: str) -> None:
    headers = {"Content-Type": "application/json"}
    assert shop.post("/api/similar", content=content, headers=headers).status_code < 500
    from urllib.parse import quote

    assert shop.get("/page/" + quote(path, errors="replace", safe="")).status_code < 500


def test_loaded_models_are_served(tmp_path: Any) -> None:
    import efemb

    plain().save(tmp_path / "shop")
    loaded = efemb.load(tmp_path / "shop")
    assert isinstance(loaded, FittedEmbedding)
    same_rows(
        ask(client_of(loaded), "similar", item=2),
        plain().similar(list(trips().entities)[2]),
        plain(),
    )
