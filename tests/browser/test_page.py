"""What a person does with the page: search, click, lasso, basket, toggles, keys; on any screen."""

from __future__ import annotations

import csv
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import efemb
from browser.conftest import serving_page
from browser.test_answers import shop
from explore.scenes import (
    HOSTILE,
    by_kids,
    fit,
    plain,
    priced,
    recording,
    stop_early,
    trips,
    weekly,
    with_terms,
    words,
)

pytestmark = pytest.mark.browser
GROUPS = {label: f"<i>group {i % 3}</i>" for i, label in enumerate(trips().entities)}


def map_of(page: Any) -> Any:
    """Where the map is: in the page, or in the frame of a served one."""
    box = page.locator("#maps").bounding_box()
    assert box
    return box


def item_place(page: Any, code: int) -> tuple[float, float]:
    """Pixels of an item in the window."""
    x, y = page.evaluate(f"explorer.map.pixels()({code})")
    box = map_of(page)
    return box["x"] + x, box["y"] + y


def completions(page: Any) -> list[str]:
    """What the search offers, the best first."""
    return page.evaluate("[...document.querySelectorAll('#found option')].map(one => one.value)")


def test_search_lists_relations(visit: Callable, written: Callable) -> None:
    one = visit(written(plain(), data=trips(), groups=GROUPS)).open()
    one.page.fill("#search", "item 7")
    assert completions(one.page) == ["item 7", "item 17"]
    one.page.keyboard.press("Enter")
    one.settle()
    assert one.page.inner_text("#panel h2") == "item 7"
    similar = plain().similar("item 7", 10)["label"].tolist()
    assert one.items("Similar") == [label[:300] for label in similar]
    found = plain().substitutes("item 7", data=trips())
    close = [row["label"][:300] for row in found if row["kind"] != "apart"]
    assert one.items("Substitutes") == close
    assert "lift" in one.page.inner_text("#panel")
    shades = "[...document.querySelectorAll('#panel h3 i')].map(one => one.style.background)"
    assert len(set(one.page.evaluate(shades))) == 3  # each list has the color of its marks
    column = trips().to_pandas()["item 7"]
    assert f" in {(column != 0).sum()} rows " in one.page.inner_text("#panel .facts")
    one.page.fill("#search", "item 1")  # itself before the more frequent ones that begin with it
    assert completions(one.page)[0] == "item 1"
    choose = """box => {
      box.value = "item 13";
      box.dispatchEvent(new InputEvent("input", {inputType: "insertReplacementText"}));
    }"""
    one.page.locator("#search").evaluate(choose)  # what a browser does when a completion is clicked
    one.settle()
    assert one.page.inner_text("#panel h2") == "item 13"
    one.page.fill("#search", "no such thing")
    assert completions(one.page) == []
    said = one.page.locator("#search").evaluate("box => box.validationMessage")
    assert said == "nothing found"


def test_a_click_on_a_point_selects_it(visit: Callable, written: Callable) -> None:
    one = visit(written(plain())).open()
    x, y = item_place(one.page, 15)
    one.page.mouse.move(x, y)
    one.page.wait_for_timeout(200)
    assert one.page.inner_text(".tip") == "item 3"
    one.page.mouse.click(x, y)
    one.settle()
    assert one.page.inner_text("#panel h2") == "item 3"
    assert "item=item+3" in one.page.url


def test_hostile_labels_are_text_everywhere(visit: Callable, written: Callable) -> None:
    one = visit(written(plain(), data=trips(), groups=GROUPS)).open()
    for code, label in enumerate(HOSTILE):
        one.page.evaluate(f"explorer.selectItem({code})")
        one.settle()
        assert one.page.get_attribute("#panel h2 bdi", "title") == label[:300]
        one.page.evaluate(f"explorer.addToBasket({code})")
        one.settle()
    one.page.evaluate("explorer.setSelection(explorer.map.visible())")
    one.settle()
    assert one.page.locator("#panel script, #panel img, #panel a, #panel i i").count() == 0
    width = one.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1366  # nothing is wider than the window
    one.page.reload()
    one.page.wait_for_selector("html[data-ready]", state="attached")


