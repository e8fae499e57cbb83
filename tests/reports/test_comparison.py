"""What people and machines are shown of a comparison is pinned as text."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from steeltrap.harness.compare.comparison import (
    Apart,
    Comparison,
    Measure,
    Paired,
    Ruled,
    Versus,
    Witness,
)
from steeltrap.reports.comparison import clean, markdown, show, workflow_commands
from steeltrap.reports.junit import junit_xml

HOSTILE = "<b>&\x1b[31m|`@team` ::error::no\n::set-env name=x::y ##[endgroup]\u202e\x00"


def rate(name: str, base: int, new: int, **more: Any) -> Measure:
    verdict = "same" if base == new else "worse" if new > base else "better"
    return Measure(
        name=name, base=base / 60, new=new / 60, base_counts=[base, 60], new_counts=[new, 60],
        verdict=verdict, test="units", general="same", **more,
    )  # fmt: skip


def comparison(text: str = "acme/Atlas/deadline", **changed: Any) -> Comparison:
    """C2 is worse by three resurrections, C1 better, and C4 out of sight."""
    witness = Witness(
        name="resurrection", seed=0, step=57, unit=text, expected="20 April 2026",
        observed=text, turns=["t0003", "t0011"],
    )  # fmt: skip
    versus = Versus(
        base="memory", new="memory",
        pairs=[
            Paired(script="adversarial", seed=seed, sha256="a" * 64, base_runs=1, new_runs=1)
            for seed in range(3)
        ],
        steadiness="steady", labelings=8, notes=["revision: aaaa -> bbbb"],
        conditions=[
            rate("C1", 4, 2, appeared=0, gone=2, p=0.5),
            rate("C2", 0, 3, appeared=3, gone=0, red=True, witness=witness),
            Measure(name="C4", base=0.0, base_counts=[0, 60], why="NEW: hidden", lost="seed 0: hidden"),
        ],
        families=[rate("C2", 0, 3, family=text, appeared=3, gone=0, red=True, witness=witness)],
        violations=[
            Measure(name="stale-read", base=4.0, new=2.0, verdict="better", appeared=0, gone=2),
            Measure(name="resurrection", base=0.0, new=3.0, verdict="worse", appeared=3, gone=0, red=True, witness=witness),
            Measure(name="leak", base=0.0, new=0.0, verdict="same"),
        ],
        metrics=[
            Measure(name="recall", base=0.95, new=0.95, verdict="same"),
            Measure(name="served_tokens", base=1234.5, new=1200.0, verdict="better"),
            Measure(name="p95_ms", base=1.5, new=1.75, why="wall times"),
            Measure(name="cost_usd", why="not measured in NEW"),
        ],
    )  # fmt: skip
    told: dict[str, Any] = {
        "exit_code": 1,
        "worse": ["memory: worse in C2"],
        "unjudged": ["memory: C4 can no longer be judged (seed 0: hidden)"],
        "tests": 1,
        "level": 0.01,
        "versus": [versus],
    }
    return Comparison(**told | changed)


APART = Apart(
    side="BASE", system="memory", script="adversarial", seed=3, why="NEW has no run", needed=True
)
CONSOLE = """\
memory: adversarial, seed 0-2; 1 run a side
It does the same each time, so every difference on these scripts is real.
  note: revision: aaaa -> bbbb

                             BASE        NEW  on these scripts  beyond them
───────────────────────────────────────────────────────────────────────────
C1                      6.7% 4/60  3.3% 2/60  better: 2 gone    p 0.5
C2                      none 0/60  5.0% 3/60  worse: 3 new      -
C4                      none 0/60    unknown  no longer seen

stale-read                      4          2  better: 2 gone
resurrection                    0          3  worse: 3 new

C2@acme/Atlas/deadline  none 0/60  5.0% 3/60  worse: 3 new      -

recall                      95.0%      95.0%  no difference
served_tokens               1,234      1,200  better
p95_ms                        1.5       1.75

