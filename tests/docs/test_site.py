"""The site: built strictly and offline, whole, and loading nothing from elsewhere."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from steeltrap.adapters.mutants import MUTANTS
from steeltrap.harness.cli import parser
from steeltrap.harness.script import ABOUTS, ASKS, OPS
from steeltrap.harness.settings import described, options
from steeltrap.harness.values import KINDS
from steeltrap.harness.verdict import CONDITIONS, NAMES
from steeltrap.workloads.families import EVERY

CHROMIUM = shutil.which("chromium")


def text(site: Path, page: str) -> str:
    """The words of a page, without tags."""
    return unescape(re.sub(r"<[^>]+>", "", (site / page).read_text()))


def test_every_violation_is_explained(site: Path) -> None:
    """Each name has a heading, a dialogue and its mutants."""
    page = (site / "violations.html").read_text()
    for names in NAMES.values():
        for name in names:
            entry = re.search(rf'<h3 id="{name}">.*?(?=<h[23] id=|</article>)', page, re.DOTALL)
            assert entry, name
            assert 'class="dialogue"' in entry[0]
            assert 'class="wrong"' in entry[0]
            assert 'class="right"' in entry[0]
            for part in ("Decided", "Comes from", "Does not count"):
                assert part in entry[0], (name, part)
            proving = [m.name for m in MUTANTS.values() if name in m.raises]
            assert all(f"<code>{mutant}</code>" in entry[0] for mutant in proving)


def test_the_definition_names_all_that_there_is(site: Path) -> None:
    """Ops, families, questions, twins, kinds of value and conditions."""
    page = (site / "benchmark.html").read_text()
    for name in (*OPS, *EVERY, *ASKS, *ABOUTS, *KINDS):
        assert f"<code>{name}</code>" in page, name
    for condition in CONDITIONS:
        assert f"<strong>{condition}</strong>" in page


def test_every_command_and_setting_is_there(site: Path) -> None:
    """Each command has its help; each experiment, system and choice is listed."""
    commands = text(site, "command-line.html")
    (choices,) = (a.choices for a in parser()._actions if isinstance(a.choices, dict))
    for command in choices:
        assert f"usage: steeltrap {command}" in commands
    settings = (site / "settings.html").read_text()
    for group in ("experiment", "reader", "embedder", "model", "faults"):
        for name in options(group):
            assert f"<code>{group}={name}</code>" in settings
    for system in described():
        assert f"<code>{system.name}</code>" in settings


def test_every_page_is_reached(site: Path) -> None:
    """Each page that was built stands in the navigation, and each adapter's page is a page."""
    home = (site / "index.html").read_text()
    reached = set(re.findall(r'<a href="([^"#]+\.html)" class="md-nav__link', home))
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}
    assert pages - {"index.html"} <= reached | {"index.html"}
    folders = {
        path.parent.name for path in (Path(__file__).parents[2] / "adapters").glob("*/README.md")
    }
    assert {f"systems/{name}.html" for name in folders - {"datasets"}} <= pages


def test_nothing_is_left_of_what_pages_are_written_in(site: Path) -> None:
    """No fence, no comment that asks for something, no reference that was not resolved."""
    for page in site.rglob("*.html"):
        body = page.read_text().split("<article", 1)[-1].split("</article>", 1)[0]
        for left in ("```", "<!-- made", "::: ", "](", "!!! "):
            assert left not in body, (page.name, left)


def test_nothing_is_loaded_from_elsewhere(site: Path, docs: Path) -> None:
    """No script, style, image or font of a page has an address; a page that has one is found."""
    from hooks import loads

    assert [] == list(loads(site))
    for page in site.rglob("*.html"):
        assert "fonts.g" not in page.read_text()


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/x.css">',
        '<img src="http://cdn.example/x.png">',
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tag: str, tmp_path: Path, docs: Path) -> None:
    """The build refuses such a page; a plain link is none."""
    from hooks import loads

    (tmp_path / "page.html").write_text(f'<a href="https://example.org">a link</a>{tag}')
    assert 1 == len(list(loads(tmp_path)))


def test_what_nobody_has_described_stops_the_build(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An op without words, and words for an op that is none, are errors."""
    import made

    monkeypatch.setattr(made, "OPS", (*OPS, "whisper"))
    with pytest.raises(made.MissingWords, match="whisper"):
        made.ops()


def test_links_of_pages_beside_the_code_lead_to_pages(docs: Path) -> None:
    """A link to what is a page here leads there; to what is none, it is named; a dead one stops."""
    from hooks import _relinked
    from mkdocs.exceptions import PluginError

    def linked(target: str) -> str:
        return _relinked(f"[it]({target})", "adapters/README.md", "systems/index.md")

    assert "[it](mem0.md)" == linked("mem0/README.md")
    assert "[it](../architecture.md)" == linked("../ARCHITECTURE.md")
    assert "it (`adapters/mem0/memory.py`)" == linked("mem0/memory.py")
    with pytest.raises(PluginError, match="nowhere"):
        linked("nowhere.md")


def test_every_made_part_is_known(docs: Path) -> None:
    """What a page asks to be made is something that is made, and all that is made is asked for."""
    import made

    asked = set()
    for page in (docs / "pages").rglob("*.md"):
        asked |= set(re.findall(r"<!-- made: ([\w-]+)", page.read_text()))
    assert asked <= set(made.PARTS)
    assert set(made.PARTS) <= asked


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_it_opens_from_a_folder(site: Path) -> None:
    """In a browser, without a server: no error, no request, and the search finds."""
    from playwright.sync_api import sync_playwright

    amiss: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: amiss.append(message.text))
        page.on("pageerror", lambda error: amiss.append(str(error)))
        page.on("request", lambda r: amiss.append(r.url) if r.url.startswith("http") else None)
        for name in ("index.html", "violations.html", "api/memory.html"):
            page.goto((site / name).as_uri())
        page.click(".md-search__input")
        page.keyboard.type("resurrection")
        page.wait_for_selector(".md-search-result__item")
        assert "violations.html" in page.content()
        browser.close()
    assert [] == amiss
