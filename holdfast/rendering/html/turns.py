"""What an agent with tools did: its turns, and each call of a tool, as its own history has them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from htpy import Element, Node, code, details, li, p, span, strong, summary, ul

from holdfast.rendering.amounts import at_most, seconds
from holdfast.rendering.html.pictured import Pictured, short
from holdfast.rendering.status import SIGNS
from holdfast.rendering.trace_lines import OF_STEP
from holdfast.text import pluralize
from holdfast.tracing.facts import USES_TOOLS
from holdfast.tracing.steps import StepStatus, TraceStep

MOST_LINES, MOST_IN_ALL = 100, 2_000
"""Of one agent, and of all agents of a page together."""
FEWEST = 10
ARGUMENTS_LETTERS = 160
_NUMBER = re.compile(r"-(\d+)$")
_SAID: dict[StepStatus, str] = {
    "error": "failed",
    "cancelled": "cancelled",
    "running": "under way",
    "unfinished": "cut off",
}


def turns(run: Pictured, agent: str) -> Node:
    """Return the turns of one agent, folded away. `agent`: the id of its workflow."""
    steps = run.turns.get(agent)
    if steps is None:
        return p(".soft.small")[
            "Its turns and calls of tools stand in a history of their own, ",
            code[short(agent, 200)],
            ", which was not read for this page.",
        ]
    most = min(MOST_LINES, max(MOST_IN_ALL // len(run.turns), FEWEST))
    left = len(steps) - most
    more = f"{left:,} more; all of them: {run.to_type('trace', run.report.run_id)}"
    return details[
        summary[f"What it did: {_many(run, agent)}"],
        ul(".turns")[(_line(each) for each in steps[:most]), left > 0 and li(".soft")[more]],
    ]


def _many(run: Pictured, agent: str) -> str:
    kinds = [each.kind for each in run.turns[agent]]
    asked, used = kinds.count("call"), kinds.count("tool")
    return pluralize(asked, "turn") + (f", {pluralize(used, 'call')} of tools" if used else "")


def _line(step: TraceStep) -> Element:
    wrong = step.status != "ok" or (step.verdict not in ("", USES_TOOLS) and step.kind == "call")
    facts = p(".soft.small")[" · ".join(filter(None, _facts(step)))]
    why = p(".why.small")[short(step.why, 400)] if step.why and wrong else None
    return li(class_=step.kind)[p[SIGNS[OF_STEP[step.status]], " ", _name(step)], facts, why]


def _name(step: TraceStep) -> Node:
    if step.kind != "tool":
        number = _NUMBER.search(step.name)
        return strong[f"Turn {number[1]}" if number else short(step.name, 60)]
    given = short(step.arguments, ARGUMENTS_LETTERS)
    return [code[short(step.tool, 80)], [" ", span(".mono")[given]] if given else None]


def _facts(step: TraceStep) -> Iterator[str]:
    yield _SAID.get(step.status, "") or (step.verdict or "answered" if step.kind == "call" else "")
    yield step.model
    yield seconds(step.seconds) if step.ended else ""
    yield f"attempt {step.attempt}" if step.attempt > 1 else ""
    if step.kind == "tool":
        yield f"{step.size:,} bytes" if step.ended else ""
        yield f"approved by {short(step.by, 80)}" if step.by else ""
        return
    yield f"{step.tokens.total:,} tokens" if step.tokens.total else ""
    yield at_most(step.dollars, step.assumed) if step.dollars or step.dollars is None else ""