def test_a_lasso_selects_and_exports(visit: Callable, written: Callable, tmp_path: Any) -> None:
    one = visit(written(plain(), groups=GROUPS), accept_downloads=True).open()
    one.page.click("#lasso")
    box = map_of(one.page)
    left, top = box["x"] + 4, box["y"] + 60
    right, bottom = box["x"] + box["width"] - 4, box["y"] + box["height"] - 4
    one.page.mouse.move(left, top)
    one.page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        one.page.mouse.move(x, y, steps=5)
    one.page.mouse.up()
    one.wait_for("explorer.selection.length > 0")
    one.settle()
    number = one.page.evaluate("explorer.selection.length")
    assert one.page.locator(".select-outline, .outline-controllers").count() == 0
    assert number >= 25
    assert f"{number} items" in one.page.inner_text("#panel h2")
    with one.page.expect_download() as caught:
        one.page.click("text=Export as CSV")
    target = tmp_path / "selection.csv"
    caught.value.save_as(target)
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == number
    assert set(rows[0]) == {"label", "group", "topic", "x", "y"}
    labels = {row["label"] for row in rows}
    assert "'=1+1,cell" in labels or "=1+1,cell" not in labels  # no formula
    one.page.click("text=Clear")
    one.settle()
    assert "draw around points" in one.page.inner_text("#panel")


def test_a_basket_by_clicks(visit: Callable, written: Callable) -> None:
    one = visit(written(plain())).open()
    one.search("item 7")
    one.page.click(".title .add")
    one.settle()
    expected = plain().complete({"item 7": 1}, 10)
    assert one.items("What to add") == [label[:300] for label in expected["label"]]
    one.page.click("[aria-label='One more']")
    one.settle()
    assert one.page.evaluate("explorer.state.basket") == [[7 + len(HOSTILE), 2]]
    explained = plain().explain({"item 7": 2}, expected["label"][0])
    total = float(np.sum(explained["contribution"]))
    stated = one.page.inner_text("#panel .note >> text=the linear predictor u")
    shown = float(stated.partition("add up to ")[2].partition(":")[0])
    assert shown == pytest.approx(total, rel=0.01)
    one.page.click("[aria-label='One less']")
    one.settle()
    one.page.click("[aria-label='Remove']")
    one.settle()
    assert one.page.evaluate("explorer.state.basket.length") == 0


def test_toggles_of_map_and_color(visit: Callable, written: Callable) -> None:
    one = visit(written(plain(), data=trips(), groups=GROUPS)).open()
    seen = set()
    for value in one.page.evaluate("[...document.querySelector('#map').options].map(o => o.value)"):
        one.page.select_option("#map", value)
        one.page.wait_for_timeout(300)
        seen.add(str(one.page.evaluate("[...explorer.map.points.slice(0, 4)]")))
    assert len(seen) == 4  # rho and alpha, PCA and t-SNE
    for value in one.page.evaluate(
        "[...document.querySelector('#color').options].map(o => o.value)"
    ):
        one.page.select_option("#color", value)
        one.page.wait_for_timeout(200)
        assert (
            one.page.evaluate(
                "explorer.map.coloring.buckets.reduce((n, b) => n + b.codes.length, 0)"
            )
            == 30
        )
    one.search("item 7")
    one.page.select_option("#map", "map.alpha.pca")
    one.page.wait_for_timeout(300)
    one.settle()
    assert one.items("Similar") == [
        label[:300] for label in plain().similar("item 7", 10, which="alpha")["label"]
    ]


def test_dark_mode_and_contrast(visit: Callable, written: Callable) -> None:
    for scheme in ("light", "dark"):
        one = visit(written(plain()), color_scheme=scheme).open()
        assert one.page.evaluate("document.documentElement.dataset.theme") == scheme
        one.page.click("#theme")
        assert one.page.evaluate("document.documentElement.dataset.theme") != scheme
        for ink in ("--ink", "--soft", "--accent"):
            assert contrast(one.page, ink, "--paper") >= 4.5


def contrast(page: Any, ink: str, paper: str) -> float:
    """Contrast of two colors of the theme by the rule of WCAG 2."""
    script = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    shades = []
    for name in (ink, paper):
        color = page.evaluate(script, name)
        parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        shades.append(float(np.dot(linear, [0.2126, 0.7152, 0.0722])))
    return (max(shades) + 0.05) / (min(shades) + 0.05)


