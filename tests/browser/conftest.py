"""A real browser for the explorer: chromium (or what CHROMIUM names), driven by Playwright."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# `make test-browser` sets it. Without it nothing here is collected: the suite needs no browser.
if not os.environ.get("EFEMB_BROWSER"):
    collect_ignore_glob = ["test_*.py"]

FLAGS = [
    *("--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--enable-unsafe-swiftshader"),
]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert path, f"no browser: install one of {', '.join(NAMES)}, or name it in CHROMIUM"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


class Visit:
    """An open page, with what it wrote to the console and what it asked for."""

    def __init__(self, page: Any, home: str) -> None:
        self.page, self.home = page, home
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message: Any) -> None:
        # The software renderer remarks on its own speed, and on that of plotly's solid maps.
        remarks = ("GL Driver", "willReadFrequently")
        if message.type in ("error", "warning") and not any(r in message.text for r in remarks):
            self.problems.append(message.text)

    def open(self, state: str = "") -> Visit:
        """Load, and wait until the explorer is ready."""
        self.page.goto(self.home + (f"#{state}" if state else ""))
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=60_000)
        return self

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true; Playwright's own way is `eval`, which is forbidden."""
        for _ in range(600):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(50)
        raise TimeoutError(condition)

    def settle(self) -> None:
        """Wait for the answers to the last question."""
        self.wait_for("document.documentElement.dataset.turn === String(explorer.asked)")

    def search(self, text: str) -> None:
        """Choose the first item that is found."""
        self.page.fill("#search", text)
        self.page.keyboard.press("Enter")
        self.settle()

    def items(self, title: str) -> list[str]:
        """Labels listed in a section."""
        return self.page.evaluate(
            """title => [...document.querySelectorAll("#panel section")]
              .filter(one => one.querySelector("h3")?.textContent.startsWith(title))
              .flatMap(one => [...one.querySelectorAll("li bdi")].map(label => label.title))""",
            title,
        )

    def tab(self, name: str) -> None:
        """Open a panel."""
        self.page.click(f"#tab-{name}")
        self.settle()

    @property
    def foreign(self) -> list[str]:
        """Requests that left this machine, or the file."""
        own = ("blob:", "data:", "file:", "http://127.0.0.1:")
        return [url for url in self.requests if not url.startswith(own)]


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Opens pages; afterwards none may have written an error or asked for anything elsewhere."""
    visits: list[Visit] = []
    contexts = []

    def go(home: str, width: int = 1366, height: int = 768, **options: Any) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        visits.append(Visit(context.new_page(), home))
        return visits[-1]

    yield go
    for one in visits:
        assert not one.problems
        assert not one.foreign
        assert not one.page.evaluate("window.broken")
    for context in contexts:
        context.close()


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Writes a self-contained page and returns its address."""
    from efemb.explore import prepare

    def write(model: Any, **options: Any) -> str:
        options = {"methods": ["pca", "tsne"], **options}
        return prepare(model, **options).to_html(tmp_path / "page.html").as_uri()

    return write


@contextmanager
def serving_page(model: Any, **options: Any) -> Iterator[str]:
    """Serves a model and yields its address."""
    from efemb.explore import prepare, serving

    listener = serving.bind_free_port("127.0.0.1", 0, lambda _: None)
    hosts = frozenset({"127.0.0.1"})
    server = serving.make_server(prepare(model, **{"methods": "pca", **options}), hosts, None)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()