resurrection: 0 -> 3 (3 new). First: resurrection, seed 0, step 57,
acme/Atlas/deadline: expected 20 April 2026, observed acme/Atlas/deadline; turns
t0003, t0011

Beyond these scripts: sign test over units, as there are too few runs for one
over runs; p after Holm over 1 test, counts at 0.01; -: too little differs.
BASE only: memory, adversarial, seed 3: NEW has no run
WORSE: memory: worse in C2
also cannot be judged: memory: C4 can no longer be judged (seed 0: hidden)
"""
MARKDOWN = """\
### steeltrap: worse

- <code>memory&#58; worse in C2</code>
- <code>memory&#58; C4 can no longer be judged (seed 0&#58; hidden)</code>

**<code>memory</code>** It does the same each time, so every difference on these scripts is real.

| | BASE | NEW | on these scripts | beyond them |
| --- | ---: | ---: | --- | --- |
| C1 | 6.7% 4/60 | 3.3% 2/60 | better: 2 gone | p 0.5 |
| C2 | none 0/60 | 5.0% 3/60 | **worse: 3 new** | - |
| C4 | none 0/60 | unknown | no longer seen |  |

<details><summary>Names, families, numbers and settings</summary>

<code>memory&#58; adversarial, seed 0-2&#59; 1 run a side</code>

| | BASE | NEW | on these scripts | beyond them |
| --- | ---: | ---: | --- | --- |
| stale-read | 4 | 2 | better: 2 gone |  |
| resurrection | 0 | 3 | **worse: 3 new** |  |

| | BASE | NEW | on these scripts | beyond them |
| --- | ---: | ---: | --- | --- |
| C2 <code>acme&#47;Atlas&#47;deadline</code> | none 0/60 | 5.0% 3/60 | **worse: 3 new** | - |

| | BASE | NEW | on these scripts | beyond them |
| --- | ---: | ---: | --- | --- |
| recall | 95.0% | 95.0% | no difference |  |
| served_tokens | 1,234 | 1,200 | better |  |
| p95_ms | 1.5 | 1.75 |  |  |

- resurrection: <code>0 -&#62; 3 (3 new)&#46; First&#58; resurrection, seed 0, step 57, acme&#47;Atlas&#47;deadline&#58; expected 20 April 2026, observed acme&#47;Atlas&#47;deadline&#59; turns t0003, t0011</code>
- note: <code>revision&#58; aaaa -&#62; bbbb</code>
- Beyond these scripts: sign test over units, as there are too few runs for one over runs; p after Holm over 1 test, counts at 0.01; -: too little differs.

</details>

