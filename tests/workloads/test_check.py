"""Scripts that people write: what is wrong is said with line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from steeltrap.harness.script import Expect, Probe, ScriptError
from steeltrap.workloads.check import check

HEADER = '{"format":"steeltrap-script","version":1,"name":"mine","tenants":["acme"]}'
TELL = (
    '{"step":"turn","id":"t1","at":"2026-03-15T09:00","tenant":"acme","session":"s1",'
    '"text":"The deadline of Atlas is 20 April 2026.",'
    '"ops":[{"op":"tell","unit":"acme/Atlas/deadline","value":"date:2026-04-20"}]}'
)
ASK = (
    '{"step":"probe","id":"p1","at":"2026-03-15T09:00","tenant":"acme","ask":"current",'
    '"text":"When is the deadline of Atlas?","unit":"acme/Atlas/deadline"}'
)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "script.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_script_without_truth_gets_it(tmp_path: Path) -> None:
    """Whoever writes ops and sentences by hand need not work the truth out."""
    script = check(write(tmp_path, HEADER, TELL, ASK))
    probe = script.steps[1]
    assert isinstance(probe, Probe)
    assert Expect("set", "date:2026-04-20") == probe.expect
    assert 1 == probe.footprint[0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{"], r":1: not JSON"),
        (['{"a":1}'], r":1: not a script"),
        ([HEADER.replace('"version":1', '"version":9')], r":1: version 9 .* reads version 1"),
        ([HEADER, TELL.replace('"ops"', '"opps"')], r":2: .*opps"),
        ([HEADER, TELL.replace('"tell"', '"tel"')], r":2: field ops\[0\].op: .*'tel'; known: tell, revise"),
        ([HEADER, TELL.replace("2026-04-20", "2026-04-31")], r":2: field ops\[0\].value: .*not a date"),
        ([HEADER, TELL.replace("date:", "datum:")], r":2: field ops\[0\].value: unknown kind"),
        ([HEADER, TELL.replace("acme/Atlas/deadline", "Atlas")], r":2: field ops\[0\].unit: .*tenant/topic/field"),
        ([HEADER, TELL.replace("2026-03-15T", "2026-13-15T")], r":2: field at: .*not a time"),
        ([HEADER, TELL.replace('"acme",', '"zzz",')], r":2: field tenant: .*not among the header's tenants"),
        ([HEADER], r"has a header and no steps"),
        ([HEADER, TELL.replace("acme/Atlas", "globex/Atlas")], r":2: field ops\[0\].unit: .*another tenant"),
        ([HEADER, TELL.replace("T09:00", " nine")], r":2: field at: .*not a time"),
        ([HEADER, TELL, TELL], r":3: field id: 't1' is already the id of line 2"),
        ([HEADER, ASK], r":2: field unit: .*never told"),
        ([HEADER, TELL, ASK.replace("03-15T09", "03-14T09")], r":3: field at: .*time goes forward"),
        ([HEADER, TELL, TELL.replace('"t1"', '"t2"').replace('"tell"', '"restate"').replace("04-20", "04-21")],
         r":3: restate of acme/Atlas/deadline must repeat"),
        ([HEADER, TELL, ASK.replace('"current"', '"as-of"')], r":3: field of: as-of needs an instant"),
        ([HEADER, TELL, ASK[:-1] + ',"expect":{"state":"set","value":"date:2026-04-21"}}'],
         r":\d: field .*the ops make it"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_line_and_field(
    tmp_path: Path, lines: list[str], said: str
) -> None:
    """A script that does not hold is refused in one sentence that says where and why."""
    with pytest.raises(ScriptError, match=said):
        check(write(tmp_path, *lines))


def test_a_missing_script_says_so(tmp_path: Path) -> None:
    """A path that is not there is an error about that path."""
    with pytest.raises(ScriptError, match=r"nowhere\.jsonl: cannot be read"):
        check(tmp_path / "nowhere.jsonl")


def test_what_follows_from_a_unit_that_is_spoken_of_is_not_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A withdrawn dependent comes back with the next value of its source, however late."""
    monkeypatch.setattr("steeltrap.workloads.check.FORGET_EVERY", 2)

    def turn(number: int, op: str, field: str, rest: str = "") -> str:
        unit = f'"op":"{op}","unit":"acme/Atlas/{field}"{rest}'
        return TELL.replace('"t1"', f'"t{number}"').replace(TELL[TELL.index('"op":') : -3], unit)

    rule = ',"target":"acme/Atlas/review","rule":{"kind":"same"}'
    script = check(
        write(
            tmp_path, HEADER, TELL,
            turn(2, "tell", "review", ',"value":"date:2026-04-20"'),
            turn(3, "depend", "deadline", rule),
            turn(4, "retract", "review"),
            turn(5, "restate", "deadline", ',"value":"date:2026-04-20"'),
            turn(6, "revise", "deadline", ',"value":"date:2026-04-22"'),
        )
    )  # fmt: skip
    assert ["acme/Atlas/deadline", "acme/Atlas/review"] == [
        c.unit for c in script.steps[-1].changes
    ]
