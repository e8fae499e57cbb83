"""The reference system under test: it holds what it is built to hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steeltrap.adapters.embedders import HashEmbedder
from steeltrap.adapters.flat import Flat
from steeltrap.adapters.gem import Gem, ModelGem, ToldGem
from steeltrap.adapters.ideal import Ideal
from steeltrap.harness.checks import score
from steeltrap.harness.drive import drive
from steeltrap.harness.history import read_events
from steeltrap.harness.memory import Memory, MemoryFault, Query, Subject, Utterance, capabilities
from steeltrap.harness.readers import Oracle
from steeltrap.harness.record import Outcome
from steeltrap.harness.script import Script, Turn
from steeltrap.harness.tokens import count
from steeltrap.harness.validate import examine
from steeltrap.reference_system.policy import default_policies
from steeltrap.reference_system.state import HIDDEN
from steeltrap.reference_system.stores import KINDS, Kind
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import FAMILIES
from steeltrap.workloads.figure1 import figure_1

QUICK: tuple[Kind, ...] = ("native", "plain")


def told(store: Kind) -> ToldGem:
    return ToldGem(store=store, embedder=HashEmbedder())


def script(name: str, seed: int, turns: int = 200) -> Script:
    if name == "figure-1":
        return figure_1()
    families = tuple(FAMILIES) if name == "mix" else (name,)
    return compose(
        ScriptSettings(name=name, families=dict.fromkeys(families, 1.0), turns=turns), seed
    )


def said(number: int, text: str, tenant: str = "acme") -> Utterance:
    return Utterance(f"t{number}", f"2026-01-{number:02d}T09:00", tenant, "s1", "user", text)


def test_has_every_capability() -> None:
    """List, history, salience, maintain, recover, erase, fork and size; and it says that it is told."""
    everything = {"list", "history", "salience", "maintain", "recover", "erase", "fork", "size"}
    assert everything == set(capabilities(Gem(embedder=HashEmbedder())))
    assert everything | {"told"} == set(capabilities(told("native")))


@pytest.mark.parametrize("store", QUICK)
@pytest.mark.parametrize("family", [*FAMILIES, "figure-1"])
def test_holds_the_six_conditions(store: Kind, family: str) -> None:
    """No violation of any name on any family, and no step fails."""
    for seed in range(1 if family == "figure-1" else 2):
        assert (set(), 0) == examine(lambda: told(store), script(family, seed))


@pytest.mark.parametrize("bound", [200, 400])
@pytest.mark.parametrize("family", ["importance-inversion", "dependency-cascade", "mix"])
def test_holds_them_when_room_is_short(bound: int, family: str) -> None:
    """With room for a fraction of what is live, forgetting breaks no condition.

    What does not fit is hidden, least salient first, and found when it is asked for.
    """
    hidden: list[int] = []

    def small() -> ToldGem:
        return Watched(hidden, embedder=HashEmbedder(), bound_tokens=bound)

    assert (set(), 0) == examine(small, script(family, 1))
    assert max(hidden) > 0


class Watched(ToldGem):
    """Tells how many fields it had hidden when it was closed."""

    def __init__(self, hidden: list[int], **settings: Any) -> None:
        super().__init__(**settings)
        self._hidden = hidden

    def close(self) -> None:
        if self._memory is not None:
            fields = self.memory._mirror.fields.values()
            self._hidden.append(sum(field.level == HIDDEN for field in fields))
        super().close()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["native", "ladybug"])
@pytest.mark.parametrize("family", [*FAMILIES, "mix"])
def test_holds_the_six_conditions_on_twenty_seeds(store: Kind, family: str) -> None:
    """The same on 20 seeds and both stores on disk, the mix over 500 turns."""
    for seed in range(20):
        turns = 500 if family == "mix" else 200
        assert (set(), 0) == examine(lambda: told(store), script(family, seed, turns))


def test_with_the_ladybug_store(tmp_path: Path) -> None:
    """The property graph holds them as well, on a mix of all families."""
    assert (set(), 0) == examine(lambda: told("ladybug"), script("mix", 3))


def test_the_same_script_gives_the_same_replies(tmp_path: Path) -> None:
    """Two runs of one script and seed list, answer and remember the same, whatever the store."""
    lives = []
    for number, store in enumerate(("native", "native", "plain")):
        memory, mix = told(store), script("mix", 5)
        memory.told(mix)
        memory.open(tmp_path / str(number))
        for step in mix.steps:
            if isinstance(step, Turn):
                memory.ingest(Utterance(step.id, step.at, step.tenant, step.session, step.role, step.text))  # fmt: skip
                memory.settle()
        lives.append([memory.active(tenant) for tenant in mix.header.tenants])
        memory.close()
    assert lives[0] == lives[1] == lives[2]


@pytest.mark.parametrize("seed", range(3))
def test_within_beta_at_every_step(seed: int, tmp_path: Path) -> None:
    """After every turn of 500 the active tokens are at most beta of the true footprint."""
    memory, mix = told("native"), script("mix", seed, 500)
    memory.told(mix)
    memory.open(tmp_path)
    for step in mix.steps:
        if isinstance(step, Turn):
            memory.ingest(
                Utterance(step.id, step.at, step.tenant, step.session, step.role, step.text)
            )
            memory.settle()
            tokens = sum(memory.memory.footprint(tenant) for tenant in mix.header.tenants)
            assert tokens <= mix.header.beta(step.footprint[1])
    memory.close()


def outcome(memory: Memory, of: Script, folder: Path) -> Outcome:
    """What a run of a memory found."""
    folder.mkdir()
    if isinstance(memory, ToldGem):
        memory.told(of)
    memory.open(folder)
    drive(memory, of, folder / "history.jsonl", limit=10)
    memory.close()
    return score(
        of,
        read_events(folder / "history.jsonl"),
        capabilities=capabilities(memory),
        reader=Oracle(),
    ).outcome


def test_serves_forty_times_less_than_the_transcript(tmp_path: Path) -> None:
    """Over 500 turns the context of a query is 40 times smaller, and no answer is lost by it."""
    mix = script("mix", 0, 500)
    flat = outcome(Flat(), mix, tmp_path / "flat")
    small = outcome(told("native"), mix, tmp_path / "gem")
    assert flat.served_tokens_mean and small.served_tokens_mean
    assert flat.served_tokens_mean >= 40 * small.served_tokens_mean
    assert flat.recall is not None and small.recall is not None
    assert small.recall >= flat.recall


@pytest.fixture
def gem(tmp_path: Path) -> Iterator[Gem]:
    memory = Gem(embedder=HashEmbedder())
    memory.open(tmp_path)
    yield memory
    memory.close()


def test_reads_plain_sentences_without_a_model(gem: Gem) -> None:
    """By words alone, a moved deadline is revised, its former value kept, and the rest noted."""
    gem.ingest(said(1, "The deadline of Website Redesign is 15 March 2026."))
    gem.ingest(said(2, "Discussed lunch preferences with everybody."))
    gem.ingest(said(3, "The deadline of Website Redesign moved to 20 April 2026."))
    gem.settle()
    asked = Query("q1", "2026-01-04T09:00", "acme", "What is the deadline of Website Redesign?", 10)
    assert "20 April 2026" in gem.retrieve(asked)[0].text
    subject = Subject("acme", "Website Redesign", "deadline", asked.text)
    first, now = gem.history(subject)
    assert ("t1",) == first.sources and first.valid_to == "2026-01-03T09:00:00"
    assert now.valid_to is None
    assert any("lunch" in item.text for item in gem.active("acme"))


def test_what_no_rule_reads_is_found_in_notes(gem: Gem) -> None:
    """A subject that no field is called by is looked up in what was noted of it."""
    gem.ingest(said(1, "Es gab wieder Ärger mit dem Aufzug in Haus 4, sagt Ilse."))
    assert ["t1"] == [i.sources[0] for i in gem.history(Subject("acme", "Aufzug", "Ärger", "Aufzug")) if i.sources]  # fmt: skip


def test_an_erased_tenant_is_gone(gem: Gem) -> None:
    """After its erasure a tenant has nothing, the others have everything, and it may begin anew."""
    for tenant in ("acme", "other"):
        gem.ingest(said(1, "The deadline of Website Redesign is 15 March 2026.", tenant))
    kept = gem.active("other")
    gem.erase("acme", None)
    gem.erase("nobody", None)
    assert ([], kept) == (gem.active("acme"), gem.active("other"))
    gem.ingest(said(2, "The deadline of Website Redesign is 1 May 2026."))
    assert ["t2"] == [source for item in gem.active("acme") for source in item.sources or ()]


def test_with_an_erased_field_go_the_notes_that_name_it(gem: Gem) -> None:
    """Notes on the field go, by its topic's name or under its topic; those on others stay."""
    for number, text in enumerate([
        "The deadline of Website Redesign is 15 March 2026.",
        "Important: we plan the deadline of Website Redesign off the launch of Borealis.",
        "Website Redesign has a budget that nobody has signed.",
    ]):  # fmt: skip
        gem.ingest(said(number + 1, text))
    gem.settle()
    gem.erase("acme", Subject("acme", "Website Redesign", "deadline", ""))
    left = [item.text for item in gem.active("acme")]
    assert left
    assert not any("deadline" in text for text in left)
    assert any("budget" in text for text in left)


