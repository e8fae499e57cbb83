r"""Tables in LaTeX, and numbers that a text can quote.

Nothing but `\usepackage{booktabs}` is needed. Every character of a name is shown and none is
interpreted; what pdfLaTeX has no letter for is written as its code point.
"""

from __future__ import annotations

import itertools
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from steeltrap.reports.table import Numbers, Table, abreast
from steeltrap.reports.words import percent

__all__ = ["escaped", "quotable", "slug", "slugs", "tex"]

_ABREAST: Final = 6
"""Columns of systems that fit a width of seven inches."""
_LINES: Final = 48
"""Lines of a table that fit a page."""
_WIDTH: Final = 118
"""Characters of a table that fit it, two of them between columns."""
_ABOUT: Final = 26
"""Characters after which what a line is about is broken."""
_LONGEST: Final = 120
"""Characters of a name in a file's name."""
_HEAD: Final = 13
"""Characters after which a word of the header is broken."""

_MEANT: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textquoteleft{}",
    '"': r"\textquotedblright{}", "[": "{[}", "*": "{*}",
    "–": "--", "—": "---", "…": r"\ldots{}", "‘": r"\textquoteleft{}", "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}", "”": r"\textquotedblright{}", "€": r"\texteuro{}",
    "£": r"\pounds{}", "§": r"\S{}", "°": r"\textdegree{}", "µ": r"\textmu{}", "×": r"$\times$",
    "±": r"$\pm$", "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "→": r"$\to$", "α": r"$\alpha$",
    "β": r"$\beta$", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "ø": r"\o{}", "Ø": r"\O{}",
    "œ": r"\oe{}", "Œ": r"\OE{}", "ł": r"\l{}", "Ł": r"\L{}", "\u00a0": "~",
}  # fmt: skip
"""Characters that mean something to LaTeX, alone or as ligatures, and some that people write."""
_ACCENTS: Final = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
    "\u0328": "k",
}  # fmt: skip


def escaped(text: str) -> str:
    """Text as LaTeX shows it: every character stands for itself."""
    plain = unicodedata.normalize("NFC", " ".join(text.split()))
    shown, before = [], ""
    for letter in plain:
        if letter == before and letter in "-',":
            shown.append("{}")  # else LaTeX joins the two into one
        shown.append(_letter(letter))
        before = letter
    return "".join(shown)


def _letter(letter: str) -> str:
    if letter in _MEANT:
        return _MEANT[letter]
    if letter.isascii() and letter.isprintable():
        return letter
    base, mark = unicodedata.normalize("NFD", letter)[0], unicodedata.normalize("NFD", letter)[1:]
    if base.isascii() and base.isalpha() and mark in _ACCENTS:
        return f"\\{_ACCENTS[mark]}{{{base}}}"
    return _point(letter)


def _point(letter: str) -> str:
    return f"U+{ord(letter):04X}"


# ---------------------------------------------------------------- tables


def tex(table: Table, *, caption: str, label: str) -> str:
    r"""A table in LaTeX, as an environment of its own, with caption, label and notes.

    One that is too long or too wide comes in several, of which the first has the label.

    Args:
        table: with its words.
        caption: what it shows, and of which runs.
        label: as it is referred to.
    """
    lines = [
        r"% needs \usepackage{booktabs}; for both columns: \newcommand{\steeltrapfloat}{table*}",
        r"\providecommand{\steeltrapfloat}{table}",
    ]
    parts = [part for wide in abreast(table, _ABREAST) for part in _pages(wide)]
    for number, part in enumerate(parts):
        head = f"{escaped(caption)}" if number == 0 else rf"{escaped(caption)} (continued)"
        lines += [
            r"\begin{\steeltrapfloat}[htbp]",
            *([r"\addtocounter{table}{-1}"] if number else []),
            r"\centering",
            rf"\caption{{{head}}}",
            *([] if number else [rf"\label{{{label}}}"]),
            r"\footnotesize\setlength{\tabcolsep}{4pt}",
            _tabular(part),
            *_notes(part.notes),
            r"\end{\steeltrapfloat}",
        ]
    return "\n".join(lines) + "\n"


def _pages(table: Table) -> Iterator[Table]:
    """The table in parts that fit a page; the last has the notes."""
    rows: list[list[str]] = []
    used = 0
    for row in table.rows:
        height = max(
            len(_lines(cell, width)) for cell, width in zip(row, _widths(table), strict=True)
        )
        if rows and used + height > _LINES:
            yield table._replace(rows=rows, notes=[])
            rows, used = [], 0
        rows.append(row)
        used += height
    yield table._replace(rows=rows)