BASE only: <code>memory, adversarial, seed 3&#58; NEW has no run</code>
"""


def printed(found: Comparison) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None, highlight=False)
    show(found, console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def test_console() -> None:
    """The result stands last, above it what changed on these scripts, and where to look."""
    assert printed(comparison(apart=[APART])) == CONSOLE


def test_markdown() -> None:
    """A comment is short: the result, the conditions, and the rest folded away."""
    assert markdown(comparison(apart=[APART])) == MARKDOWN


def test_a_green_one_is_said_in_a_line() -> None:
    """Nothing worse: so many scripts, and that is all."""
    green = comparison(exit_code=0, worse=[], unjudged=[])
    assert printed(green).splitlines()[-1] == "nothing is worse on 3 scripts"
    assert markdown(green).splitlines()[0] == "### steeltrap: nothing is worse"
    assert (
        list(workflow_commands(green))[-1]
        == "::notice title=steeltrap::nothing is worse on 3 scripts"
    )


def test_rules_are_told_with_what_became_of_them() -> None:
    """Each rule has its line, and a case and an error of its own."""
    broken = Ruled(rule="C1>0.02", state="broken", words="memory: C1>0.02: it is 0.03")
    kept = Ruled(rule="C2>1", state="kept", words="memory: C2>1: it is 0.05")
    found = comparison(rules=[broken, kept])
    assert "broken: memory: C1>0.02: it is 0.03" in printed(found)
    assert "- kept: <code>memory&#58; C2" in markdown(found)
    assert "::error title=steeltrap%3A C1>0.02::memory: C1>0.02: it is 0.03" in workflow_commands(
        found
    )
    cases = {case.get("name"): case for case in ET.fromstring(junit_xml(found)).iter("testcase")}
    assert cases["memory: C1>0.02"].find("failure") is not None
    assert list(cases["memory: C2>1"]) == []


# ---------------------------------------------------------------- JUnit


def test_junit_has_a_case_for_each_condition_and_family() -> None:
    """What is worse is a failure with counts and turns, what is out of sight an error."""
    top = ET.fromstring(junit_xml(comparison()))
    cases = {case.get("name"): case for case in top.iter("testcase")}
    assert list(cases) == [
        "C1", "C2", "C4", "C2 @ acme/Atlas/deadline", "stale-read", "resurrection", "recall",
        "served_tokens", "p95_ms",
    ]  # fmt: skip
    failure = cases["C2"].find("failure")
    assert failure is not None and failure.text is not None
    assert failure.get("message") == "C2 is worse"
    assert failure.text.startswith(
        "none 0/60 -> 5.0% 3/60 (3 new). First: resurrection, seed 0, step 57"
    )
    assert failure.text.endswith("turns t0003, t0011")
    assert cases["C4"].find("error") is not None
    assert cases["p95_ms"].find("skipped") is not None
    assert [child.tag for child in cases["C1"]] == ["system-out"]
    assert (top.get("tests"), top.get("failures"), top.get("errors"), top.get("skipped")) == ("9", "3", "1", "1")  # fmt: skip


def test_junit_has_the_shape_that_its_readers_know() -> None:
    """testsuites holds suites, a suite cases with class and name, a case one result at most."""
    top = ET.fromstring(junit_xml(comparison(rules=[])))
    assert top.tag == "testsuites"
    for suite in top:
        assert suite.tag == "testsuite" and suite.get("name")
        cases = list(suite)
        assert {case.tag for case in cases} == {"testcase"}
        assert suite.get("tests") == str(len(cases))
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(count) == str(len(suite.findall(f"testcase/{tag}")))
        for case in cases:
            assert case.get("name") and case.get("classname") and case.get("time") == "0"
            assert len(case) <= 1


# ---------------------------------------------------------------- text of others


def test_nothing_of_others_is_a_command() -> None:
    """Terminal escapes, Markdown, HTML, mentions and workflow commands of a script are only text."""
    found = comparison(HOSTILE, worse=[f"{HOSTILE}: worse in C2"], unjudged=[HOSTILE])
    shown = printed(found)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", shown)
    assert "::" not in shown and "##[" not in shown
    text = markdown(found)
    for sign in ("<b>", "@team", "`", "\x1b", "::"):
        assert sign not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(row.split("|")) for row in rows} == {7}


def test_annotations_are_one_line_each() -> None:
    """A message can neither end its line nor begin another command."""
    found = comparison(HOSTILE, worse=[HOSTILE], unjudged=[HOSTILE, "another"])
    lines = list(workflow_commands(found))
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning"]
    for line in lines:
        assert line.isprintable()
        assert line.count("::") == 2
    assert lines[1].endswith("%0Aanother")


def test_junit_of_hostile_names_can_be_read() -> None:
    """Signs that XML forbids are spelled out, and the others come back as they were."""
    found = comparison(HOSTILE, unjudged=[HOSTILE])
    names = [case.get("name", "") for case in ET.fromstring(junit_xml(found)).iter("testcase")]
    assert f"C2 @ {clean(HOSTILE)}" in names
    assert r"\x00" in clean(HOSTILE) and r"\u202e" in clean(HOSTILE)
    assert ET.fromstring(junit_xml(comparison("\ud800\ufffe\uffff"))) is not None


@pytest.mark.parametrize("text", ["Müller 木村 😀", "20 April 2026: 14:00"])
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    """Names in any script are printable."""
    assert clean(text) == text