@pytest.mark.parametrize(("salience", "found"), [("tenant", set()), ("shared", {"trace"})])
def test_an_erased_tenant_lives_on_where_salience_is_shared(salience: str, found: set[str]) -> None:
    """What it read has moved its namesakes, and nothing else tells of it; alone it leaves nothing,
    not even on disk."""

    def make() -> ToldGem:
        return ToldGem(embedder=HashEmbedder(), salience=salience)  # type: ignore[arg-type]

    one = compose(ScriptSettings(name="gone", families={"erase-tenant": 1.0}, turns=100), 0)
    assert (found, 0) == examine(make, one)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["native", "ladybug"])
@pytest.mark.parametrize("family", ["erase-unit", "erase-tenant"])
def test_what_is_erased_is_gone_from_stores_on_disk(store: Kind, family: str) -> None:
    """As if it had never been, in all that is shown and in every byte."""
    for seed in range(2):
        one = compose(ScriptSettings(name="gone", families={family: 1.0}, turns=150), seed)
        assert (set(), 0) == examine(lambda: told(store), one)


@pytest.mark.parametrize(("salience", "found"), [("tenant", set()), ("shared", {"leak"})])
def test_one_salience_for_all_tenants_leaks(salience: str, found: set[str]) -> None:
    """What one tenant reads moves the other's ranking where they share a signal, and only there."""

    def make() -> ToldGem:
        return ToldGem(embedder=HashEmbedder(), salience=salience)  # type: ignore[arg-type]

    one = compose(ScriptSettings(name="leaks", families={"leak-asking": 1.0}, turns=60), 0)
    assert (found, 0) == examine(make, one)


