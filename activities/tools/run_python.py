"""Run Python for models in a sandbox that computes and reaches nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from holdfast.activities.toolset import remote
from holdfast.activities.toolset.child import in_child
from holdfast.activities.toolset.inputs import decode_text, read
from holdfast.activities.toolset.tool import Here, Result, ToolError, tool
from holdfast.deployment.address import address_of

SANDBOX = "python_sandbox"
"""The setting that names a sandbox elsewhere."""
SECONDS = 10.0
MEMORY = 256 * 1024 * 1024
"""Bytes of the objects that the code may have at a time."""
STARTING_SECONDS = 10.0
"""Extra time to start and end two processes on a busy machine."""
HANDED_IN = 16 * 1024 * 1024
"""Bytes of one input, and characters of all together."""


def _sandbox(setting: Callable[[str], str]) -> str:
    address = setting(SANDBOX)
    return f"the sandbox at {address_of(address)}" if address else ""


def _extra(setting: Callable[[str], str]) -> str:
    return "web" if setting(SANDBOX) else "python"


@tool(seconds=30, sends=_sandbox, extra=_extra)
async def run_python(
    here: Here,
    code: Annotated[str, Field(min_length=1, max_length=50_000, description="A Python snippet")],
    inputs: Annotated[
        list[str],
        Field(max_length=10, description="Texts that it reads: an input's name, or INPUT/file"),
    ] = [],  # noqa: B006 - it is only read, and the schema shows it
) -> Result:
    """Run Python in a sandbox and see what it prints and the value of its last expression. There
    are no files and no network. Expect json, re, math, datetime, decimal and random, and not more:
    yield and numpy may be missing. The texts of the inputs you name are in the dictionary `inputs`,
    under these names. save("notes.csv", text) hands a text file up with your result. It has 10
    seconds and 256 MB; nothing else is kept between calls.
    """
    handed = {path: decode_text(await read(here, path, HANDED_IN), path) for path in inputs}
    size = sum(map(len, handed.values()))
    if size > HANDED_IN:
        raise ToolError(f"these inputs have {size:,} letters; at most {HANDED_IN:,} can be read")
    asked = {"code": code, "inputs": handed, "seconds": SECONDS, "memory": MEMORY}
    address = here.setting(SANDBOX)
    answer = await (remote.run(here, address, asked) if address else _here(asked))
    # Of a long output a model sees the beginning: what went wrong stands there.
    parts = [answer.get("error", ""), *await _hand_up(here, answer)]
    parts += [answer["printed"], answer.get("value", "")]
    text = "\n".join(each.rstrip("\n") for each in parts if each)
    return Result(text or "It ran, printed nothing and has no value.", "error" in answer)


async def _hand_up(here: Here, answer: dict[str, Any]) -> list[str]:
    """Keep what the code has saved, unless it failed in the end, and return a line for each
    file.
    """
    saved = {} if "error" in answer else answer.get("saved", {})
    # Half a character, which no file has, is shown as its escape.
    texts = {name: text.encode("utf-8", "backslashreplace") for name, text in saved.items()}
    files = [await here.hand_up(name, content) for name, content in texts.items()]
    return [f"{each.name} is handed up ({each.size:,} bytes)." for each in files]


async def _here(asked: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps(asked).encode()
    said = await in_child("run_python.py", content, seconds=SECONDS + STARTING_SECONDS)
    answer: dict[str, Any] = json.loads(said)
    return answer
