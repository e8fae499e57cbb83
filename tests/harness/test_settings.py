from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest
from omegaconf import OmegaConf

from steeltrap.adapters.flat import Flat
from steeltrap.harness.composing import assembled, composed, configs, parsed, points
from steeltrap.harness.settings import SettingsError, cells, options, rebuilt
from steeltrap.workloads.compose import ScriptSettings, compose
from steeltrap.workloads.families import EVERY, FAMILIES
from steeltrap.workloads.render import Surface


def swept(*asked: str) -> list[tuple[str, str, int]]:
    return [(c.system, c.config.script.name, c.config.seed) for c in cells(asked)]


def test_one_cell_without_sweeps() -> None:
    """With nothing asked there is one cell, made of the defaults."""
    assert [("flat", "adversarial", 0)] == swept()


def test_sweeps_run_every_combination_the_last_key_fastest() -> None:
    """Several values of several keys give their product, in the order written."""
    assert [
        ("vector", "flip-flop", 0),
        ("vector", "flip-flop", 1),
        ("flat", "flip-flop", 0),
        ("flat", "flip-flop", 1),
    ] == swept("system=vector,flat", "script=flip-flop", "seed=range(0,2)")


def test_an_experiment_sweeps_and_yields_to_what_was_asked() -> None:
    """What is asked for replaces the axis of the experiment that has the same key."""
    systems = ["mem0", "mem0-classic", "graphiti", "gem"]
    everything = [(s, "adversarial", n) for s in systems for n in range(5)]
    assert everything == swept("experiment=first-target")
    assert [("bm25", "adversarial", 7)] == swept("experiment=first-target", "system=bm25", "seed=7")
    assert [("ideal", "figure-1", 0)] == swept("experiment=figure-1", "system=ideal")


def test_the_parts_of_an_experiment_lie_in_one_folder() -> None:
    """Each part is composed like a command of its own; all are of the whole, and say what it includes."""
    found = cells(["experiment=paper", "seed=0", "runs=r"])
    assert {Path("r/paper")} == {cell.folder for cell in found}
    assert {Path("r/paper/include")} == {cell.include for cell in found}
    assert {(True, 1)} == {(cell.config.install, cell.config.processes) for cell in found}
    asked = cells(["experiment=paper", "seed=0", "processes=2", "install=false"])
    assert {(False, 2)} == {(cell.config.install, cell.config.processes) for cell in asked}
    scripts = {cell.config.script.name for cell in found}
    assert {"adversarial", "figure-1", "dose", "leak-asking", "leak-telling"} == scripts
    assert "gem salience=shared" in {cell.system for cell in found}
    assert {50, 12} == {cell.config.window for cell in found}


def test_what_is_asked_applies_to_every_part_that_has_it() -> None:
    """It replaces the part's own value and axis; cells that parts come to share are run once."""
    asked = ["experiment=paper", "system=flat,gem", "script.turns=40", "seed=3"]
    found = cells(asked)
    keys = [(cell.system, cell.config.script.name) for cell in found]
    assert len(keys) == len(set(keys))
    assert {"flat", "gem"} == {cell.config.system.name for cell in found}
    assert {3} == {cell.config.seed for cell in found}
    assert {40, None} == {cell.config.script.get("turns") for cell in found}
    assert 1 == keys.count(("flat", "adversarial"))
    assert ("gem salience=shared", "leak-asking") in keys
    assert ("gem model.missed=0.4", "adversarial") in keys


def test_what_no_part_has_is_refused() -> None:
    """A key that fits nowhere is a slip, also in an experiment of parts."""
    with pytest.raises(SettingsError, match=r"unknown setting 'script\.truns'"):
        cells(["experiment=paper", "system=flat", "script.truns=40", "seed=0"])


def test_nothing_is_included_by_default() -> None:
    """Only an experiment, or whoever asks, has what a paper includes made at the end."""
    assert None is cells([])[0].include
    with pytest.raises(SettingsError, match=r"include=\.\./x: write the name of one folder"):
        cells(["include=../x"])


