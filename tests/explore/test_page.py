"""The self-contained page: one file, nothing from elsewhere, no label as markup."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

import efemb
from efemb.baselines import Popularity
from efemb.explore import page, prepare
from explore.scenes import HOSTILE, decode, mixture, plain, stop_early, trips

DEFINITION = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.M)
MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(")


def test_the_page_refers_to_nothing_outside(tmp_path: Path) -> None:
    target = plain().to_html(tmp_path / "map.html", data=trips(), methods="pca")
    text = target.read_text("utf-8")
    visible = re.sub(r'<script type="application/octet-stream".*?</script>', "", text, flags=re.S)
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", visible))
    assert not addresses
    assert "connect-src" not in text.partition("</head>")[0]  # default-src 'none' covers it
    assert "default-src 'none'" in text


def test_labels_are_data_not_markup() -> None:
    text = prepare(plain(), methods="pca").html()
    for label in HOSTILE:
        if "<" in label:
            assert label not in text


def test_the_policy_admits_the_script_of_the_page() -> None:
    text = prepare(plain(), methods="pca").html()
    script = re.search(r'<script type="module">(.*?)</script>', text, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in text.partition("</head>")[0]
    policy = re.search(r"script-src([^;]*)", text)[1].split()
    plotly = base64.b64encode(hashlib.sha256(page.plotly_script()).digest()).decode()
    assert policy == ["'unsafe-eval'", f"'sha256-{digest}'", f"'sha256-{plotly}'"]


def test_modules_join_without_clashes() -> None:
    """Names of all modules live in one scope, and every import is of an earlier module."""
    seen: dict[str, str] = {}
    before: list[str] = []
    for name in page.MODULES:
        text = page.page_file(name)
        assert "</script" not in text
        for found in re.findall(
            r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", text, re.M
        ):
            assert found not in seen, f"{found} is in {seen[found]} and {name}"
            seen[found] = name
        imports = re.findall(r'^import [^;]*? from "\./([\w.]+)";', text, re.M)
        assert set(imports) <= set(before), name
        before.append(name)
    assert set(before) == {path.name for path in (Path(page.__file__).parent / "page").glob("*.js")}
    assert not re.search(r"^(import|export) ", page.join_modules(), re.M)


def test_no_module_makes_markup_of_text() -> None:
    """Labels reach the document as text only."""
    for name in page.MODULES:
        text = page.page_file(name)
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text
        )


def test_a_model_too_large_for_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("efemb.explore.explorer.PAGE_ITEMS", 10)
    with pytest.raises(efemb.ParameterError, match="up to 10 items, this model has 30: serve it"):
        prepare(plain(), methods="pca").html()
    assert "too large" in prepare(plain(), methods="pca")._repr_html_()


def test_a_notebook_shows_a_frame() -> None:
    cell = prepare(plain(), methods="pca")._repr_html_()
    assert cell.startswith("<iframe srcdoc=")
    assert "<script" not in cell


def test_arguments_that_do_not_work() -> None:
    with pytest.raises(efemb.ParameterError, match="8, 16 or 24 bits"):
        prepare(plain(), methods="pca").html(bits=7)
    with pytest.raises(efemb.ParameterError, match=r"'tnse' is unknown.*tsne"):
        prepare(plain(), methods=["tnse"])
    with pytest.raises(efemb.InputTypeError, match="methods must be names"):
        prepare(plain(), methods=[])
    with pytest.raises(efemb.InputTypeError, match="an explorer shows embeddings, not a dict"):
        prepare({})
    blend = efemb.Blend({"vectors": efemb.PoissonEmbedding(2, max_iter=2), "p": Popularity()})
    with pytest.raises(efemb.InputTypeError, match=r"not a Blend.*models_\['vectors'\]"):
        prepare(stop_early(blend, trips()))
    with pytest.raises(efemb.DataError, match="names needs one text for each of 1 models"):
        prepare(plain(), names=["a", "b"])
    letters = efemb.Dataset([[1, 2, 1], [2, 1, 0], [0, 1, 1.0]], entities=["x", "y", "z"])
    other = stop_early(efemb.PoissonEmbedding(2, max_iter=2), letters)
    with pytest.raises(efemb.DataError, match="fewer than two items in common"):
        prepare(plain(), against=other, methods="pca").html()


def test_without_plotly_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    page.plotly_script.cache_clear()
    monkeypatch.setattr(page, "find_spec", lambda _: None)
    with pytest.raises(efemb.MissingExtraError, match=r"efemb\[explore\]"):
        page.plotly_script()


@pytest.mark.slow
def test_a_page_of_a_mixture_says_that_it_has_the_vectors_only() -> None:
    explorer = prepare(mixture(), methods="pca")
    header, _ = decode(explorer.payloads[0].encode())
    assert header["name"] == "BasketEmbedding"
    assert "those of the vectors alone" in header["prediction"]["remark"]
    header, _ = decode(
        explorer.without_vectors().payloads[0].encode()
    )  # the served page has all of it
    assert "remark" not in header["prediction"]
    assert header["prediction"]["terms"][0]["columns"] == ["user"]


@pytest.mark.slow
def test_smaller_vectors_make_a_smaller_page() -> None:
    sizes = [len(prepare(plain(), methods="pca").html(bits)) for bits in (8, 16, 24)]
    assert sizes == sorted(sizes)


def test_the_card_compares_with_popularity() -> None:
    train, test = trips().split(test=0.3, seed=0)
    model = stop_early(efemb.PoissonEmbedding(3, max_iter=20, random_state=0), train)
    header, _ = decode(
        prepare(model, data=train, test=test, methods="pca", names="p").payloads[0].encode()
    )
    table = {
        row["model"]: row
        for row in efemb.compare({"p": model}, test, train=train, reference="popularity")
    }
    scores = header["card"]["scores"]
    assert scores["score"] == pytest.approx(table["p"]["score"])
    assert scores["popularity"] == pytest.approx(table["popularity"]["score"])
    assert scores["difference"] == pytest.approx(scores["score"] - scores["popularity"])
