"""`steeltrap serve`: stored runs in a browser.

A page is made when it is asked for, by the same code as the file that `steeltrap report --html`
writes, and kept until the files that it was made of change. A run is addressed by its folder below
the one that is served, and only by one of those that were found there: a path is never opened
because somebody asked for it.
"""

from __future__ import annotations

import socket
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steeltrap.harness.history import HistoryError
from steeltrap.harness.record import RecordError
from steeltrap.harness.retrace import SHRUNK, looked_at
from steeltrap.harness.script import ScriptError
from steeltrap.harness.settings import SettingsError
from steeltrap.harness.store import Cell, StoreError, read_cell
from steeltrap.reports.page import PageError, render
from steeltrap.reports.page.listing import Listed, listing

if TYPE_CHECKING:
    from rich.console import Console
    from starlette.applications import Starlette

__all__ = ["Site", "app", "serve"]

LOOPBACK: Final = "127.0.0.1"
KEPT: Final = 4
"""Pages that are kept; one of 20 000 turns has 14 MB."""
HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def serve(folder: Path, out: Console, *, port: int) -> None:
    """Show a folder of runs on this machine until interrupted.

    Args:
        folder: of runs; those that appear later are found as well.
        out: gets the address.
        port: on loopback; 0 for any free one.

    Raises:
        StoreError: the folder does not exist, or holds no run.
        SettingsError: the port cannot be used.
    """
    import uvicorn

    site = Site(folder)
    if not site.listed():
        raise StoreError(
            f"{folder}: holds no run (spec.json); `steeltrap run runs={folder}` makes some"
        )
    listening = _listen(port)
    address = f"http://{LOOPBACK}:{listening.getsockname()[1]}/"
    out.print(f"{folder} is shown at {address}\nCtrl-C ends it.", markup=False, soft_wrap=True)
    server = uvicorn.Server(uvicorn.Config(
        app(site), lifespan="off", ws="none", log_config=None, log_level="critical",
        access_log=False, server_header=False, proxy_headers=False, timeout_graceful_shutdown=1,
    ))  # fmt: skip
    try:
        server.run([listening])
    except KeyboardInterrupt:
        # uvicorn has closed everything, and then passes the signal on
        pass
    finally:
        listening.close()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "ports go from 1 to 65535"
        raise SettingsError(
            f"--port {port}: cannot be used ({why}); choose another, or leave it out for a free one"
        ) from None


class Site:
    """What is served: the runs of a folder, and the pages made of them.

    Args:
        folder: of runs.

    Raises:
        StoreError: it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such folder; give one that holds runs")
        self.folder = folder
        self._pages: OrderedDict[tuple[str, ...], tuple[object, str]] = OrderedDict()
        self._making = threading.Lock()

    def cells(self) -> dict[str, Cell]:
        """The runs there are now, by their folders below the one that is served."""
        inside = self.folder.resolve()
        found = {}
        for path in sorted(self.folder.rglob("spec.json")):
            if not path.resolve().is_relative_to(inside):
                continue
            try:
                found[path.parent.relative_to(self.folder).as_posix()] = read_cell(path.parent)
            except StoreError:
                continue  # another program's spec.json
        return found

    def listed(self) -> list[Listed]:
        """The runs there are now, finished or not."""
        return [self._listed(key, cell) for key, cell in self.cells().items()]

    def _listed(self, key: str, cell: Cell) -> Listed:
        try:
            record = cell.finished()
        except RecordError as error:
            return Listed(key, cell.spec, None, f"cannot be read: {error}")
        return Listed(key, cell.spec, record, "" if record else "not finished")

    def page(self, keys: Sequence[str]) -> str:
        """The page of some runs, made anew where one of their files has changed.

        Raises:
            KeyError: there is no such finished run.
            HistoryError, RecordError, ScriptError, StoreError: one of them cannot be read.
        """
        cells = self.cells()
        chosen = [cells[key] for key in dict.fromkeys(keys)]
        for key, cell in zip(dict.fromkeys(keys), chosen, strict=True):
            if not cell.record.exists():
                raise KeyError(key)
        asked, stamp = tuple(keys), [_stamp(cell) for cell in chosen]
        with self._making:
            known = self._pages.get(asked)
            if known is None or known[0] != stamp:
                known = (stamp, render(*looked_at(chosen), home="./"))
            self._pages[asked] = known
            self._pages.move_to_end(asked)
            while len(self._pages) > KEPT:
                self._pages.popitem(last=False)
        return known[1]


def _stamp(cell: Cell) -> list[tuple[str, int, int]]:
    """What changes when a file does that a page is made of."""
    files = [cell.script, cell.history, cell.violations, cell.record]
    files += sorted((cell.folder / SHRUNK).glob("*.jsonl"))
    there = [(path.name, path.stat()) for path in files if path.exists()]
    return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in there]


def app(site: Site) -> Starlette:
    """The web application: two pages, to be read and nothing else."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, PlainTextResponse, Response
    from starlette.routing import Route

    def home(request: Request) -> Response:  # noqa: ARG001
        return HTMLResponse(listing(site.folder.name, site.listed()), headers=HEADERS)

    def page(request: Request) -> Response:
        keys = request.query_params.getlist("run")
        try:
            return HTMLResponse(site.page(keys), headers=HEADERS)
        except KeyError as error:
            return PlainTextResponse(f"There is no finished run {error.args[0]}.", 404, HEADERS)
        except PageError:
            return PlainTextResponse("Choose a run first.", 404, HEADERS)
        except (HistoryError, RecordError, ScriptError, StoreError) as error:
            return PlainTextResponse(f"This run cannot be shown. {error}", 500, HEADERS)

    # a name that somebody's server resolves to this machine is no name of this machine
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[LOOPBACK, "localhost"])
    routes = [Route("/", home, methods=["GET"]), Route("/page", page, methods=["GET"])]
    return Starlette(routes=routes, middleware=[hosts])
