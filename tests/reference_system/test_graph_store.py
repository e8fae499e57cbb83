"""The store on a property graph: it keeps what it was given, through damage, closing and erasing."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from steeltrap.reference_system.state import (
    Alias,
    Delta,
    Edge,
    Entry,
    Evidence,
    Field,
    PolicyText,
    Record,
    Topic,
)
from steeltrap.reference_system.stores import (
    DamagedStore,
    ForeignFile,
    StoreError,
    StoreInUse,
)
from steeltrap.reference_system.stores.graph import GraphStore


def beside(name: str) -> ModuleType:
    """A module of this folder."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def topic(number: int, **other: object) -> Topic:
    made = Topic(f"a:t{number}", "a", f"topic {number}", "", b"", (), 1)
    return msgspec.structs.replace(made, **other)


def field(number: int, **other: object) -> Field:
    made = Field(f"a:f{number}", "a", f"a:t{number % 3}", f"field {number}", "", (), "set", f"value {number}", 1, "v", None, "s1", "owner", (), "", 1, 1, 1, 1, 1.5, 0, 3)  # fmt: skip
    return msgspec.structs.replace(made, **other)


def entry(number: int, seq: int = 1, **other: object) -> Entry:
    made = Entry(f"a:f{number}", seq, "told", f"value {number}", "v", None, "r", 1, "s1", "owner", (), 0, "", "p")  # fmt: skip
    return msgspec.structs.replace(made, **other)


def delta(*records: Record, touched: dict[str, float] | None = None) -> Delta:
    """A proposed change that writes some records."""
    made = Delta("a", "ingest", "2026-01-01T00:00:00", 1)
    kinds = {Topic: made.topics, Field: made.fields, Edge: made.edges, Evidence: made.evidence, Alias: made.aliases}  # fmt: skip
    for record in records:
        if isinstance(record, Entry):
            made.entries.append(record)
        else:
            kinds[type(record)][record.id] = record  # type: ignore[index, union-attr]
    made.touched = touched or {}
    return made


START = (*map(topic, range(3)), *map(field, range(30)), *map(entry, range(30)))


def held(store: GraphStore) -> tuple[list[Record], list[Entry]]:
    """All that a store holds."""
    records = list(store.load())
    return records, store.entries([r.id for r in records if isinstance(r, Field)])


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder, the lock files apart: those are empty."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.suffix != ".lock"}


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores to be copied: `closed`, `killed` with three commits in its log, `later` with four."""
    room = tmp_path_factory.mktemp("rooms")
    (room / "closed").mkdir()
    store = GraphStore(room / "closed" / "m.db")
    store.commit(delta(*START))
    store.checkpoint()
    for seq in (2, 3, 4):
        store.commit(delta(field(1, entries=seq, value="x" * 3000), entry(1, seq)))
    shutil.copytree(room / "closed", room / "killed")
    store.commit(delta(field(2, value="y" * 9000)))
    shutil.copytree(room / "closed", room / "later")
    store.close()
    return room


@pytest.fixture
def copied(rooms: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies one of the rooms, and gives the path of its store."""

    def copy(name: str) -> Path:
        shutil.copytree(rooms / name, tmp_path / name)
        return tmp_path / name / "m.db"

    return copy


def refused(path: Path, error: type[StoreError]) -> str:
    """Opening it is refused with every file as it was; what was said."""
    before = files(path.parent)
    with pytest.raises(error) as caught:
        GraphStore(path)
    assert before == files(path.parent)
    return str(caught.value)


# ---------------------------------------------------------------- it keeps what it was given


