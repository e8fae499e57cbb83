"""`steeltrap serve` on a real port: what it shows, and what it refuses."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from steeltrap.adapters.flat import Flat
from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.cli import main
from steeltrap.harness.commands.serve import KEPT, Site, app
from steeltrap.harness.readers import Oracle
from steeltrap.harness.run import run_cell
from steeltrap.harness.store import StoreError, open_cell, run_spec
from steeltrap.workloads.figure1 import figure_1

SECRET = "what lies outside"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs of one script and one that was only begun, with a secret beside them."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text(SECRET)
    runs = outside / "runs"
    for system, make in (("flat", Flat), ("ideal", Ideal)):
        made(runs / "main", system, make)
    made(runs / "main", "begun", None)
    (runs / "away").symlink_to(outside)
    return runs


def made(runs: Path, system: str, make: type[Flat | Ideal] | None) -> Path:
    script = figure_1()
    spec = run_spec(script, system=system, settings={}, reader="oracle", limit=10, twins=0)
    cell = open_cell(runs, spec, script)
    if make:
        run_cell(cell, make, script, Oracle())
    return cell.folder


def key(folder: Path, system: str) -> str:
    (found,) = (path for path in (folder / "main").iterdir() if path.name.startswith(system))
    return f"main/{found.name}"


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[httpx.Client]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app(Site(folder)), lifespan="off", log_config=None, ws="none")
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}") as client:
        yield client
    server.should_exit = True
    thread.join(10)
    listening.close()


def test_the_list_has_every_run(client: httpx.Client, folder: Path) -> None:
    """Finished ones with their conditions and a link, others as what they are."""
    answer = client.get("/")
    assert answer.status_code == 200
    assert f"page?run={key(folder, 'flat')}" in answer.text.replace("%2F", "/")
    assert "not finished" in answer.text
    assert "28.0%" in answer.text
    assert "held" in answer.text
    assert "default-src 'none'; script-src 'none'" in answer.text.replace("&#39;", "'")


def test_runs_are_opened_together(client: httpx.Client, folder: Path) -> None:
    """A page of two runs is the page of the file, with a way back to the list."""
    answer = client.get("/page", params={"run": [key(folder, "flat"), key(folder, "ideal")]})
    assert answer.status_code == 200
    assert "<title>flat, ideal on figure-1" in answer.text
    assert '<a class="home" href="./">' in answer.text
    assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "[::1]", "0.0.0.0"]
)
def test_another_host_is_refused(client: httpx.Client, host: str) -> None:
    """A name that somebody else's server resolves to this machine gets nothing."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 400
    assert "Runs in" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/page"])
def test_only_reading_is_allowed(client: httpx.Client, method: str, path: str) -> None:
    """Whatever would change something is refused."""
    assert client.request(method, path).status_code == 405


@pytest.mark.parametrize(
    "target",
    [
        "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/away/secret.txt",
        "/page?run=..", "/page?run=../secret.txt", "/page?run=..%2Fsecret.txt", "/page?run=away",
        "/page?run=/etc/passwd", "/page?run=%2Fetc%2Fpasswd", "/page?run=main/..%2f..",
        "/page?run=%00", "/page", "/page?run=", "/style.css", "//etc/passwd",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_folder(client: httpx.Client, target: str) -> None:
    """Only runs that were found are opened, whatever is asked for, and however it is spelled."""
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as line:
        line.sendall(
            f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b"".join(iter(lambda: line.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 404")
    assert SECRET not in answer
    assert "root:" not in answer


def test_runs_that_a_link_leads_to_elsewhere_are_not_listed(folder: Path, tmp_path: Path) -> None:
    """A link out of the folder is no way out of it."""
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "link").symlink_to(folder / key(folder, "flat"))
    (alone / "files").mkdir()
    for file in (folder / key(folder, "flat")).glob("*.json*"):
        (alone / "files" / file.name).symlink_to(file)
    assert Site(alone).listed() == []


def test_new_runs_appear_and_changed_ones_are_made_anew(folder: Path, tmp_path: Path) -> None:
    """The list is read anew each time; a page is kept as long as its files stay as they are."""
    runs = tmp_path / "runs"
    shutil.copytree(folder / "main", runs)
    site = Site(runs)
    flat, ideal = (key(folder, system).removeprefix("main/") for system in ("flat", "ideal"))
    first = site.page([flat])
    assert site.page([flat]) is first
    later = runs / flat / "history.jsonl"
    os.utime(later, ns=(1, 1))
    assert site.page([flat]) is not first
    assert site.page([flat]) == first
    before = len(site.listed())
    shutil.copytree(runs / ideal, runs / "copy")
    assert len(site.listed()) == before + 1
    assert "ideal" in site.page(["copy"])


def test_few_pages_are_kept(folder: Path) -> None:
    """Memory stays small however many pages are asked for."""
    site = Site(folder)
    flat, ideal = key(folder, "flat"), key(folder, "ideal")
    asked = [[flat], [ideal], [flat, ideal], [ideal, flat], [flat, flat, ideal]]
    pages = [site.page(keys) for keys in asked]
    assert len(pages) > KEPT
    assert site.page(asked[-1]) is pages[-1]
    assert site.page(asked[0]) is not pages[0]


def test_a_damaged_run_is_told_and_does_no_harm(folder: Path, tmp_path: Path) -> None:
    """Its line says what is wrong, its page too, and the others stand."""
    runs = tmp_path / "runs"
    shutil.copytree(folder / "main", runs)
    flat, ideal = (key(folder, system).removeprefix("main/") for system in ("flat", "ideal"))
    (runs / flat / "record.json").write_text("{")
    notes = {run.key: run.note for run in Site(runs).listed()}
    assert "not a record" in notes[flat]
    assert notes[ideal] == ""
    with pytest.raises(ValueError, match="not a record"):
        Site(runs).page([flat])


def test_a_folder_without_runs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong, and what to do."""
    assert main(["serve", str(tmp_path)]) == 1
    assert "holds no run" in capsys.readouterr().err
    with pytest.raises(StoreError, match="no such folder"):
        Site(tmp_path / "nowhere")


def test_a_port_that_is_taken_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its number, with the way out; one that is no port as well."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(folder), "--port", str(port)]) == 2
    assert f"--port {port}: cannot be used" in capsys.readouterr().err
    assert main(["serve", str(folder), "--port", "99999"]) == 2
    assert "ports go from 1 to 65535" in capsys.readouterr().err


def test_it_says_where_it_is_and_ends_on_ctrl_c(folder: Path) -> None:
    """The address is printed, it answers there on loopback alone, and an interrupt ends it well."""
    command = [sys.executable, "-m", "steeltrap", "serve", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "40"},
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stderr
        line = process.stdout.readline()
        address = line.split()[-1]
        assert address.startswith("http://127.0.0.1:")
        assert httpx.get(_when_up(address)).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def _when_up(address: str) -> str:
    for _ in range(100):
        try:
            httpx.get(address)
            break
        except httpx.ConnectError:
            time.sleep(0.05)
    return address
