"""Governed Evolving Memory: the state, its four operators and the policies between them.

    memory = Memory.open(path)
    memory.ingest("acme", at="2026-01-05T09:00", turn="t1",
                  statements=[Fact("Website Redesign", "deadline", "15 March 2026")])
    memory.revise("acme", at="2026-01-05T09:00")
    memory.retrieve("acme", Question(places=(Place("Website Redesign", "deadline"),)), at="2026-01-06T09:00")

Every operator is one transition: it is proposed, held against the policies, and committed whole
or not at all. Time is what the caller says it is.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from steeltrap.reference_system.check import problems
from steeltrap.reference_system.interpret import Interpreter, Sketch, Speech
from steeltrap.reference_system.mirror import Mirror
from steeltrap.reference_system.operators.forget import forget
from steeltrap.reference_system.operators.ingest import awake, ingest
from steeltrap.reference_system.operators.retrieve import Found, reinforce, select, wake
from steeltrap.reference_system.operators.revise import detect, mark, repair
from steeltrap.reference_system.policy import PolicyError, PolicySet, default_policies
from steeltrap.reference_system.router import Router
from steeltrap.reference_system.scenes import Proposed
from steeltrap.reference_system.state import (
    COMPRESSED,
    FULL,
    NEVER,
    Delta,
    Entry,
    Evidence,
    Field,
    Topic,
    accessed,
    moment,
)
from steeltrap.reference_system.statements import Question, Statement, valid, valid_question
from steeltrap.reference_system.stores import Kind, StoreError, open_store
from steeltrap.reference_system.stores.base import DamagedStore, Store
from steeltrap.reference_system.stores.plain import PlainStore
from steeltrap.reference_system.timeline import Held, as_of, timeline
from steeltrap.reference_system.transition import (
    Draft,
    Operator,
    PolicyBreach,
    Tools,
    Transition,
    sentence,
)
from steeltrap.reference_system.view import View

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Answer", "Erased", "Memory", "Served"]

_T = TypeVar("_T")
SHOWN_OF_COMPRESSED = 2
"""Of a compressed history a question is shown so many former values; the others on lookup."""
KEPT_TRANSITIONS = 1000


class Served(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value as it is served."""

    id: str
    topic: str
    field: str
    value: str
    text: str
    """A sentence that says it."""
    valid_from: str
    valid_to: str | None = None
    turns: tuple[str, ...] = ()
    """Provenance: where it comes from, the turn that wrote it first."""
    said_by: str = ""
    review: bool = False
    """It has to be looked at before it can be relied on."""
    never_true: bool = False
    contested: bool = False
    """It was kept beside the value that held, and was never current."""
    salience: float | None = None
    """As stored, before this reading: a day, comparable among all fields and times; None: it was
    never accessed, or is of the past."""


class Answer(msgspec.Struct, frozen=True):
    """What a question was served, best first, and the transition that this was."""

    served: list[Served]
    transition: Transition


class Erased(msgspec.Struct, frozen=True):
    """What was removed for good."""

    topics: int
    fields: int
    entries: int
    edges: int


