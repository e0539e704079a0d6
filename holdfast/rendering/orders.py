"""What people told a run: who, when, what, and whether it was refused."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.contracts import Given, Order, Plan, Subtask
from holdfast.rendering.amounts import money
from holdfast.rendering.blocks import Marked
from holdfast.rules.steering import COMMANDS
from holdfast.text import inline

PAST = {name: command.past for name, command in COMMANDS.items()} | {"cancel": "cancelled the run"}
OF_ROLE = "of the role"


def lines(orders: tuple[Given, ...]) -> Iterator[str]:
    """Yield each order, with the text that came with it in full."""
    for given in orders:
        order = given.order
        who = inline(order.by) or "somebody"
        what = PAST.get(given.command, inline(given.command)).replace("{what}", order.what)
        subject = f" {inline(order.subtask_id)}" if order.subtask_id else ""
        line = f"{given.at:%Y-%m-%d %H:%M:%S} UTC, **{who}** {what}{subject}"
        details = [*_details(given)]
        line += f": {'; '.join(details)}" if details else ""
        yield Marked(f"{line}. Refused: {inline(given.refused)}" if given.refused else line)


def _details(given: Given) -> Iterator[str]:
    order = given.order
    if given.about:
        yield inline(given.about)
    if given.unmet:
        yield inline(given.unmet)
    if order.tier:
        yield f"on {order.tier}"
    if order.role:
        yield f"to {inline(order.role)}"
    if order.text and given.command == "supply" and not given.refused:
        yield "the words are its finding"
    elif order.text:
        yield f"“{inline(order.text)}”"
    if order.limits is not None:
        yield inline(_caps(order))
    if order.plan is not None:
        yield from _changes(given.before, order.plan)


def _caps(order: Order) -> str:
    assert order.limits is not None
    cap = order.limits
    return f"{money(cap.dollars)}, {cap.model_calls} model calls, {cap.tokens:,} tokens"


def _changes(before: Plan | None, after: Plan) -> Iterator[str]:
    """Yield what an edit changed, subtask by subtask; nothing of a refused one."""
    if before is None:
        return
    old = {each.id: each for each in before.subtasks}
    new = {each.id: each for each in after.subtasks}
    for name in ("goal", "strategy", "synthesis_instruction", "critic"):
        if getattr(before, name) != getattr(after, name):
            yield f"{name}: “{inline(str(getattr(after, name)))}”"
    for key, subtask in new.items():
        if key not in old:
            yield f"added {inline(key)} (“{inline(subtask.title)}”)"
        elif subtask != old[key]:
            yield f"changed {inline(key)} ({', '.join(_fields(old[key], subtask))})"
    gone = [key for key in old if key not in new]
    if gone:
        yield f"took out {', '.join(map(inline, gone))}"


def _fields(before: Subtask, after: Subtask) -> Iterator[str]:
    """Yield each field that differs, as it is now; short words with what they were."""
    for name in Subtask.model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if name in ("tier", "role"):
            yield f"{name} {inline(old or OF_ROLE)} → {inline(new or OF_ROLE)}"
        else:
            yield f"{name} “{inline(_words(new))}”"


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(
            f"{each.kind} {each.argument}".strip() if hasattr(each, "kind") else str(each)
            for each in value
        )
    return str(value)
