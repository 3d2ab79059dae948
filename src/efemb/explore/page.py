"""The page: its modules joined into one document, with everything inside or served beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from efemb.errors import MissingExtraError
from efemb.explore.colors import MARKS
from efemb.explore.payload import Payload

# In the order of their imports: each needs only those before it.
MODULES = ("dom.js", "load.js", "answers.js", "map.js", "panels.js", "search.js", "main.js")
POINT_SIZES = ((30_000, 3), (3_000, 4.5), (300, 7), (0, 10))  # pixels, from so many items on
STYLES = ("surface.css", "style.css")
_IMPORT = re.compile(r"^import\s[^;]*?from\s+\"\./[\w.]+\";\n", re.M)
_EXPORT = re.compile(r"^export ", re.M)
_COMMENT = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/\n", re.M | re.S)


def page_file(name: str) -> str:
    """A file of the page as text."""
    return (resources.files("efemb.explore") / "page" / name).read_text("utf-8")


def describe_choices(header: dict[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Values and titles of everything that one of a few is chosen of; the first is the default."""
    noun, prediction = header["noun"], header["prediction"]
    tabs = [("item", noun.capitalize())]
    if noun == "word":
        tabs.append(("analogy", "Analogy"))
    if "refused" not in prediction or not header["neural"]:
        tabs.append(("basket", "Gap" if prediction["text"] else "Basket"))
    slices = header.get("slices", {"labels": []})["labels"]
    return {
        "tab": [*tabs, ("selection", "Selection"), ("model", "Model")],
        "map": [(one["key"], one["title"]) for one in header["maps"]],
        "color": [(one["key"], one["name"]) for one in header["colorings"]],
        "slice": [("", "all"), *((str(code), str(label)) for code, label in enumerate(slices))],
        "theme": [("", ""), ("light", "Light"), ("dark", "Dark")],
    }


def describe_hints(header: dict[str, Any]) -> dict[str, str]:
    """What a panel says as long as it has nothing to show."""
    noun, article = header["noun"], header["article"]
    return {
        "item": f"Click a point, or search for {article} above.",
        "compare": "Click an item to compare its neighbors in the two models.",
        "analogy": (
            "Search for words and add them: with king and woman, without man, for example."
        ),
        "basket": (f"Add {noun}s with +: the page then lists what goes with all of them, and why."),
        "selection": f"Press Lasso and draw around points to see what these {noun}s share.",
    }


def describe_lists(header: dict[str, Any]) -> dict[str, Any]:
    """How answers are listed: what a file says for all models, and what depends on this one."""
    text = page_file("lists.json")
    if header["noun"] == "word":
        text = re.sub(r"in (\{counts?\}) rows", r"\1 times", text)
    described: dict[str, Any] = json.loads(text)
    every = described.pop("every")
    lists = {name: every | entry for name, entry in described.items()}
    for entry in lists.values():
        entry |= {part: MARKS[entry[part]] for part in ("color", "other") if part in entry}
    header["item_lists"] = ["similar", "complements", "substitutes"]
    relations, prediction = header["relations"], header["prediction"]
    for name in ("complements", "substitutes"):
        reason = relations.get(f"refused_{name}")
        if reason:
            lists[name] |= {"rows": [], "empty": reason}
    if header["neural"]:
        header["item_lists"] = ["weights", "similar"]
        del lists["similar"]["color"]
    if prediction["text"]:
        lists["basket"]["title"] = "Words around the gap"
        lists["complete"]["title"] = "What fits the gap"
    value = prediction["columns"][0]
    lists["complete"] |= {"value": value, "percent": value != "mean"}
    lists["explain"]["foot"] = f"They add up to {{sum}}: {prediction['total']}."
    lists["drift"] |= header.get("slices", {}).pop("drift", {})
    lists["frequent"] |= header.pop("frequent", {})
    return lists


def plot_settings(n_items: int) -> dict[str, Any]:
    """What plotly is told for every map."""
    settings: dict[str, Any] = json.loads(page_file("plot.json"))
    axis = settings.pop("axis")
    settings["scene"] |= {f"{name}axis": axis for name in "xyz"}
    settings["size"] = next(size for least, size in POINT_SIZES if n_items >= least)
    settings["solid_size"] = 0.5 * settings["size"]  # those of plotly's solid maps look larger
    return settings


