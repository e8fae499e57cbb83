"""Says what happens: one utterance per turn, one question per probe.

The wordings are data (`wordings/*.toml`); what is here picks one, names unit and values in it,
and dresses it. Every call consumes the renderer's dice, so the same calls give the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from steeltrap.harness import values
from steeltrap.harness.script import Op, topic_of
from steeltrap.workloads.dice import Dice
from steeltrap.workloads.render import noise
from steeltrap.workloads.render.reference import Reference, Referrer
from steeltrap.workloads.render.saying import NAMED, Saying, lacks, same_topic, section_of
from steeltrap.workloads.render.spell import days, fraction, instant, spell
from steeltrap.workloads.render.surface import Surface
from steeltrap.workloads.render.wordings import Wording, phrases, plain, wordings

__all__ = ["Renderer"]

OPENER, REASON, CLOSER, SHRUG = 0.35, 0.4, 0.2, 0.5
"""How often a varied wording gets an opener, a reason, a closer; a trivial fact a shrug."""
PLANNED_KINDS: Final = ("date", "time", "money")
"""Kinds that people settle among themselves, so that social reasons suit them."""
OPENERS_OF: Final = {"late": "late", "since": "tell"}
FENCE: Final = "```"


class Renderer:
    """Turns ops into utterances and asks into questions.

    Args:
        surface: how varied the language is.
        dice: where the random choices come from.
    """

    def __init__(self, surface: Surface, dice: Dice) -> None:
        self._surface = surface
        self._dice = dice
        self._referrer = Referrer(dice)

    # ------------------------------------------------------------ turns

    def turn(
        self,
        ops: Sequence[Op],
        *,
        at: str,
        previous: Mapping[str, str | None],
        last_unit: str | None,
    ) -> str:
        """One utterance that says all of `ops`.

        Args:
            ops: what happens; usually one.
            at: now, ISO 8601 to the minute.
            previous: for each unit the value that held before this turn.
            last_unit: the unit that the turn before was about, for ellipsis; None if it was
                about several topics.

        Raises:
            ValueError: an op lacks the unit, value, target or rule that it speaks of.
        """
        language = self._language(ops)
        parts: list[str] = []
        used: list[Wording] = []
        for place, op in enumerate(ops):
            if op.op == "noise":
                parts.append(self._noise(language))
                continue
            saying = self._saying(op, at, previous, last_unit, language)
            used.append(self._wording(saying, used))
            parts.append(self._said(saying, used[-1], at, not parts, place == len(ops) - 1))
            alone = op.target is None or same_topic(op.unit or "", op.target)
            last_unit = op.unit if alone else None
        return self._decorated(" ".join(parts), language)

    def _language(self, ops: Sequence[Op]) -> str:
        """German or Japanese if the dice say so and every op can be said in it."""
        dice = self._dice
        if not dice.chance(self._surface.languages):
            return "en"
        language = dice.pick(("de", "ja"))
        return language if all(self._speaks(language, op) for op in ops) else "en"

    def _speaks(self, language: str, op: Op) -> bool:
        if op.op == "noise":
            return True
        if op.op in NAMED or op.unit is None:
            return False
        if op.source != "owner" or op.valid_at or op.importance == "vital":
            return False
        kind = self._referrer.foreign_kind(op.unit)
        return bool(kind and wordings(language, op.op, kind))

    def _noise(self, language: str) -> str:
        surface, dice = self._surface, self._dice
        if dice.chance(surface.paste):
            return noise.paste(dice, surface.paste_chars)
        if not dice.chance(surface.paraphrase):
            return plain("noise").text
        return noise.small_talk(dice, language)

    def _saying(
        self,
        op: Op,
        at: str,
        previous: Mapping[str, str | None],
        last_unit: str | None,
        language: str,
    ) -> Saying:
        if part := lacks(op):
            raise ValueError(f"the op '{op.op}' of {op.unit} cannot be said without a {part}")
        assert op.unit is not None
        surface, dice = self._surface, self._dice
        varied = dice.chance(surface.paraphrase)
        short = (
            op.op not in NAMED and same_topic(op.unit, last_unit) and dice.chance(surface.ellipsis)
        )
        before = previous.get(op.unit)
        return Saying(
            op,
            section_of(op, at, before),
            self._reference(op, language, varied, short),
            language,
            varied,
            short,
            before if before != op.value else None,
        )

    def _reference(self, op: Op, language: str, varied: bool, short: bool) -> Reference:
        """Words for the unit that an op is about: for a rule, the one that follows."""
        if op.op == "associate":
            topics = {"t": topic_of(op.unit or ""), "other": topic_of(op.target or "")}
            return Reference(topics, "", "")
        unit = (op.target if op.op == "depend" else op.unit) or ""
        return self._referrer.refer(unit, language, varied=varied, short=short, value=op.value)

    def _said(self, saying: Saying, wording: Wording, at: str, first: bool, last: bool) -> str:
        slots = {**saying.unit.slots, **self._value_slots(saying, wording, at)}
        if saying.op.op == "depend":
            slots |= self._rule_slots(saying, wording)
        core = wording.text.format_map(slots)
        if wording.bare and saying.varied and not saying.quoted and self._dice.chance(REASON):
            core += self._reason(saying)
        opener = self._opener(saying, wording, first)
        text = f"{opener} {core}" if opener else core
        if not opener or opener.endswith("."):
            text = text[: -len(core)] + _capital(core, slots)
        if wording.open and not text.endswith("."):
            text += "."
        closer = self._closer(saying) if last else ""
        return " ".join(filter(None, [text, self._why(saying), closer]))

    def _wording(self, saying: Saying, used: Sequence[Wording]) -> Wording:
        """A wording for it, if possible none that this utterance has used already."""
        if not saying.varied and saying.language == "en":
            return plain(saying.section)
        options = wordings(
            saying.language,
            saying.section,
            saying.unit.kind,
            topic=not saying.short,
            old=saying.old is not None,
            quoted=saying.quoted,
        )
        if not saying.varied:
            return options[0]
        fresh = [option for option in options if option not in used] if used else options
        return self._dice.pick(fresh or options)

    def _value_slots(self, saying: Saying, wording: Wording, at: str) -> dict[str, str]:
        op, dice = saying.op, self._dice
        slots = {}
        for name, literal in (("v", op.value), ("old", saying.old)):
            if literal and name in wording.slots:
                varied = dice.chance(self._surface.spelling)
                slots[name] = spell(literal, dice, varied=varied, at=at, language=saying.language)
        if op.until:
            slots["when"] = instant(op.until)
        elif op.valid_at:
            slots["when"] = values.display(f"date:{op.valid_at[:10]}")
        return slots

    def _rule_slots(self, saying: Saying, wording: Wording) -> dict[str, str]:
        """Both units of a rule, the second one short where they share a topic, and the rule."""
        op, rule = saying.op, saying.op.rule
        assert op.unit is not None
        assert op.target is not None
        assert rule is not None
        source_first = wording.text.find("{src}") < wording.text.find("{dep}")
        shared = saying.varied and same_topic(op.unit, op.target)
        slots = {}
        for name, unit, second in (
            ("src", op.unit, not source_first),
            ("dep", op.target, source_first),
        ):
            refer = self._referrer.refer
            slots[name] = refer(unit, "en", varied=saying.varied, short=shared and second).slots[
                "ref"
            ]
        if rule.kind == "offset":
            slots["days"] = _distance(rule.days)
        elif rule.kind == "scaled":
            slots["frac"] = fraction(rule.times, rule.over)
            whole = rule.times % rule.over == 0
            slots["rounded"] = "" if whole else ", rounded to the nearest whole number"
        return slots

    # ------------------------------------------------------------ around the core

    def _opener(self, saying: Saying, wording: Wording, first: bool) -> str:
        """What stands before the core: who says it, or a word of introduction."""
        dice, op = self._dice, saying.op
        if saying.quoted:
            sources = phrases("en", f"attributed.{op.source}") or (f"According to {op.source}:",)
            return dice.pick(sources) if saying.varied else sources[-1]
        if not saying.varied or wording.led or not dice.chance(OPENER if first else 2 * OPENER):
            return ""
        name = OPENERS_OF.get(saying.section, op.op) if first else "more"
        openers = phrases(saying.language, f"openers.{name}")
        return dice.pick(openers) if openers else ""

    def _reason(self, saying: Saying) -> str:
        unit, language = saying.unit, saying.language
        section = saying.section.partition(".")[0]
        reasons = phrases(language, f"reasons.{section}")
        if unit.kind in PLANNED_KINDS and section in ("tell", "revise", "retract"):
            social = () if unit.domain == "health" else phrases(language, f"planned.{section}")
            own = () if section == "tell" else phrases(language, f"planned.{unit.domain}")
            reasons = (*reasons, *social, *own)
        return self._dice.pick(reasons) if reasons else ""

    def _why(self, saying: Saying) -> str:
        """Why a vital fact matters, or a shrug about a trivial one."""
        dice, op = self._dice, saying.op
        if op.op != "tell" or op.importance == "normal" or saying.language != "en":
            return ""
        if op.importance == "vital":
            why = (*phrases("en", "vital.any"), *phrases("en", f"vital.{saying.unit.domain}"))
            return dice.pick(why) if saying.varied else plain("vital").text
        shrugs = saying.varied and dice.chance(SHRUG)
        return dice.pick(phrases("en", "trivial.any")) if shrugs else ""

    def _closer(self, saying: Saying) -> str:
        closers = phrases(saying.language, "closers.any")
        if not closers or not saying.varied or saying.op.op == "instruct":
            return ""
        return self._dice.pick(closers) if self._dice.chance(CLOSER) else ""

    def _decorated(self, text: str, language: str) -> str:
        dice = self._dice
        if FENCE in text or not dice.chance(self._surface.decoration):
            return text
        manner = dice.pick(("fence", "before", "after", "emoji"))
        if manner == "fence":
            return f"{FENCE}\n{text}\n{FENCE}"
        if manner == "emoji" or language != "en":
            emoji = dice.pick(phrases("en", "decoration.emoji"))
            return f"{emoji} {text}" if dice.chance(0.5) else f"{text} {emoji}"
        extra = dice.pick(phrases("en", f"decoration.{manner}"))
        return extra + text if manner == "before" else text + extra

    # ------------------------------------------------------------ questions

    def question(
        self,
        ask: str,
        unit: str | None,
        *,
        at: str,
        of: str | None = None,
        units: tuple[str, ...] = (),
    ) -> str:
        """One question; it names its units in full and holds no value.

        Args:
            ask: current, previous, as-of or rank.
            unit: the unit asked about; None for rank.
            at: now, ISO 8601 to the minute.
            of: as-of: the instant asked about; spelled as its date.
            units: rank: the units that are touched alike; they are named in sorted order.

        Raises:
            ValueError: the ask is not one that is rendered, or what it asks about is missing.
        """
        if ask == "rank":
            return self._rank(units)
        if ask not in ("current", "previous", "as-of"):
            raise ValueError(f"there are no wordings for a question of kind '{ask}'")
        if unit is None or (ask == "as-of" and of is None):
            raise ValueError(f"a question of kind '{ask}' needs a unit, and as-of an instant `of`")
        return self._ask(ask, unit, at, of)

    def history_question(self, unit: str) -> str:
        """A question for all values that a unit ever had, in order."""
        return self._ask("history", unit, "", None)

    def _ask(self, ask: str, unit: str, at: str, of: str | None) -> str:
        surface, dice = self._surface, self._dice
        section = f"question.{ask}"
        varied = dice.chance(surface.paraphrase)
        language = dice.pick(("de", "ja")) if dice.chance(surface.languages) else "en"
        kind = self._referrer.foreign_kind(unit)
        if not (kind and wordings(language, section, kind)):
            language = "en"
        reference = self._referrer.refer(unit, language, varied=varied)
        wording = self._question_wording(language, section, reference.kind, varied)
        slots = reference.slots
        if of is not None:
            spelled = dice.chance(surface.spelling)
            day = spell(f"date:{of[:10]}", dice, varied=spelled, at=at, language=language)
            slots = {**slots, "when": day}
        return self._posed(wording, slots, language, varied)

    def _rank(self, units: tuple[str, ...]) -> str:
        if not units:
            raise ValueError("a question of kind 'rank' needs the units that it touches")
        varied = self._dice.chance(self._surface.paraphrase)
        named = [self._referrer.refer(u, "en", varied=False).slots["ref"] for u in sorted(units)]
        wording = self._question_wording("en", "question.rank", "", varied)
        everything = " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))
        return self._posed(wording, {"all": everything}, "en", varied)

    def _question_wording(self, language: str, section: str, kind: str, varied: bool) -> Wording:
        if not varied and language == "en":
            return plain(section)
        options = wordings(language, section, kind)
        return self._dice.pick(options) if varied else options[0]

    def _posed(
        self, wording: Wording, slots: Mapping[str, str], language: str, varied: bool
    ) -> str:
        core = wording.text.format_map(slots)
        openers = phrases(language, "openers.question")
        if varied and openers and not wording.led and self._dice.chance(OPENER):
            return self._decorated(f"{self._dice.pick(openers)} {core}", language)
        return self._decorated(_capital(core, slots), language)


def _distance(n: int) -> str:
    if n == 0:
        return "on the same day as"
    return f"{days(abs(n))} {'after' if n > 0 else 'before'}"


def _capital(core: str, slots: Mapping[str, str]) -> str:
    """The core as a sentence; a topic or value at its start stays as it is spelled."""
    starts = (slots.get("t") or "\0", slots.get("v") or "\0")
    return core if core.startswith(starts) else core[0].upper() + core[1:]