def characters_by_four(text: str) -> int:
    """Tokens, by the convention of four characters each."""
    return -(-len(text) // 4)


class Memory:
    """A governed memory on a store.

    Args:
        store: where it is kept; its present is read now.
        policies: P; without them those of the store, or the default set for a new one.
        embed: unit vectors of texts; without it topics are found by their names alone.
        count: tokens of a text.
        interpreter: turns utterances into statements; needed by `hear` and `ask` alone.
        shared_salience: let one tenant's reading count for every tenant's fields of the same
            name, as in the paper's prototype. This leaks what others ask for; it is here so
            that the leak can be measured.

    Raises:
        PolicyError: the policies in the store cannot be read.
        DamagedStore: a record in the store cannot be read.
        ValueError: the embedder gives vectors of another length than those in the store.
    """

    def __init__(
        self,
        store: Store,
        *,
        policies: PolicySet | None = None,
        embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None,
        count: Callable[[str], int] = characters_by_four,
        interpreter: Interpreter | None = None,
        shared_salience: bool = False,
    ) -> None:
        self._store = store
        self._interpreter = interpreter
        self._lock = threading.RLock()
        self._mirror = Mirror()
        try:
            texts = self._mirror.load(store.load())
            self._router = Router(self._mirror, embed)
        except (TypeError, ValueError) as error:
            raise DamagedStore(
                f"a record in the store cannot be read ({error}); nothing was changed. "
                "Bring the store back from a copy"
            ) from error
        self._router.fits()
        known = PolicySet.of(texts) if texts else None
        chosen = policies or known or default_policies()
        _govern(chosen)
        if known is None or chosen.texts() != known.texts():
            store.set_policies(chosen.texts())
        for tenant, name in self._mirror.latest().items():
            self._mirror.advance(tenant, store.entries([name])[-1].recorded)
        self._tools = Tools(chosen, count, embed, shared_salience)
        self._unseen = self._everything()
        self.transitions: deque[Transition] = deque(maxlen=KEPT_TRANSITIONS)
        """The latest transitions, those refused included."""

    @classmethod
    def open(
        cls,
        path: Path | str,
        kind: Kind = "native",
        *,
        policies: PolicySet | None = None,
        embed: Callable[[Sequence[str]], NDArray[np.float32]] | None = None,
        count: Callable[[str], int] = characters_by_four,
        interpreter: Interpreter | None = None,
        shared_salience: bool = False,
    ) -> Memory:
        """Open a memory on disk, or begin one where there is none.

        Raises:
            StoreError: the file is foreign, damaged or in use; it is left as it is.
        """
        store = open_store(Path(path), kind)
        try:
            return cls(
                store, policies=policies, embed=embed, count=count, interpreter=interpreter,
                shared_salience=shared_salience,
            )  # fmt: skip
        except BaseException:
            store.close()
            raise

    # ------------------------------------------------------------ the four operators

    def ingest(self, tenant: str, *, at: str, turn: str, statements: Sequence[Statement]) -> Transition:  # fmt: skip
        """Take in what one turn says, whole or not at all.

        Like whatever else adds to the state, this keeps it within the bound: where that is
        passed, `forget` follows as a transition of its own.

        Raises:
            PolicyBreach: a policy refuses the transition.
            ValueError: a statement or instant is malformed, or a name is empty.
        """
        statements = valid(statements)
        with self._lock:
            draft = self._draft("ingest", tenant, at)
            self._run(draft, lambda d: ingest(d, turn, statements))
            self._make_room(tenant, at)
            return draft.transition

    def revise(self, tenant: str, *, at: str, search: bool = False) -> list[Transition]:
        """Deal with the evidence there is, one transition each.

        Args:
            tenant: whose.
            at: the instant, ISO 8601.
            search: look for duplicates, drift and groups in what changed since the last search.
        """
        with self._lock:
            self._arrive(tenant, moment(at))
            done = self._settled(tenant, at)
            if search:
                view = self._draft("revise", tenant, at).view
                topics = self._unseen.pop(tenant, {})
                try:
                    for evidence in detect(view, topics, self._router.near, self._tools.embed):
                        done.append(self._repair(tenant, at, evidence))
                except BaseException:
                    self._unseen[tenant] = topics | self._unseen.get(tenant, {})
                    raise
                done += self._settled(tenant, at)
            self._make_room(tenant, at)
            return done

    def forget(self, tenant: str, *, at: str) -> Transition:
        """Attenuate what has faded, least salient first, until the rest is within the bound.

        Raises:
            PolicyBreach: a policy refuses the transition.
        """
        with self._lock:
            draft = self._draft("forget", tenant, at)
            try:
                self._run(draft, forget)
            finally:
                for name in draft.looked_at:
                    self._mirror.watch(self._mirror.fields[name])
            return draft.transition

    def retrieve(self, tenant: str, question: Question, *, at: str, limit: int = 10) -> Answer:
        """Answer a question; what is served is reinforced in the same transition.

        Args:
            tenant: who asks; nothing of others is served.
            question: what is asked.
            at: the instant, ISO 8601.
            limit: at most so many values.

        Raises:
            PolicyBreach: a policy refuses the transition, and nothing is served.
            ValueError: an instant is malformed, or the limit is negative.
        """
        if limit < 0:
            raise ValueError(f"at most {limit} values cannot be served; give a limit of 0 or more")
        question = valid_question(question)
        with self._lock:
            draft = self._draft("retrieve", tenant, at)
            past: dict[str, list[Served]] = {}

            def work(draft: Draft) -> list[Found]:
                found = select(draft, question, limit, self._router.fields)
                if question.mode == "temporal":
                    past.update(self._past(found, draft.at, limit))
                    found = [f for f in found if f.field.id in past]
                elif question.mode == "topic":
                    wake(draft, (f.field for f in found))
                reinforce(draft, (f.field for f in found))
                return found

            found = self._run(draft, work)
            served = [
                item for f in found for item in past.get(f.field.id) or self._stored(f, draft)
            ]
            self._make_room(tenant, at)
            return Answer(served, draft.transition)

    def restore(self, tenant: str, topic: str, field: str, *, at: str) -> Transition:
        """Bring back what was hidden or archived: an explicit lookup that counts as an access.

        Raises:
            KeyError: there is no such field.
        """
        with self._lock:
            draft = self._draft("restore", tenant, at)
            self._run(draft, lambda d: self._bring_back(d, topic, field))
            self._make_room(tenant, at)
            return draft.transition

    # ------------------------------------------------------------ speech

    def hear(self, speech: Speech) -> Transition:
        """Take in an utterance: the interpreter says what it means, then it is ingested.

        Raises:
            InterpretationError: the interpreter could make nothing of it; nothing was stored.
            PolicyBreach: a policy refuses the transition.
        """
        statements = self._interpreting().statements(speech, self._known(speech.tenant))
        return self.ingest(speech.tenant, at=speech.at, turn=speech.turn, statements=statements)

    def ask(self, tenant: str, text: str, *, at: str, limit: int = 10) -> Answer:
        """Answer a question in words, once what the latest utterances changed is revised.

        Raises:
            InterpretationError: the interpreter could make nothing of it.
            PolicyBreach: a policy refuses the transition.
        """
        self.revise(tenant, at=at)
        question = self._interpreting().question(text, at, tenant, self._known(tenant))
        return self.retrieve(tenant, question, at=at, limit=limit)

    def _interpreting(self) -> Interpreter:
        if self._interpreter is None:
            raise ValueError("this memory has no interpreter; pass one, or use ingest and retrieve")
        return self._interpreter

    def _known(self, tenant: str) -> Callable[[str, int], Sequence[Sketch]]:
        def known(text: str, limit: int) -> list[Sketch]:
            with self._lock:
                topics = [self._mirror.topics[n] for n in self._router.topics(tenant, text, limit)]
                return [Sketch(t.title, t.summary, self._field_names(t)) for t in topics]

        return known

    def _field_names(self, topic: Topic) -> tuple[str, ...]:
        fields = (self._mirror.fields[name] for name in self._mirror.of_topic[topic.id])
        return tuple(f.name for f in fields if not f.into and "note" not in f.tags)

    # ------------------------------------------------------------ looking, without any effect

    def active(self, tenant: str, *, at: str | None = None) -> list[Served]:
        """The active content: every value that competes for a place in an answer."""
        with self._lock:
            when = moment(at) if at is not None else None
            if when is not None:
                self._arrive(tenant, when)
            fields = (
                self._mirror.fields[name]
                for topic in self._mirror.of_tenant.get(tenant, ())
                for name in self._mirror.of_topic[topic]
            )
            return [self._now(field) for field in fields if self._mirror.active(field, when)]

    def history(self, tenant: str, topic: str, field: str) -> list[Served]:
        """Every value that a field had, oldest first, whatever has become of the field, and those
        that were kept beside it.
        """
        with self._lock:
            found = self._find(tenant, topic, field)
            if found is None:
                return []
            entries = self._store.entries(self._mirror.lineage(found.id))
            held = [h for h in timeline(entries) if h.entry.value is not None]
            told = [self._then(found, h) for h in held]
            told += [self._beside(found, e) for e in entries if e.op == "contested"]
            return sorted(told, key=lambda served: served.valid_from)

    def lookup(self, tenant: str, topic: str, field: str) -> Served | None:
        """The present value of a field, also where it is hidden or archived."""
        with self._lock:
            found = self._find(tenant, topic, field)
            holds = found is not None and found.holds(self._mirror.clocks.get(tenant, ""))
            return self._now(found) if found is not None and holds else None

    def notes(self, tenant: str, text: str, *, limit: int = 50) -> list[Served]:
        """Notes that speak of something, oldest first, whatever has become of them."""
        with self._lock:
            found = (self._mirror.fields[n] for n in self._router.notes(tenant, text, limit))
            kept = sorted((f for f in found if f.value is not None), key=lambda f: f.cause)
            return [self._now(field) for field in kept]

    def salience(self, tenant: str, topic: str, field: str) -> float | None:
        """The stored salience: a day since 1970 that no time and nobody else's reading changes."""
        with self._lock:
            found = self._find(tenant, topic, field)
            return None if found is None else _accessed(found.salience)

    def footprint(self, tenant: str) -> int:
        """Tokens of the active content."""
        return self._mirror.footprint.get(tenant, 0)

    @property
    def bound(self) -> float:
        """Beta: active tokens that a tenant may have."""
        return float(self._tools.policies.settings.get("bound", "inf"))

    @property
    def policies(self) -> PolicySet:
        """P."""
        return self._tools.policies

    def explain(self, transition: Transition) -> str:
        """Which policies fired in a transition, and why."""
        return transition.explain()

    # ------------------------------------------------------------ the whole

    def set_policies(self, policies: PolicySet) -> None:
        """Replace P; operators follow it from the next transition on.

        All topics are looked at again by the next search, since P may judge them otherwise.
        """
        _govern(policies)
        with self._lock:
            self._store.set_policies(policies.texts())
            self._tools = replace(self._tools, policies=policies)
            self._unseen = self._everything()

    def _everything(self) -> dict[str, dict[str, None]]:
        """Tenant -> all its topics."""
        return {tenant: dict(topics) for tenant, topics in self._mirror.of_tenant.items()}

    def erase(self, tenant: str, topic: str | None = None, field: str | None = None) -> Erased:
        """Remove a field, a topic, or all of a tenant for good: content, provenance, salience.

        Other tenants are left bit for bit as if what is erased had never been, unless salience
        is shared: then what was read here has moved theirs.

        Raises:
            KeyError: there is no such topic or field; a tenant without any has nothing to erase.
        """
        with self._lock:
            topics, fields = self._doomed(tenant, topic, field)
            entries = len(self._store.entries(fields))
            edges = len({e for n in (*topics, *fields) for held in (self._mirror.leaving, self._mirror.arriving) for e in held.get(n, ())})  # fmt: skip
            self._resummarise(tenant, topics, fields)
            self._store.erase(topics, fields)
            self._router.drop(tenant, (*topics, *fields))
            self._mirror.drop(tenant, topics, fields)
            for name in topics:
                self._unseen.get(tenant, {}).pop(name, None)
            self.transitions = deque(
                (t for t in self.transitions if t.tenant != tenant), maxlen=KEPT_TRANSITIONS
            )
            return Erased(len(topics), len(fields), entries, edges)

    def fork(self) -> Memory:
        """A copy that answers as this would and leaves it alone; it lives in memory.

        It may be used until this memory is written to.
        """
        with self._lock:
            twin = object.__new__(Memory)
            twin.__dict__.update(self.__dict__)
            twin._lock = threading.RLock()
            twin._mirror = self._mirror.fork()
            twin._store = PlainStore(self._store, twin._mirror)
            twin._router = self._router.fork(twin._mirror)
            twin._unseen = {tenant: dict(topics) for tenant, topics in self._unseen.items()}
            twin.transitions = deque(self.transitions, maxlen=KEPT_TRANSITIONS)
            return twin

    def check(self) -> list[str]:
        """What is wrong with the store; empty if every invariant holds."""
        with self._lock:
            return problems(self._store, self._mirror, self.policies.texts(), self._tools.count)

    def checkpoint(self) -> None:
        """Fold the log of the store into its main file."""
        with self._lock:
            self._store.checkpoint()

    def size_bytes(self) -> int:
        """Bytes on disk now."""
        with self._lock:
            return self._store.size_bytes()

    def close(self) -> None:
        """Release the store."""
        with self._lock:
            self._store.close()
            self._store = cast("Store", _Closed())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ one transition (algorithm 1)

    def _draft(self, operator: Operator, tenant: str, at: str) -> Draft:
        if not tenant or "\n" in tenant:
            raise ValueError(f"{tenant!r} cannot name a tenant; give it a name of one line")
        self._arrive(tenant, moment(at))
        return Draft(self._mirror, self._tools, operator, tenant, moment(at))

    def _arrive(self, tenant: str, at: str) -> None:
        """Values that were said to hold from a later time on, once that has come.

        Each becomes the present as of its own time, in a transition of its own.
        """
        due = self._mirror.due.get(tenant)
        evidence = None
        while due and due[0][0] <= at:
            evidence = self._mirror.evidence[due[0][2]]
            draft = Draft(self._mirror, self._tools, "revise", tenant, evidence.at)
            try:
                self._run(draft, partial(repair, evidence=evidence, entry=self._store.entry))
            except PolicyBreach:
                dropped = Draft(self._mirror, self._tools, "revise", tenant, evidence.at)
                self._run(dropped, partial(_resolve, evidence=evidence))
        if evidence is not None:
            self._make_room(tenant, evidence.at)

    def _run(self, draft: Draft, work: Callable[[Draft], _T]) -> _T:
        """Propose, hold against P, commit, and only then let it be the present."""
        result = work(draft)
        delta, transition = draft.view.delta, draft.transition
        if delta or transition.firings:
            self.transitions.append(transition)
        scene = Proposed(draft)
        refused = (
            draft.all("transition_proposed", scene, "the proposed state")
            if delta or draft.served
            else []
        )
        if any(firing.action == "reject" for firing in refused):
            raise PolicyBreach(transition)
        if delta.touched and not delta.fields and not delta.entries:
            draft.stored = {field.id: field for field in self._store.read(delta.touched)}
        elif delta:
            self._store.commit(delta)
        self._fold(delta)
        transition.committed = True
        return result

    def _make_room(self, tenant: str, at: str) -> None:
        """Keep the state within the bound (C5), as far as policies let it."""
        if self._mirror.footprint.get(tenant, 0) > self.bound:
            with suppress(PolicyBreach):
                self.forget(tenant, at=at)

    def _fold(self, delta: Delta) -> None:
        self._mirror.fold(delta)
        self._router.fold(delta)
        changed = {**delta.topics, **{f.topic: None for f in delta.fields.values()}}
        if changed:
            self._unseen.setdefault(delta.tenant, {}).update(dict.fromkeys(changed))

    # ------------------------------------------------------------ revision

    def _settled(self, tenant: str, at: str) -> list[Transition]:
        """Deal with all evidence in the state, that which is found on the way included."""
        done, tried = [], set[str]()
        while pending := [e for e in self._pending(tenant) if e.id not in tried]:
            done += [self._repair(tenant, at, evidence) for evidence in pending]
            tried |= {evidence.id for evidence in pending}
        return done

    def _pending(self, tenant: str) -> list[Evidence]:
        found = [
            e for e in self._mirror.evidence.values() if e.tenant == tenant and e.kind != "due"
        ]
        return sorted(found, key=lambda evidence: evidence.order)

    def _repair(self, tenant: str, at: str, evidence: Evidence) -> Transition:
        """One repair. If a policy refuses it, what it is about is marked for review instead; if that
        is refused too, the evidence stays, and the next revision tries again.
        """
        draft = self._draft("revise", tenant, at)
        try:
            self._run(draft, lambda d: repair(d, evidence, self._store.entry))
        except PolicyBreach:
            marked = self._draft("revise", tenant, at)
            with suppress(PolicyBreach):
                self._run(marked, lambda d: mark(d, evidence, self._store.entry))
        return draft.transition

    def _bring_back(self, draft: Draft, topic: str, field: str) -> None:
        found = self._find(draft.tenant, topic, field)
        if found is None:
            raise KeyError(f"{draft.tenant} has no {topic} / {field}")
        view = draft.view
        awake(draft, view.topic(found.topic))
        salience = accessed(found.salience, draft.at, draft.half_life_days)
        view.put_field(msgspec.structs.replace(found, level=FULL, salience=salience, order=view.next_order()))  # fmt: skip
        draft.note(f"{draft.title(found)} brought back")

    # ------------------------------------------------------------ serving

    def _find(self, tenant: str, topic: str, field: str) -> Field | None:
        view = View(self._mirror, Delta(tenant, "", 0, 0))
        host = view.find_topic(topic)
        return view.find_field(host, field) if host else None

    def _timeline(self, field: Field, recorded_by: str | None = None) -> list[Held]:
        names = self._mirror.lineage(field.id)
        return timeline(self._store.entries(names), recorded_by=recorded_by)

    def _stored(self, found: Found, draft: Draft) -> list[Served]:
        """The present value, as the store gave it when it wrote that it was read."""
        field = draft.stored.get(found.field.id, found.field)
        return [self._now(field, found.field.salience, found.because)]

    def _past(self, found: list[Found], at: str, limit: int) -> dict[str, list[Served]]:
        """What is served of fields whose past is asked for; those with nothing to serve left out."""
        served: dict[str, list[Served]] = {}
        for one in found:
            items = self._told(one, at)[:limit]
            limit -= len(items)
            if items:
                served[one.field.id] = items
        return served

    def _told(self, found: Found, at: str) -> list[Served]:
        """What a field was, the latest first, and then what it is, or was as far as was known."""
        field, by = found.field, found.recorded_by
        held = [h for h in self._timeline(field, by) if not h.never_true]
        if found.as_of is not None:
            then = as_of(held, found.as_of)
            return [self._then(field, then)] if then else []
        past, now = [], []
        for h in reversed(held):
            if (
                h.last
                and h.entry.value is not None
                and not (h.valid_to and h.valid_to <= (by or at))
            ):
                now = [self._then(field, h) if by else self._now(field)]
            elif h.entry.value is not None:
                past.append(self._then(field, h))
        return past[: SHOWN_OF_COMPRESSED if field.level >= COMPRESSED else None] + now

    def _now(self, field: Field, before: float | None = None, because: str = "") -> Served:
        """The present value.

        Args:
            field: its field.
            before: the salience that it had before it was read, if it was.
            because: how it hangs together with what was asked about.
        """
        topic, value = self._mirror.topics[field.topic].title, field.value or ""
        text = sentence(topic, field.name, value, note="note" in field.tags)
        return Served(
            f"{field.id}#{field.seq}", topic, field.name, value,
            f"{text} ({because})" if because else text, field.valid_from, field.until,
            (field.turn, *field.sources), field.said_by,
            field.state == "review" or self._mirror.waits(field.id),
            salience=_accessed(field.salience if before is None else before),
        )  # fmt: skip

    def _then(self, field: Field, held: Held) -> Served:
        """A value of the history."""
        topic, entry = self._mirror.topics[field.topic], held.entry
        value = entry.value or ""
        text = sentence(topic.title, field.name, value, note="note" in field.tags)
        return Served(
            f"{entry.field}#{entry.seq}", topic.title, field.name, value, text, held.valid_from,
            held.valid_to, held.sources, entry.said_by, held.last and field.state == "review",
            held.never_true,
        )  # fmt: skip

    def _beside(self, field: Field, entry: Entry) -> Served:
        """A value that was kept beside the one that held."""
        held = Held(entry, entry.valid_from, entry.until, (entry.turn, *entry.sources), False, False)  # fmt: skip
        return msgspec.structs.replace(self._then(field, held), contested=True)

    # ------------------------------------------------------------ erasure

    def _doomed(self, tenant: str, topic: str | None, field: str | None) -> tuple[list[str], list[str]]:  # fmt: skip
        """Ids of the topics and fields to be erased, those merged into them included."""
        mirror = self._mirror
        if topic is None:
            topics = list(mirror.of_tenant.get(tenant, ()))
            return topics, [name for t in topics for name in mirror.of_topic[t]]
        host = View(mirror, Delta(tenant, "", 0, 0)).find_topic(topic)
        if host is None:
            raise KeyError(f"{tenant} has no topic {topic}")
        if field is None:
            topics = [t for t in mirror.of_tenant[tenant] if self._host(t) == host.id]
            return topics, [name for t in topics for name in mirror.of_topic[t]]
        found = self._find(tenant, topic, field)
        if found is None:
            raise KeyError(f"{tenant} has no {topic} / {field}")
        fields = self._mirror.lineage(found.id)
        if set(mirror.of_topic[found.topic]) <= set(fields):
            return [t for t in mirror.of_tenant[tenant] if self._host(t) == found.topic], fields
        return [], fields

    def _host(self, name: str) -> str:
        into = self._mirror.topics[name].into
        return self._host(into) if into else name

    def _resummarise(self, tenant: str, topics: list[str], fields: list[str]) -> None:
        """Topics that stay must not name erased fields, and goes before the erasure itself."""
        gone = set(fields)
        at = self._mirror.clocks.get(tenant, "")
        stay = {self._mirror.fields[name].topic for name in fields} - set(topics)
        if not stay:
            return
        draft = Draft(self._mirror, self._tools, "revise", tenant, at)
        for name in sorted(stay):
            draft.refresh(name, without=gone)
        self._run(draft, lambda _: None)


def _govern(policies: PolicySet) -> None:
    """Refuse a set of policies under which nothing could be done.

    Raises:
        PolicyError: it lacks what every memory needs.
    """
    if not isinstance(policies, PolicySet):
        raise PolicyError("policies are a PolicySet: PolicySet.parse(text), or default_policies().with_(text)")  # fmt: skip
    lacking = [] if "half_life_days" in policies.settings else ["SET half_life_days"]
    lacking += [] if policies.on("fact_received") else ["a policy ON fact_received"]
    if lacking:
        raise PolicyError(
            f"the policies lack {' and '.join(lacking)}, without which nothing could be taken in; "
            "begin with a copy of default.policy, or add yours: default_policies().with_(text)"
        )


class _Closed:
    """In place of the store of a memory that was closed."""

    def close(self) -> None:
        """A second time does nothing."""

    def __getattr__(self, name: str) -> Any:
        raise StoreError("this memory is closed; open it again")


def _resolve(draft: Draft, evidence: Evidence) -> None:
    draft.view.resolve(evidence.id)


def _accessed(salience: float) -> float | None:
    """A salience as it is shown: nobody has accessed a field of which it is minus infinity."""
    return salience if salience > NEVER else None
