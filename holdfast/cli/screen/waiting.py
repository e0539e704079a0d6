"""What a run asks of a person, each with the command that answers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from holdfast.cli.screen.invocation import to_type
from holdfast.cli.screen.looks import exactly
from holdfast.contracts.view import Preview, Question, RunView
from holdfast.rendering.amounts import money, seconds
from holdfast.rendering.preview import price


@dataclass(frozen=True)
class Reminder:
    """A question of a run in words, with the command that answers it."""

    text: str
    command: str
    """What to type, complete but for the answer itself."""
    others: str = ""
    """Other commands that would do."""
    call: Mapping[str, object] = field(default_factory=dict)
    """Of a call of a tool, for programs: what it is, and the command that declines it."""

    @property
    def remedy(self) -> str:
        """The command in a line, with the others beside it."""
        return f"{self.command}  (or: {self.others})" if self.others else self.command


def reminders(view: RunView) -> tuple[Reminder, ...]:
    """Everything that a run asks of a person now."""
    return tuple(_reminder(view, question) for question in view.waiting)


def _reminder(view: RunView, question: Question) -> Reminder:
    match question.kind:
        case "plan":
            return Reminder(
                _plan(view.preview), _command("approve", view), _or(view, "edit", "reject")
            )
        case "paused":
            return Reminder("the run is paused", _command("resume", view))
        case "budget":
            return Reminder(question.text, f"{_command('raise', view)} {_twice(view)}")
        case "call":
            number = question.call
            decline = f"{_command('decline', view)} {number}"
            others = f"{decline}, {_or(view, 'skip', about=question.subtask_id)}"
            said = f"{question.subtask_id} wants to make call {number}: {exactly(question.text)}"
            approve = f"{_command('approve', view)} {number}"
            call = {**_call(question), "decline": decline}
            return Reminder(said, approve, others, call)
        case "subtask":
            who = question.subtask_id
            command = f'{_command("answer", view)} {who} "your answer"'
            return Reminder(
                f"{who} asks: {question.text}", command, _or(view, "skip", "supply", about=who)
            )


def _or(view: RunView, *commands: str, about: str = "") -> str:
    """Other commands, each as it is typed."""
    return ", ".join(f"{_command(name, view)} {about}".strip() for name in commands)


def _call(question: Question) -> dict[str, object]:
    """A call as fields."""
    tool, _, said = question.text.partition(" ")
    try:
        arguments: object = json.loads(said)
    except ValueError:
        arguments = said
    who = {"call": question.call, "subtask": question.subtask_id}
    return {**who, "tool": tool, "arguments": arguments}


def _twice(view: RunView) -> str:
    """The double of that cap of which more is used up."""
    spent = view.dollars_spent or Decimal(0)
    if view.model_calls * view.dollars_cap > spent * view.model_calls_cap:
        return f"--limits model_calls={view.model_calls_cap * 2}"
    return f"--limits dollars={money(view.dollars_cap * 2)[1:]}"


def _command(name: str, view: RunView) -> str:
    return to_type(name, view.run_id)


def _plan(preview: Preview | None) -> str:
    if preview is None:
        return "the plan waits for approval"
    many = len(preview.subtasks)
    count = f"{many} subtask{'s' * (many != 1)}"
    return f"the plan waits for approval: {count}, {price(preview)}, {seconds(preview.makespan)}"
