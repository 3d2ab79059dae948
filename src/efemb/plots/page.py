"""Page: a report in a single HTML file, with contents, tables and pictures embedded."""

from __future__ import annotations

import base64
import os
import re
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, Self

from efemb._files import complete_or_absent, file_target
from efemb.errors import DataError, InputTypeError, check_known
from efemb.table import Table

KINDS = {"png": "image/png", "svg": "image/svg+xml"}
PNG_START = b"\x89PNG\r\n\x1a\n"
# A browser runs and loads nothing, even if escaping should fail.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
# What neither HTML nor UTF-8 can represent: control characters and unpaired surrogates.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLANK_LINE = re.compile(r"\n\s*\n")


class Page:
    """A report in a single HTML file: title, sections, paragraphs, tables and pictures.

    All text is escaped. The file loads nothing from elsewhere and contains no scripts. Every method
    that adds something returns the page.

    Parameters
    ----------
    title : str
    lead : str, default=""
        A paragraph below the title.

    Examples
    --------
    >>> page = Page("Shopping trips", lead="What goes with what.")
    >>> page.section("Neighbors").table(Table({"item": ["ale"], "cosine": [0.9]}), "Most alike")
    Page('Shopping trips', 1 section, 2 blocks)
    >>> "<td>ale</td>" in page.html()
    True
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self._sections: list[str] = []
        self._blocks: list[str] = []
        self._lead = lead

    def __repr__(self) -> str:
        n = len(self._sections)
        sections = f"{n} section{'' if n == 1 else 's'}"
        return f"Page({self.title!r}, {sections}, {len(self._blocks)} blocks)"

    def section(self, title: str) -> Self:
        """Begin a section; its title is added to the table of contents."""
        self._sections.append(title)
        number = len(self._sections)
        return self._add(f'<h2 id="section-{number}">{_escape(title)}</h2>')

    def subsection(self, title: str) -> Self:
        """Add a heading within a section; it is not in the table of contents."""
        return self._add(f"<h3>{_escape(title)}</h3>")

    def paragraph(self, text: str) -> Self:
        """Add text; an empty line begins a new paragraph."""
        return self._add(_wrap_paragraphs(text))

    def code(self, text: str) -> Self:
        """Add preformatted text, such as settings or a command."""
        return self._add(f"<pre>{_escape(text)}</pre>")

    def table(self, table: Table, caption: str = "", *, rows: int = 200) -> Self:
        """Add a table with right-aligned numbers; at most `rows` rows are shown."""
        if not isinstance(table, Table):
            raise InputTypeError(f"expected a Table, not {type(table).__name__}")
        numeric = [
            column for column, name in enumerate(table.columns, 1) if _is_number(table[name])
        ]
        names = " ".join(["table", *(f"right-{column}" for column in numeric)])
        inside = _replace_invalid(table.to_html(rows))
        return self._add(_wrap_block(f'<div class="{names}">{inside}</div>', caption))

    def figure(
        self, picture: Any, caption: str = "", *, alt: str = "", kind: str = "png", dpi: int = 150
    ) -> Self:
        """Add a picture.

        Parameters
        ----------
        picture : Axes, Figure, or path of a PNG or SVG file
        caption : str, default=""
        alt : str, default=""
            Alternative text for readers who cannot see the picture; by default the caption.
        kind : {"png", "svg"}, default="png"
            Format of Axes and figures.
        dpi : int, default=150
            Resolution of a PNG in pixels per inch.
        """
        if isinstance(picture, str | os.PathLike):
            content, kind = _read(Path(picture))
        else:
            content = _render(picture, kind, dpi)
        width = f' width="{measure_css_width(content)}"' if kind == "png" else ""
        data = base64.b64encode(content).decode("ascii")
        source = f"data:{KINDS[kind]};base64,{data}"
        image = f'<img src="{source}" alt="{_escape(alt or caption)}"{width}/>'
        return self._add(_wrap_block(image, caption))

    def html(self) -> str:
        """The whole document."""
        right = sorted(set(re.findall(r"right-(\d+)", " ".join(self._blocks))), key=int)
        style = CSS + "".join(_align_right(column) for column in right)
        head = [f"<h1>{_escape(self.title)}</h1>", _wrap_paragraphs(self._lead), self._contents()]
        body = "\n".join([*filter(None, head), *self._blocks])
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
            f"<title>{_escape(self.title)}</title>\n<style>{style}</style>\n</head>\n"
            f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; the file is replaced only when the new one is complete."""
        target = file_target(path)
        with complete_or_absent(target) as stream:
            stream.write(self.html().encode())
        return target

    def _add(self, block: str) -> Self:
        self._blocks.append(block)
        return self

    def _contents(self) -> str:
        if len(self._sections) < 2:
            return ""
        lines = (
            f'<li><a href="#section-{number}">{_escape(title)}</a></li>'
            for number, title in enumerate(self._sections, 1)
        )
        return '<nav aria-label="Contents"><ol>' + "".join(lines) + "</ol></nav>"


