"""How an ideal model acts as the agent of Letta Code 0.34.

It does as the system prompt advises: detail behind an index, a file a topic, what is out of date
rewritten and not only added to, read before it writes, committed in the call that writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from steeltrap.adapters.letta.files import slug
from steeltrap.adapters.placing import placed
from steeltrap.harness.models import Ask, Mind, Reply, ToolCall
from steeltrap.harness.statements import Statement

__all__ = ["answer"]

_SAID: Final = re.compile(
    r"(?:\A|\n)At \d{4}-\d\d-\d\dT\d\d:\d\d the (?:user|assistant|system) said:\n\n(?P<text>.*)\Z",
    re.DOTALL,
)
_LINE: Final = re.compile(r"(?P<path>(?:facts/)?[\w-]+\.md):(?P<text>.*)")
_ROOT, _INDEX, _UNSORTED = "MEMORY.md", "facts/MEMORY.md", "unsorted"
_END: Final = "END_OF_FILE"
_NOTED: Final = Reply("Noted.")


def answer(ask: Ask, mind: Mind) -> Reply | None:
    """Act on the latest message: read what is known of its topics, write, and be done."""
    heard = [
        (number, said["text"])
        for number, message in enumerate(ask.messages)
        if message.role == "user" and (said := _SAID.search(message.text))
    ]
    if not heard or "You are a Letta Code agent" not in ask.said("system"):
        return None
    number, text = heard[-1]
    results = [message.text for message in ask.messages[number + 1 :] if message.role == "tool"]
    facts = mind.facts(text, ask.text)
    if not facts or len(results) > 1:
        return _NOTED
    topics = {_file(fact): fact.topic or _UNSORTED for fact in facts}
    if not results:
        paths = " ".join(f"'{path}'" for path in (_ROOT, _INDEX, *topics))
        return _shell(f"git grep -I -e '' -- {paths}", "Read what is known")
    return _written(facts, topics, _files(results[0]), mind)


def _written(
    facts: Sequence[Statement], topics: Mapping[str, str], files: dict[str, list[str]], mind: Mind
) -> Reply:
    """Bring the files up to date, where there is anything to do."""
    changed: dict[str, str] = {}
    for path, topic in topics.items():
        old = _body(files.get(path, []))
        new = old
        for fact in (fact for fact in facts if _file(fact) == path):
            new = _with(new, fact, mind)
        if new != old:
            changed[path] = "\n".join([*_matter(topic), *new])
    if not changed:
        return _NOTED
    links = [line for line in files.get(_INDEX, []) if line.startswith("- [")]
    for path in changed:
        link = f"- [{_plain(topics[path])}]({path.removeprefix('facts/')})"
        links += [] if link in links else [link]
    changed[_INDEX] = "\n".join(["# Facts", "", *links])
    changed[_ROOT] = "# Memory\n\n- [Facts](facts/MEMORY.md): what was said, a file a topic"
    documents = [f"cat > '{path}' <<'{_END}'\n{text}\n{_END}" for path, text in changed.items()]
    paths = " ".join(f"'{path}'" for path in changed)
    commit = f"git add -- {paths} && git commit -q -m 'facts: what was said' -- {paths}"
    return _shell("mkdir -p facts && " + "\n".join([*documents, commit]), "Record what was said")


def _with(lines: list[str], fact: Statement, mind: Mind) -> list[str]:
    """The lines with a new fact among them; what it puts out of force goes."""
    held = {line: old for line in lines if (old := mind.read(line)) is not None}
    over, kept = placed(fact, held, mind)
    left = [line for line in lines if line not in over]
    return [*left, fact.text] if kept else left


def _files(output: str) -> dict[str, list[str]]:
    """The files of a command's output, which has the path before each line."""
    files: dict[str, list[str]] = {}
    for line in output.split("\n"):
        if found := _LINE.fullmatch(line):
            files.setdefault(found["path"], []).append(found["text"])
    return files


def _body(lines: list[str]) -> list[str]:
    """Without the front matter."""
    return lines[lines.index("---", 1) + 1 :] if "---" in lines[1:] else lines


def _matter(topic: str) -> list[str]:
    name = json.dumps(topic, ensure_ascii=False)
    about = json.dumps(f"What was said of {topic}", ensure_ascii=False)
    return ["---", f"name: {name}", f"description: {about}", "---"]


def _file(fact: Statement) -> str:
    return f"facts/{slug(fact.topic) or _UNSORTED}.md"


def _plain(topic: str) -> str:
    return topic.replace("[", "(").replace("]", ")")


def _shell(command: str, description: str) -> Reply:
    full = f'cd "$MEMORY_DIR" && {command}'
    call = ToolCall("Bash", {"command": full, "description": description})
    return Reply(calls=(call,), finish="tools")
