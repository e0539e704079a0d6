"""List what a run asks of a person, each with the command that answers it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from holdfast.cli.screen.looks import exactly
from holdfast.contracts.view import Question, RunView
from holdfast.deployment.invocation import to_type
from holdfast.rendering.amounts import money
from holdfast.rendering.status import ANSWERED_BY, question_text


@dataclass(frozen=True)
class Reminder:
    """A question of a run in words, with the command that answers it."""

    text: str
    command: str
    """Command to type, complete but for the answer itself."""
    others: str = ""
    """Other commands that would do."""
    call: Mapping[str, object] = field(default_factory=dict)
    """The tool call and the command that declines it, for programs."""

    @property
    def remedy(self) -> str:
        return f"{self.command}  (or: {self.others})" if self.others else self.command


def reminders(view: RunView) -> tuple[Reminder, ...]:
    """Return everything that a run asks of a person now."""
    return tuple(_reminder(view, question) for question in view.waiting)


def _reminder(view: RunView, question: Question) -> Reminder:
    about = str(question.call) if question.kind == "call" else question.subtask_id
    own = {
        "answer": f'{about} "your {"advice" if question.kind == "decision" else "answer"}"',
        "supply": f'{about} "the finding"' if question.kind == "decision" else about,
        "hand": f"{about} ROLE",
        "raise": _more(view, question.least),
        "skip": question.subtask_id,
    }
    names: Sequence[str] = ANSWERED_BY[question.kind]
    if question.rows:
        failed = f"{about} --rows failed"
        own |= {"answer": f'{about} "go on"', "retry": failed, "skip": failed}
        names = ("answer", "retry", "skip")
    typed = [f"{to_type(name, view.run_id)} {own.get(name, about)}".rstrip() for name in names]
    call = {**_call(question), "decline": typed[1]} if question.kind == "call" else {}
    text = question_text(question, view, exactly(question.text))
    return Reminder(text, typed[0], ", ".join(typed[1:]), call)


def _call(question: Question) -> dict[str, object]:
    tool, _, said = question.text.partition(" ")
    try:
        arguments: object = json.loads(said)
    except ValueError:
        arguments = said
    who = {"call": question.call, "subtask": question.subtask_id}
    return {**who, "tool": tool, "arguments": arguments}


def _more(view: RunView, least: Decimal | None) -> str:
    """Return the double of that cap of which more is used up; the least that would do, where that
    is more, or where nothing could be paid yet.
    """
    spent = view.dollars_spent or Decimal(0)
    if view.model_calls * view.dollars_cap > spent * view.model_calls_cap:
        return f"--limits model_calls={view.model_calls_cap * 2}"
    twice = view.dollars_cap * 2
    if least is not None and (least > twice or not view.model_calls + spent):
        return f"--limits dollars={least.normalize():f}"
    return f"--limits dollars={money(twice)[1:]}"
