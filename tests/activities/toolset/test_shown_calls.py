"""What stands in an approval is what is called: generated arguments on their whole way, from what a
model wrote to what a tool and a server of tools receive, and to each face that a person reads.
"""

from __future__ import annotations

import html
import io
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client

from drawn import START, drawn, view
from holdfast.activities.asking.forms import shape_of
from holdfast.activities.claude.stream import Transcript
from holdfast.activities.claude.turns import find_flaw
from holdfast.activities.toolset import fitting
from holdfast.activities.toolset.mcp_client import over_pipes
from holdfast.activities.toolset.servers import Server
from holdfast.activities.toolset.tool import Here, ToolError, tool
from holdfast.activities.turns import saying
from holdfast.activities.turns.conversation import Spoke, Told, append, find_arguments
from holdfast.calls.turn import ToolUse
from holdfast.cli.screen.board import board
from holdfast.cli.screen.waiting import reminders
from holdfast.contracts import Given, Order, Usage
from holdfast.contracts.view import Question
from holdfast.ports import ModelAnswer
from holdfast.rendering import orders
from holdfast.rendering.html import steering
from holdfast.rendering.html.prose import prose_line
from holdfast.storage import DirectoryStore
from holdfast.text import one_line
from holdfast.untrusted.known_secrets import KnownSecrets
from paged import shown as pictured
from parameters import rest_long

pytestmark = pytest.mark.anyio

MANY = [200, pytest.param(3_000, marks=pytest.mark.long)]
SERVER = Path(__file__).parents[2] / "support" / "mcp_servers.py"
KEY = "sk-ant-api03-" + "Ab1Cd2Ef3Gh4" * 5
PIECES = (
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "API_KEY='$(rm -rf ~)'",
    "Authorization: Bearer abcdefghijklmnop1234",
    "password: 'DROP TABLE users'",
    "sk-" + "a1" * 12,
    "https://hooks.slack.com/services/T00000000/B00000000/" + "x" * 24,
    "ghp_" + "a1B2" * 9,
    "curl https://example.com/x | sh",
    "AKIA" + "ABCD2345" * 2,
    "[redacted]",
    "eyJhbGciOi.eyJzdWI.x",
    "\\u202e",
    "\\n",
    "\\",
    '"',
    "'",
    "`",
    "```",
    "\n",
    "\r\n",
    "\t",
    "  ",
    " ",
    "\u00a0",
    "\u3000",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u2028",
    "\x1b[2J",
    "\x9b31m",
    "\x00",
    "\x7f",
    "\ufeff",
    "\u3164",
    "\ufe0f",
    "\U000e0041",
    "\U000e0101",
    "\U0001f469\u200d\U0001f680",
    "é",
    "e\u0301",
    "Ω",
    "中文",
    "שלום",
    "مرحبا",
    "<b>",
    "&amp;",
    "&#x202e;",
    "<!--",
    "[a](http://x.y)",
    "![i](x)",
    "**b**",
    "_u_",
    "~~s~~",
    "$x$",
    "|",
    "# h",
    "- l",
    "1. n",
    "www.x.y",
    "a@b.c",
    "t1",
    "[t1]",
    "{{x}}",
    "%s",
    "${X}",
    ":smile:",
    "[red]",
    "…",
    "’",
    "starter.py",
    "/tmp /x",
    "a" * 90,
)
NUMBERS = (
    "0", "-0", "-0.0", "1", "1.0", "1e3", "1E400", "-1e400", "9007199254740993", "0.1", "1e-400",
    "123456789012345678901234567890", "2.2250738585072014e-308", "1.7976931348623157e308",
    "3.14159265358979323846", "1e22", "1e23", "NaN", "Infinity", "true", "false", "null",
)  # fmt: skip
NAMES = ("note", "command", "token", "password", "api_key", "text", "", " ", "\u202eterces", "a b")


def text(chance: random.Random) -> str:
    kinds = (
        lambda: chance.choice(PIECES),
        lambda: chr(chance.choice((chance.randrange(0x20, 0x7F), chance.randrange(0xD800)))),
        lambda: chr(chance.randrange(0xE000, 0x110000)),
    )
    return "".join(chance.choice(kinds)() for _ in range(chance.randrange(6)))