@settings(max_examples=12, deadline=None, phases=(Phase.reuse, Phase.generate))
@given(st.integers(0), st.integers(5, 25))
def test_it_holds_what_the_plain_store_holds(seed: int, steps: int) -> None:
    """After any transitions, checkpoints, erasures and openings, it is equal to the plain store."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        both = beside("against_plain").Both(lambda: GraphStore(Path(folder, "m.db")), rng)
        for _ in range(steps):
            both.step()
        both.compare()
        both.reopen()
        both.compare()
        both.store.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ladybug", "native"])
def test_long_lives_are_held_like_the_plain_store(kind: str) -> None:
    """Five hundred steps, compared after each, end with both equal."""
    beside("against_plain").run(kind, 1, 500)


def test_what_it_gives_is_in_order_of_creation(tmp_path: Path) -> None:
    """Records are loaded by tenant and number, not by when or how they were last written."""
    store = GraphStore(tmp_path / "m.db")
    store.commit(delta(topic(10), topic(9), topic(2), field(11, topic="a:t9"), field(2)))
    store.commit(delta(topic(2, title="later")))
    assert ["a:t2", "a:t9", "a:t10", "a:f2", "a:f11"] == [r.id for r in store.load()]  # type: ignore[union-attr]
    store.close()


def test_the_graph_can_be_asked_in_cypher(tmp_path: Path) -> None:
    """Fields hang on their topic, wherever they move to; edges can be followed; nothing is written."""
    store = GraphStore(tmp_path / "m.db")
    tied = [Edge(f"a:e{n}", "a", "extension", f"a:f{n}", f"a:f{n + 1}", None, "s", 1) for n in range(2)]  # fmt: skip
    near = Edge("a:e7", "a", "association", "a:t0", "a:t1", None, "s", 1)
    store.commit(delta(*START, *tied, near))
    store.commit(delta(field(1, topic="a:t2")))
    owner = "MATCH (t:Topic)-[:HAS]->(f:Field {id: $id}) RETURN t.id"
    assert [["a:t2"]] == store.query(owner, id="a:f1")
    assert [["a:f2"]] == store.query("MATCH (:Field {id: 'a:f0'})-[:EXT*2]->(f:Field) RETURN f.id")
    assert [["a:t1"]] == store.query("MATCH (:Topic {id: 'a:t0'})-[:ASSOC]->(t:Topic) RETURN t.id")
    before = held(store)
    with pytest.raises(StoreError, match="cannot answer"):
        store.query("MATCH (f:Field) SET f.value = 'gone'")
    assert before == held(store)
    store.commit(delta(topic(3)))
    store.close()


@pytest.mark.parametrize(
    "wrong",
    [
        delta(topic(0, title="other"), entry(3, 2), entry(3, 1)),
        delta(topic(0, title="other"), field(77, topic="a:t77")),
        delta(
            topic(0, title="other"), Edge("a:e1", "a", "extension", "a:f1", "a:f77", None, "s", 1)
        ),
        delta(topic(0, title="other"), touched={"a:f1": 9.0, "a:f77": 9.0}),
        delta(topic(0, title="other"), topic(4, title="\ud800")),
    ],
    ids=["line twice", "no topic", "no end", "no field", "no text"],
)
def test_a_commit_that_fails_writes_nothing(tmp_path: Path, wrong: Delta) -> None:
    """What cannot be written whole leaves all as it was, and the store goes on."""
    store = GraphStore(tmp_path / "m.db")
    store.commit(delta(*START))
    before = held(store)
    with pytest.raises(StoreError, match="nothing was written"):
        store.commit(wrong)
    assert before == held(store)
    store.commit(delta(field(5, value="later")))
    store.close()
    store = GraphStore(tmp_path / "m.db")
    assert "later" == store.read({"a:f5": 2.0})[0].value
    store.close()


def test_a_read_of_an_unknown_field_writes_nothing(tmp_path: Path) -> None:
    """A retrieval is one transition: where one field is missing, no salience is written."""
    store = GraphStore(tmp_path / "m.db")
    store.commit(delta(*START))
    before = held(store)
    with pytest.raises(StoreError, match="'a:f99'"):
        store.read({"a:f1": 99.0, "a:f99": 99.0})
    assert before == held(store)
    assert ["a:f4", "a:f2"] == [f.id for f in store.read({"a:f4": 5.0, "a:f2": 5.0})]
    store.close()


def test_the_log_is_folded_in_by_interval(tmp_path: Path) -> None:
    """After so many transitions the log is empty, and size tells what is on disk."""
    store = GraphStore(tmp_path / "m.db", checkpoint_every=3)
    log = tmp_path / "m.db.wal"
    store.commit(delta(*START))
    store.read({"a:f1": 7.0})
    assert log.stat().st_size > 0
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) == store.size_bytes()
    store.read({"a:f1": 8.0})
    assert not log.exists() or not log.stat().st_size
    store.close()


def test_what_changed_is_folded_in_before_it_fills_the_memory(tmp_path: Path) -> None:
    """The engine keeps a copy of what changed; however seldom checkpoints are, it does not run out."""
    store = GraphStore(tmp_path / "m.db", checkpoint_every=10**9, buffer_bytes=16 << 20)
    store.commit(delta(*START))
    for number in range(1500):
        store.read({"a:f1": float(number)})
    store.close()


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Closing twice does nothing; using it afterwards tells what to do."""
    store = GraphStore(tmp_path / "m.db")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed; open it again"):
        store.commit(delta(topic(1)))
    with pytest.raises(ValueError, match="ladybug, kuzu"):
        GraphStore(tmp_path / "n.db", engine="neo4j")  # type: ignore[arg-type]


