"""A script: what is said, what is asked, and what is true after every step.

One JSON object a line. The first line is the `Header`, every other line a step: a `Turn`, a
`Probe`, a `Gauge`, an `Audit`, a `Pause` or an `Erasure`. Truth (`changes`, `footprint`,
`expect`) is filled in by `workloads.truth` before anything runs, and nothing else computes it.
The sha256 of the bytes is the identity of a script.

The terms are those of "Is Agent Memory a Database?" (sections 3.1 to 3.3) at field grain.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, Final, Literal, get_args, overload

import msgspec

from steeltrap.harness import values

__all__ = [
    "ABOUTS",
    "ASKS",
    "OPS",
    "REQUEST",
    "UNOBSERVED",
    "About",
    "Ask",
    "Audit",
    "Change",
    "Erasure",
    "Expect",
    "Gauge",
    "Header",
    "Op",
    "OpName",
    "Past",
    "Pause",
    "Probe",
    "Rule",
    "Script",
    "ScriptError",
    "ScriptWriter",
    "Step",
    "StoredSteps",
    "Swap",
    "Turn",
    "TwinSpec",
    "canonical",
    "field_of",
    "measures",
    "tenant_of",
    "topic_of",
    "unit_id",
]

FORMAT: Final = "steeltrap-script"
VERSION: Final = 1
LONGEST_BYTES: Final = 1 << 28
"""Of one line: what is longer is refused before it fills the memory."""
LONG_BYTES: Final = 64 << 20
"""A script whose file is longer stays in it."""
_TURN: Final = b'{"step":"turn"'

OpName = Literal[
    "tell",
    "revise",
    "revert",
    "correct",
    "retract",
    "restate",
    "echo",
    "rumour",
    "depend",
    "associate",
    "expire",
    "noise",
    "instruct",
]
OPS: Final[tuple[OpName, ...]] = get_args(OpName)
Ask = Literal["current", "previous", "as-of", "rank", "evidence"]
REQUEST: Final = "request"
"""Category of a question that is a turn itself, asked just before it is told: what a memory serves
for it is what an agent would put into its request."""
ASKS: Final[tuple[Ask, ...]] = get_args(Ask)
Importance = Literal["vital", "normal", "trivial"]


class ScriptError(ValueError):
    """A script cannot be read; the message names file, line and field and says what to do."""


class _Frozen(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    pass


# ---------------------------------------------------------------- units


def unit_id(tenant: str, topic: str, field: str) -> str:
    """The name of a unit: `tenant/topic/field`."""
    return f"{tenant}/{topic}/{field}"


def tenant_of(unit: str) -> str:
    """The tenant of a unit or of a topic (`tenant/topic`)."""
    return unit.split("/", 1)[0]


def topic_of(unit: str) -> str:
    """The topic of a unit, without its tenant."""
    return unit.split("/", 2)[1]


def field_of(unit: str) -> str:
    """The field of a unit."""
    return unit.split("/", 2)[2]


def canonical(unit: str, value: str) -> str:
    """The plainest sentence that holds a unit's value; the footprint is counted in these."""
    return f"The {field_of(unit)} of {topic_of(unit)} is {values.display(value)}."


# ---------------------------------------------------------------- what happens


class Rule(_Frozen, frozen=True):
    """How a dependent follows its source: an extension edge of the paper, with its content."""

    kind: Literal["offset", "same", "scaled", "review"]
    days: int = 0
    """offset: days added to the source's date."""
    times: int = 1
    """scaled: numerator."""
    over: int = 1
    """scaled: denominator."""


class Op(_Frozen, frozen=True):
    """One abstract thing that happens in the world (benchmark contract, section 2)."""

    op: OpName
    unit: str | None = None
    """The unit it is about; for `depend` the source; for `associate` a topic `tenant/topic`."""
    value: str | None = None
    """A value literal: the new value, or the one that is mentioned, rumoured or injected."""
    source: str = "owner"
    """Who says so; ranked by `Header.authority`."""
    valid_at: str | None = None
    """When the value began to hold, if that was earlier than the turn (late news)."""
    until: str | None = None
    """`expire`: the instant from which the value holds no longer."""
    target: str | None = None
    """`depend`: the dependent unit; `associate`: the other topic."""
    rule: Rule | None = None
    importance: Importance = "normal"
    """How much the unit matters, told with its first value."""


