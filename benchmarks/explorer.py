"""The explorer in a browser: size of a page, time until it is ready, time from click to answer."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import MissingDataError
from benchmarks.harness import Report, Settings, Spread
from benchmarks.stored import stored_model

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--no-sandbox", "--disable-background-networking", "--enable-unsafe-swiftshader")
CLICKS, COMPARED, TOP = 60, 1000, 10  # a server would make a client wait after more clicks
READY = "html[data-ready]"
# Milliseconds from the click to the answer, items being drawn by a plain congruential generator.
CLICK = """async ([clicks, n]) => {
  const times = [];
  for (let i = 0, item = 7; i < clicks; i++) {
    item = (item * 16807) % 2147483647;
    const start = performance.now();
    await explorer.selectItem(item % n);
    times.push(performance.now() - start);
  }
  return times;
}"""
ASK = """async ([question, body, items]) => {
  const answers = await Promise.all(items.map(item => explorer.ask(question, {...body, item})));
  return answers.map(rows => rows.map(row => row.code));
}"""


def run(settings: Settings) -> Report:
    """A page of Complete Journey, then a server of 100,000 items."""
    report = Report("explorer", settings)
    with _open_browser() as browser, tempfile.TemporaryDirectory() as folder:
        _page(report, browser, Path(folder) / "page.html")
        _server(report, browser)
    return report


@contextmanager
def _open_browser() -> Iterator[Any]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MissingDataError("this scenario needs playwright: make test-browser") from error
    if path is None:
        raise MissingDataError("this scenario needs a browser: install chromium, or set CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


def _visit(browser: Any, address: str, repeats: int) -> tuple[Any, Spread]:
    """The open page, and milliseconds from the call until everything is shown, each time anew."""
    times: list[float] = []
    for _ in range(repeats):
        context = browser.new_context(viewport={"width": 1366, "height": 768})
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector(READY, state="attached", timeout=120_000)
        times.append(float(page.evaluate("document.documentElement.dataset.ready")))
        if len(times) < repeats:
            context.close()
    return page, Spread.of(times)


def _clicks(page: Any, n_items: int) -> Spread:
    return Spread.of(page.evaluate(CLICK, [CLICKS, n_items]))


def _trips(settings: Settings) -> tuple[Any, Any]:
    """Training trips and departments of the items."""
    import efemb

    if settings.quick:
        return efemb.datasets.fetch_sample_trips(), None
    data = efemb.datasets.fetch_complete_journey(settings.data, progress=False)
    return data.split(test=0.05, seed=0)[0], data.report["departments"]


def _page(report: Report, browser: Any, path: Path) -> None:
    """Two passes are enough: what is timed does not depend on how good the vectors are."""
    import efemb
    from efemb.explore import prepare

    trips, departments = _trips(report.settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = efemb.PoissonEmbedding(100, max_iter=2, random_state=0).fit(trips)
    page_of = prepare(model, data=trips, groups=departments)
    size = page_of.to_html(path).stat().st_size
    n = trips.n_entities
    report.add(f"page of {n:,} items, K=100: MB", size / 1e6, at_most=12)
    page, ready = _visit(browser, path.as_uri(), max(5, report.settings.repeats))
    report.add("    until ready: ms", ready, at_most=2000)
    report.add("    click to answer: ms", _clicks(page, n), at_most=50)
    items = np.random.default_rng(0).choice(n, min(COMPARED, n), replace=False).tolist()
    names = [trips.entities[item] for item in items]
    of_alpha = model.similar(names, TOP, which="alpha")
    answers = {
        "similar by rho": ("similar", {"space": "rho"}, model.similar(names, TOP)),
        "similar by alpha": ("similar", {"space": "alpha"}, of_alpha),
        "complements": ("complements", {}, model.complements(names, TOP, data=trips)),
    }
    for name, (question, body, table) in answers.items():
        lists: dict[Any, list[int]] = {}
        for row in table:
            lists.setdefault(row["query"], []).append(trips.entities.index_of(row["label"]))
        pairs = list(zip(names, page.evaluate(ASK, [question, body, items]), strict=True))
        same = float(np.mean([set(lists[one]) == set(codes) for one, codes in pairs]))
        ordered = np.mean([lists[one] == codes for one, codes in pairs])
        beside = f"{ordered:.3f} in the same order"  # single precision cannot order every tie
        report.add(f"    {name}: share of equal top tens", same, at_least=1, beside=beside)
    page.context.close()


def _server(report: Report, browser: Any) -> None:
    from efemb.explore import prepare, serving

    n, k = (5_000, 20) if report.settings.quick else (100_000, 100)
    listener = serving.bind_free_port("127.0.0.1", 0, lambda _: None)
    server = serving.make_server(
        prepare(stored_model(n, k), methods="pca"), frozenset({"127.0.0.1"}), None
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        page, ready = _visit(browser, address, max(5, report.settings.repeats))
        report.add(f"{n:,} items, K={k}, served: first view, ms", ready, at_most=3000)
        report.add("    click to answer: ms", _clicks(page, n), at_most=150)
        page.context.close()
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()