def test_a_store_that_was_not_closed_is_whole(tmp_path: Path) -> None:
    """A program that ends without closing its store loses nothing, and what it had opens."""
    asked = (
        "import sys; from pathlib import Path\n"
        "from steeltrap.reference_system.stores.graph import GraphStore\n"
        "from steeltrap.reference_system.state import PolicyText\n"
        "GraphStore(Path(sys.argv[1])).set_policies([PolicyText('kept', 0, 'text')])"
    )
    path = os.pathsep.join(filter(None, sys.path))
    subprocess.run([sys.executable, "-c", asked, str(tmp_path / "m.db")], env={**os.environ, "PYTHONPATH": path}, check=True)  # fmt: skip
    store = GraphStore(tmp_path / "m.db")
    assert [PolicyText("kept", 0, "text")] == list(store.load())
    store.close()


def test_one_opens_it_at_a_time(tmp_path: Path) -> None:
    """A second opener, here or in another process, is refused until the first has closed."""
    store = GraphStore(tmp_path / "m.db")
    with pytest.raises(StoreInUse, match="close it"):
        GraphStore(tmp_path / "m.db")
    asked = (
        "import sys; from pathlib import Path\n"
        "from steeltrap.reference_system.stores.graph import GraphStore\n"
        "GraphStore(Path(sys.argv[1]))"
    )
    path = os.pathsep.join(filter(None, sys.path))
    said = subprocess.run([sys.executable, "-c", asked, str(tmp_path / "m.db")], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)  # fmt: skip
    assert "StoreInUse" in said.stderr
    store.commit(delta(topic(1)))
    store.close()
    GraphStore(tmp_path / "m.db").close()


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_no_flipped_byte_goes_unnoticed(copied: Callable[[str], Path], state: str) -> None:
    """A byte changed anywhere in the main file, its beginning included, is damage."""
    path = copied(state)
    whole = path.read_bytes()
    places = [0, 3, 4, 20, 4096, len(whole) - 1, *random.Random(1).sample(range(len(whole)), 12)]
    for where in places:
        path.write_bytes(whole[:where] + bytes([whole[where] ^ 1]) + whole[where + 1 :])
        assert "back from a copy" in refused(path, DamagedStore)
    path.write_bytes(whole)
    GraphStore(path).close()


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_a_truncated_file_is_damage(copied: Callable[[str], Path], state: str) -> None:
    """A main file that has lost its end, or all of it, is damaged and not new."""
    path = copied(state)
    whole = path.read_bytes()
    for size in (0, 3, 100, 4096, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(path, DamagedStore)
    path.unlink()
    assert "is gone" in refused(path, DamagedStore)


def test_a_log_that_is_not_as_it_was_is_damage(copied: Callable[[str], Path]) -> None:
    """Commits that were cut off, changed, or replaced by something else are missed."""
    path = copied("killed")
    log = path.with_name("m.db.wal")
    whole = log.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (whole[:-1], whole[:middle], b"", flipped, random.Random(1).randbytes(500)):
        log.write_bytes(damaged)
        assert "are commits" in refused(path, DamagedStore)
    log.unlink()
    refused(path, DamagedStore)


def test_a_log_beside_a_closed_store_is_not_its_own(copied: Callable[[str], Path]) -> None:
    """A closed store has no log: one that is there is of something else."""
    path = copied("closed")
    path.with_name("m.db.wal").write_bytes(b"garbage" * 99)
    refused(path, DamagedStore)


def test_a_commit_that_was_cut_off_is_dropped(copied: Callable[[str], Path]) -> None:
    """Bytes after the last noted commit are of one that was never reported: it is there or not."""
    path, later = copied("killed"), copied("later")
    log, seal, main = path.with_name("m.db.wal"), path.with_name("m.db.seal"), path.read_bytes()
    noted, begin, end = seal.read_bytes(), log.stat().st_size, later.with_name("m.db.wal").read_bytes()  # fmt: skip
    assert len(end) > begin + 8192
    seen = []
    for size in (*random.Random(1).sample(range(begin, len(end)), 8), len(end) - 1, len(end)):
        path.write_bytes(main)
        seal.write_bytes(noted)
        log.write_bytes(end[:size])
        store = GraphStore(path)
        seen.append(store.read({"a:f2": 3.0})[0].value == "y" * 9000)
        store.commit(delta(field(3, value="goes on")))
        store.close()
        store = GraphStore(path)
        assert ["goes on", seen[-1]] == [f.value if f.id == "a:f3" else f.value == "y" * 9000 for f in store.read({"a:f3": 1.0, "a:f2": 3.0})]  # fmt: skip
        assert [1, 2, 3, 4] == [e.seq for e in store.entries(["a:f1"])]
        store.close()
    assert [False] * 9 + [True] == seen


@pytest.mark.parametrize("state", ["closed", "killed"])
def test_without_a_seal_a_copy_is_read_through(copied: Callable[[str], Path], state: str) -> None:
    """A whole store opens also if only the engine's files are there; a damaged one is refused."""
    path = copied(state)
    path.with_name("m.db.seal").unlink()
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:16] + b"\xff" * 40 + whole[56:], whole[:9]):
        path.write_bytes(damaged)
        assert "Nothing was touched" in refused(path, DamagedStore)
    path.write_bytes(whole)
    store = GraphStore(path)
    assert 4 == len(store.entries(["a:f1"]))
    store.close()
    assert {"m.db", "m.db.seal"} == set(files(path.parent))


