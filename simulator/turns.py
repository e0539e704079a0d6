"""Turns with tool calls: made from a rule, and known again when they come back.

Thoughts and calls carry digests of the turn that they are in and of all before it, so that any
server, also one that was killed and started again, finds out what was altered.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from holdfast.simulator import conversation, wire
from holdfast.simulator.planning import MARK
from holdfast.simulator.prefix import Block, digest_before
from holdfast.simulator.script import Rule, ToolCall

Json = dict[str, Any]
SIGNATURE = re.compile(r"scripted\.([0-9a-f]{16})\.([0-9a-f]{16})")
ID = re.compile(r"toolu_([0-9a-f]{16})_([0-9a-f]{16})_\d+")
SEARCHED: Json = {"type": "server_tool_use", "id": "srvtoolu_scripted", "name": "web_search"}
FOUND: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_scripted"}
SEARCH = "web_search_"
ENCRYPTED = "c2NyaXB0ZWQ=" * 200
MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


LIST, SEARCH_FILES, READ = "list_files", "search_files", "read_document"
TO_READ = re.compile(r"(?m)^- (.+) \((?:a folder|a document), \d+ bytes\): (\w+) ")
"""An input as an agent is told of it that only tools read: its name, and the tool for it."""


def look(body: Json) -> Rule | None:
    """What an agent with files does first, where the script lets it look: it lists them, and opens
    each input that is named to it; where it cannot search a folder, it reads the folder's first
    file next. None: the request neither begins an agent's work on files nor goes on with it so.
    """
    names = [each.get("name") for each in body.get("tools", [])]
    given = TO_READ.findall(wire.text_of(body["messages"][0].get("content")))
    spoke = [each for each in body["messages"] if each["role"] == "assistant"]
    if spoke:
        unread = [name for name, reader in given if reader == LIST]
        reads = len(spoke) == 1 and READ in names and SEARCH_FILES not in names
        calls = _first_files(body, unread) if reads else []
    else:
        calls = [ToolCall(name=LIST)] * (LIST in names)
        for name, reader in given:
            if reader != LIST and reader in names:
                calls.append(ToolCall(name=reader, input={"file_path": name}))
            elif SEARCH_FILES in names:
                within = {"pattern": ".", "path": name, "head_limit": 1}
                calls.append(ToolCall(name=SEARCH_FILES, input=within))
    return Rule(tools=tuple(calls)) if calls else None


def _first_files(body: Json, folders: list[str]) -> list[ToolCall]:
    """Calls that read the first file of each folder, as the last message lists them."""
    listed = wire.text_of(body["messages"][-1].get("content"))
    found = (re.search(rf"(?m)^({re.escape(name)}/.+)  \d+$", listed) for name in folders)
    return [ToolCall(name=READ, input={"file_path": each[1]}) for each in found if each]


def resumed(body: Json) -> list[Json]:
    """What an answer begins with: what the search found for which the turn before had paused."""
    return [{**FOUND, "content": []}] if conversation.pending(body["messages"][-1]) else []


def searched(rule: Rule | None, body: Json) -> list[Json]:
    """What the server's own search did in a turn: as often as the rule says, as far as the request
    lets it; then once more in vain.
    """
    offered = [each for each in body.get("tools", []) if each.get("type", "").startswith(SEARCH)]
    if not (rule and rule.searches and offered):
        return []
    most, turn = offered[0].get("max_uses", rule.searches), len(body["messages"])
    content = []
    for number in range(min(rule.searches, most + 1)):
        id = f"srvtoolu_scripted{turn}x{number}"
        found: Any = [
            {
                "type": "web_search_result",
                "url": f"https://example.com/{number}",
                "title": f"{MARK} a page",
                "encrypted_content": ENCRYPTED,
                "page_age": None,
            }
        ]
        if number == most:
            found = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
        content.append({**SEARCHED, "id": id, "input": {"query": f"{MARK} {number}"}})
        content.append({**FOUND, "tool_use_id": id, "content": found})
    return content


def bill_searches(usage: Json, content: list[Json]) -> None:
    """Count the searches of a message that came to an end, if only to an empty one; the prompt is
    read again after each of them.
    """
    if not any(block["type"] in (SEARCHED["type"], FOUND["type"]) for block in content):
        return
    searches = sum(
        block["type"] == FOUND["type"] and isinstance(block["content"], list) for block in content
    )
    kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    prompt = sum(usage[kind] for kind in kinds) + wire.tokens_of(json.dumps(content))
    usage["input_tokens"] += searches * prompt
    usage["server_tool_use"] = {"web_search_requests": searches, "web_fetch_requests": 0}


def turn_of(rule: Rule, body: Json, blocks: list[Block]) -> list[Json]:
    """The content of a turn: a thought, words if the rule has some, and the calls, or a search of
    the server's own.
    """
    count = len(rule.tools)
    content = [*resumed(body), *searched(rule, body)]
    if rule.thinking:
        said = f"{MARK} A thought before {count} call{'s' * (count != 1)}."
        content.append({"type": "thinking", "thinking": said, "signature": ""})
    if rule.result:
        content.append({"type": "text", "text": f"{MARK} {rule.result}"})
    if rule.pause:
        content.append({**SEARCHED, "input": {"query": MARK}})
    for call in rule.tools:
        about = {"type": "tool_use", "id": "", "name": call.name, "input": dict(call.input)}
        content.append({**about, "caller": {"type": "direct"}})
    before = digest_before(blocks, len(body["messages"]))[:16]
    turn = _digest(content)
    for number, block in enumerate(content):
        if block["type"] == "thinking":
            block["signature"] = f"scripted.{before}.{turn}"
        elif block["type"] == "tool_use":
            block["id"] = f"toolu_{before}_{turn}_{number}"
    return content


def altered(body: Json, blocks: list[Block]) -> str:
    """What of the turns that a server like this one made has come back in another shape, or after
    something else; empty: nothing.
    """
    for index, message in enumerate(body["messages"]):
        content = wire.blocks(message.get("content"))
        made = _made(content) if message["role"] == "assistant" else []
        if not made:
            continue
        unsigned = any(
            block.get("type") == "thinking" and not SIGNATURE.fullmatch(str(block.get("signature")))
            for block in content
        )
        if unsigned or any(turn != _digest(content) for _, turn in made):
            return f"messages.{index}.content.0: {MODIFIED}"
        if any(before != digest_before(blocks, index)[:16] for before, _ in made):
            return (
                f"messages.{index}.content.0: `tools`, `system` or a message before this turn is "
                "not what it was when the turn was made."
            )
    return ""


def _made(content: list[Json]) -> list[tuple[str, str]]:
    """Digests of what was before the turn and of the turn, from each block that carries them."""
    found = [SIGNATURE.fullmatch(str(block.get("signature"))) for block in content]
    found += [ID.fullmatch(str(block.get("id"))) for block in content]
    return [(each[1], each[2]) for each in found if each]


def _digest(content: list[Json]) -> str:
    """Return the digest of a turn as written, with the order of its fields, without marks."""
    aside = {"signature": "", "id": ""}
    plain = [
        {name: aside.get(name, value) for name, value in block.items() if name != "cache_control"}
        for block in content
    ]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]