def test_a_system_is_named_with_what_was_set_differently() -> None:
    """Two settings of one system are two systems in every table."""
    asked = ("system=flat-window", "system.window_turns=5,20")
    assert ["flat-window window_turns=5", "flat-window window_turns=20"] == [
        cell.system for cell in cells(asked)
    ]


def test_a_system_that_asks_models_is_named_with_what_was_set_for_them() -> None:
    """Dials and faults make other rows of systems that ask models, and of no others."""
    asked = ("system=gem,flat", "model.missed=0.0,0.5", "faults=some")
    real = ("system=gem", "model=record", "model.model=m", "model.recordings=r", "model.retries=9")
    assert ["gem model=record model.model=m"] == [cell.system for cell in cells(real)]
    assert [
        "gem model.missed=0.0 faults=some", "gem model.missed=0.5 faults=some", "flat", "flat"
    ] == [cell.system for cell in cells(asked)]  # fmt: skip


def test_a_window_names_the_systems_that_it_sets() -> None:
    """`window` is shared by systems of limited room: two widths are two rows, for these alone."""
    asked = ("system=flat-window,ideal", "window=5,20")
    assert ["flat-window window=5", "flat-window window=20", "ideal", "ideal"] == [
        cell.system for cell in cells(asked)
    ]


def test_settings_reach_the_adapter() -> None:
    """The memory is made anew each time, with the settings of its cell."""
    (cell,) = cells(["system=flat-window", "system.window_turns=5"])
    first, second = cell.memory(), cell.memory()
    assert isinstance(first, Flat)
    assert first is not second
    spec = cell.spec(compose(ScriptSettings(name="flip-flop", turns=5), 0), first)
    assert 5 == spec.settings["window_turns"]
    assert not {"name", "packages"} & set(spec.settings)


def test_the_embedder_is_named_where_one_plays_a_part() -> None:
    """Name and version of the embedder are part of a spec, for systems that embed."""
    specs = {}
    for cell in cells(["system=bm25,vector", "script=flip-flop", "script.turns=5"]):
        specs[cell.system] = cell.spec(cell.script(), cell.memory())
    assert "" == specs["bm25"].embedder
    assert specs["vector"].embedder.startswith("wordllama")
    assert "wordllama" in specs["vector"].packages


def test_every_family_is_a_script_of_its_own() -> None:
    """Each family can be run alone under its name, and has every setting of the mixed script."""
    assert {*EVERY, "adversarial", "figure-1", "file", "locomo", "reported"} <= {*options("script")}
    (mixed,) = cells([])
    for family in EVERY:
        (alone,) = cells([f"script={family}", "script.turns=30", "script.surface.ellipsis=0"])
        assert {family: 1.0} == alone.config.script.families
        assert set(mixed.config.script) == set(alone.config.script)


def test_the_mixed_script_names_every_family_and_default() -> None:
    """`configs/script/adversarial.yaml` shows what the code does when nothing is set."""
    (cell,) = cells([])
    shown = OmegaConf.to_container(cell.config.script)
    code = ScriptSettings(
        name="adversarial",
        families=dict.fromkeys(FAMILIES, 1.0),
        surface={k: float(v) for k, v in dataclasses.asdict(Surface()).items()},
    )
    assert code == msgspec.convert(shown, ScriptSettings, strict=False)


def test_dials_turn_the_script() -> None:
    """A weight and a dial of language change the script, and the same settings repeat it."""
    asked = ["script.turns=40", "script.families.injection=0", "script.surface.paraphrase=0"]
    scripts = [cell.script() for _ in range(2) for cell in cells(asked)]
    assert scripts[0].sha256() == scripts[1].sha256()
    assert "injection" not in {step.family for step in scripts[0].steps}
    (plain,) = cells(["script.turns=40"])
    assert plain.script().sha256() != scripts[0].sha256()


