from __future__ import annotations

import itertools

import pytest

from steeltrap.harness import values
from steeltrap.workloads.domains import Domain, Field, Link, domains, field_named, words

DOMAINS = pytest.mark.parametrize("domain", domains(), ids=lambda domain: domain.name)


def offsets(domain: Domain) -> dict[tuple[str, str], Link]:
    return {(k.source, k.target): k for k in domain.links if k.rule == "offset"}


def inside(a: str, b: str) -> bool:
    """Whether the words of `a` stand in a row in `b`."""
    return f" {a.casefold()} " in f" {b.casefold()} "


def test_there_are_six_domains_in_fixed_order() -> None:
    """Domains come in one order, since scripts are made by picking from it."""
    assert [d.name for d in domains()] == [
        "projects", "people", "travel", "health", "home", "software",
    ]  # fmt: skip


@DOMAINS
def test_a_domain_covers_every_kind_and_weight(domain: Domain) -> None:
    """Every kind of value, two vital and two trivial fields at least."""
    assert {f.kind for f in domain.fields} == set(values.KINDS)
    weights = [f.importance for f in domain.fields]
    assert weights.count("vital") >= 2
    assert weights.count("trivial") >= 2


@DOMAINS
def test_a_field_has_what_its_kind_needs(domain: Domain) -> None:
    """Bounds for numbers and dates, a unit for money and measures, a pool for names and texts."""
    for field in domain.fields:
        if field.kind in ("name", "text"):
            assert field.pool
        elif field.kind != "code":
            assert field.low < field.high
        assert bool(field.unit) == (field.kind in ("money", "measure"))
        assert field.labels
        assert field.german.split(" ")[0] in ("der", "die", "das")
        assert field.japanese


def test_no_name_of_a_field_can_be_taken_for_another_field() -> None:
    """Names and labels mean one field, and none stands inside that of another."""
    fields = [f for d in domains() for f in d.fields]
    assert len({f.name for f in fields}) == len(fields)
    for a, b in itertools.permutations(fields, 2):
        for one, other in itertools.product(a.names, b.names):
            assert not inside(one, other), (a.name, b.name, one, other)


@DOMAINS
def test_links_fit_the_kinds_that_they_join(domain: Domain) -> None:
    """Offsets join dates, scaled links like amounts, same links like kinds; none joins itself."""
    for link in domain.links:
        source, target = domain.field(link.source), domain.field(link.target)
        assert source != target
        if link.rule == "offset":
            assert (source.kind, target.kind) == ("date", "date")
            assert link.low <= link.high
        if link.rule == "same":
            assert alike(source) == alike(target)
        if link.rule == "scaled":
            assert alike(source) == alike(target)
            assert source.kind in ("money", "measure", "count")
            assert 0 < link.low <= link.high
            assert link.over not in range(link.low, link.high + 1)


def alike(field: Field) -> tuple[str, str, str]:
    return field.kind, field.unit, field.pool


@DOMAINS
def test_a_domain_has_a_link_of_every_rule(domain: Domain) -> None:
    """offset, same, scaled and review each occur."""
    assert {link.rule for link in domain.links} == {"offset", "same", "scaled", "review"}


@DOMAINS
def test_a_domain_has_a_diamond_whose_two_ways_can_agree(domain: Domain) -> None:
    """a to b and c, both to d, with offsets that can add up to the same; so a chain as well."""
    edges = offsets(domain)
    diamonds = [
        (a, b, c, d)
        for (a, b), (a2, c) in itertools.permutations(edges, 2)
        for (b2, d) in edges
        if a == a2 and b == b2 and (c, d) in edges and len({a, b, c, d}) == 4
    ]
    assert diamonds
    for a, b, c, d in diamonds:
        one = edges[a, b], edges[b, d]
        other = edges[a, c], edges[c, d]
        assert sum(k.low for k in one) <= sum(k.high for k in other)
        assert sum(k.low for k in other) <= sum(k.high for k in one)


def test_words_name_every_field_with_its_labels() -> None:
    """The words for the header hold labels of all languages, without articles."""
    assert words()["deadline"] == ["due date", "cut-off date", "Abgabefrist", "締め切り"]
    assert list(words()) == [f.name for d in domains() for f in d.fields]


def test_a_field_is_found_by_name() -> None:
    """A known name gives its field and domain, an unknown one None or a helpful error."""
    projects = domains()[0]
    assert field_named("budget") == (projects, projects.field("budget"))
    assert field_named("shoe size") is None
    with pytest.raises(KeyError, match="projects has no field 'shoe size'; known: deadline"):
        projects.field("shoe size")
