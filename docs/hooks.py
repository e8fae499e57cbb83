"""What MkDocs does beside its own work: fills in what is made, takes in pages that lie elsewhere,
and looks at the end whether the site loads anything from elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import made
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

__all__ = ["loads", "on_config", "on_files", "on_page_markdown", "on_post_build"]

ROOT: Final = Path(__file__).resolve().parent.parent
MARK: Final = re.compile(r"<!-- made: ([\w-]+)(?: (.+?))? -->")
FENCE: Final = re.compile(r"^(```\w+) .*$", re.MULTILINE)
"""A block of code with words after its language: they are for tests and mean nothing here."""
LINK: Final = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)]*)?\)")
SYSTEMS: Final = {
    f"adapters/{path.parent.name}/README.md": f"systems/{path.parent.name}.md"
    for path in sorted((ROOT / "adapters").glob("*/README.md"))
    if path.parent.name != "datasets"
} | {"reference_system/README.md": "systems/gem.md"}
INCLUDED: Final = SYSTEMS | {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "adapters/README.md": "systems/index.md",
    "adapters/datasets/README.md": "datasets.md",
    "harness/worker-protocol.md": "worker-protocol.md",
}
"""Pages that lie beside the code: where, and what they are called here."""


# ---------------------------------------------------------------- pages from elsewhere


def on_config(config: MkDocsConfig) -> None:
    """Put every system's page into the navigation."""
    for section in config.nav or ():
        if isinstance(section, dict) and "Systems" in section:
            section["Systems"] += SYSTEMS.values()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take in the pages that lie beside the code, and run what the others show the output of."""
    made.prepare(page.content_string for page in files.documentation_pages())
    for source, uri in INCLUDED.items():
        text = _relinked((ROOT / source).read_text(), source, uri)
        files.append(File.generated(config, uri, content=text))
    return files


def _relinked(text: str, source: str, uri: str) -> str:
    """The text with links that lead to pages of the site; what is no page is named, not linked."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if not (ROOT / path).exists():
            raise PluginError(f"{source}: links to {target}, which is not there")
        if path not in INCLUDED:
            return words if words.startswith("`") else f"{words} (`{path}`)"
        return (
            f"[{words}]({posixpath.relpath(INCLUDED[path], posixpath.dirname(uri) or '.')}{anchor})"
        )

    return LINK.sub(link, text)


# ---------------------------------------------------------------- what is made


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put what is made in the place of the comments that ask for it."""

    def part(mark: re.Match[str]) -> str:
        name, argument = mark[1], mark[2]
        if name not in made.PARTS:
            raise PluginError(f"{page.file.src_uri}: nobody makes '{name}'")
        try:
            return made.PARTS[name](*([argument] if argument else []))
        except Exception as error:
            raise PluginError(f"{page.file.src_uri}: {mark[0]}: {error!r}") from error

    return FENCE.sub(r"\1", MARK.sub(part, markdown))


# ---------------------------------------------------------------- nothing from elsewhere


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that loads anything from another place."""
    made.forget()
    site = Path(config.site_dir)
    if found := [f"{path.relative_to(site)}: {what}" for path, what in loads(site)]:
        raise PluginError("the site loads something from elsewhere:\n" + "\n".join(found))


def loads(site: Path) -> Iterator[tuple[Path, str]]:
    """What the pages and style sheets of a site load from elsewhere: (file, address)."""
    for path in sorted(site.rglob("*.html")):
        reader = _Loads()
        reader.feed(path.read_text())
        yield from ((path, address) for address in reader.found)
    for path in sorted(site.rglob("*.css")):
        for address in re.findall(
            r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", path.read_text()
        ):
            yield path, address


class _Loads(HTMLParser):
    """Collects the addresses that a page fetches by itself."""

    LOADED: Final = frozenset(("src", "srcset", "data", "poster"))

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at what a tag loads; where a link leads to is no load."""
        for key, value in attrs:
            fetched = key in self.LOADED or (tag == "link" and key == "href")
            if fetched and re.match(r"\s*(https?:)?//", value or ""):
                self.found.append(value or "")