class Change(_Frozen, frozen=True):
    """One consequence of a step for one unit: part of the truth."""

    unit: str
    value: str | None
    """The value that holds now; None when nothing is set."""
    cause: Literal["told", "corrected", "derived", "review", "late", "retracted", "expired", "erased"]  # fmt: skip
    hop: int = 0
    """0: said directly; h: obliged over h extension edges."""
    via: str | None = None
    """The unit one edge nearer to the cause, for `hop` > 0."""


# ---------------------------------------------------------------- what is expected


class Expect(_Frozen, frozen=True):
    """The right answer to a probe."""

    state: Literal["set", "unset", "review"]
    """review: the value is not known until somebody looks; serving the old one unmarked is wrong."""
    value: str | None = None
    """set: the value; review: the last value that held."""


class Past(_Frozen, frozen=True):
    """One entry of a unit's true history, oldest first by the time from which it held."""

    value: str | None
    """None: the value was withdrawn."""
    at: str
    source: str
    """The turn that wrote it."""
    also: tuple[str, ...] = ()
    """Other turns that may be named as sources: restatements, and the rules of a derived value."""
    never_true: bool = False
    """Retracted by a `correct`: it was wrong all along."""


class Swap(_Frozen, frozen=True):
    """What a read asks in the other twin (section 4): the exchangeable unit."""

    twin: str
    unit: str
    text: str
    expect: Expect | None = None
    via: str | None = None


About = Literal["reading", "asking", "telling", "existing", "observing"]
ABOUTS: Final[tuple[About, ...]] = get_args(About)


class TwinSpec(_Frozen, frozen=True):
    """Another script that differs from this one in exactly one thing (section 4).

    | about | in the other script | so whatever differs |
    |---|---|---|
    | reading | the reads of `a` are reads of `b` | was caused by reading (C6) |
    | asking | another tenant's questions are about something else | leaks what was asked |
    | telling | another tenant does not say something | leaks what was said |
    | existing | what is erased here never was | is a trace of it |
    | observing | nothing is measured on the way | was caused by measuring |

    A step differs by its `swap` (another question) or by `unless` (it is not there).
    """

    name: str
    a: str = ""
    """reading: the unit that is read here."""
    b: str = ""
    """reading: the one that is read there."""
    until: str = ""
    """The id of the last step that is needed to compare the two; empty: all are."""
    about: About = "reading"
    tenant: str = ""
    """asking, telling: who must not notice."""
    gone: str = ""
    """existing: the unit or the tenant that is erased."""
    trials: dict[str, str] = {}
    """asking, telling: by the id of a neutral question of `tenant` about a pair of units, that one
    of the pair whose namesake the other tenant asks or speaks of here; a coin has chosen it. In the
    other script it asks of the other's namesake instead, or speaks of neither."""


UNOBSERVED: Final = TwinSpec("unobserved", about="observing")
"""A twin that any script can have: `twins.with_unobserved`."""


# ---------------------------------------------------------------- steps


