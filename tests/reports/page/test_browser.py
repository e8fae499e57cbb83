"""The page in a real browser, opened from a file as people open it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.trajectory import Played, Story
from steeltrap.reports.page import render

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
Page = Any


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def file(shown: tuple[list[Story], list[Played]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(render(*shown), encoding="utf-8")
    return path


class Opened:
    """A page, and what it said and asked for."""

    def __init__(self, browser: Any, **how: Any) -> None:
        self.page = browser.new_page(**({"viewport": {"width": 1280, "height": 800}} | how))
        self.page.set_default_timeout(10_000)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def go(self, path: Path, hash_: str = "") -> Page:
        self.page.goto(f"{path.as_uri()}{hash_}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page


@pytest.fixture
def opened(browser: Any) -> Iterator[Opened]:
    made = Opened(browser)
    yield made
    made.page.close()


def until(page: Page, expression: str) -> None:
    """Wait for something to be so; the page's policy forbids the driver's own way, which evals."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never so: {expression}")


def choose(page: Page, system: str) -> None:
    page.select_option("#system", label=system)
    until(page, f"document.getElementById('system').selectedOptions[0].text === '{system}'")


def first_of(run: Played, story: Story, name: str) -> tuple[int, str]:
    """Turn and unit of the first violation of a name."""
    mark = min((mark for mark in run.violations if mark.name == name), key=lambda mark: mark.i)
    assert mark.unit is not None
    return story.lines[mark.i].turn, story.units[mark.unit].name


def ink(page: Page, canvas: str) -> int:
    """How many pixels of a canvas are drawn."""
    count: int = page.evaluate(
        """(id) => { const c = document.getElementById(id);
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i]) n += 1; return n; }""", canvas,
    )  # fmt: skip
    return count


def test_the_page_opens_from_a_file_in_silence(opened: Opened, file: Path) -> None:
    """It says nothing on the console, asks for nothing but itself, and draws its canvases."""
    page = opened.go(file)
    page.keyboard.press("n")
    page.wait_for_timeout(300)
    assert opened.said == []
    assert opened.asked == [file.as_uri()]
    assert all(ink(page, canvas) > 500 for canvas in ("paper", "map", "foot"))


def test_hostile_texts_are_shown_and_never_run(
    opened: Opened, hostile: tuple[Any, Any], tmp_path: Path
) -> None:
    """Markup in a name, a turn, an item, a reason or an answer is letters like any other."""
    path = tmp_path / "hostile.html"
    path.write_text(render(*hostile), encoding="utf-8")
    page = opened.go(path)
    page.select_option("#system", index=1)
    page.click("button[data-name=resurrection]")
    page.wait_for_selector("#panel .served")
    for part in ("#panel .talk", "#panel .served", "#panel table", "#panel .pair", "#family"):
        assert "<img src=x onerror=" in page.inner_text(part)
    page.keyboard.press("Escape")
    assert "<img src=x onerror=" in page.inner_text("#list")
    page.hover("#paper", position={"x": 400, "y": 12})
    page.select_option("#other", index=1)
    page.wait_for_timeout(200)
    assert page.evaluate("window.__pwned") is None
    assert page.locator("img").count() == 0
    assert opened.said == []
    assert len(opened.asked) == 1


def test_the_first_resurrection_is_two_clicks_away(
    opened: Opened, file: Path, shown: tuple[list[Story], list[Played]]
) -> None:
    """Choose the system, click the name: the panel stands at the first, with its explanation."""
    stories, runs = shown
    turn, unit = first_of(runs[1], stories[0], "resurrection")
    page = opened.go(file)
    choose(page, "returning")
    page.click("button[data-name=resurrection]")
    page.wait_for_selector("#panel:not([hidden])")
    words = page.inner_text("#panel")
    assert f"Turn {turn} " in words
    assert unit in words
    assert "the old value came back" in words
    assert "It answered right" in words
    assert "steeltrap shrink" in words
    assert page.inner_text("#next") == "Next →"


def test_the_first_resurrection_is_found_by_keyboard(
    opened: Opened, file: Path, shown: tuple[list[Story], list[Played]]
) -> None:
    """With Tab and Enter alone; then n goes to the next, and Esc back to the lanes."""
    stories, runs = shown
    turn, _ = first_of(runs[1], stories[0], "resurrection")
    page = opened.go(file, f"#run={runs[1].folder}")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.name") == "resurrection":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel:not([hidden])")
    assert f"Turn {turn} " in page.inner_text("#panel")
    page.keyboard.press("n")
    until(page, "document.getElementById('panel').innerText.includes('2 of')")
    page.keyboard.press("Escape")
    assert page.is_hidden("#panel")
    assert page.evaluate("document.activeElement.id") == "lanes"


def test_a_name_that_another_script_shows_leads_there(opened: Opened, file: Path) -> None:
    """What a system shows only on another script is offered, and opened there."""
    page = opened.go(file)
    page.select_option("#script", index=1)
    until(page, "document.getElementById('script').value === '1'")
    choose(page, "flat")
    far = page.locator("button.name.far").first
    if far.count():
        name = far.get_attribute("data-name")
        far.click()
        page.wait_for_selector("#panel:not([hidden])")
        assert name in page.inner_text("#panel .title")
        assert page.input_value("#script") == "0"