def _widths(table: Table) -> list[int]:
    """Characters after which lines of each column are broken, so that the table fits."""
    columns = list(zip(table.header, *table.rows, strict=True))
    longest = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    about = [min(width, _ABOUT) for width in longest[: table.left]]
    others = [max(min(len(table.header[i]), _HEAD), longest[i]) for i in range(table.left, len(longest))]  # fmt: skip
    room = _WIDTH - sum(about) - 2 * len(longest)
    if sum(others) > room:
        others = [min(width, max(_HEAD, room // len(others))) for width in others]
    return [*about, *others]


def _tabular(table: Table) -> str:
    import pandas as pd

    sides = ["l"] * table.left + ["r"] * (len(table.header) - table.left)
    rows = [
        [_cell(_lines(cell, width), side) for cell, width, side in zip(row, _widths(table), sides, strict=True)]
        for row in table.rows
    ]  # fmt: skip
    heads = [_cell(_lines(word, _HEAD), side) for word, side in zip(table.header, sides, strict=True)]  # fmt: skip

    def head(position: object) -> str:
        assert isinstance(position, int)
        return heads[position]

    words = pd.DataFrame(rows, columns=range(len(heads))).style.hide(axis="index")
    words.format_index(head, axis="columns")
    drawn = words.to_latex(hrules=True, column_format="".join(sides))
    return (
        _spaced(drawn)
        if any("\n" in cell for row in table.rows for cell in row)
        else drawn.rstrip()
    )


def _spaced(drawn: str) -> str:
    """A little room between rows of several lines."""
    above, rule, body = drawn.partition("\\midrule\n")
    rows, bottom, below = body.partition("\\bottomrule")
    apart = rows.rstrip().replace(" \\\\\n", " \\\\\n\\addlinespace\n")
    return f"{above}{rule}{apart}\n{bottom}{below}".rstrip()


def _lines(cell: str, width: int) -> list[str]:
    """The lines of a cell, broken where they are too long as they will be shown."""
    return [
        part for line in cell.split("\n") for part in textwrap.wrap(_shown(line), width) or [""]
    ]


def _shown(line: str) -> str:
    """With code points where there is no letter."""
    return "".join(_point(one) if _letter(one) == _point(one) else one for one in line)


def _cell(lines: Sequence[str], side: str) -> str:
    words = [escaped(line) for line in lines]
    if len(words) == 1:
        return words[0]
    return rf"\begin{{tabular}}[t]{{@{{}}{side}@{{}}}}" + r"\\".join(words) + r"\end{tabular}"


def _notes(notes: Iterable[str]) -> list[str]:
    said = [escaped(note if note.endswith(".") else f"{note}.") for note in notes]
    if not said:
        return []
    return [
        r"\par\smallskip",
        r"\begin{minipage}{\linewidth}\raggedright\scriptsize",
        "\n".join(said),
        r"\end{minipage}",
    ]


# ---------------------------------------------------------------- numbers that a text quotes

_LOOKUP: Final = r"""% Numbers that a text can quote: \steeltrap{adversarial/gem/C1/rate}
\newcommand{\steeltrap}[1]{\ifcsname steeltrap@#1\endcsname\csname steeltrap@#1\endcsname
  \else\textbf{??}\GenericWarning{}{LaTeX Warning: steeltrap has no number #1}\fi}
\newcommand{\steeltrapset}[2]{\expandafter\def\csname steeltrap@#1\endcsname{#2}}
"""


def quotable(tables: Iterable[tuple[str, str, Table]]) -> str:
    r"""Every number of the tables behind one command, `\steeltrap{PLACE/SYSTEM/WHAT/NUMBER}`.

    Args:
        tables: place, as `adversarial`; heading, for a comment; and table.
    """
    lines, seen = [_LOOKUP], set[str]()
    for place, heading, table in tables:
        lines.append(f"% {escaped(heading)}")
        for row in table.numbers:
            about = sorted(table.about, key=lambda column: column != "system")
            told = {key: row[key] for key in row if key not in table.about and row[key] is not None}
            path = _unlike(
                place, table.name, [slug(str(row[column])) for column in about], told, seen
            )
            for key, value in told.items():
                name = f"{path}/{slug(key)}"
                seen.add(name)
                lines.append(f"\\steeltrapset{{{name}}}{{{escaped(_quoted(key, value, row))}}}")
    return "\n".join(lines) + "\n"


def _unlike(place: str, table: str, about: list[str], keys: Iterable[str], seen: set[str]) -> str:
    """The first path under which nothing stands yet: with the table's name where another table
    has it, and with a number where two names are spelled alike."""
    slugged = [slug(key) for key in keys]
    numbered = ("/".join([place, table, *about, str(n)]) for n in itertools.count(2))
    paths = itertools.chain(["/".join([place, *about]), "/".join([place, table, *about])], numbered)
    return next(p for p in paths if not any(f"{p}/{key}" in seen for key in slugged))


_SHARES: Final = ("rate", "recall", "hit", "cached_share")


def _quoted(key: str, value: Any, row: Numbers) -> str:
    """A number as a text would write it."""
    if not isinstance(value, float):
        return str(value)
    if key in _SHARES or (key in ("value", "low", "high") and _is_share(row)):
        return percent(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _is_share(row: Numbers) -> bool:
    return "rate" in row or row.get("unit") == "share"


def slugs(texts: Iterable[str]) -> list[str]:
    """Such names, short enough for a file; where two are the same the later has a number."""
    found: list[str] = []
    for text in texts:
        stem = slug(text)[:_LONGEST]
        name, again = stem, 2
        while name.lower() in map(str.lower, found):  # or they are one file on some disks
            name, again = f"{stem}-{again}", again + 1
        found.append(name)
    return found


def slug(text: str) -> str:
    """A name as it can stand in a file's name, a label and a number's."""
    return re.sub(r"[^A-Za-z0-9.=+@]+", "-", text).strip("-") or "-"