def test_the_address_keeps_the_view(visit: Callable, written: Callable) -> None:
    home = written(plain(), groups=GROUPS)
    one = visit(home).open()
    one.search("item 7")
    one.page.click(".title .add")
    one.settle()
    one.page.select_option("#color", "topics")
    one.page.click("#in")
    one.page.wait_for_timeout(500)
    address = one.page.url
    two = visit(home).open(address.partition("#")[2])
    states = [
        visited.page.evaluate("({...explorer.state, view: explorer.map.view.x})")
        for visited in (one, two)
    ]
    assert states[0]["view"] == pytest.approx(states[1].pop("view"), rel=1e-3)
    del states[0]["view"]
    assert states[0] == states[1]
    visit(home).open(
        "item=%00&basket=[[&view=[1,2,3]&map=none&color=x&row=3&tab=constructor&slice=7&constructor=1"
    )


def test_labels_that_look_like_numbers_are_kept_in_the_address(
    visit: Callable, written: Callable
) -> None:
    model = stop_early(efemb.PoissonEmbedding(2, max_iter=2, random_state=0), np.eye(6) + 1)
    home = written(model, methods="pca")
    one = visit(home).open()
    one.search("5")
    one.page.click(".title .add")
    one.settle()
    two = visit(home).open(one.page.url.partition("#")[2])
    assert two.page.evaluate("[explorer.state.item, explorer.state.basket]") == [5, [[5, 1]]]


def test_keys_do_everything(visit: Callable, written: Callable) -> None:
    one = visit(written(plain())).open()
    one.page.keyboard.press("/")
    one.page.keyboard.type("item 7")
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("Enter")
    one.settle()
    assert one.page.evaluate("explorer.state.item") is not None
    one.page.keyboard.press("Escape")
    one.page.evaluate("document.activeElement.blur()")
    one.page.evaluate("explorer.selectItem(20)")
    one.settle()
    one.page.keyboard.press("b")
    one.settle()
    assert one.page.evaluate("explorer.state.basket") == [[20, 1]]
    before = one.page.evaluate("explorer.map.view.x")
    one.page.keyboard.press("+")
    one.page.wait_for_timeout(300)
    after = one.page.evaluate("explorer.map.view.x")
    assert after[1] - after[0] < before[1] - before[0]
    one.page.keyboard.press("0")
    one.page.keyboard.press("v")
    one.wait_for("explorer.selection.length === 30")
    one.page.keyboard.press("?")
    assert one.page.locator("dialog#keys").is_visible()


def test_the_focus_stays_where_it_was(visit: Callable, written: Callable) -> None:
    """Everything can be reached by Tab and pressed by Enter, one after the other."""
    one = visit(written(plain())).open()
    order = []
    one.page.focus("#search")
    for _ in range(14):
        order.append(one.page.evaluate("document.activeElement.id"))
        one.page.keyboard.press("Tab")
    shown = [name for name in order if name]
    assert shown[:8] == ["search", "map", "color", "theme", "help", "in", "out", "whole"]
    assert shown[8:] == ["lasso", "tab-item", "tab-basket", "tab-selection", "tab-model"]
    one.search("item 7")
    assert one.page.evaluate("document.activeElement.id") == "panel"
    one.page.focus(".title .add")
    one.page.keyboard.press("Enter")
    one.settle()
    one.page.focus("[aria-label='One more']")
    for _ in range(2):
        one.page.keyboard.press("Enter")
        one.settle()
    assert one.page.evaluate("explorer.state.basket[0][1]") == 3
    one.page.focus("#tab-item")
    one.page.keyboard.press("Enter")
    one.settle()
    assert one.page.evaluate("document.activeElement.id") == "tab-item"
    outline = one.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2
    one.page.keyboard.press("?")
    one.page.keyboard.press("Escape")
    assert not one.page.locator("dialog#keys").is_visible()
    assert one.page.evaluate("explorer.state.item") is not None  # Escape closed the dialog only


@pytest.mark.parametrize("size", [(390, 844), (1366, 768), (820, 1180)])
def test_nothing_overflows(visit: Callable, written: Callable, size: tuple[int, int]) -> None:
    one = visit(written(plain(), data=trips(), groups=GROUPS), *size).open()
    for tab in ("item", "basket", "selection", "model"):
        one.tab(tab)
        assert one.page.evaluate("document.documentElement.scrollWidth") <= size[0]
        panel = "document.getElementById('panel')"
        assert one.page.evaluate(f"{panel}.scrollWidth <= {panel}.clientWidth")
    assert map_of(one.page)["height"] > 250