@cache
def join_modules() -> str:
    """All modules as one: imports and exports are dropped, and so are comments on types."""
    sources = (page_file(name) for name in MODULES)
    joined = "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)
    return _COMMENT.sub("", joined)


@cache
def plotly_script() -> bytes:
    """plotly.js as it is in the plotly package, which is not imported for that."""
    spec = find_spec("plotly")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    for folder in folders:
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_bytes()
    raise MissingExtraError("the explorer needs plotly: pip install 'efemb[explore]'")


def self_contained_page(payloads: Sequence[Payload]) -> str:
    """A document that needs nothing else."""
    script, style = join_modules(), "".join(map(page_file, STYLES))
    # Scripts may compile functions, which plotly's WebGL does, but nothing can be fetched.
    scripts = f"'{_digest(script.encode())}' '{_digest(plotly_script())}'"
    policy = (
        f"default-src 'none'; script-src 'unsafe-eval' {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:"
    )
    inside = {"plotly": gzip.compress(plotly_script(), mtime=0)}
    inside |= {f"payload-{number}": one.encode() for number, one in enumerate(payloads)}
    return _fill(
        payloads,
        served="false",
        policy=f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        style=f"<style>{style}</style>",
        payload="\n".join(_inert(name, content) for name, content in inside.items()),
        script=f'<script type="module">{script}</script>',
    )


def served_page(payloads: Sequence[Payload]) -> str:
    """A document that asks a server; its policy is a header of the response."""
    styles = "\n".join(f'<link rel="stylesheet" href="page/{name}">' for name in STYLES)
    script = '<script type="module" src="page/explorer.js"></script>'
    return _fill(payloads, served="true", policy="", style=styles, payload="", script=script)


def _fill(payloads: Sequence[Payload], **parts: str) -> str:
    """The document, with what is known of the models before anybody asks."""
    header = payloads[0].header
    choices = header["choices"]
    parts |= {
        "models": str(len(payloads)),
        "title": escape(" and ".join(payload.header["name"] for payload in payloads)),
        "search": escape(f"Search {header['n']:,} {header['noun']}s  ( / )"),
        "column": escape(str(header.get("slices", {"column": ""})["column"])),
        "tabs": "".join(
            _tag("button", title, type="button", name="tab", value=key, role="tab", id=f"tab-{key}")
            for key, title in choices["tab"]
        ),
        "card": _card(header),
    }
    for name in ("map", "color", "slice"):
        parts[name] = "".join(_tag("option", text, value=value) for value, text in choices[name])
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], page_file("index.html"))


def _card(header: dict[str, Any]) -> str:
    """The panel about the model."""
    card = header["card"]
    history = card["history"]
    parts = [_tag("h2", header["name"]), _tag("p", card["verdict"], **{"class": "score"})]
    facts = (_tag("dt", term) + _tag("dd", fact) for term, fact in card["facts"])
    parts.append(f"<dl>{''.join(facts)}</dl>")
    if history is not None:
        line = _tag("polyline", "", points=history["points"])
        curve = f'<svg class="curve" viewBox="0 -2 300 66">{line}</svg>'
        title, caption = _tag("h3", history["title"]), _note(history["caption"])
        parts.append(f"<section>{title}{curve}{caption}</section>")
    return "".join([*parts, *map(_note, header["notes"])])


def _note(text: str) -> str:
    return _tag("p", text, **{"class": "note"})


def _tag(name: str, text: str, /, **attributes: str) -> str:
    """An element of HTML; nothing in its text or attributes is markup."""
    inside = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{inside}>{escape(text)}</{name}>"


def _inert(name: str, content: bytes) -> str:
    """Data that the browser does not run."""
    text = base64.b64encode(content).decode("ascii")
    return f'<script type="application/octet-stream" id="{name}">{text}</script>'


def _digest(script: bytes) -> str:
    digest = hashlib.sha256(script).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