class _Step(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    at: str
    """Simulated time, ISO 8601 to the minute."""
    tenant: str = ""
    family: str = ""
    changes: list[Change] = []
    """Truth: what this step (or the time that passed before it) changed."""
    unless: tuple[str, ...] = ()
    """Twins in which this step is not there."""
    footprint: tuple[int, int] = (0, 0)
    """Truth: live units, and tokens (o200k_base) of their canonical sentences, after the step."""


class Turn(_Step, tag="turn", tag_field="step", kw_only=True):
    """One utterance, and what it means."""

    id: str
    session: str
    role: Literal["user", "assistant"] = "user"
    text: str
    ops: list[Op]
    tokens: int | None = None
    """Of the text (o200k_base), where a script is too long to count them anew each time it is scored."""


class Probe(_Step, tag="probe", tag_field="step", kw_only=True):
    """A question whose right answer is known."""

    id: str
    ask: Ask
    text: str
    unit: str | None = None
    """None only where `ask` is `rank` or `evidence`."""
    units: tuple[str, ...] = ()
    """rank: the exchangeable units that the question touches alike; evidence, of a request: those
    that the turn speaks of."""
    of: str | None = None
    """as-of: the instant asked about."""
    expect: Expect | None = None
    via: str | None = None
    """Truth: the unit from which the present value follows, when it was derived."""
    hop: int = 0
    """Truth: over how many edges the present value came."""
    lag: int | None = None
    """Turns since the update that this probe follows; None in audits and ordinary reads."""
    group: str = ""
    """Probes of one group are asked at one point, sources before their dependents."""
    observe: Literal["fork", "in-script"] = "fork"
    """in-script: the question is part of the trajectory, as for a real user."""
    swap: Swap | None = None
    control: str | None = None
    """A unit that this question does not touch: its salience is the control of C6."""
    evidence: tuple[str, ...] = ()
    """evidence: the turns that hold the answer."""
    category: str = ""
    flags: tuple[str, ...] = ()
    """evidence: known defects of the public record."""
    gold: str = ""
    """evidence: the answer of the public record; empty where it has none."""
    rubric: tuple[str, ...] = ()
    """evidence: what a right answer holds, point by point, where the record says so; further
    spellings of `gold` where the record's own score takes any of them."""
    judged: str = ""
    """evidence: how the record's own benchmark scores an answer, such as `longmemeval/knowledge-update`,
    `beam/event-ordering`, `substring`; empty where it does not say."""


class Gauge(_Step, tag="gauge", tag_field="step", kw_only=True):
    """The active content is listed: counted, and when `full` recorded item by item.

    With a tenant it is that tenant's alone, and so is the footprint that it is held against.
    """

    id: str
    full: bool = False
    blind: bool = False
    """Nothing is looked at: the memory is only given the time to finish its background work."""


class Audit(_Step, tag="audit", tag_field="step", kw_only=True):
    """The recorded history of one unit is looked up, and explicit recovery is tried."""

    id: str
    unit: str
    text: str
    """The same as a question, for systems without a history of their own."""
    history: list[Past] = []
    """Truth."""
    live: bool = True
    """Truth: the unit has a current value."""
    group: str = ""


class Pause(_Step, tag="pause", tag_field="step", kw_only=True):
    """Nothing is said: the system may run its maintenance."""

    id: str


class Erasure(_Step, tag="erasure", tag_field="step", kw_only=True):
    """A unit, or with `unit` None a whole tenant, must be removed for good."""

    id: str
    unit: str | None = None
    gone: tuple[str, ...] = ()
    """Truth, where a twin is without it: what was said of it, and its values as they were
    spelled. None of it may be found in the memory's files."""


Step = Turn | Probe | Gauge | Audit | Pause | Erasure


def measures(step: Step) -> bool:
    """Whether a step only measures: a user would not have done it."""
    if isinstance(step, Probe):
        return step.observe == "fork"
    return isinstance(step, Gauge | Audit)


class Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The first line of a script."""

    format: str = FORMAT
    version: int = VERSION
    name: str
    seed: int = 0
    settings: dict[str, Any] = {}
    """The generator's settings, so that the script can be made again."""
    tenants: list[str] = []
    authority: list[str] = msgspec.field(default_factory=lambda: ["owner", "colleague", "hearsay"])
    """Policy: whose word counts, highest first. A lower source never replaces a higher one's."""
    alpha: float = 3.0
    """beta(n) = alpha * true footprint tokens + constant_tokens (C5)."""
    constant_tokens: int = 512
    words: dict[str, list[str]] = {}
    """Other names by which texts call a field."""
    twins: list[TwinSpec] = []
    notes: dict[str, Any] = {}
    """What a reader of results should know, such as the handling of defects in public data."""

    def beta(self, footprint_tokens: int) -> float:
        """The bound of C5 in tokens, given the true footprint in tokens."""
        return self.alpha * footprint_tokens + self.constant_tokens


# ---------------------------------------------------------------- reading and writing

_ENCODER = msgspec.json.Encoder()
_HEADER = msgspec.json.Decoder(Header)
_STEP: msgspec.json.Decoder[Step] = msgspec.json.Decoder(Step)


class Script:
    """A header and its steps.

    Args:
        header: the first line.
        steps: in order; in memory, or those of a file (`Script.stored`).
    """

    def __init__(self, header: Header, steps: Sequence[Step]) -> None:
        self.header = header
        self.steps = steps

    def __repr__(self) -> str:
        return f"<Script {self.header.name} seed={self.header.seed} steps={len(self.steps)}>"

    @property
    def turns(self) -> int:
        """How many turns the script has."""
        return sum(isinstance(step, Turn) for step in self.steps)

    def lines(self) -> Iterator[bytes]:
        """The script line by line, each ending in a newline."""
        for part in (self.header, *self.steps):
            yield _ENCODER.encode(part) + b"\n"

    def sha256(self) -> str:
        """The identity: the hash of the script's bytes."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(line)
        return digest.hexdigest()

    def write(self, path: Path) -> str:
        """Write the script to `path`, all of it or nothing, and return its sha256."""
        digest = hashlib.sha256()
        part = path.with_name(path.name + ".part")
        with part.open("wb") as out:
            for line in self.lines():
                digest.update(line)
                out.write(line)
        os.replace(part, path)
        return digest.hexdigest()

    @classmethod
    def read(cls, path: Path) -> Script:
        """Read a script; a long one stays in its file, which must not change from then on.

        Raises:
            ScriptError: the file is missing, newer than this version, or a line is malformed.
        """
        with suppress(OSError):
            if path.stat().st_size > LONG_BYTES:
                return cls.stored(path)
        parts = read_steps(path)
        header = next(parts)
        assert isinstance(header, Header)
        steps = [part for part in parts if not isinstance(part, Header)]
        return cls(header, steps)

    @classmethod
    def stored(cls, path: Path) -> Script:
        """A script whose steps stay in their file and are read when they are needed.

        Raises:
            ScriptError: as `read`; of a step when it is read.
        """
        header = next(read_steps(path))
        assert isinstance(header, Header)
        return _Stored(header, StoredSteps(path))


class StoredSteps(Sequence[Step]):
    """The steps of a script in its file: a pass reads them one after the other, and any one is found.

    What is kept of each is where it begins (8 bytes).

    Args:
        path: of the script.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._starts: array[int] | None = None
        self._stream: IO[bytes] | None = None
        self._last: tuple[int, Step] | None = None

    def __repr__(self) -> str:
        return f"<StoredSteps {self.path}>"

    def __iter__(self) -> Iterator[Step]:
        parts = read_steps(self.path)
        next(parts)
        return (part for part in parts if not isinstance(part, Header))

    def __len__(self) -> int:
        return len(self._begins())

    @overload
    def __getitem__(self, at: int) -> Step: ...
    @overload
    def __getitem__(self, at: slice) -> list[Step]: ...
    def __getitem__(self, at: int | slice) -> Step | list[Step]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        starts = self._begins()
        i = at + len(starts) if at < 0 else at
        if self._last is None or self._last[0] != i:
            start = starts[i]
            if self._stream is None:
                self._stream = self.path.open("rb")
            if self._stream.tell() != start:
                self._stream.seek(start)
            self._last = i, _decode_step(self.path, i + 2, self._stream.readline())
        return self._last[1]

    def _begins(self) -> array[int]:
        if self._starts is None:
            starts = array("Q")
            with self.path.open("rb") as stream:
                lines = _lines(self.path, stream)
                place = len(next(lines, b""))
                for line in lines:
                    starts.append(place)
                    place += len(line)
            self._starts = starts
        return self._starts


class _Stored(Script):
    """A script in a file, whose bytes are its own."""

    steps: StoredSteps

    @property
    def turns(self) -> int:
        with self.steps.path.open("rb") as stream:
            return sum(line.startswith(_TURN) for line in _lines(self.steps.path, stream))

    def lines(self) -> Iterator[bytes]:
        with self.steps.path.open("rb") as stream:
            yield from _lines(self.steps.path, stream)

    def sha256(self) -> str:
        now = self.steps.path.stat()
        return _file_sha256(self.steps.path, now.st_size, now.st_mtime_ns)

    def write(self, path: Path) -> str:
        part = path.with_name(path.name + ".part")
        shutil.copyfile(self.steps.path, part)
        os.replace(part, path)
        return self.sha256()


@cache
def _file_sha256(path: Path, _size: int, _changed_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class ScriptWriter:
    """Writes a script that is too long to be held, step by step, and its header at the end.

    Its steps are counted, and the last is kept. The file is there when `close` has been called, whole.

    Args:
        path: where the script shall be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.{os.getpid()}.part")
        self._body = self._part.with_suffix(".body")
        self._stream = self._body.open("wb")
        self._steps = 0
        self._last: Step | None = None

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, i: int) -> Step:
        """The last step, and no other."""
        if i != -1 or self._last is None:
            raise IndexError("only the last step of a script that is written to a file is at hand")
        return self._last

    def append(self, step: Step) -> None:
        """Write a step, which must not change any more."""
        self._stream.write(_ENCODER.encode(step) + b"\n")
        self._steps += 1
        self._last = step

    def close(self, header: Header | None) -> None:
        """Put the header before the steps; without one, remove what was written."""
        self._stream.close()
        try:
            if header is not None:
                with self._part.open("wb") as out, self._body.open("rb") as body:
                    out.write(_ENCODER.encode(header) + b"\n")
                    shutil.copyfileobj(body, out, 1 << 20)
                os.replace(self._part, self._path)
        finally:
            self._body.unlink(missing_ok=True)
            self._part.unlink(missing_ok=True)


def read_steps(path: Path) -> Iterator[Header | Step]:
    """Stream a script: first its header, then each step.

    Raises:
        ScriptError: as `Script.read`.
    """
    try:
        stream = path.open("rb")
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read ({error.strerror})") from None
    with stream:
        lines = enumerate(_lines(path, stream), 1)
        number, first = next(lines, (1, b""))
        yield _header(path, first)
        for number, line in lines:
            yield _decode_step(path, number, line)


def _lines(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a script's file, as long as they are of a length that lines have."""
    for number, line in enumerate(iter(partial(stream.readline, LONGEST_BYTES), b""), 1):
        if len(line) == LONGEST_BYTES:
            raise ScriptError(
                f"{path}:{number}: longer than {LONGEST_BYTES >> 20} MB, and no line of a script"
            )
        yield line


def _header(path: Path, line: bytes) -> Header:
    try:
        start = msgspec.json.decode(line or b"null")
    except (msgspec.DecodeError, RecursionError) as error:
        raise ScriptError(f"{path}:1: not JSON ({error}); a script has one JSON object a line") from None  # fmt: skip
    if not isinstance(start, dict) or start.get("format") != FORMAT:
        raise ScriptError(f'{path}:1: not a script; the first line must hold "format":"{FORMAT}"')
    if start.get("version") != VERSION:
        raise ScriptError(
            f"{path}:1: version {start.get('version')!r} of the script format; this steeltrap reads"
            f" version {VERSION}. Make the script again or use a matching steeltrap."
        )
    try:
        header = _HEADER.decode(line)
    except msgspec.ValidationError as error:
        raise ScriptError(f"{path}:1: {_in_words(error)}") from None
    if not header.name.isprintable():
        # the name reaches terminals and pages
        raise ScriptError(
            f"{path}:1: field name: {header.name!r} holds characters that do not print"
        )
    return header


def _decode_step(path: Path, number: int, line: bytes) -> Step:
    try:
        return _STEP.decode(line)
    except msgspec.ValidationError as error:
        raise ScriptError(f"{path}:{number}: {_in_words(error)}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise ScriptError(f"{path}:{number}: not JSON ({error})") from None


_ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "op": OPS,
    "ask": ASKS,
    "step": ("turn", "probe", "gauge", "audit", "pause", "erasure"),
    "importance": get_args(Importance),
    "role": ("user", "assistant"),
    "observe": ("fork", "in-script"),
    "about": ABOUTS,
    "kind": ("offset", "same", "scaled", "review"),
}


def _in_words(error: msgspec.ValidationError) -> str:
    """`Expected `str`, got `int` - at `$.ops[0].unit`` as `ops[0].unit: expected str, got int`."""
    what, _, where = str(error).partition(" - at ")
    where = where.strip("`").removeprefix("$.")
    what = what.replace("`", "'").replace("''", "'")
    if allowed := _ALLOWED.get(re.sub(r".*\.", "", where)):
        what = f"{what}; known: {', '.join(allowed)}"
    return f"field {where}: {what[0].lower()}{what[1:]}" if where else what
