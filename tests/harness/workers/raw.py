"""A worker by hand, which breaks the protocol in the way that its argument says."""

from __future__ import annotations

import json
import os
import sys
import time

ANSWERS = {
    "garbage": "I remember nothing",
    "nan": '{"id":ID,"ok":[{"text":"one","score":NaN}]}',
    "deep": "[" * 100_000,
    "list": "[]",
    "other id": '{"id":1000,"ok":[]}',
    "empty": '{"id":ID}',
    "twice": '{"id":ID,"ok":[]}\n{"id":ID,"ok":[]}',
    "item": '{"id":ID,"ok":[{"text":"one","sources":[1]}]}',
    "text": '{"id":ID,"ok":"one"}',
    "unknown keys": '{"id":ID,"took":3,"ok":[{"text":"one","colour":"red"}]}',
    "null": '{"id":ID,"ok":null}',
}
"""What is answered to a question, ID for its id."""


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(how: str, number: int) -> None:
    right = json.dumps({"id": number, "ok": []}) + "\n"
    match how:
        case "bytes":
            os.write(1, b'{"id":2,"ok":[{"text":"\xff"}]}\n')
        case "half":
            say(right[:9])
            sys.exit(3)
        case "slowly":
            for letter in right:
                say(letter)
                time.sleep(0.01)
        case "closed":
            os.close(1)
            time.sleep(60)
        case "deaf":
            time.sleep(60)
        case _:
            say(ANSWERS[how].replace("ID", str(number)) + "\n")


def main(how: str) -> None:
    sys.stdin.readline()
    welcome = {"steeltrap": 1, "capabilities": ["list"]}
    match how:
        case "newer":
            welcome["steeltrap"] = 2
        case "unknown capability":
            welcome["capabilities"] = ["lists"]
        case "greeting":
            say("Welcome!\n")
        case "silent":
            time.sleep(60)
    say(json.dumps(welcome) + "\n")
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "retrieve":
            answer(how, asked["id"])
        else:
            say(json.dumps({"id": asked["id"], "ok": None}) + "\n")


main(sys.argv[1])
