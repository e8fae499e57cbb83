"""A comparison as JUnit XML, as GitHub, GitLab and Jenkins read it.

A suite a system, in it a case for each condition, for each condition on a family, and for recall;
and a suite of the rules, where there are any. What is worse is a failure, what can no longer be
judged an error, what cannot be compared is skipped. So a file without failures and errors is one
that ended with 0, as far as its scripts go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from steeltrap.harness.compare.comparison import Comparison, Measure, Versus
from steeltrap.reports.comparison import clean, reason

__all__ = ["junit_xml"]

_KINDS: Final = ("failure", "error", "skipped")
_TYPES: Final = {"failure": "worse", "error": "cannot be judged"}


def junit_xml(found: Comparison) -> bytes:
    """The XML of a comparison; the same bytes for the same comparison."""
    top = ET.Element("testsuites", name="steeltrap compare")
    for one in found.versus:
        _suite(top, one, found.unjudged)
    _rest(top, found)
    for count in ("tests", "failures", "errors", "skipped"):
        top.set(count, str(sum(int(suite.get(count, "0")) for suite in top)))
    top.set("time", "0")
    ET.indent(top, " ")
    text: bytes = ET.tostring(top, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(top: ET.Element, one: Versus, unjudged: Sequence[str]) -> None:
    name = clean(one.new if one.base == one.new else f"{one.new} against {one.base}")
    suite = ET.SubElement(top, "testsuite", name=name)
    names = [m for m in one.violations if not m.family and (m.base or m.new)]
    metrics = [m for m in one.metrics if m.base is not None or m.new is not None]
    for measure in (*one.conditions, *one.families, *names, *metrics):
        label = f"{measure.name} @ {clean(measure.family)}" if measure.family else measure.name
        _case(suite, name, label, *_state(measure, unjudged))
    _count(suite)


def _state(measure: Measure, unjudged: Sequence[str]) -> tuple[str, str, str]:
    """(kind of result or none, its message, its text)."""
    if measure.red:
        return "failure", f"{measure.name} is worse", reason(measure)
    if measure.lost and any(measure.lost in line for line in unjudged):
        return "error", "it cannot be judged", clean(measure.lost)
    if measure.verdict == "not comparable":
        return "skipped", clean(measure.why), ""
    return "", "", reason(measure)


def _rest(top: ET.Element, found: Comparison) -> None:
    """Rules, and what cannot be judged apart from conditions."""
    suite = ET.Element("testsuite", name="comparison")
    kinds = {"broken": "failure", "unmeasured": "error", "kept": ""}
    for rule in found.rules:
        _case(suite, "rules", clean(rule.words.partition(": ")[0] + ": " + rule.rule), kinds[rule.state], clean(rule.words), "")  # fmt: skip
    told = {rule.words for rule in found.rules}
    seen = {m.lost for one in found.versus for m in one.measures if m.lost}
    for line in found.unjudged:
        if line not in told and not any(lost in line for lost in seen):
            _case(suite, "runs", clean(line), "error", clean(line), "")
    if len(suite):
        _count(suite)
        top.append(suite)


def _case(suite: ET.Element, of: str, name: str, kind: str, message: str, text: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"steeltrap.{of}", name=name, time="0")
    if kind:
        result = ET.SubElement(case, kind, message=message)
        if kind in _TYPES:
            result.set("type", _TYPES[kind])
        result.text = text or None
    elif text:
        ET.SubElement(case, "system-out").text = text


def _count(suite: ET.Element) -> None:
    cases: Sequence[ET.Element] = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for kind, word in zip(_KINDS, ("failures", "errors", "skipped"), strict=True):
        suite.set(word, str(sum(case.find(kind) is not None for case in cases)))
    suite.set("time", "0")
