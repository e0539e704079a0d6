"""What an agent with tools did: its turns, and each call of a tool, as its own history has them."""

from __future__ import annotations

import re

from htpy import Element, Node, code, details, li, p, span, strong, summary, ul

from holdfast.rendering.html.pictured import Pictured, short
from holdfast.rendering.status import SIGNS
from holdfast.rendering.trace_lines import OF_STEP, facts
from holdfast.text import pluralize
from holdfast.tracing.facts import USES_TOOLS
from holdfast.tracing.steps import TraceStep

MOST_LINES, MOST_IN_ALL = 100, 2_000
"""Most lines of one agent, and of all agents of a page together."""
FEWEST = 10
ARGUMENTS_LETTERS = 160
_NUMBER = re.compile(r"-(\d+)$")


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
    told = p(".soft.small")[short(" · ".join(filter(None, facts(step))), 400)]
    why = p(".why.small")[short(step.why, 400)] if step.why and wrong else None
    return li(class_=step.kind)[p[SIGNS[OF_STEP[step.status]], " ", _name(step)], told, why]


def _name(step: TraceStep) -> Node:
    if step.kind != "tool":
        number = _NUMBER.search(step.name)
        return strong[f"Turn {number[1]}" if number else short(step.name, 60)]
    given = short(step.arguments, ARGUMENTS_LETTERS)
    return [code[short(step.tool, 80)], [" ", span(".mono")[given]] if given else None]
