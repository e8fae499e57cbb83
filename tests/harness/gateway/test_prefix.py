"""The estimate of what a cache of prompt prefixes would save."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from steeltrap.harness import tokens
from steeltrap.harness.gateway.prefix import BLOCK_TOKENS, LEAST_TOKENS, Prefixes, Prompt
from steeltrap.harness.models import Ask, Message, Tool


def words(count: int, word: str = " one") -> str:
    """A text of so many tokens."""
    text = word * count
    assert tokens.count(text) == count
    return text


def prompt(*texts: str, model: str = "m", tools: Sequence[Tool] = ()) -> Ask:
    return Ask(model, tuple(Message("user", text) for text in texts), tools=tuple(tools))


def test_the_beginning_counts_in_whole_blocks() -> None:
    """What two prompts share counts in blocks of 128 tokens, from 1 024 on."""
    prefixes = Prefixes()
    assert prefixes.read(prompt(words(3_000))) == Prompt(3_000, 0)
    for shared, counted in [
        (1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (2_999, 2_944),
    ]:  # fmt: skip
        asked = prompt(words(shared), words(200, " two"))
        assert prefixes.read(asked).prefix_tokens == counted, shared


def test_a_repeated_prompt_is_all_prefix() -> None:
    """A prompt that comes again counts up to its last whole block."""
    prefixes = Prefixes()
    asked = prompt(words(1_300))
    assert [prefixes.read(asked).prefix_tokens for _ in range(3)] == [0, 1_280, 1_280]


def test_a_change_at_the_beginning_spoils_all() -> None:
    """What stands behind the first difference counts for nothing."""
    prefixes = Prefixes()
    prefixes.read(prompt(" two", words(2_000)))
    assert prefixes.read(prompt(" six", words(2_000))).prefix_tokens == 0


def test_tools_and_schema_stand_first() -> None:
    """Another tool or schema makes another beginning; both are counted."""
    prefixes = Prefixes()
    tool = Tool("f", words(1_200))
    first = prefixes.read(prompt(words(2_000), tools=[tool]))
    assert first.tokens > 3_200
    assert prefixes.read(prompt(words(2_000), tools=[Tool("g")])).prefix_tokens == 0
    assert prefixes.read(prompt(" else", tools=[tool])).prefix_tokens == 1_152
    schema = Ask("m", prompt(words(2_000)).messages, form="schema", schema={"title": "T"})
    assert prefixes.read(schema).prefix_tokens == 0
    assert prefixes.read(schema).prefix_tokens == 1_920


def test_models_and_lives_share_nothing() -> None:
    """Each model has its own cache, and a new life begins with an empty one."""
    prefixes = Prefixes()
    prefixes.read(prompt(words(2_000)))
    assert prefixes.read(prompt(words(2_000), model="n")).prefix_tokens == 0
    prefixes.begin()
    assert prefixes.read(prompt(words(2_000))).prefix_tokens == 0


PROMPTS = st.lists(
    st.lists(st.sampled_from([words(n, w) for n in (70, 128, 600) for w in (" one", " two")]), min_size=1, max_size=8),
    max_size=6,
)  # fmt: skip


@given(PROMPTS)
def test_against_a_comparison_of_all_prompts(prompts: list[list[str]]) -> None:
    """The estimate is what comparing each prompt with all earlier ones token by token gives."""
    prefixes = Prefixes()
    earlier: list[list[int]] = []
    for texts in prompts:
        numbers = [number for text in texts for number in tokens.numbers(text)]
        best = max((_shared(numbers, old) for old in earlier), default=0)
        blocks = best // BLOCK_TOKENS * BLOCK_TOKENS
        expected = Prompt(len(numbers), blocks if blocks >= LEAST_TOKENS else 0)
        assert prefixes.read(prompt(*texts)) == expected
        earlier.append(numbers)


def _shared(one: list[int], other: list[int]) -> int:
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same