def test_two_models_side_by_side(visit: Callable, written: Callable) -> None:
    other = stop_early(efemb.PoissonEmbedding(3, max_iter=2, random_state=9), trips())
    one = visit(written(plain(), against=other, names=["new", "old"])).open()
    assert one.page.locator(".map").count() == 2
    one.search("item 7")
    mine, theirs = (model.similar("item 7", 10)["label"].tolist() for model in (plain(), other))
    assert one.items("Similar in new") == [label[:300] for label in mine]
    assert one.items("Similar in old") == [label[:300] for label in theirs]
    lit = one.page.evaluate(
        "[...document.querySelectorAll('#panel li.lit bdi')].map(label => label.title)"
    )
    assert sorted(lit) == sorted(label[:300] for label in set(mine) ^ set(theirs))
    assert one.page.input_value("#color") == "kept"  # what changed is what one sees first


def test_neurons(visit: Callable, written: Callable) -> None:
    model, frames = recording()
    one = visit(written(model, data=frames)).open()
    assert one.page.input_value("#map") == "map..positions"
    assert one.page.input_value("#color") == "r2"
    one.page.evaluate("explorer.selectItem(3)")
    one.settle()
    expected = sorted(model.weights(3), key=lambda row: -abs(row["weight"]))
    assert one.items("Weights") == [str(row["neighbor"]) for row in expected]
    assert one.page.evaluate("explorer.map.marks.filter(m => m.share).length") == 5
    one.page.select_option("#map", "solid")
    one.page.wait_for_timeout(800)
    assert one.page.locator(".gl-container, .svg-container").count() >= 1
    assert not one.page.evaluate("explorer.map.isFlat")
    for name in ("in", "out", "whole", "lasso"):  # which work in the plane only
        assert one.page.locator(f"#{name}").is_disabled()


def test_terms_have_controls(visit: Callable, written: Callable) -> None:
    one = visit(written(with_terms())).open()
    one.search("item 7")
    one.page.click(".title .add")
    one.settle()
    one.page.fill("[name='row.household']", "4")
    one.page.keyboard.press("Tab")
    one.settle()
    expected = with_terms().complete({"item 7": 1}, 10, household=4)
    assert one.items("What to add") == [label[:300] for label in expected["label"]]
    assert any("household" in term for term in one.items("Why"))


def test_a_slider_changes_a_price(visit: Callable) -> None:
    with serving_page(priced()) as home:
        one = visit(home).open()
        one.search("item 7")
        one.page.fill("#search", "")
        one.tab("basket")
        one.page.fill("[name='row.week']", "3")
        one.page.keyboard.press("Tab")
        one.settle()
        one.page.locator("[name='factor']").fill("0.6")
        one.page.locator("[name='factor']").dispatch_event("change")
        one.settle()
        expected = priced().what_if([], n=10, week=3, price={"item 7": 0.6})
        changed = [row["label"][:300] for row in expected if row["change"] != 0]
        assert one.items("What changes at 60%, week 3") == changed
        one.page.fill("[name='row.week']", "")  # then that of the last week
        one.page.keyboard.press("Tab")
        one.settle()
        assert one.items("What changes at 60%, week 9")[0] == "item 7"
        assert "factor=0.6" in one.page.url


@pytest.mark.parametrize("served", [False, True])
def test_time_is_chosen_and_followed(visit: Callable, written: Callable, served: bool) -> None:
    model, data = weekly()
    page = serving_page(model, data=data) if served else nullcontext(written(model, data=data))
    with page as home:
        one = visit(home).open()
        labels = list(trips().entities)
        ends = [model.of_group(week).parameters.rho for week in (0, 3)]
        moved = np.linalg.norm(ends[1] - ends[0], axis=1)
        assert one.items("Moved most from week 0 to 3")[0] == labels[np.argmax(moved)][:300]
        one.search("item 7")
        path = model.trajectory("item 7", data=data)
        assert one.items("By week") == ["0", "1", "2", "3"]
        text = one.page.locator("section", has_text="By week").inner_text()
        assert all(f"in {count:.0f} rows" in text for count in path["count"])
        one.page.select_option("#slice", label="2")
        one.settle()
        similar = model.of_group(2).similar("item 7", 10)["label"]
        assert one.items("Similar") == [label[:300] for label in similar]
        assert "slice=2" in one.page.url
        one.page.click(".title .add")
        one.settle()
        expected = model.complete({"item 7": 1}, 10, week=2)["label"]
        assert one.items("What to add") == [label[:300] for label in expected]


def test_a_group_of_rows_is_chosen(visit: Callable, written: Callable) -> None:
    model, _ = by_kids()
    one = visit(written(model)).open()
    assert one.page.inner_text("#slices").startswith("Kids")
    one.page.select_option("#slice", label="yes")
    one.search("item 7")
    similar = model.of_group("yes").similar("item 7", 10)["label"]
    assert one.items("Similar") == [label[:300] for label in similar]


