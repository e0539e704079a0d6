"""What every call is told beside its material: the day, and what its work is part of."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from holdfast.calls.envelopes import defang
from holdfast.contracts import Contract
from holdfast.text import one_line

MOST_LINE = 600
"""Characters of a goal, or of what the answer is to be, beside another instruction."""


class About(Contract):
    """The day of the run, and the answer that a call works for. Empty: it is not said."""

    today: str = ""
    """Day on which the run was prepared, as in 2026-11-23, in UTC."""
    goal: str = ""
    """The plan's goal, in a line."""
    answer: str = ""
    """How the final answer is made: its reader, language, length and form."""
    alone: bool = False
    """True if its result is the answer, because no other subtask is planned."""
    attempt: bool = Field(default=False, exclude_if=lambda is_one: not is_one)
    """True if its result is the answer should it be the best of several."""


def say_today(about: About) -> Iterator[str]:
    if about.today:
        yield f"Today is {about.today} (UTC)."


def say_about(about: About, *, own: bool = True) -> Iterator[str]:
    """Yield the day and what a subtask is part of, in a line each. `own`: to its agent; else to
    somebody who judges its result or rewrites its instruction.
    """
    yield from say_today(about)
    goal, answer = quote(about.goal), quote(about.answer)
    if about.alone or about.attempt:
        whose = "Your" if own else "The agent's"
        whose = "Several agents attempt this, and the best" if about.attempt else whose
        whole = f" to {goal}" if goal else ""
        told = f" It is to be so: {answer}" if answer else ""
        yield f"{whose} result is handed on as it stands as the answer{whole}.{told}"
    elif goal:
        found = "What you find" if own else "The agent's result"
        told = f" {found} is used for: {answer}" if answer else ""
        part = "Part of a larger goal, of which the instruction is yours"
        part = part if own else "The instruction is part of a larger goal"
        yield f"{part}: {goal}{told}"


def quote(text: str) -> str:
    """Return a text in a line and in marks, cut where it is long; empty: there is none."""
    line = one_line(text)
    short = line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]}…"
    return f"«{defang(short)}»" if short else ""