def test_what_an_interrupted_checkpoint_left_is_read_through(copied: Callable[[str], Path]) -> None:
    """While a checkpoint is under way the seal says nothing, so a copy is tried; then it is whole."""
    path = copied("killed")
    store = GraphStore(path)
    store.commit(delta(field(1, value="last")))
    store._seal.begin()
    shutil.copytree(path.parent, path.parent.with_name("inside"))
    store.close()
    path = path.parent.with_name("inside") / "m.db"
    log = path.with_name("m.db.wal")
    whole = log.read_bytes()
    for damaged in (whole[:-5], whole + b"more", b"else" * 99):
        log.write_bytes(damaged)
        refused(path, DamagedStore)
    log.write_bytes(whole)
    store = GraphStore(path)
    assert "last" == store.read({"a:f1": 3.0})[0].value
    store.close()


# ---------------------------------------------------------------- what is not a store


def other_database(path: Path, header: str) -> None:
    """A database that another program made with the same engine."""
    import ladybug

    database = ladybug.Database(str(path))
    connection = ladybug.Connection(database)
    for statement in filter(None, header.split(";")):
        connection.execute(statement)
    connection.close()
    database.close()


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("Dear diary, " * 400), "not a file of ladybug"),
    "empty": (lambda path: path.touch(), "not a file of ladybug"),
    "kuzu": (lambda path: path.write_bytes(b"KUZU\x27" + bytes(4091)), "a file of kuzu"),
    "sqlite": (lambda path: sqlite3.connect(path).execute("CREATE TABLE a(b)"), "not a file of"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "other program": (
        lambda path: other_database(path, "CREATE NODE TABLE Topic(id STRING PRIMARY KEY)"),
        "of another program",
    ),
    "other version": (
        lambda path: other_database(
            path,
            "CREATE NODE TABLE Store(id STRING PRIMARY KEY, version INT64, engine STRING, package STRING);"
            "CREATE (:Store {id: 'steeltrap', version: 99, engine: 'ladybug', package: '0.22.0'})",
        ),
        "a store of version 99",
    ),
    "other format": (lambda path: path.write_bytes(b"LBUG\x63" + bytes(4091)), "version"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused(tmp_path: Path, kind: str) -> None:
    """What something else has written is told by its name and left as it is."""
    make, said = FOREIGN[kind]
    make(tmp_path / "m.db")
    assert said in refused(tmp_path / "m.db", ForeignFile)


# ---------------------------------------------------------------- erasing

MARK = "unforgettable"


def marked(number: int) -> list[Record]:
    """A topic with all that can be said of it, each text of it with the mark."""
    said, name = f"{MARK} {number}", f"a:t{number}"
    one = field(number, topic=name, name=said, about=said, value=said, tags=(said,), turn=said, via=said, said_by=said, sources=(said,))  # fmt: skip
    line = entry(number, value=said, turn=said, said_by=said, sources=(said,))
    return [
        topic(number, title=said, summary=said * 500, tags=(said,), vector=said.encode()),
        one,
        line,
        Edge(f"a:e{number}", "a", "extension", f"a:f{number}", "a:f1", None, said, 1),
        Edge(f"a:e{number + 1}", "a", "association", "a:t1", name, None, said, 1),
        Evidence(f"a:v{number}", "a", "drift", one.id, "a:f1", 1, 1, "t", said),
        Alias(f"a\n{said}", "a", "a", said, name),
    ]


def test_erasing_leaves_no_byte(tmp_path: Path) -> None:
    """Nothing of what was erased is in any file, at once and after closing; the rest is all there."""
    store = GraphStore(tmp_path / "m.db")
    store.commit(delta(*START))
    policies = [PolicyText("first", 0, "kept")]
    store.set_policies(policies)
    before = held(store)
    store.commit(delta(*marked(50)))
    store.checkpoint()
    store.commit(delta(*marked(60)))
    store.commit(delta(field(60, topic="a:t60", value="now something else")))
    assert all(MARK.encode() in text for name, text in files(tmp_path).items() if name in ("m.db", "m.db.wal"))  # fmt: skip
    store.erase(["a:t50", "a:t60"], ["a:f50", "a:f60"])
    assert [name for name, text in files(tmp_path).items() if MARK.encode() in text] == []
    assert before == held(store)
    store.commit(delta(field(1, value="later")))
    store.close()
    assert [name for name, text in files(tmp_path).items() if MARK.encode() in text] == []
    assert {"m.db", "m.db.seal"} == set(files(tmp_path))


def test_a_topic_is_not_erased_from_under_its_fields(tmp_path: Path) -> None:
    """Fields that would be left without their topic are named, and nothing is erased."""
    store = GraphStore(tmp_path / "m.db")
    store.commit(delta(*START))
    before = held(store)
    with pytest.raises(StoreError, match="nothing was erased: 'a:t1'"):
        store.erase(["a:t1"], ["a:f1"])
    assert before == held(store)
    store.commit(delta(field(1, value="later")))
    store.close()
    GraphStore(tmp_path / "m.db").close()


def test_what_an_interrupted_erasure_left_is_cleared(copied: Callable[[str], Path]) -> None:
    """An unfinished new file is removed at the next opening, and the old one is what holds."""
    path = copied("killed")
    shutil.copy(path, path.with_name("m.db.new"))
    path.with_name("m.db.new.wal").write_bytes(b"half")
    (path.parent / "m.db.check").mkdir()
    (path.parent / "m.db.check" / "m.db").write_bytes(b"half")
    store = GraphStore(path)
    assert 4 == len(store.entries(["a:f1"]))
    store.close()
    assert {"m.db", "m.db.lock", "m.db.seal"} == {p.name for p in path.parent.iterdir()}