def test_words_have_analogies(visit: Callable, written: Callable) -> None:
    one = visit(written(words())).open()
    one.tab("analogy")
    for word, side in (("word3", "with "), ("word5", "with "), ("word7", "without ")):
        one.search(word)
        one.page.locator("#panel section > button", has_text=side).first.click()
        one.settle()
    expected = words().analogy(["word3", "word5"], ["word7"])["label"].tolist()
    assert one.items("Answer") == expected


@pytest.mark.parametrize("kind", ["additive"])
def test_models_without_substitutes_say_so(visit: Callable, written: Callable, kind: str) -> None:
    one = visit(written(fit(kind))).open()
    one.search("item 7")
    assert "There is no list: substitutes are together less often" in one.page.inner_text("#panel")


def test_tiny_models(visit: Callable, written: Callable) -> None:
    for n in (1, 2, 3):
        one = visit(written(shop(n, 2))).open()
        one.page.evaluate("explorer.selectItem(0)")
        one.settle()
        assert one.page.inner_text("#panel h2") == "product 0"


def test_a_served_page_answers_like_a_written_one(visit: Callable) -> None:
    with serving_page(with_terms(), data=trips(), groups=GROUPS) as home:
        one = visit(home).open()
        assert one.page.locator("#maps iframe").count() == 1
        one.search("item 7")
        similar = with_terms().similar("item 7", 10)["label"]
        assert one.items("Similar") == [label[:300] for label in similar]
        x, y = item_place(one.page, 15)
        one.page.mouse.click(x, y)
        one.wait_for("explorer.state.item === 15")
        one.settle()
        one.page.click(".title .add")
        one.settle()
        expected = with_terms().complete({"item 3": 1}, 10)["label"]
        assert one.items("What to add") == [label[:300] for label in expected]
        one.page.evaluate("explorer.setSelection([1, 2, 3])")
        one.settle()
        assert len(one.items("In the middle")) == 3
        # Later, since what a test evaluates itself is exempt.
        compiled = one.page.evaluate(
            """() => new Promise(tell => setTimeout(() => {
              try { tell(new Function("return 1")()); } catch (error) { tell(error.message); }
            }))"""
        )
        assert "Content Security Policy" in compiled
        one.page.wait_for_timeout(200)
        one.problems.clear()  # the browser may report it


def test_marks_do_not_depend_on_who_answers(visit: Callable, written: Callable) -> None:
    """An item that is both similar and a substitute has the color of the latter, in both forms."""
    data = efemb.datasets.fetch_sample_trips()
    model = stop_early(efemb.PoissonEmbedding(5, max_iter=30, random_state=0), data)
    labels, shown = list(data.entities), []
    with serving_page(model) as home:
        for address in (home, written(model)):
            one = visit(address).open()
            for item in range(10):
                one.page.evaluate(f"explorer.selectItem({item})")
                one.settle()
                shown.append(one.page.evaluate("explorer.map.marks.map(m => [m.code, m.color])"))
    assert shown[:10] == shown[10:]
    n_both = 0
    for label, marks in zip(labels[:10], shown[:10], strict=True):
        rows = model.substitutes(label, 10)
        sure = [row["label"] for row in rows if row["kind"] == "suggested"][:6]
        drawn_last = {labels[code]: color for code, color in marks}
        assert all(drawn_last[one] == "#D55E00" for one in sure)
        n_both += len(set(model.similar(label, 6)["label"]) & set(sure))
    assert n_both > 0


@pytest.mark.slow
def test_a_hundred_thousand_items(visit: Callable) -> None:
    with serving_page(shop(100_000, 20)) as home:
        one = visit(home).open()
        one.search("product 77777")
        assert one.page.inner_text("#panel h2") == "product 77777"
        expected = shop(100_000, 20).similar("product 77777", 10)["label"].tolist()
        assert one.items("Similar") == expected
        before = one.page.evaluate("explorer.map.view.x")
        box = map_of(one.page)
        middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        one.page.mouse.move(*middle)
        one.page.mouse.down()
        one.page.mouse.move(middle[0] + 150, middle[1], steps=4)
        one.page.mouse.up()
        one.page.wait_for_timeout(500)
        assert one.page.evaluate("explorer.map.view.x")[0] < before[0]
