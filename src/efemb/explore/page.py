"""The page: its modules joined into one document, with everything inside or served beside it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from efemb.errors import MissingExtraError

# In the order of their imports: each needs only those before it.
MODULES = (
    *("payload.js", "maths.js", "answers.js", "colors.js", "dom.js", "labels.js", "map.js"),
    *("lists.js", "basket.js", "panels.js", "search.js", "state.js", "surface.js", "main.js"),
)
STYLES = ("surface.css", "style.css")
_IMPORT = re.compile(r"^import\s[^;]*?from\s+\"\./[\w.]+\";\n", re.M)
_EXPORT = re.compile(r"^export ", re.M)
_COMMENT = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/\n", re.M | re.S)


def page_file(name: str) -> str:
    """A file of the page as text."""
    return (resources.files("efemb.explore") / "page" / name).read_text("utf-8")


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


def self_contained_page(payloads: Sequence[bytes]) -> str:
    """A document that needs nothing else; `payloads` are compressed."""
    script, style = join_modules(), "".join(map(page_file, STYLES))
    # Scripts may compile functions, which plotly's WebGL does, but nothing can be fetched.
    scripts = f"'{_digest(script.encode())}' '{_digest(plotly_script())}'"
    policy = (
        f"default-src 'none'; script-src 'unsafe-eval' {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:"
    )
    plotly = base64.b64encode(gzip.compress(plotly_script(), mtime=0)).decode("ascii")
    inside = [_inert("plotly", plotly)]
    inside += [
        _inert(f"payload-{number}", base64.b64encode(payload).decode("ascii"))
        for number, payload in enumerate(payloads)
    ]
    return _fill(
        served="false",
        models=str(len(payloads)),
        policy=f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        style=f"<style>{style}</style>",
        payload="\n".join(inside),
        script=f'<script type="module">{script}</script>',
    )


def served_page(n_models: int) -> str:
    """A document that asks a server; its policy is a header of the response."""
    styles = "\n".join(f'<link rel="stylesheet" href="page/{name}">' for name in STYLES)
    script = '<script type="module" src="page/explorer.js"></script>'
    return _fill(
        served="true", models=str(n_models), policy="", style=styles, payload="", script=script
    )


def _fill(**parts: str) -> str:
    text = page_file("index.html")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part, 1)
    return text


def _inert(name: str, content: str) -> str:
    """Data that the browser does not run."""
    return f'<script type="application/octet-stream" id="{name}">{content}</script>'


def _digest(script: bytes) -> str:
    digest = hashlib.sha256(script).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
