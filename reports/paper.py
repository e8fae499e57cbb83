r"""What a paper includes: tables in files of their own, quotable numbers, and a document that shows how.

Everything here is made of records; nothing is written. The names of files say what they hold:
`tables/adversarial-conditions.tex`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from steeltrap.harness.record import Record
from steeltrap.reports import latex
from steeltrap.reports.facts import comparable, places, title
from steeltrap.reports.layout import markdown, page
from steeltrap.reports.table import Table
from steeltrap.reports.table1 import of_families
from steeltrap.reports.tables import every

__all__ = ["Placed", "csv", "documents", "placed"]

_FLOATS: Final = 6
"""Tables and figures after which a page is begun, or LaTeX would keep too many back."""


class Placed(NamedTuple):
    """A table and where it belongs."""

    place: str
    """Of a comparable group: `adversarial`, and with several lengths `adversarial-500-turns`;
    empty where it is of all runs."""
    heading: str
    table: Table

    @property
    def name(self) -> str:
        """Of its files."""
        return "-".join(filter(None, [self.place, self.table.name]))

    @property
    def caption(self) -> str:
        """What it shows, and of what."""
        return f"{': '.join(filter(None, [self.table.title, self.heading]))}."


def placed(records: Sequence[Record]) -> list[Placed]:
    """Table 1 with its mechanisms, and every table of every comparable group."""
    groups = comparable(records)
    found = [
        Placed(place, title(group), table)
        for place, group in zip(latex.slugs(places(groups)), groups, strict=True)
        for table in every(group)
    ]
    return [*(Placed("", "", table) for table in of_families(records)), *found]


def documents(
    records: Sequence[Record],
    *,
    notes: Sequence[str] = (),
    figures: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """The files of a report, by path: tables in three forms, numbers, a page and a paper.

    Args:
        records: finished cells.
        notes: further facts, for the page.
        figures: file of a figure, as `figures/rates.pdf`, and its caption, for the paper.
    """
    tables = placed(records)
    files = {"report.md": _page(tables, records, notes)}
    for one in tables:
        path = f"tables/{one.name}"
        files[f"{path}.md"] = markdown(one.table) + "\n"
        files[f"{path}.csv"] = csv(one.table)
        files[f"{path}.tex"] = latex.tex(one.table, caption=one.caption, label=f"tab:{one.name}")
    told = [one for one in tables if one.table.name != "lost"]
    files["numbers.tex"] = latex.quotable(
        (one.place or one.table.name, one.caption, one.table) for one in told
    )
    files["paper.tex"] = _paper(tables, figures or {})
    return {path: text.encode() for path, text in files.items()}


def _page(tables: Sequence[Placed], records: Sequence[Record], notes: Sequence[str]) -> str:
    """The page of all groups, with what is of all runs at its end."""
    whole = [markdown(one.table) for one in tables if not one.place]
    return "\n".join([page(records, notes=notes), *whole]) + "\n"


def csv(table: Table) -> str:
    """The numbers of a table as CSV; text that a spreadsheet would calculate stands behind a quote."""
    frame = table.frame()
    for column in frame.columns:
        if frame[column].dtype.kind not in "iufb":
            frame[column] = [_plain(value) for value in frame[column]]
    text: str = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text


def _plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = " ".join(value.split("\n"))
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


# ---------------------------------------------------------------- a paper

_HEAD: Final = r"""% How to include the tables, figures and numbers of a report; compiles as it stands:
%   pdflatex paper.tex
\documentclass{article}
\usepackage[margin=0.75in]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\input{numbers.tex}
\begin{document}
"""


def _paper(tables: Sequence[Placed], figures: Mapping[str, str]) -> str:
    floats = [(one.heading, rf"\input{{tables/{one.name}.tex}}") for one in tables]
    floats += [("Figures", _figure(path, caption)) for path, caption in figures.items()]
    lines, heading = [_HEAD, *_quoting(tables)], ""
    for number, (section, words) in enumerate(floats):
        if section != heading:
            lines += [r"\clearpage", rf"\section*{{{latex.escaped(section)}}}"]
            heading = section
        elif number % _FLOATS == 0:
            lines.append(r"\clearpage")
        lines.append(words)
    return "\n".join([*lines, r"\end{document}", ""])


def _quoting(tables: Sequence[Placed]) -> Iterator[str]:
    r"""A sentence that quotes a number, so that somebody sees how."""
    for one in tables:
        for row in one.table.numbers:
            if one.table.name == "conditions" and row["rate"] is not None:
                name = "/".join([one.place, latex.slug(row["system"]), row["condition"], "rate"])
                yield (
                    rf"A number is quoted by its name: \verb|\steeltrap{{{name}}}| gives"
                    rf" \steeltrap{{{name}}}."
                )
                return


def _figure(path: str, caption: str) -> str:
    name = path.removeprefix("figures/").rpartition(".")[0]
    return "\n".join(
        [
            r"\begin{figure}[htbp]",
            r"\centering",
            rf"\includegraphics{{{path}}}",
            rf"\caption{{{latex.escaped(caption)}}}",
            rf"\label{{fig:{name}}}",
            r"\end{figure}",
        ]
    )