def test_a_conversation_is_chosen_by_its_seed(data: Path) -> None:
    """Public data has one script a conversation; a seed beyond them is refused."""
    asked = ["script=locomo", f"script.path={data / 'locomo' / 'locomo10.json.gz'}"]
    first, second = (cell.script() for cell in cells([*asked, "seed=0,1"]))
    assert first.header.tenants != second.header.tenants
    (beyond,) = cells([*asked, "seed=10"])
    with pytest.raises(SettingsError, match="this data has 10 scripts, 0 to 9"):
        beyond.script()


def test_a_wrong_file_can_be_taken_on_purpose(tmp_path: Path) -> None:
    """A file that is not the known one is refused with the setting that takes it."""
    path = tmp_path / "other.json"
    path.write_text("[]")
    (cell,) = cells(["script=locomo", f"script.path={path}"])
    with pytest.raises(SettingsError, match=r"script\.check=false"):
        cell.script()
    (cell,) = cells(["script=locomo", f"script.path={path}", "script.check=false"])
    with pytest.raises(SettingsError, match="holds no records"):
        cell.script()


@pytest.mark.parametrize(
    "asked",
    [
        ["system=flat", "system.window_turns=7"],
        ["system=vector", "system.fusion=hybrid", "reader=top1", "limit=3"],
        ["system=vector-window", "window=9"],
        ["system=gem", "model.missed=0.25", "faults=some"],
        ["system=ideal"],
    ],
)
def test_a_stored_run_says_how_it_is_run_again(asked: list[str]) -> None:
    """From the spec of a run come the settings that give this spec, whatever it is called."""
    (cell,) = cells([*asked, "script.turns=5"])
    script = cell.script()
    spec = cell.spec(script, cell.memory())
    again = rebuilt(spec)
    found = again.spec(script, again.memory())
    assert msgspec.structs.replace(found, system=spec.system) == spec


def test_a_run_of_what_is_gone_cannot_be_run_again() -> None:
    """A system that is not there any more is named."""
    (cell,) = cells(["script.turns=5"])
    spec = cell.spec(cell.script(), cell.memory())
    with pytest.raises(SettingsError, match="unknown system 'lost'"):
        rebuilt(msgspec.structs.replace(spec, system="lost keep=3"))


@pytest.mark.parametrize(
    "asked",
    [
        ["system=gem,flat", "script=retention,figure-1", "seed=0,1", "model.missed=0.5"],
        ["system=ideal,memgpt", "script.surface.paraphrase=0.5", "embedder=minilm", "name=x"],
        ["experiment=dials", "seed=0", "faults=some"],
        ["experiment=first-target", "system=flat", "script=dose", "seed=0"],
        [
            "system=ideal",
            "+system.more={a: 1}",
            "script.families={flip-flop: 2}",
            "limits.step_s=3",
        ],
    ],
)
def test_cells_are_put_together_to_what_composing_each_gives(asked: list[str]) -> None:
    """What is composed once for many cells gives every cell the settings that are its own."""
    with configs():
        for point in points(parsed(asked)):
            whole, made = composed(point), assembled(point)
            assert OmegaConf.to_container(whole) == OmegaConf.to_container(made)
            assert [*whole, *whole.system] == [*made, *made.system]
            assert OmegaConf.is_struct(made) and OmegaConf.is_struct(made.system)


def test_a_cell_that_was_changed_changes_no_other() -> None:
    """Cells share nothing, though most of their settings were composed once."""
    first, second = cells(["seed=0,1"])
    OmegaConf.update(first.config, "script.turns", 7)
    assert second.config.script.turns != 7
    assert cells(["seed=0"])[0].config.script.turns != 7


def test_the_cores_of_a_system_are_a_whole_number_and_no_other_row() -> None:
    """How many cores a cell keeps busy decides where it runs, and nothing that it finds."""
    plain, heavy = cells(["+system.cores=1,2"])
    assert (1, 2) == (plain.cores, heavy.cores)
    assert plain.system == heavy.system
    assert plain.node == heavy.node
    with pytest.raises(SettingsError, match=r"system\.cores=0: write a whole number"):
        _ = cells(["+system.cores=0"])[0].cores