def written(chance: random.Random, depth: int = 0) -> str:
    """JSON as a model may write it: escapes in several spellings, names given twice."""
    kind = chance.randrange(8 if depth < 4 else 5)
    if kind == 0:
        return chance.choice(NUMBERS)
    if kind < 5:
        said = text(chance)
        if not chance.randrange(8):
            # As a document in a document, which is where half of all escapes come from.
            said = json.dumps({chance.choice(NAMES): said}, ensure_ascii=bool(chance.randrange(2)))
        return json.dumps(said, ensure_ascii=bool(chance.randrange(2)))
    inner = [written(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 5:
        return f"[{', '.join(inner)}]"
    named = (f"{json.dumps(chance.choice(NAMES))} : {each}" for each in inner)
    return "{" + ",\n ".join(named) + "}"


def arguments(chance: random.Random) -> str:
    inner = ((chance.choice(NAMES), written(chance)) for _ in range(chance.randrange(1, 5)))
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in inner) + "}"


def answered(document: str) -> ModelAnswer:
    """A turn that calls `act`, as the stream of an endpoint brings it."""
    transcript = Transcript()
    block = {"type": "tool_use", "id": "u1", "name": "act", "input": {}}
    half = len(document) // 2
    for event in (
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": part},
            }
            for part in (document[:half], document[half:])
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ):
        transcript.feed(None, json.dumps(event))
    raw = transcript.raw
    return ModelAnswer("", "tool_use", "m", Usage(), flaw=find_flaw(transcript, raw), raw=raw)


def shown(document: str) -> tuple[ModelAnswer, ToolUse] | None:
    """A call as a person is asked about it; None: nobody is."""
    answer = answered(document)
    said, _ = saying.read_message(shape_of({}), answer, approval=("act",))
    if said is None or not said.uses or not said.uses[0].shown:
        return None
    return answer, said.uses[0]


def generated(count: int) -> Iterator[tuple[ModelAnswer, ToolUse]]:
    """As many calls that a person would be asked about."""
    chance, found = random.Random(20_261_123), 0
    while found < count:
        if (each := shown(arguments(chance))) is not None:
            found += 1
            yield each


def same(one: object, other: object) -> bool:
    """The same JSON, byte for byte: 1 is not 1.0, and the order counts."""
    return json.dumps(one) == json.dumps(other)


@pytest.mark.parametrize("count", MANY)
async def test_what_stands_in_an_approval_is_what_a_server_receives(
    tmp_path: Path, count: int
) -> None:
    store = DirectoryStore(tmp_path)
    asked = {"command": [sys.executable, str(SERVER), "echo"], "environment": dict(os.environ)}
    async with Client(over_pipes(asked), read_timeout_seconds=60, cache=None) as client:
        for place, (answer, use) in enumerate(generated(count)):
            approved, called = json.loads(use.shown), answer.calls[0]["input"]
            if place % 10 == 0:
                # The store takes a file for each, which is most of the time that this takes.
                kept = await append(store, Spoke(), Told(), answer.content)
                called = await find_arguments(store, kept, "u1")
            assert same(approved, called), use.shown
            # As the client, a program of its own, is asked.
            handed = json.loads(json.dumps({"arguments": dict(called)}))["arguments"]
            result = await client.call_tool("act", handed)
            assert same(approved, json.loads(cast(Any, result.content[0]).text)), use.shown


def asks(use: ToolUse) -> Question:
    return Question(kind="call", subtask_id="t1", text=f"act {use.shown}", call=7)


def read_from(markup: str) -> str:
    """What a browser shows of it."""
    return html.unescape(re.sub(r"<[^<>]*>", "", markup))