def test_a_click_on_a_mark_opens_its_step(
    opened: Opened, file: Path, shown: tuple[list[Story], list[Played]]
) -> None:
    """The mark nearest to the pointer is opened, with its turn and its unit."""
    stories, runs = shown
    turn, unit = first_of(runs[1], stories[0], "resurrection")
    page = opened.go(file, f"#run={runs[1].folder}&n=resurrection&x={turn - 4}-{turn + 6}")
    box = page.locator("#paper").bounding_box()
    gutter = 232 if box["width"] >= 760 else 176
    found = None
    for x in range(int(gutter), int(box["width"]) - 12, 4):
        page.mouse.move(box["x"] + x, box["y"] + 11)
        if page.evaluate("document.getElementById('paper').classList.contains('over')"):
            page.wait_for_selector("#tip:not([hidden])")
            if "resurrection" in page.inner_text("#tip"):
                found = x
                break
    assert found
    page.mouse.click(box["x"] + found, box["y"] + 11)
    page.wait_for_selector("#panel:not([hidden])")
    words = page.inner_text("#panel")
    assert f"Turn {turn} " in words
    assert unit in words


def test_arrows_move_between_marks_and_lanes(opened: Opened, file: Path) -> None:
    """In the lanes, arrows select, what is selected is said aloud, and Enter opens it."""
    page = opened.go(file)
    page.focus("#lanes")
    told = []
    for key in ("ArrowDown", "ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        told.append(page.inner_text("#live"))
    assert all(re.match(r"Turn \d+, .+: .+", words) for words in told)
    assert len(set(told)) > 2
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel:not([hidden])")


def test_filters_leave_what_they_say(
    opened: Opened, file: Path, shown: tuple[list[Story], list[Played]]
) -> None:
    """Condition, name, family, search and back: the list counts what passes."""
    _, runs = shown
    page = opened.go(file, f"#run={runs[2].folder}")

    def listed() -> int:
        return int(page.inner_text("#list h2").split()[0].replace(",", ""))

    every = len(runs[2].violations)
    assert listed() == every
    page.click("button[data-condition=C1]")
    assert listed() == sum(mark.condition == "C1" for mark in runs[2].violations)
    assert page.get_attribute("button[data-condition=C1]", "aria-pressed") == "true"
    page.click("#clear")
    page.select_option("#family", "revision-chain")
    assert 0 < listed() < every
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("no such unit")
    assert page.inner_text("#empty") == "No lane passes the filters."
    page.click("#clear")
    assert listed() == every


def test_an_address_leads_to_a_moment(opened: Opened, browser: Any, file: Path) -> None:
    """Opened elsewhere, it shows the same run, filter, turns and step."""
    page = opened.go(file)
    choose(page, "returning")
    page.click("button[data-name=resurrection]")
    page.wait_for_selector("#panel:not([hidden])")
    page.click("#in")
    until(page, "location.hash.includes('open')")
    page.wait_for_timeout(300)
    other = Opened(browser)
    again = other.go(file, page.evaluate("location.hash"))
    again.wait_for_selector("#panel:not([hidden])")
    assert page.inner_text("#panel") == again.inner_text("#panel")
    assert again.get_attribute("button[data-name=resurrection]", "aria-pressed") == "true"
    again.wait_for_timeout(300)
    assert page.evaluate("location.hash") == again.evaluate("location.hash")
    other.page.close()


def test_an_address_that_makes_no_sense_is_left_out(opened: Opened, file: Path) -> None:
    """Whatever stands in it, the page opens."""
    page = opened.go(file, "#run=../../x&with=%00&n=nothing&c=C9&x=9-1&at=99999999.-3.open&g=<b>")
    assert page.is_visible("#list")
    assert opened.said == []


def test_dark_and_light(browser: Any, file: Path) -> None:
    """The system's wish is followed, and a button goes against it."""
    opened = Opened(browser, color_scheme="dark")
    page = opened.go(file)
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    light = page.evaluate(ground)
    assert max(map(int, re.findall(r"\d+", dark))) < 60
    assert min(map(int, re.findall(r"\d+", light))) > 200
    assert opened.said == []
    page.close()


def test_two_systems_side_by_side(opened: Opened, file: Path) -> None:
    """Chips show both, the panel answers for both, and only what differs can be shown."""
    page = opened.go(file)
    choose(page, "flat")
    page.select_option("#other", label="ideal")
    page.wait_for_selector("#pick-differ:visible")
    chip = page.inner_text("button[data-condition=C1]")
    assert "flat" in chip
    assert "ideal held" in chip
    page.check("#differ")
    page.keyboard.press("n")
    page.wait_for_selector("#panel:not([hidden])")
    names = page.locator("#panel .outcome h3").all_inner_texts()
    assert names == ["flat", "ideal"]


@pytest.mark.parametrize(("width", "height"), [(1000, 700), (1600, 1000)])
def test_nothing_overflows(
    browser: Any, file: Path, shown: tuple[list[Story], list[Played]], width: int, height: int
) -> None:
    """From 1000 px on nothing is wider than the window, and lanes are seen beside an open panel."""
    opened = Opened(browser, viewport={"width": width, "height": height})
    page = opened.go(file, f"#run={shown[1][2].folder}")
    page.keyboard.press("n")
    page.wait_for_selector("#panel:not([hidden])")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for part in ("header", ".field", "#panel"):
        assert page.evaluate(f"document.querySelector('{part}').scrollWidth") <= width
    assert page.locator("#lanes").bounding_box()["height"] >= 120
    page.close()


def test_help_says_what_marks_and_keys_mean(opened: Opened, file: Path) -> None:
    """? opens it, with every violation explained, and Esc closes it."""
    page = opened.go(file)
    page.keyboard.press("?")
    assert "the old value came back" in page.inner_text("#keys")
    page.keyboard.press("Escape")
    assert page.is_hidden("#keys")
