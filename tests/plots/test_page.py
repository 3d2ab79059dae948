"""Page: well-formed, escaped, self-contained, written whole or not at all."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from efemb.errors import DataError, InputTypeError, ParameterError
from efemb.plots import Page, history, score_curve
from efemb.plots.page import measure_css_width
from efemb.table import Table
from plots.models import baskets, scores

NASTY = '<script>alert("x & y")</script>'


class Reader(HTMLParser):
    """What a browser would see: texts by tag, and every attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "img"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def values(self, tag: str, name: str) -> list[str | None]:
        return [value for one, key, value in self.attributes if (one, key) == (tag, name)]


def parsed(page: Page) -> Reader:
    ET.fromstring(page.html())  # well-formed
    found = Reader(page.html())
    assert not found.open
    return found


def full_page() -> Page:
    table = Table({"item": [NASTY, "b"], "n": [1, 2]})
    page = Page(NASTY, lead=NASTY).paragraph(NASTY).section(NASTY).subsection(NASTY)
    page.table(table, NASTY)
    return page.section("two").figure(history(baskets()), NASTY, alt=NASTY).code(NASTY)


def test_everything_is_escaped() -> None:
    page = full_page()
    assert "<script" not in page.html()
    found = parsed(page)
    for tag in ("title", "h1", "h2", "h3", "p", "a", "td", "figcaption", "pre"):
        assert NASTY in found.texts[tag], tag
    assert found.values("img", "alt") == [NASTY]


@pytest.mark.parametrize("rows", [1, 3, 150])
def test_tables_show_as_many_rows_as_asked_for(rows: int) -> None:
    html = Page("Long").table(Table({"n": np.arange(150)}), rows=rows).html()
    assert html.count("<td>") == rows
    rest = re.findall(r"\.\.\. (\d+) more rows", html)
    assert rest == ([] if rows == 150 else [str(150 - rows)])


@pytest.mark.slow
def test_browsers_are_told_to_run_and_load_nothing() -> None:
    head, _, _ = Page("Shop").html().partition("</head>")
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>' in head
    assert head.index("Content-Security-Policy") < head.index("<style>")


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = full_page().html()
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', html)
    assert sources
    assert all(source.startswith(("data:image/", "#section-")) for source in sources)
    assert "url(" not in html
    assert "@import" not in html


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_gives_a_document_that_can_be_read_and_written(title: str, text: str) -> None:
    page = Page(title, lead=text).section(text).section(title).code(text)
    page.table(Table({text: [title, text]}), title)
    parsed(page)
    page.html().encode()


def test_contents_lead_to_the_sections() -> None:
    found = parsed(Page("t").section("one").section("two"))
    links = [str(link) for link in found.values("a", "href")]
    assert links == ["#section-1", "#section-2"]
    assert [f"#{name}" for name in found.values("h2", "id")] == links
    assert found.texts["a"] == ["one", "two"]


def test_one_section_needs_no_contents() -> None:
    assert "<nav" not in Page("t").section("one").html()


def test_an_empty_line_begins_a_paragraph() -> None:
    found = parsed(Page("t").paragraph("one\nline\n\n two \n\n\n"))
    assert found.texts["p"] == ["one\nline", "two"]


def test_numbers_stand_to_the_right() -> None:
    html = Page("t").table(Table({"name": ["a"], "n": [1], "x": [0.5], "b": [True]})).html()
    assert 'class="table right-2 right-3"' in html
    assert ".right-2 td:nth-child(2)" in html
    assert "right-4" not in html


def test_a_png_is_inside_and_has_its_size() -> None:
    ax = history(baskets())
    found = parsed(Page("t").figure(ax, "caption", dpi=192))
    (source,), (alt,) = found.values("img", "src"), found.values("img", "alt")
    kind, _, data = str(source).partition(",")
    png = base64.b64decode(data)
    assert kind == "data:image/png;base64"
    assert png.startswith(b"\x89PNG")
    assert alt == "caption"
    width = int.from_bytes(png[16:20], "big")
    assert found.values("img", "width") == [str(round(width / 2))]


def test_an_svg_is_inside_and_does_not_tell_the_time() -> None:
    found = parsed(Page("t").figure(score_curve(scores()), kind="svg"))
    (source,) = found.values("img", "src")
    assert str(source).startswith("data:image/svg+xml;base64,")
    assert b"<dc:date>" not in base64.b64decode(str(source).partition(",")[2])


def test_files_are_taken_as_they_are(tmp_path: Path) -> None:
    ax = history(baskets())
    for kind in ("png", "svg"):
        path = tmp_path / f"picture.{kind}"
        ax.figure.savefig(path, dpi=50)
        (source,) = parsed(Page("t").figure(path)).values("img", "src")
        assert base64.b64decode(str(source).partition(",")[2]) == path.read_bytes()


def test_width_of_a_png_without_a_size() -> None:
    header = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4, "big") + bytes(30)
    assert measure_css_width(header) == 640


def test_it_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "sub" / "report.html"
    page = full_page()
    assert page.write(target) == target.resolve()
    before = target.read_bytes()
    assert before.decode() == page.html()
    broken = Page("other")
    monkeypatch.setattr(broken, "html", lambda: "\ud800")  # cannot be encoded
    with pytest.raises(UnicodeEncodeError):
        broken.write(target)
    assert target.read_bytes() == before
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


def test_the_look_suits_the_dark_and_paper() -> None:
    html = Page("t").html()
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "break-inside: avoid" in html


def test_bad_parts_are_refused(tmp_path: Path) -> None:
    page = Page("t")
    with pytest.raises(InputTypeError, match="expected a Table, not dict"):
        page.table({"a": [1]})  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="not ndarray"):
        page.figure(np.ones(3))
    with pytest.raises(ParameterError, match="kind='gif' is unknown"):
        page.figure(history(baskets()), kind="gif")
    with pytest.raises(DataError, match="cannot be read"):
        page.figure(tmp_path / "missing.png")
    (tmp_path / "text.png").write_text("text")
    with pytest.raises(DataError, match="neither a PNG nor an SVG"):
        page.figure(tmp_path / "text.png")
    with pytest.raises(DataError, match="is a directory"):
        page.write(tmp_path)
    assert repr(page) == "Page('t', 0 sections, 0 blocks)"
