"""What a page of 20 000 turns costs a browser: time to open, CPU time of a frame; off by default.

Run with `python -m pytest -m benchmark`. CPU time of the page's own thread is counted, so other
work on the machine changes little.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steeltrap.harness.cli import main
from steeltrap.harness.retrace import looked_at
from steeltrap.harness.store import read_cell
from steeltrap.reports.page import render

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here"),
]

FRAMES = 240
MOVE = """async ([kind, frames]) => {
  const box = document.getElementById("lanes"), paper = document.getElementById("paper");
  const { left, top } = paper.getBoundingClientRect();
  for (let i = 0; i < frames; i += 1) {
    const way = 60 * Math.sin(i / 20);
    const how = kind === "zoom" ? { ctrlKey: true, deltaY: way } : { deltaX: way };
    if (kind === "scroll") box.scrollTop += 120;
    else paper.dispatchEvent(new WheelEvent("wheel", {
      ...how, clientX: left + 700, clientY: top + 100, cancelable: true }));
    await new Promise(requestAnimationFrame);
  }
}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    assert main(["run", "system=flat-window", "script.turns=20000", "twins=0", f"runs={folder}"]) == 0  # fmt: skip
    (record,) = folder.rglob("record.json")
    path = folder / "page.html"
    path.write_text(render(*looked_at([read_cell(record.parent)])), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(file: Path) -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        yield page
        browser.close()


def test_a_page_of_20_000_turns_opens_in_seconds(page: Any, file: Path) -> None:
    """Most of it is read only when something is opened."""
    began = time.perf_counter()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    took_s = time.perf_counter() - began
    print(f"{file.stat().st_size / 1e6:.1f} MB open in {took_s:.2f} s")
    assert took_s < 5


@pytest.mark.parametrize("kind", ["pan", "zoom", "scroll"])
def test_frames_of_20_000_turns_are_cheap(page: Any, file: Path, kind: str) -> None:
    """A frame takes well under the 16.7 ms that it has at 60 Hz."""
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _busy_s(session)
    page.evaluate(MOVE, [kind, FRAMES])
    frame_ms = 1000 * (_busy_s(session) - before) / FRAMES
    print(f"{kind}: {frame_ms:.2f} ms of CPU time a frame")
    assert frame_ms < 10


def _busy_s(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))
