"""What a person may tell a run, one row per command: a refusal with its reason, and an effect.
Pure.

`refusal` is asked twice, when the Update arrives and when its turn comes, so that of two orders
that exclude each other one wins and the other is refused. What an order brings along is checked
once, on arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.contracts import HARD_SUBTASK_LIMIT, Draft, Given, Limits, Order, Plan, policies
from holdfast.contracts.replacing import replace
from holdfast.contracts.view import Phase
from holdfast.ledger.ledger import Amount, DoesNotFit
from holdfast.plans import validity
from holdfast.rules import approvals, keeping, map_orders, maps, planning
from holdfast.rules.map_findings import count_rows
from holdfast.rules.preview import predict
from holdfast.rules.repair import begin_anew, hand_over, take_answer
from holdfast.state.edits import begin_subtask, forget_losses, update
from holdfast.state.events import Steered
from holdfast.state.moves import Stop
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.settling import freeze, leave_as_is, settle, skip

CAPS = ("dollars", "model_calls", "tokens")
"""The limits that may be raised while a run is open."""


@dataclass(frozen=True)
class Command:
    """One steering command. `refusal` returns why it makes no sense now, or nothing."""

    refusal: Callable[[State, Order], str]
    effect: Callable[[State, Order], State]
    done: str
    """What the person is told; `{id}` is the subtask, `{what}` the plan or the tool call."""
    past: str
    """The same about somebody who gave it, with `{what}`."""
    unfit: Callable[[State, Order], str] = lambda _state, _order: ""
    """Why what the order brings along is no good, however the run stands."""


def refusal_on_arrival(state: State, name: str, order: Order) -> str:
    """Return why an order is not accepted; empty if it is. Never called in a replay: what was
    accepted once stays accepted, whatever another version says of it.
    """
    return refusal(state, name, order) or COMMANDS[name].unfit(state, order)


def refusal(state: State, name: str, order: Order) -> str:
    """Return why a command makes no sense now; empty if it may be carried out."""
    if state.phase == "closed":
        return "the run is over"
    unplanned = state.phase in ("preparing", "planning")
    if unplanned and name not in ("pause", "resume", "raise_cap"):
        why = "the plan is still being written" if state.early.begun else "there is no plan yet"
        return f"{why}; only pause, resume, raise and cancel make sense now"
    return COMMANDS[name].refusal(state, order)


def steer(state: State, event: Steered) -> State:
    """Carry out a command, unless it is refused, and record it."""
    why = refusal(state, event.command, event.order)
    given = Given(
        number=event.number,
        command=event.command,
        order=event.order,
        at=event.at or state.now,
        refused=why,
        before=state.plan if event.command == "edit" and not why else None,
        about=approvals.describe_call(state, event.order),
    )
    if not why:
        state = COMMANDS[event.command].effect(state, event.order)
    if not why and event.order.rows and event.command in ROWS_DONE:
        state = map_orders.number_order(state, event.order.subtask_id, event.number)
    return replace(state, orders=(*state.orders, given))


# ---------------------------------------------------------------- plans


def _nothing_to_approve(state: State, _: Order) -> str:
    return "" if state.phase == "approval" else "no plan waits for approval"


def _not_approvable(state: State, order: Order) -> str:
    if order.call:
        return approvals.refusal(state, order)
    return _nothing_to_approve(state, order) + approvals.hint(state)


def _approve(state: State, order: Order) -> State:
    if order.call:
        return approvals.decide(state, order, "approved")
    return replace(state, phase="working")


def _not_editable(state: State, order: Order) -> str:
    if state.phase != "approval":
        return _nothing_to_approve(state, order)
    return "no plan was given" if order.plan is None else ""


def _bad_plan(state: State, order: Order) -> str:
    assert order.plan is not None
    pinned, longest = state.brief.inputs, state.goal.limits.subtask_timeout_seconds
    names, unread = [each.name for each in pinned], validity.only_by_tools(pinned)
    wrong = validity.problems(
        order.plan, state.brief.roles, names, HARD_SUBTASK_LIMIT, unread=unread, longest=longest
    )
    return "; ".join(wrong)


def _edit(state: State, order: Order) -> State:
    assert order.plan is not None
    state = planning.adopt(state, order.plan)
    note = f"The plan was edited{_by(order)} before it ran."
    return replace(state, estimate=predict(state), notes=(*state.notes, note))


def _reject(state: State, order: Order) -> State:
    why = f"the plan was rejected{_by(order)}" + (f": {order.text}" if order.text else "")
    return replace(state, stop=Stop("declined", why))


# ---------------------------------------------------------------- subtasks


def _unknown(state: State, order: Order) -> str:
    if state.work.get(order.subtask_id) is None:
        return f"there is no subtask {order.subtask_id!r}; known: {', '.join(state.work)}"
    return TOO_SOON_OR_LATE.get(state.phase, "")


TOO_SOON_OR_LATE: Mapping[Phase, str] = {
    "approval": "the plan waits for approval; approve, edit or reject it first",
    "synthesizing": "all subtasks are over, and the answer is being written",
}
"""Why nothing can be done about a subtask though there are some."""


def _not_asked(state: State, order: Order) -> str:
    progress = state.work.get(order.subtask_id)
    if progress is None or not (progress.waits and progress.stage in ("person", "decision")):
        return _unknown(state, order) or f"{order.subtask_id} does not wait for an answer"
    if progress.tier == "none" or state.brief.role(progress.subtask.role).team:
        return f"{order.subtask_id} reads no advice; retry, supply or skip it"
    said = order.text.strip().lower()
    if progress.subtask.map is not None and said not in (maps.GO_ON, maps.STOP):
        return f"{order.subtask_id} takes {maps.GO_ON!r} or {maps.STOP!r} for an answer"
    return "" if order.text.strip() else "the answer is empty"


def _answer(state: State, order: Order) -> State:
    if state.work[order.subtask_id].subtask.map is not None:
        return maps.take_answer(state, order.subtask_id, order.text, order.by)
    return take_answer(state, order.subtask_id, order.text, order.by)


def _not_retryable(state: State, order: Order) -> str:
    progress = state.work.get(order.subtask_id)
    if progress is None or state.phase != "working":
        return _unknown(state, order)
    if order.rows:
        return map_orders.refusal_of_rows(state, order, "retry")
    if progress.finding is None and not progress.undecided:
        return f"{order.subtask_id} has not ended; there is nothing to retry"
    if progress.finding is not None and progress.finding.status == "complete":
        return f"{order.subtask_id} is complete; fork the run to do it differently"
    needed = [edge for edge in progress.subtask.depends_on if _missing(state, edge)]
    return f"{order.subtask_id} needs {', '.join(needed)}: retry that first" if needed else ""


def _missing(state: State, subtask_id: str) -> bool:
    finding = state.work[subtask_id].finding
    return finding is not None and finding.status in ("failed", "skipped", "cancelled")


def _retry(state: State, order: Order) -> State:
    if order.rows:
        return _revive(map_orders.take_order(state, order, "retry"), order.subtask_id)
    before = state.work[order.subtask_id]
    subtask = before.subtask
    if order.text.strip():
        subtask = subtask.model_copy(update={"instruction": order.text})
    fresh = begin_subtask(state, subtask)
    if order.tier and fresh.tier != "none":
        fresh = replace(fresh, tier=order.tier)
    fresh = replace(fresh, paid=before.paid, usage=before.usage)
    fresh = replace(fresh, started=before.started, waited_at_start=before.waited_at_start)
    state = forget_losses(state, subtask.id)
    return _revive(update(state, subtask.id, lambda _: fresh), subtask.id)


def _not_handable(state: State, order: Order) -> str:
    why = _not_retryable(state, order)
    if why:
        return why
    progress = state.work[order.subtask_id]
    others = hand_choices(state, progress)
    if progress.tier == "none":
        return f"{order.subtask_id} is done without a model; retry, supply or skip it"
    if order.role == progress.subtask.role:
        return f"{order.role} has had {order.subtask_id}; name another role, or retry it"
    known = f"known: {', '.join(others)}"
    return "" if order.role in others else f"there is no role {order.role!r} to hand it to; {known}"


def _unfit_role(state: State, order: Order) -> str:
    """Return why a role cannot read an input of a subtask; empty if it can."""
    handed = {"role": order.role, "secondary": ""}
    subtask = state.work[order.subtask_id].subtask.model_copy(update=handed)
    unread = validity.only_by_tools(state.brief.inputs)
    return validity.unread_problem(Plan(goal="", subtasks=(subtask,)), state.brief.roles, unread)


def hand_choices(state: State, progress: Progress) -> tuple[str, ...]:
    """Return the other roles of a run that have a model."""
    cards = (each for each in state.brief.roles if each.tier != "none")
    return tuple(each.name for each in cards if each.name != progress.subtask.role)


def _hand(state: State, order: Order) -> State:
    key, progress = order.subtask_id, state.work[order.subtask_id]
    why = progress.finding.why if progress.finding else progress.why
    state = hand_over(begin_anew(state, key), key, state.brief.role(order.role), why)
    return _revive(state, key)


def _revive(state: State, subtask_id: str) -> State:
    """Let wait again what was skipped because of a subtask."""
    for key in state.work.below(subtask_id):
        finding = state.work[key].finding
        if finding is not None and finding.status == "skipped":
            state = update(state, key, lambda each: replace(each, finding=None))
    return state


def _not_endable(state: State, order: Order) -> str:
    progress = state.work.get(order.subtask_id)
    if progress is None or state.phase != "working":
        return _unknown(state, order)
    if order.rows:
        return map_orders.refusal_of_rows(state, order, "skip")
    if progress.finding is not None:
        return f"{order.subtask_id} has ended: {progress.finding.status}"
    return f"{order.subtask_id} is being ended already" if progress.ending else ""


def _skip(state: State, order: Order) -> State:
    if order.rows:
        return _revive(map_orders.take_order(state, order, "skip"), order.subtask_id)
    progress = state.work[order.subtask_id]
    # A case that is handed over is dropped; what did not succeed stays as it ended.
    if progress.undecided and progress.outcome != "complete":
        return leave_as_is(state, order.subtask_id)
    why = f"skipped{_by(order)}" + (f": {order.text}" if order.text else "")
    return _end(state, order.subtask_id, why)


def _cancel(state: State, order: Order) -> State:
    return _end(state, order.subtask_id, f"cancelled{_by(order)}")


def _end(state: State, subtask_id: str, why: str) -> State:
    """End a subtask: at once if nothing is in flight, else when the cut activity has answered."""
    state = update(state, subtask_id, lambda each: replace(each, ending=why))
    progress = state.work[subtask_id]
    if progress.flight:
        return state
    if progress.started:
        return settle(state, subtask_id, "cancelled", why)
    return skip(state, subtask_id, why)


def _not_supplyable(state: State, order: Order) -> str:
    progress = state.work.get(order.subtask_id)
    if progress is None or state.phase != "working":
        return _unknown(state, order)
    if order.rows:
        return map_orders.refusal_of_rows(state, order, "supply")
    if progress.flight:
        return f"{order.subtask_id} is at work; cancel it first"
    if progress.finding is not None and progress.finding.status == "complete":
        return f"{order.subtask_id} is complete"
    return "" if order.text.strip() else "the finding is empty"


def _supply(state: State, order: Order) -> State:
    if order.rows:
        return _revive(map_orders.take_order(state, order, "supply"), order.subtask_id)
    source = f"supplied by hand{_by(order)}"
    draft = Draft(content=order.text, sources=(source,))

    def supplied(each: Progress) -> Progress:
        # No model wrote it, whichever was asked before, nor was to read anything for it.
        return replace(each, finding=None, last=draft, model="", unread=())

    state = update(state, order.subtask_id, supplied)
    state = _revive(state, order.subtask_id)
    return freeze(state, order.subtask_id, "complete", source)


# ---------------------------------------------------------------- the run


def _by(order: Order) -> str:
    return f" by {order.by}" if order.by else ""


def _not_raisable(state: State, order: Order) -> str:
    """Return why the caps of an order cannot be taken; empty if they can."""
    if order.limits is None:
        return "no limit was given; raise dollars, model_calls or tokens"
    cap, wanted = state.goal.limits, order.limits
    lower = [name for name in CAPS if getattr(wanted, name) < getattr(cap, name)]
    if lower:
        return f"{', '.join(lower)}: below the present cap; a cap can only be raised"
    if state.briefing is not None and state.briefing.within(wanted) != wanted:
        most = state.briefing.most_dollars
        return f"this deployment allows at most ${most:f} a run ({policies.MOST_RUN})"
    same = all(getattr(wanted, name) == getattr(cap, name) for name in CAPS)
    return "that is the present cap; name a higher one" if same else ""


def _raise_cap(state: State, order: Order) -> State:
    """Raise the caps; what waits for money goes on."""
    assert order.limits is not None
    caps: dict[str, object] = {name: getattr(order.limits, name) for name in CAPS}
    limits: Limits = state.goal.limits.model_copy(update=caps)
    try:
        ledger = state.ledger.raise_cap(limits)
    except DoesNotFit:
        return state
    goal = state.goal.model_copy(update={"limits": limits})
    if state.ledger.kept != Amount() and state.briefing and state.phase != "synthesizing":
        ledger = keeping.grow_kept(ledger, limits, state.briefing)
    return replace(state, goal=goal, ledger=ledger, short="", short_since=None)


ROWS_DONE = {
    "retry": ("is tried again", "are tried again"),
    "skip": ("is skipped", "are skipped"),
    "supply": ("has the result that was given", "have the result that was given"),
}
"""What a person is told of an order about one row of a map, or several."""


def say_done(name: str, order: Order) -> str:
    """Return what a person is told of an order that is carried out."""
    return COMMANDS[name].done.format(id=order.subtask_id, what=order.what)


def about_rows(name: str, order: Order) -> bool:
    """True if an order is about rows of a map, and so is carried out by the map."""
    return order.rows and name in ROWS_DONE


def rows_settled(state: State, order: Order, number: int) -> bool:
    """True if it is known what came of an order about rows, or that this may take long."""
    if (
        state.phase == "closed"
        or state.stop
        or not map_orders.is_pending(state, order.subtask_id, number)
    ):
        return True
    return map_orders.say_hindrance(state, order.subtask_id, number) != ""


def say_rows(state: State, name: str, order: Order, number: int) -> tuple[str, str]:
    """Return what came of an order about rows, or when that is carried out; and why it was refused
    in the end.
    """
    given, key = state.find_order(number), order.subtask_id
    assert given is not None, "its turn has come"
    one, several = ROWS_DONE[name]
    if map_orders.is_pending(state, key, number):
        if state.stop:
            return "", f"not carried out: {state.stop.why}"
        waits = map_orders.say_hindrance(state, key, number) or "what it has in flight has ended"
        count = len(order.ids)
        rows = f"{count:,} rows" if count > 1 else f"row {order.ids[0]}" if count else "rows"
        return f"{rows} of {key} {one if count == 1 else several} as soon as {waits}", ""
    if given.refused:
        return "", given.refused
    done = f"{given.about} of {key} {one if given.about == count_rows(1) else several}"
    return f"{done}; {given.unmet}" if given.unmet else done, ""


COMMANDS: Mapping[str, Command] = {
    "approve": Command(_not_approvable, _approve, "{what} is approved", "approved {what}"),
    "decline": Command(
        approvals.refusal,
        lambda state, order: approvals.decide(state, order, "declined"),
        "{what} is declined",
        "declined {what}",
    ),
    "edit": Command(_not_editable, _edit, "the edited plan runs", "edited the plan", _bad_plan),
    "reject": Command(_nothing_to_approve, _reject, "the plan is rejected", "rejected the plan"),
    "answer": Command(_not_asked, _answer, "{id} goes on with the answer", "answered"),
    "retry": Command(_not_retryable, _retry, "{id} is tried again", "had tried again"),
    "hand": Command(_not_handable, _hand, "{id} is handed over", "handed over", unfit=_unfit_role),
    "skip": Command(_not_endable, _skip, "{id} is skipped", "skipped"),
    "supply": Command(_not_supplyable, _supply, "{id} has the finding that was given", "supplied"),
    "cancel_subtask": Command(_not_endable, _cancel, "{id} is cancelled", "cancelled"),
    "pause": Command(
        lambda state, _: "the run is paused already" if state.paused else "",
        lambda state, _: replace(state, paused=True),
        "paused; what is in flight finishes",
        "paused the run",
    ),
    "resume": Command(
        lambda state, _: "" if state.paused else "the run is not paused",
        lambda state, _: replace(state, paused=False),
        "the run goes on",
        "resumed the run",
    ),
    "raise_cap": Command(_not_raisable, _raise_cap, "the cap is raised", "raised the cap"),
}