@pytest.mark.parametrize("family", ["leak-telling", "leak-names"])
def test_what_another_tenant_says_changes_nothing(family: str) -> None:
    """Namesakes and look-alikes of other tenants leave no trace in order or score."""
    one = compose(ScriptSettings(name="leaks", families={family: 1.0}, turns=60), 0)
    assert (set(), 0) == examine(lambda: told("native"), one)


def test_nobody_is_refused(tmp_path: Path) -> None:
    """Without a tenant nothing is said, asked or looked up."""
    gem = Gem(embedder=HashEmbedder())
    gem.open(tmp_path)
    gem.ingest(said(1, "The deadline of Website Redesign is 1 May 2026."))
    who = Subject("", "Website Redesign", "deadline", "When is it due?")
    for attempt in (
        lambda: gem.ingest(said(2, "The deadline of Website Redesign is 2 May 2026.", "")),
        lambda: gem.retrieve(Query("q", "2026-01-03T09:00", "", "When is it due?", 10)),
        lambda: gem.history(who),
        lambda: gem.recover(who),
    ):
        with pytest.raises(MemoryFault, match="without a tenant's name"):
            attempt()
    gem.close()


def test_a_model_has_to_be_connected(tmp_path: Path) -> None:
    """Without a model there is no reading by rules in its place: opening is refused."""
    with pytest.raises(MemoryFault, match="no model is connected"):
        ModelGem(embedder=HashEmbedder()).open(tmp_path)


def test_policies_come_from_a_file(tmp_path: Path) -> None:
    """A policy file takes the place of the default set, and one that is wrong says where."""
    wrong = tmp_path / "mine.policy"
    wrong.write_text("POLICY keep ON fact_recieved DO supersede")
    with pytest.raises(ValueError, match=r"mine\.policy.*1"):
        Gem(policies=str(wrong), embedder=HashEmbedder())


def test_the_ideal_memory_sees_the_same_opportunities() -> None:
    """The tests above would fail if the families put nothing to the test: the ideal one has them."""
    assert (set(), 0) == examine(Ideal, script("mix", 3))
    assert set(QUICK) < set(KINDS)


def test_an_edited_policy_file_is_another_system(tmp_path: Path) -> None:
    """The text of the policies is part of a run's spec, so that an old result is not taken for it."""
    file = tmp_path / "mine.policy"
    file.write_text(default_policies().describe())
    before = Gem(policies=str(file), embedder=HashEmbedder()).identity
    assert before == Gem(embedder=HashEmbedder()).identity
    file.write_text(default_policies().with_("SET bound = 4000").describe())
    edited = Gem(policies=str(file), embedder=HashEmbedder()).identity
    assert before != edited
    assert edited == Gem(bound_tokens=4000, embedder=HashEmbedder()).identity


@pytest.mark.parametrize(
    ("name", "present", "hidden"),
    [
        ("keep-everything", "5 March 2026", False),
        ("newest-wins", "9 March 2026", False),
        ("authority-and-retention", "9 March 2026", True),
    ],
)
def test_policy_sets_that_come_with_it(
    name: str, present: str, hidden: bool, tmp_path: Path
) -> None:
    """Found by name: the first value, or the last one, is current; one set has a bound."""
    memory = Gem(policies=name, embedder=HashEmbedder())
    memory.open(tmp_path)
    for number, text in enumerate(
        ["The deadline of Old Mill is 5 March 2026.", "The deadline of Old Mill is 9 March 2026.", *("word " * 900 + f"{n}" for n in range(8))]
    ):  # fmt: skip
        memory.ingest(Utterance(f"t{number}", f"2026-01-01T10:{number:02}", "a", "s", "user", text))
    memory.maintain("2026-01-02T10:00")
    assert hidden == (sum(count(item.text) for item in memory.active("a")) <= 4000)
    present_now = memory.memory.lookup("a", "Old Mill", "deadline")
    assert present_now is not None and present == present_now.value
    memory.close()
