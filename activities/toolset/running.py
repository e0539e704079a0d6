"""Run one call of a tool: whatever happens in it becomes a result that a model can act on."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping

from pydantic import JsonValue

from holdfast.activities.toolset.tool import Here, Result, Tool, ToolError
from holdfast.text import one_line

logger = logging.getLogger(__name__)

CAP = 20_000
"""Bytes of a result that a model is shown at once."""
STOPPING_SECONDS = 5.0
"""How long a call that is cut may take to clear up after itself."""
ERROR_LETTERS = 2_000
NOTE_BYTES = 400
"""Bytes of the cap for what is said of a result that is cut."""
NAME_LETTERS = 100


async def call(
    tool: Tool | None,
    name: str,
    here: Here,
    arguments: Mapping[str, JsonValue],
    *,
    cap: int = CAP,
) -> Result:
    """Run a tool by the name that a model called it by; None: there is no such tool. Raises nothing
    but CancelledError, when it is cancelled itself. Of a result above `cap` bytes the model is
    shown the beginning and told how to read on; the whole is kept.
    """
    if tool is None:
        return _error(
            f"there is no tool {one_line(name)[:NAME_LETTERS]!r}; use those you were given"
        )
    try:
        result = await _within_its_time(tool, here, arguments)
    except ToolError as error:
        return _error(str(error), unsure=error.unsure)
    except Exception as error:
        # What it says may hold what no model is to see; the log of the worker has it.
        logger.warning("the tool %s failed", name, exc_info=True)
        said = f"{name} failed by a mistake of its own ({type(error).__name__})"
        return _error(said, unsure=True)
    return await _bounded(result, here, cap)


async def _within_its_time(tool: Tool, here: Here, arguments: Mapping[str, JsonValue]) -> Result:
    """Return the result of a run in a task of its own: libraries cancel the task that they run in
    when something of theirs ends, and this call must not look cancelled by that.
    """
    task = asyncio.create_task(_run(tool, here, arguments))
    try:
        await asyncio.wait([task], timeout=tool.seconds)
        if not task.done():
            raise ToolError(
                f"{tool.name} took longer than {tool.seconds:g} s and was stopped; {_then(tool)}",
                unsure=True,
            )
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=STOPPING_SECONDS)
    if task.cancelled():
        raise ToolError(f"{tool.name} was interrupted; {_then(tool)}", unsure=True)
    return task.result()


async def _run(tool: Tool, here: Here, arguments: Mapping[str, JsonValue]) -> Result:
    try:
        return await tool.run(here, arguments)
    except (SystemExit, KeyboardInterrupt) as error:
        # A library that ends its process would end this worker's loop, and with it every run.
        raise RuntimeError(f"it would have ended the worker ({type(error).__name__})") from error


def _then(tool: Tool) -> str:
    """Return what a model can do after a call that did not come back."""
    if tool.effects:
        return "whether it has taken effect is not known, so find out before you repeat it"
    return "ask it for less"


def _error(text: str, *, unsure: bool = False) -> Result:
    return Result(_plain(text)[:ERROR_LETTERS], is_error=True, unsure=unsure)


def _plain(text: str) -> str:
    """Return text that every store and endpoint takes: half a character becomes an escape."""
    return text.encode("utf-8", "backslashreplace").decode()


async def _bounded(result: Result, here: Here, cap: int) -> Result:
    """Return the result as a model and a history can take it."""
    content = _plain(result.text).encode()
    fits = result.data is None or len(json.dumps(result.data)) <= cap
    data = result.data if fits else None
    notes = [] if fits else ["What it returned as data is too long to be passed on as data."]
    if len(content) <= cap and not notes:
        return Result(content.decode(), result.is_error, data)
    head = content[: max(0, cap - NOTE_BYTES)].decode("utf-8", "ignore")
    if len(head.encode()) < len(content):
        notes.append(await _how_to_read_on(content, len(head), here))
    return Result(f"{head}\n\n[{' '.join(notes)}]", result.is_error, data)


async def _how_to_read_on(content: bytes, shown: int, here: Here) -> str:
    size = f"These are the first {shown:,} of {len(content.decode()):,} characters"
    try:
        handle = await here.keep(content)
    except Exception:
        logger.warning("a result could not be kept", exc_info=True)
        return f"{size}; the rest could not be kept, so ask for less."
    return f'{size}; read_result(handle="{handle}", from_character={shown}) reads on.'
