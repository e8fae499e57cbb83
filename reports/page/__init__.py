"""The page: what stored runs did, step by step, in one file that needs no server and no network.

The file holds a template, a style and a script, which are the files beside this one, and the data,
compressed and in base64, so that no text of a script or of a memory can be taken for markup. A
Content-Security-Policy lets exactly this style and this script run, and nothing be loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from steeltrap.harness.trajectory import Played, Story
from steeltrap.reports.page.pack import packed
from steeltrap.reports.page.parts import policy, template, text_of

__all__ = ["SCRIPTS", "PageError", "render"]

SCRIPTS: Final = (
    "data.js", "state.js", "marks.js", "lanes.js", "around.js", "parts.js", "panel.js", "head.js",
    "main.js",
)  # fmt: skip
"""Joined in this order into one module, so that they share names and nothing is global."""


class PageError(ValueError):
    """A page cannot be made of these runs; the message says why."""


def render(stories: Sequence[Story], runs: Sequence[Played], *, home: str = "") -> str:
    """The page of these runs, as HTML: the same runs give the same bytes.

    Args:
        stories: the scripts that were run, each once.
        runs: what systems made of them, in the order in which they are offered.
        home: address of the list of all runs, where there is one.

    Raises:
        PageError: there is no run, or the script of one is not among the stories.
    """
    known = {story.sha256 for story in stories}
    if not runs:
        raise PageError("there is no run to show; a page is made of finished runs")
    for run in runs:
        if run.sha256 not in known:
            raise PageError(
                f"{run.folder}: its script ({run.sha256[:12]}…) is not among those given"
            )
    script = "\n".join(text_of(name) for name in SCRIPTS)
    style = text_of("style.css")
    return template("index.html.j2").render(
        title=_title(stories, runs),
        home=home,
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=Markup(packed(stories, runs)),
    )


def _title(stories: Sequence[Story], runs: Sequence[Played]) -> str:
    systems = dict.fromkeys(run.label for run in runs)
    scripts = dict.fromkeys(story.name for story in stories)
    return f"{', '.join(systems)} on {', '.join(scripts)}: steeltrap"