def _replace_invalid(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _escape(text: object) -> str:
    return escape(_replace_invalid(str(text)))


def _wrap_paragraphs(text: str) -> str:
    paragraphs = (paragraph.strip() for paragraph in _BLANK_LINE.split(text))
    return "\n".join(f"<p>{_escape(paragraph)}</p>" for paragraph in paragraphs if paragraph)


def _wrap_block(content: str, caption: str) -> str:
    below = f"<figcaption>{_escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{content}{below}</figure>"


def _is_number(values: Any) -> bool:
    return values.dtype.kind in "iuf"


def _align_right(column: str) -> str:
    cells = (f".right-{column} {cell}:nth-child({column})" for cell in ("th", "td"))
    return ", ".join(cells) + " { text-align: right; }\n"


def _render(picture: Any, kind: str, dpi: int) -> bytes:
    """Axes or a figure as the bytes of a file."""
    check_known("kind", kind, KINDS)
    figure = getattr(picture, "figure", picture)
    if not callable(getattr(figure, "savefig", None)):
        raise InputTypeError(
            f"a picture must be Axes, a Figure or the path of a file, not {type(picture).__name__}"
        )
    stream = BytesIO()
    # A date would make identical reports differ.
    metadata = {"Date": None} if kind == "svg" else None
    look = {"facecolor": "white", "bbox_inches": "tight", "metadata": metadata}
    figure.savefig(stream, format=kind, dpi=dpi, **look)
    return stream.getvalue()


def _read(path: Path) -> tuple[bytes, str]:
    """Bytes of a picture file, and its kind."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"the picture {path} cannot be read: {error.strerror}") from error
    if content.startswith(PNG_START):
        return content, "png"
    if b"<svg" in content[:1000]:
        return content, "svg"
    raise DataError(f"{path} is neither a PNG nor an SVG picture")


def measure_css_width(png: bytes) -> int:
    """Width at which a browser shows a PNG in its own size: 96 pixels per inch.

    The header holds the width, the chunk pHYs, if present, the pixels per meter.
    """
    width = int.from_bytes(png[16:20], "big")
    chunk = png.find(b"pHYs", 0, 1000)
    in_meters = chunk > 0 and png[chunk + 12] == 1
    density = int.from_bytes(png[chunk + 4 : chunk + 8], "big") if in_meters else 0
    return max(1, round(width * 96 * 39.3701 / density)) if density else width


# -- how it looks: on a screen, in the dark, and on paper -----------------------------------------


CSS = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0;
  --paper: #ffffff; --shade: #f6f8fa; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a8b0b8; --line: #3d444d; --paper: #16191d; --shade: #22272e;
    --link: #79b8ff; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.5rem 0 0.75rem; padding-bottom: 0.25rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; line-height: 1.3; margin: 1.5rem 0 0.25rem; }
p { margin: 0.75rem 0; max-width: 44rem; }
a { color: var(--link); }
nav { margin: 1.25rem 0; padding: 0.5rem 1rem; background: var(--shade); border-radius: 6px; }
nav ol { margin: 0; padding-left: 1.5rem; }
pre { margin: 1rem 0; padding: 0.75rem 1rem; overflow-x: auto; background: var(--shade);
  border-radius: 6px; font: 0.85rem/1.45 ui-monospace, Menlo, Consolas, monospace; }
figure { margin: 1.25rem 0; }
figcaption { margin-top: 0.4rem; color: var(--soft); font-size: 0.9rem; max-width: 44rem; }
img { display: block; max-width: 100%; height: auto; background: #ffffff; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
th { border-bottom-width: 2px; white-space: nowrap; }
@media (prefers-color-scheme: dark) {
  img { padding: 0.6rem; border-radius: 6px; box-sizing: border-box; } }
@media print {
  :root { --ink: #000000; --soft: #333333; --line: #999999; --paper: #ffffff; --shade: #ffffff;
    --link: #000000; color-scheme: light; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  h2, h3 { break-after: avoid; }
  figure, tr, pre { break-inside: avoid; }
  .table { overflow: visible; }
  img { padding: 0; } }
"""
