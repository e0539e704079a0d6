"""What must hold of a run that was struck or failed, against the same run left alone. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from holdfast.activities.toolset.tool import Tool
from holdfast.certifying.board import Noted
from holdfast.certifying.watching import NOT_SEEN, REACHED
from holdfast.contracts import Report

MAY_HAVE_RUN = "it may have run"
"""Stands in the note of a report about a call of which nobody knows."""

AGAIN = re.compile(r"-again\d+$")


@dataclass(frozen=True)
class Seen:
    """What is known of one run."""

    run_id: str
    report: Report | None
    """None: it was not over in time."""
    cap: Decimal
    """Dollars that it may spend."""
    charged: Mapping[str, Any] = field(default_factory=dict)
    """The simulator's log."""
    noted: Sequence[Noted] = ()
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The answer, without the run's own name."""
        if self.report is None:
            return ""
        said = f"{self.report.answer}\n{self.report.document or ''}"
        return said.replace(self.run_id, "RUN")


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a run, and what is told of it."""

    wrong: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    paid_again: int = 0
    doubled: int = 0
    same_answer: bool = False
    over_cap: bool = False
    again: tuple[str, ...] = ()
    """What happened again when a call was repeated with its key, by tools that declare that to be
    harmless.
    """
    within: tuple[str, ...] = ()
    """What tools with effects did more than once within one call."""


def judge(seen: Seen, plain: Seen, tools: Mapping[str, Tool], *, killed: bool) -> Verdict:
    """Return the verdict on a run. `killed`: by a blow, after which it must end like the plain one;
    else its endpoint failed, and it must end so or say why not.
    """
    if seen.report is None:
        return Verdict((f"it was not over after {seen.seconds:.0f} s",))
    again = arrived(seen) - arrived(plain) if killed else Counter[str]()
    paid = again.total() if killed else int(seen.charged.get("again", 0))
    doubled, told = effects(seen, plain, tools)
    same = seen.answer == plain.answer and seen.report.status == _status(plain)
    over = Decimal(seen.charged["dollars"]) > seen.cap
    wrong = (
        *(f"{name}: its answer had arrived and was paid again" for name in again),
        *(["an answer that had arrived was paid again"] if paid and not killed else []),
        *doubled,
        *_money(seen.report, seen, over),
        *_end(seen, plain, same=same, excused=killed and bool(told), killed=killed),
    )
    seen_again, within = repeated(seen, tools)
    return Verdict(tuple(wrong), told, paid, len(doubled), same, over, seen_again, within)


# ---------------------------------------------------------------- money


def arrived(seen: Seen) -> Counter[str]:
    """Count the answers of models that arrived, by what they were for, whichever try it was."""
    sent = {each.key for each in seen.noted if each.place.moment == "sent"}
    kept = (
        each
        for each in seen.noted
        if each.place.moment == "kept" and each.key in sent and each.place.kind != "use_tool"
    )
    return Counter(f"{each.place.part} {_purpose(each.place.step)}".strip() for each in kept)


def _purpose(step: str) -> str:
    """Return what a call is for: its id without the number of the try, whether an agent asks its
    turn again because the answer was lost or because of what it said.
    """
    stem, _, number = step.rpartition("-")
    return AGAIN.sub("", stem) if number.isdigit() and stem else step


def _money(report: Report, seen: Seen, over: bool) -> Iterator[str]:
    dollars, calls = Decimal(seen.charged["dollars"]), seen.charged["admitted"]
    if over:
        yield f"charged were ${dollars}, above the cap of ${seen.cap}"
    # The rows of a map are no calls of its run: dollars bound them.
    maps = report.plan is not None and any(each.map for each in report.plan.subtasks)
    fewer = report.model_calls < calls and not maps
    if fewer or (report.dollars is not None and report.dollars < dollars):
        yield (
            f"its bill says {report.model_calls} calls, ${report.dollars}; charged were {calls},"
            f" ${dollars}"
        )


# ---------------------------------------------------------------- effects


def effects(
    seen: Seen, plain: Seen, tools: Mapping[str, Tool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which effects happened twice or are declared by nobody, and which the report tells."""
    wrong: list[str] = []
    told: list[str] = []
    used = sorted({each.tool for each in seen.noted if each.tool})
    for tool in (tools[name] for name in used if name in tools):
        wrong += _undeclared(tool, seen, plain)
        if tool.effects:
            wrong += _doubled(tool, seen, plain)
            lost, said = _lost(tool, seen)
            wrong += lost
            told += said
    return tuple(wrong), tuple(told)


def _calls(tool: str, seen: Seen, moment: str) -> list[Noted]:
    return [each for each in seen.noted if each.tool == tool and each.place.moment == moment]


