"""What agents add to a review: remarks that stand once a model that saw the code has confirmed
them. An analyser is a program with a known precision; an agent's word alone is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.contracts import Finding, Remark
from holdfast.contracts.remarks import is_from_agent
from holdfast.text import code_span, for_markdown

MOST_SHOWN = 10


def agents_of(findings: Iterable[Finding]) -> dict[str, int]:
    """The agents that came to an end, each with how many calls of tools it made."""
    done = (each for each in findings if each.status == "complete" and is_from_agent(each))
    return {each.subtask_id: each.tool_calls for each in done}


def parted(
    remarks: Iterable[Remark], agents: Iterable[str]
) -> tuple[list[Remark], tuple[Remark, ...]]:
    """What can stand, and what only an agent says: neither confirmed nor refuted."""
    of_agents = set(agents)
    stand, unconfirmed = list[Remark](), list[Remark]()
    for each in remarks:
        open_yet = each.lens in of_agents and each.verdict not in ("confirmed", "refuted")
        (unconfirmed if open_yet else stand).append(each)
    return stand, tuple(unconfirmed)


def read_by(agents: dict[str, int]) -> str:
    """Who read the code, beside the lenses; empty: nobody did."""
    said = [
        f"{for_markdown(name)} ({calls} tool call{'s' * (calls != 1)})"
        for name, calls in agents.items()
    ]
    return f"Agents read the code: {', '.join(said)}." if said else ""


def not_confirmed(remarks: Sequence[Remark]) -> list[str]:
    """A line for each of the first that only an agent says, with why no model confirmed it."""
    lines = []
    for each in remarks[:MOST_SHOWN]:
        text = for_markdown(each.message.strip().rstrip("."))
        why = for_markdown((each.why or "no model looked at it").strip().rstrip("."))
        place = f"{each.file}:{each.line}" if each.line else each.file
        lines.append(f"{code_span(place)}: {text} ({for_markdown(each.lens)}). {why}.")
    left = len(remarks) - len(lines)
    return [*lines, *([f"and {left} more"] if left > 0 else [])]
