"""Undone fixes, reviewed by agents: what these have in sight on scripted models, and with a real
model what they find, what of it is confirmed, and for how much.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from bench.instruments.deployment import REQUESTS, Deployment, deployed
from bench.instruments.tables import head
from bench.review import ANSWERED, IN_SIGHT
from bench.review.undone import Case, by_language, cases
from holdfast.contracts import Goal, GoalInput, Limits, Remark, Report
from holdfast.contracts.errors import BadGoal
from holdfast.contracts.remarks import read_review

DOLLARS = Decimal(2)
"""Cap of one review."""
Reviewed = tuple[Case, Report]
WHAT = ("diff", "callers", "test", "message")


@dataclass(frozen=True)
class Sight:
    """What the agents of a review were sent of a case: `told` in their first prompts, and `found`
    by one turn of tools.
    """

    case: Case
    told: str
    found: str
    report: Report
    seconds: float

    def where(self, what: str) -> str:
        """Return whether a part of the case was "told" or "found"; empty: it was not seen, and
        "none": there is none.
        """
        wanted = [each for each in _texts(self.case, what) if each]
        check = all if what == "diff" else any
        if not wanted:
            return "none"
        if check(each in self.told for each in wanted):
            return "told"
        return "found" if check(each in self.told or each in self.found for each in wanted) else ""


def _texts(case: Case, what: str) -> Sequence[str]:
    """Return what is looked for: all lines of the diff, or any of the others."""
    if what == "diff":
        return case.lines
    if what == "test":
        return case.fix.tests
    return (case.message,) if what == "message" else case.callers


def _rules(listed: Iterable[Case]) -> Iterator[Mapping[str, Any]]:
    """Yield the turn in which agents look at a case; all then answer that they have no remark."""
    for case in listed:
        file = next(iter(case.ranges))
        tools = [
            {"name": "git_diff", "input": {"path": "repo"}},
            {"name": "git_history", "input": {"path": f"repo/{file}", "limit": 300}},
            {"name": "git_patch", "input": {"path": "repo", "commit": case.fix.commit[:12]}},
        ]
        if case.within:
            pattern = rf"\b{re.escape(case.within)}"
            tools.append({"name": "search_files", "input": {"pattern": pattern, "path": "repo"}})
        yield {"call": "take_turn", "text": case.name, "turn": 1, "tools": tools}


async def seen(folder: Path) -> list[Sight]:
    """What agents have in sight of each case, on scripted models."""
    found: list[Sight] = []
    with tempfile.TemporaryDirectory(prefix="bench-eyes-") as name:
        scratch = Path(name)
        listed = list(cases(folder, scratch, keep=True))
        script = {"rules": list(_rules(listed))}
        async with deployed(scratch, script, keeps=True, allowed_roots=(scratch,)) as here:
            for case in listed:
                began = time.monotonic()
                report = await here.result(await here.start(_goal(case)))
                seconds = time.monotonic() - began
                told, more = _sent(scratch / REQUESTS, case.name)
                found.append(Sight(case, told, more, report, seconds))
    return found


def _goal(case: Case) -> Goal:
    inputs = (
        GoalInput(name="repo", kind="repository", value=str(case.tree)),
        GoalInput(name="base", kind="text", value=case.repository.tag),
    )
    return Goal(
        text="Review the change",
        playbook="code-review",
        inputs=inputs,
        use_models=True,
        limits=Limits(dollars=DOLLARS),
    )


def _sent(requests: Path, name: str) -> tuple[str, str]:
    """Return the texts of all first prompts of a case's agents, and of what their tools brought."""
    told: list[str] = []
    found: list[str] = []
    for line in requests.read_text().splitlines():
        body = json.loads(line)
        if name not in line or not body.get("tools"):
            continue
        messages = body["messages"]
        told += _strings(messages[:1])
        found += _strings(messages[1:])
    return "\n".join(told), "\n".join(found)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def sights(found: Sequence[Sight]) -> str:
    """What was in sight, by language, and what was not."""
    lines = [head(IN_SIGHT), *by_language(found, lambda e: e.case.repository.language, _seen)]
    lines.append("\nTold in the first prompt + found by one turn of tools / of.\n")
    for each in found:
        if lost := [what for what in WHAT if not each.where(what)]:
            fix = f"{each.case.repository.repository} {each.case.fix.commit[:10]}"
            lines.append(f"* not in sight: {', '.join(lost)} of {fix} ({each.case.name})\n")
    return "".join(lines)


def _seen(found: Sequence[Sight]) -> Sequence[object]:
    cells = []
    for what in WHAT:
        places = [each.where(what) for each in found]
        there = len(places) - places.count("none")
        cells.append(f"{places.count('told')} + {places.count('found')} / {there}")
    return *cells, _dollars([each.report for each in found])


def _dollars(reports: Sequence[Report]) -> str:
    return f"{sum(each.dollars or Decimal(0) for each in reports) / max(len(reports), 1):.3f}"


# ---------------------------------------------------------------- with a real model


async def asked(folder: Path, dollars: Decimal) -> list[Reviewed]:
    """Reviews of each case by the model of ANTHROPIC_API_KEY, until another one could pass the
    cap.
    """
    key = os.environ.get("ANTHROPIC_API_KEY", "")
    if not key:
        raise BadGoal("ANTHROPIC_API_KEY is not set: a real model answers, and is paid")
    spent, found = Decimal(0), list[Reviewed]()
    address = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    with tempfile.TemporaryDirectory(prefix="bench-eyes-") as name:
        scratch = Path(name)
        async with deployed(
            scratch,
            {},
            allowed_roots=(scratch,),
            anthropic_api_key=SecretStr(key),
            anthropic_base_url=address,
        ) as here:
            for case in cases(folder, scratch):
                if spent + DOLLARS > dollars:
                    break
                report = await _review(here, case)
                spent += report.dollars or DOLLARS
                found.append((case, report))
    return found


async def _review(here: Deployment, case: Case) -> Report:
    return await here.result(await here.start(_goal(case)))


def answers(found: Sequence[Reviewed]) -> str:
    """What a real model found, and what it cost."""
    rows = by_language(found, lambda each: each[0].repository.language, _found)
    return "".join([head(ANSWERED), *rows])


def _found(of: Sequence[Reviewed]) -> Sequence[object]:
    at = [[each for each in _of_agents(report) if case.is_at(each)] for case, report in of]
    confirmed = sum(any(each.verdict == "confirmed" for each in told) for told in at)
    others = sum(len(_of_agents(report)) for _, report in of) - sum(map(len, at))
    return sum(map(bool, at)), confirmed, others, _dollars([report for _, report in of])


def _of_agents(report: Report) -> list[Remark]:
    review = read_review(report)
    listed = (*review.remarks, *review.unconfirmed) if review else ()
    return [each for each in listed if each.by_agent]


def main(folder: Path, dollars: Decimal | None) -> str:
    """What is to be printed; `dollars`: the cap of all reviews by a real model."""
    if dollars is None:
        return sights(asyncio.run(seen(folder)))
    return answers(asyncio.run(asked(folder, dollars)))