def _doubled(tool: Tool, seen: Seen, plain: Seen) -> Iterator[str]:
    """Yield calls that happened again: with the key that they had, or with another."""
    keys = Counter(each.key for each in _calls(tool.name, seen, "called"))
    if not tool.idempotent and any(count > 1 for count in keys.values()):
        yield f"{tool.name} was carried out {max(keys.values())} times for one call"
    asked, before = (_by_arguments(tool.name, each) for each in (seen, plain))
    for about in asked - before:
        if before[about]:
            yield f"{tool.name} was called again, by another key, with the arguments {about}"


def _by_arguments(tool: str, seen: Seen) -> Counter[str]:
    by_key = {each.key: each.about for each in _calls(tool, seen, "called")}
    return Counter(by_key.values())


def _lost(tool: Tool, seen: Seen) -> tuple[list[str], list[str]]:
    """Return calls that may have run and of which nobody says so, and what is said of others."""
    assert seen.report is not None
    notes = [each for each in seen.report.notes if tool.name in each and MAY_HAVE_RUN in each]
    keys = Counter(each.key for each in _calls(tool.name, seen, "called"))
    open_ = {*keys} - {each.key for each in _calls(tool.name, seen, "done")}
    if tool.idempotent:
        twice = [key for key, count in keys.items() if count > 1]
        said = f"{tool.name} ran again with the same key, which it declares harmless"
        return [], [said] * bool(twice)
    if open_ and not notes:
        return [f"{tool.name} may have run, and the report does not say so"], []
    return [], [f"{tool.name}: {MAY_HAVE_RUN}, as the report says"] * bool(notes)


def _undeclared(tool: Tool, seen: Seen, plain: Seen) -> Iterator[str]:
    """Yield what a tool did outside that declares no effect."""
    if tool.effects:
        return
    declared = bool(tool.sends_to(lambda _: ""))
    for what, count in _outside(tool, seen).items():
        if declared and what.startswith(REACHED):
            continue
        again = f", {count} times for one call" if count > _outside(tool, plain)[what] else ""
        yield (
            f"{tool.name} {what}{again}; it declares no effect: say effects=True, and"
            " idempotent=False unless doing it again with the same key is harmless"
        )


def _outside(tool: Tool, seen: Seen) -> Counter[str]:
    """Count what it did outside, at most for one call."""
    done = Counter((each.about, each.key) for each in _calls(tool.name, seen, "outside"))
    most = Counter[str]()
    for (what, _), count in done.items():
        if not what.startswith(NOT_SEEN):
            most[what] = max(most[what], count)
    return most


def repeated(seen: Seen, tools: Mapping[str, Tool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what tools with effects were seen doing again for one call, and twice within one."""
    again, within = dict[str, None](), dict[str, None]()
    for (name, what, _), times in _by_try(seen).items():
        if name not in tools or not tools[name].effects:
            continue
        if tools[name].idempotent and len(times) > 1:
            again[f"{name} {what} again for one call"] = None
        if (most := max(times.values())) > 1:
            within[f"{name} {what} {most} times within one call"] = None
    return tuple(again), tuple(within)


def _by_try(seen: Seen) -> dict[tuple[str, str, str], Counter[int]]:
    """Count what tools did outside, by tool, deed and key of the call, for each time that it was
    carried out.
    """
    tries = Counter[str]()
    found = defaultdict[tuple[str, str, str], Counter[int]](Counter)
    for each in seen.noted:
        tries[each.key] += each.place.moment == "called"
        if each.place.moment == "outside":
            found[each.tool, each.about, each.key][tries[each.key]] += 1
    return found


# ---------------------------------------------------------------- the end


def _status(seen: Seen) -> str:
    return seen.report.status if seen.report else ""


def _end(seen: Seen, plain: Seen, *, same: bool, excused: bool, killed: bool) -> Iterator[str]:
    """Yield why its end is not honest. `excused`: an agent was told that a call may have run, and
    may say so.
    """
    assert seen.report is not None
    report = seen.report
    if same or excused:
        return
    before = reasons(plain.report) if plain.report else ()
    why = [each for each in reasons(report) if each not in before]
    if killed:
        what = "another answer" if report.status == _status(plain) else f"it ended {report.status}"
        yield f"{what}: {'; '.join(why) or 'without a reason'}"
    elif not why:
        yield f"it ended {report.status} with another answer, and does not say why"


def reasons(report: Report) -> tuple[str, ...]:
    """Return why a report is not complete, as it says itself."""
    found: Iterable[str] = (
        *([f"stopped: {report.stopped}"] if report.stopped else []),
        *(f"{each.title}: {each.why}" for each in report.gaps),
        *report.notes,
    )
    return tuple(found)
