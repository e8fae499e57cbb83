"""LaTeX of tables: what a name holds is shown, what is too big comes in parts, and it compiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from steeltrap.harness.record import Outcome, Record, RunSpec, Timing
from steeltrap.harness.verdict import CONDITIONS, ConditionVerdict, Tally
from steeltrap.reports import latex, paper
from steeltrap.reports.table import Table, crossed, listed

HOSTILE = (
    r"\input{/etc/passwd}", "100% $x_1^2$ & #1 ~{}", "記憶 über ŵ Ωmega \u202egnp.exe", "=1+1",
    "[a] *b* -- ''c'' ,,d `e` <f|g> \"h\"", "a" * 90, "\\end{tabular}\\write18{ls}", "{:>9} %s {tabular}",
)  # fmt: skip


def record(system: str, seed: int = 0, violations: int = 3) -> Record:
    spec = RunSpec(
        system=system, settings={}, script="adversarial", script_sha256=f"{seed:x}" * 64, seed=seed,
        reader="oracle", limit=10, steeltrap="0.1.0",
    )  # fmt: skip
    names = {"stale-read": Tally(1600, violations)}
    verdicts = {
        c: ConditionVerdict(condition=c, validity="violated" if violations else "held",
                            opportunities=1600, violations=violations, names=names if c == "C1" else {})
        for c in CONDITIONS
    }  # fmt: skip
    outcome = Outcome(turns=500, steps=900, failed=1, lost={"t1": f"fail: {system}"}, answers={},
                      verdicts=verdicts, recall=0.9, evidence_recall=0.9)  # fmt: skip
    return Record(spec=spec, outcome=outcome, timing=Timing(phases={}))


def wide(columns: int, rows: int = 2) -> Table:
    numbers = [
        {"name": f"row-{r}", "system": f"system-{c}", "n": c} for r in range(rows) for c in range(columns)
    ]  # fmt: skip
    return crossed(
        "wide", "Wide", numbers, lambda row: str(row["n"]),
        down={"name": "name"}, across="system", notes=["a note"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("50% of $1_000 & #2", r"50\% of \$1\_000 \& \#2"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        ("20.0–40.0", "20.0--40.0"),
        ("a--b", "a-{}-b"),
        ("é ß ł α", r"\'{e} \ss{} \l{} $\alpha$"),
        ("記\u202e", "U+8A18U+202E"),
        ("a\nb\tc", "a b c"),
        ("[x] *", "{[}x] {*}"),
    ],
)
def test_every_character_stands_for_itself(text: str, shown: str) -> None:
    """Nothing in a name is a command, a ligature or an accent that was not meant."""
    assert shown == latex.escaped(text)


def test_a_table_has_caption_label_rules_and_notes() -> None:
    """The file is one float with booktabs rules, which needs no other package."""
    made = latex.tex(wide(2), caption="Wide: 5% of all", label="tab:wide")
    for line in (
        r"\caption{Wide: 5\% of all}",
        r"\label{tab:wide}",
        r"\toprule",
        r"name & system-0 & system-1 \\",
        r"row-0 & 0 & 1 \\",
        "a note.",
    ):
        assert line in made.splitlines()
    assert r"\begin{\steeltrapfloat}" in made
    assert "resizebox" not in made


def test_two_lines_of_a_cell_stand_below_each_other() -> None:
    """A rate and its counts are one cell of two lines, with room to the next row."""
    table = listed("t", "T", [{"a": "x", "b": "1.0%\n1/100"}, {"a": "y", "b": "2"}],
                   [("a", "a"), ("b", "b")], about=("a",))  # fmt: skip
    made = latex.tex(table, caption="T", label="tab:t")
    assert r"x & \begin{tabular}[t]{@{}r@{}}1.0\%\\1/100\end{tabular} \\" in made
    assert 1 == made.count(r"\addlinespace")


def test_what_is_too_wide_or_too_long_comes_in_parts() -> None:
    """Six systems stand side by side and a page of lines below each other; one number for all."""
    assert 2 == latex.tex(wide(7), caption="W", label="tab:w").count(r"\begin{tabular}{")
    made = latex.tex(wide(2, rows=120), caption="W", label="tab:w")
    parts = made.count(r"\begin{tabular}{")
    assert 3 == parts
    assert parts - 1 == made.count(r"\addtocounter{table}{-1}") == made.count("(continued)")
    assert 1 == made.count(r"\label{tab:w}") == made.count("a note")


def test_each_number_can_be_quoted_by_name() -> None:
    """Place, system, condition and number lead to it; what is not known has no name."""
    tables = paper.placed([record("gem", violations=0), record("mem0", violations=400)])
    made = latex.quotable((one.place, one.caption, one.table) for one in tables if one.place)
    assert r"\steeltrapset{adversarial/mem0/C1/rate}{25.0\%}" in made
    assert r"\steeltrapset{adversarial/mem0/C1/stale-read/violations}{400}" in made
    assert r"\steeltrapset{adversarial/gem/C1/validity}{held}" in made
    assert "adversarial/gem/C1/low" not in made
    names = [line.split("}")[0] for line in made.splitlines() if line.startswith(r"\steeltrapset{")]
    assert len(names) == len(set(names))


def test_csv_holds_numbers_and_no_formulas() -> None:
    """A row is a system and condition; text that a spreadsheet would calculate is quoted."""
    files = paper.documents([record("=HYPERLINK(1)", violations=400), record("+a\nb")])
    lines = files["tables/adversarial-conditions.csv"].decode().splitlines()
    assert "system,condition,validity,rate,low,high,violations,opportunities,observable,seeds" == lines[0]  # fmt: skip
    assert "'=HYPERLINK(1),C1,violated,0.25,,,400,1600,True,1" == lines[1]
    assert "'+a b,C1,violated," in lines[7]


def test_groups_are_told_apart_in_the_names_of_files() -> None:
    """A script that was run at two lengths has a table for each."""
    longer = record("gem")
    longer.outcome.turns = 600
    files = paper.documents([record("gem"), longer])
    assert "tables/adversarial-500-turns-conditions.tex" in files
    assert "tables/adversarial-600-turns-conditions.tex" in files


def test_groups_whose_names_are_spelled_alike_keep_files_of_their_own() -> None:
    """No group's tables are lost because another script's name gives the same file name, or a long one."""
    records = [record("gem") for _ in range(4)]
    for one, script in zip(records, ("a b", "a-b", "A b", "x" * 400), strict=True):
        one.spec.script = script
    files = paper.documents(records)
    made = [path for path in files if path.endswith("-conditions.tex")]
    assert 4 == len(made)
    assert 4 == len({path.lower() for path in made})
    assert all(len(path) < 200 for path in made)


def test_numbers_whose_names_are_spelled_alike_are_all_there() -> None:
    """A system whose name gives another's has a number of its own, and so has another table's."""
    tables = paper.placed([record("a b", violations=400), record("a-b", violations=800)])
    made = latex.quotable((one.place, one.caption, one.table) for one in tables if one.place)
    assert r"\steeltrapset{adversarial/a-b/C1/rate}{25.0\%}" in made
    assert r"\steeltrapset{adversarial/conditions/a-b/C1/rate}{50.0\%}" in made
    numbers = sum(
        row[key] is not None
        for one in tables if one.place for row in one.table.numbers
        for key in row if key not in one.table.about
    )  # fmt: skip
    names = {line.split("}")[0] for line in made.splitlines() if line.startswith(r"\steeltrapset{")}
    assert numbers == len(names)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not here")
def test_a_paper_of_hostile_names_compiles(tmp_path: Path) -> None:
    """Whatever systems are called, pdfLaTeX makes the document, within the width of the page."""
    records = [record(f"{name} x", seed) for name in HOSTILE for seed in (0, 1)]
    for path, data in paper.documents(records).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"],
        cwd=tmp_path, capture_output=True, timeout=120,
    )  # fmt: skip
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert 0 == done.returncode, log[-2000:]
    assert not [line for line in log.splitlines() if line.startswith("Overfull \\hbox")]
    assert "has no number" not in log
