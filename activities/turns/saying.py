"""Read a message of a model in a tool loop: calls, an answer, or what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError

from holdfast.activities.asking.replies import Shape, malformed_problem, read_value
from holdfast.calls.turn import ToolUse
from holdfast.contracts import Contract, Draft, Problem
from holdfast.ports import ModelAnswer
from holdfast.text import exact_json, one_line
from holdfast.untrusted.redact import MARGIN, redact

WORDS = 80
"""Characters of a call's arguments in the timeline and in a note of the run."""
SHOWN = 4_000
"""Most characters of a call's arguments that a person must approve. Nobody approves what cannot be
seen: a call with more is not made.
"""
GOES_ON = ("end_turn", "stop_sequence", "tool_use", "pause_turn")


class Said(Contract):
    """A message of a model."""

    content: tuple[JsonValue, ...]
    uses: tuple[ToolUse, ...] = ()
    draft: Draft | None = None
    dropped: tuple[str, ...] = ()
    """Places of what its schema does not have, which was left out."""
    text: str = ""
    tokens: int = 0


def read_message(
    shape: Shape[Any, Draft], answer: ModelAnswer, approval: Sequence[str] = ()
) -> tuple[Said | None, Problem | None]:
    """Return the message, unless no conversation can go on from it, and what is wrong with it.
    `shape` is that of the final answer. Calls of tools in `approval` are shown to a person.
    """
    if answer.stop_reason == "refusal":
        why = f"the model refused: {answer.detail or 'no reason'}"
        return None, Problem(kind="refusal", why=why)
    if answer.stop_reason not in GOES_ON:
        cut = answer.stop_reason in ("max_tokens", "model_context_window_exceeded")
        why = f"the answer was cut ({answer.stop_reason})"
        return None, Problem(kind="truncated" if cut else "malformed", why=why)
    said = Said(content=answer.content, text=_text(answer), tokens=answer.usage.total)
    if answer.stop_reason == "pause_turn" and not answer.flaw:
        return said, None
    uses = tuple(_use(block, approval) for block in answer.calls)
    why = _explain_unusable(answer, uses)
    if why:
        return None, Problem(kind="malformed", why=why)
    return (
        (said.model_copy(update={"uses": uses}), None)
        if uses
        else _read_answer(shape, said, answer)
    )


def _explain_unusable(answer: ModelAnswer, uses: Sequence[ToolUse]) -> str:
    """Return why no conversation can go on from its calls: each must get a result, by its own
    id.
    """
    if not answer.content:
        return answer.flaw or "it is empty"
    named = [each for each in answer.content if each.get("type") == "tool_use"]
    if len(named) > len(uses) or len({use.id for use in uses}) < len(uses):
        return answer.flaw or "it holds calls of tools that cannot be made"
    if answer.stop_reason == "tool_use" and not uses:
        return answer.flaw or "it stopped for a tool and named none"
    return ""


def _read_answer(
    shape: Shape[Any, Draft], said: Said, answer: ModelAnswer
) -> tuple[Said, Problem | None]:
    if answer.flaw:
        return said, Problem(kind="malformed", why=answer.flaw)
    try:
        draft, dropped = read_value(shape, answer.text)
    except (ValidationError, ValueError, RecursionError) as error:
        return said, malformed_problem(shape, answer.text, error)
    return said.model_copy(update={"draft": draft, "dropped": dropped}), None


def _use(block: dict[str, Any], approval: Sequence[str]) -> ToolUse:
    given, name = block["input"], one_line(str(block["name"]))[:100]
    words = ", ".join(
        json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else f'"{value}"'
        for value in given.values()
    )
    says = one_line(redact(words[: WORDS + MARGIN]))[:WORDS]
    return ToolUse(
        id=block["id"],
        name=name,
        says=says,
        shown=_show_arguments(given) if name in approval else "",
    )


def _show_arguments(given: dict[str, Any]) -> str:
    """Return all arguments of a call for a person: the JSON that the tool gets, with nothing taken
    out by how it looks, as whoever talked the model into the call chose its looks. Empty if they
    are too long to be read.
    """
    shown = exact_json(given)
    return shown if len(shown) <= SHOWN else ""


def _text(answer: ModelAnswer) -> str:
    """Return what it says beside its calls."""
    blocks = [each for each in answer.content if each.get("type") == "text"]
    return "\n".join(str(each.get("text", "")) for each in blocks)