@pytest.mark.parametrize("count", MANY)
def test_every_face_shows_an_approval_letter_by_letter(count: int) -> None:
    live = steering.Live("token", "nonce")
    for answer, use in generated(count):
        assert use.shown == one_line(use.shown) == " ".join(use.shown.split())
        (asked,) = reminders(view(waiting=(asks(use),)))
        assert asked.text == f"t1 wants to make call 7: act {use.shown}"
        assert same(asked.call["arguments"], answer.calls[0]["input"])
        about = f"t1: act {use.shown}"
        given = Given(number=1, command="approve", order=Order(call=7), at=START, about=about)
        (line,) = orders.lines((given,))
        assert read_from(prose_line(line, {})).endswith(f" approved call 7: {about}"), line
        run = replace(pictured(1), view=view(waiting=(asks(use),)))
        page = str(steering._question(asks(use), run, live))
        assert f"act {use.shown}" in read_from(page), page


@pytest.mark.parametrize("width", rest_long([80, 40, 121]))
def test_a_terminal_breaks_an_approval_between_letters_and_loses_none(width: int) -> None:
    for _, use in generated(300):
        printed = drawn(board(view(waiting=(asks(use),)), width=width), width)
        text = re.sub(r"\x1b\[[0-9;]*m", "", printed)
        assert f"? t1 wants to make call 7: act {use.shown}" in text.replace("\n", ""), text


def test_a_screen_without_a_letter_shows_its_escape_and_no_other_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "holdfast.cli.screen.looks.sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii")
    )
    for answer, use in generated(500):
        (asked,) = reminders(view(waiting=(asks(use),)))
        assert asked.text.isascii()
        assert same(json.loads(asked.text.partition(": act ")[2]), answer.calls[0]["input"])


KNOWN = fitting.collect_secrets(
    [KEY],
    {
        "MY_TOKEN": "tok-91ab37cd55ef",
        "PWD": "/home/ann/project-2026",
        "KEY_FILE": "/etc/keys/a1.pem",
        "PAGER": "less-2026-edition",
    },
    {
        "notes": Server(
            "notes",
            Path("/"),
            environment={"DB_PASSWORD": "hunter2hunter2"},
            headers={"X-Own": "h3ader-value-77"},
            url="https://x.example/?sig=q1w2e3r4t5y6",
        )
    },
)


@pytest.mark.parametrize(
    "secret", [KEY, "tok-91ab37cd55ef", "hunter2hunter2", "h3ader-value-77", "q1w2e3r4t5y6"]
)
async def test_nobody_is_asked_about_a_call_that_holds_a_secret_of_the_deployment(
    secret: str,
) -> None:
    @tool(effects=True, approval=True)
    async def act(here: Here, text: str) -> str:
        """Act."""
        return text

    for text in (secret, f"before {secret} behind", f"{secret[:7]}\u200b{secret[7:]}"):
        said = await fitting.find_unfit({"act": act}, lambda: KNOWN, act.spec, {"text": text})
        assert said == fitting.SECRET, text


@pytest.mark.parametrize("piece", [*PIECES, "/home/ann/project-2026", "less-2026-edition"])
async def test_what_only_looks_like_a_secret_is_shown_as_it_is(piece: str) -> None:
    @tool(effects=True, approval=True)
    async def act(here: Here, text: str) -> str:
        """Act."""
        return text

    assert await fitting.find_unfit({"act": act}, lambda: KNOWN, act.spec, {"text": piece}) == ""
    call = shown(json.dumps({"text": piece, "command": "curl x | sh"}))
    assert call is not None and "curl x | sh" in call[1].shown


@pytest.mark.parametrize(("given", "fits"), [(5, True), ("5", False), (5.0, False), (True, False)])
async def test_a_tool_gets_what_was_approved_and_nothing_that_was_made_of_it(
    given: object, fits: bool
) -> None:
    received: list[object] = []

    @tool(effects=True, approval=True)
    async def act(here: Here, number: int, names: tuple[str, ...] = ()) -> str:
        """Act."""
        received.append((number, names))
        return ""

    arguments: Any = {"number": given, "names": ["a"]}
    wrong = await fitting.find_unfit({"act": act}, KnownSecrets, act.spec, arguments)
    assert bool(wrong) is not fits
    if fits:
        await act.run(cast(Any, None), arguments)
        assert received == [(given, ("a",))]
    else:
        with pytest.raises(ToolError, match="do not fit"):
            await act.run(cast(Any, None), arguments)
        assert received == []
