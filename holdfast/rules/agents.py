"""An agent with tools: its subtask is a workflow of its own, paid in small slices. Pure.

A segment that needs more reports where its conversation stands and what the next turn costs. The
next segment goes on there: nothing is asked or run twice, and little of the cap is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.agent.money import worst_turn
from holdfast.calling import gathering, outages
from holdfast.calling.reserving import rooms, tiers
from holdfast.calls.changes import size_of_change
from holdfast.calls.turn import AgentGoal, AgentReport, Resume, Slice, ToolUse
from holdfast.calls.work import WORK
from holdfast.contracts import FindingStatus, Tier, policies
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.rules import approvals, repair, speechless
from holdfast.state import paying
from holdfast.state.edits import add_bill, note_author, stop_for, update, without
from holdfast.state.events import AgentEnded
from holdfast.state.moves import StartAgent, Stop
from holdfast.state.parts import Progress, partial_of
from holdfast.state.run import State
from holdfast.state.settling import end_for_person, settle

SLICE_TURNS = 3
"""Turns at worst that a slice pays for: usually enough for ten, as answers are short."""


def uses_tools(state: State, progress: Progress) -> bool:
    """True if a subtask is a conversation with tools, and not one call."""
    role = gathering.role_of(state, progress.subtask)
    alone = not role.team and progress.subtask.map is None
    return role.tools != () and alone and progress.tier != "none"


def start(state: State, progress: Progress) -> StartAgent | None:
    """Start the next segment of an agent, with a slice for a few turns, or fewer where money is
    short. None: no allowed tier can pay for even one turn now.
    """
    goal, amount = next_goal(state, progress)
    kept = progress.resume.transcript != ""
    if goal.model.tier != progress.tier and not kept and state.ledger.reserved:
        # What is in flight may give back enough for what is due.
        return None
    if not amount.calls:
        return None
    part = Slice(dollars=amount.dollars, calls=amount.calls, tokens=amount.tokens)
    number = state.next_number(f"agent-{progress.subtask.id}")
    goal = goal.model_copy(update={"slice": part})
    return StartAgent(progress.subtask.id, number, goal, amount)


def next_goal(state: State, progress: Progress) -> tuple[AgentGoal, Amount]:
    """Return the goal of the next segment, by the dearest tier of which a turn can be paid now, and
    its slice; with the cheapest tier and an empty slice where none can.
    """
    for goal in _goals(state, progress):
        left = max(goal.turns - progress.resume.turns, 1)
        one = worst_turn(goal, progress.resume)
        for turns in range(min(SLICE_TURNS, left), 0, -1):
            if state.ledger.fits(amount := one * turns):
                return goal, amount
    return goal, Amount()


def _goals(state: State, progress: Progress) -> Iterator[AgentGoal]:
    """Yield the goal of the next segment by the tier that is due, by each cheaper one, and at last
    with less room, as a call has it under a small cap.
    """
    assert progress.tier != "none", "work without a model is a lens's"
    role = state.brief.role(progress.subtask.role)
    # A conversation cannot go on with another model: its thoughts are bound to it.
    kept = progress.resume.transcript != ""
    offered = [progress.called] if kept else [*tiers(state.brief, progress.tier)]
    for tier in offered[:1] if role.fixed_tier else offered:
        if tier != "none":
            goal = goal_of(state, progress, tier)
            yield goal
    yield from _in_less_room(goal)


def _in_less_room(goal: AgentGoal) -> Iterator[AgentGoal]:
    """Yield a goal with ever less room for each message; nothing if it has no room of its own."""
    for room in rooms(goal.room // 2) if goal.room else ():
        yield goal.model_copy(update={"room": room})


def least_turn(state: State, subtask_id: str, tier: Tier) -> Amount:
    """Return the least that the first turn of an agent is reserved at, by this tier."""
    goal = goal_of(state, state.work[subtask_id], tier)
    *_, least = (goal, *_in_less_room(goal))
    return worst_turn(least, Resume())


def one_turn(state: State, progress: Progress) -> Amount:
    """Return the worst case of the next turn, by the tier that is due."""
    tier = progress.called if progress.resume.transcript else progress.tier
    assert tier != "none", "work without a model is a lens's"
    return worst_turn(goal_of(state, progress, tier), progress.resume)


def goal_of(state: State, progress: Progress, tier: Tier) -> AgentGoal:
    """Return the goal of the next segment, without its slice."""
    role = gathering.role_of(state, progress.subtask)
    work = gathering.for_work(state, progress)
    long = gathering.long_findings(state, progress.subtask)
    # Whoever reads may have much to tell. Runs prepared before this rule have no `reads`.
    as_a_call = role.reads and all(each.enclosed for each in work.inputs)
    return AgentGoal(
        work=work,
        role=role,
        model=state.brief.model(tier, role.name),
        slice=Slice(dollars=state.ledger.cap.dollars, calls=0, tokens=0),
        resume=progress.resume,
        turns=most_turns(state, progress),
        room=WORK.policy.max_output if as_a_call and not work.subtask.max_output else 0,
        capabilities=state.brief.capabilities,
        first_run=state.first_run_id,
        project=state.goal.project,
        ask_people=state.goal.ask_people,
        decisions=tuple(each.decision for each in progress.calls if each.decision),
        findings={each.subtask_id: partial_of(each) for each in long},
        no_json=speechless.answers_left(state),
    )


def most_turns(state: State, progress: Progress) -> int:
    role, most = state.brief.role(progress.subtask.role), state.goal.limits.turns_per_agent
    return min(role.turns or most, most)


def end_segment(state: State, event: AgentEnded) -> State:
    """Settle a segment's slice, then go on, judge what it brought, or give it up."""
    move, report = event.move, event.report
    if report is None:
        return _take_loss(state, event)
    state = _settle_segment(state, move, report)
    ending = state.work[move.subtask_id].ending
    if not ending or report.outcome == "answered":
        state = _judge(state, move, report)
    # What a person ended meanwhile is cancelled only if this has not completed it.
    return end_for_person(state, move.subtask_id)


def _settle_segment(state: State, move: StartAgent, report: AgentReport) -> State:
    resumed, bill = report.resume, report.bill
    share = paying.share_of_flight(move, bill)
    state = paying.book(state, move.id, bill, [share], report.tokens)
    state = replace(
        state,
        unpaid_calls=state.unpaid_calls + report.unpaid_calls,
        transport=without(state.transport, move.purpose),
        notes=(*state.notes, *_tool_notes(move, report)),
    )
    if resumed.turns > move.goal.resume.turns:
        state = replace(state, heard=True)
        state = state if report.unreached else outages.end_outage(state)
    if resumed.tool_calls > move.goal.resume.tool_calls:
        state = replace(state, heard_json=True)
    state = paying.note_bill(state, move.id, move.goal.model, bill, move.amount)

    draft = report.draft is not None
    # What stands in its prompt it has read; of the rest its tools tell.
    inputs = move.goal.work.inputs
    given = (each.name for each in inputs if not (each.enclosed or size_of_change(each)))
    unread = tuple(name for name in given if name not in resumed.opened)
    state = update(
        state,
        move.subtask_id,
        lambda each: replace(_go_on(add_bill(each, bill), report), unread=unread),
    )
    return update(state, move.subtask_id, lambda each: note_author(each, bill.model, draft=draft))


def _tool_notes(move: StartAgent, report: AgentReport) -> Iterator[str]:
    """Yield what people must know of calls of tools. The report counts equal lines."""
    yield from (_unsure_note(move, use) for use in report.may_have_run)
    for name in report.unasked:
        yield (
            f"{move.subtask_id}: a call of {name} was not made: a person must approve each, and"
            " this run asks nobody (--ask)."
        )
    for name in report.repeated:
        yield (
            f"{move.subtask_id}: a call of {name} was not made: its agent had made it twice before"
            " with the same arguments."
        )


def _unsure_note(move: StartAgent, use: ToolUse) -> str:
    """Return the note for people who find, or miss, what a call was to do."""
    call = f"{move.subtask_id}: {use.name} {use.says}".strip()
    return f"{call}: it may have run, nobody knows, and it was not run again."


def _go_on(progress: Progress, report: AgentReport) -> Progress:
    """Take over where the agent stands now. Decisions stay as long as their calls are pending."""
    resume = report.resume
    before = progress.resume
    return replace(
        progress,
        resume=resume,
        unanswered=(*progress.unanswered, *report.unanswered),
        calls=progress.calls if resume.pending else (),
        files=resume.files,
        turns=progress.turns + resume.turns - before.turns,
        tool_calls=progress.tool_calls + resume.tool_calls - before.tool_calls,
        failed_calls=progress.failed_calls + resume.failed_calls - before.failed_calls,
    )


def _judge(state: State, move: StartAgent, report: AgentReport) -> State:
    subtask_id = move.subtask_id
    match report.outcome:
        case "more":
            return state
        case "asks":
            return approvals.ask(state, subtask_id)
        case "answered":
            state = update(state, subtask_id, lambda each: replace(each, resume=Resume()))
            state = speechless.judge_answer(state, report.problem, report.resume.no_json)
            return repair.judge_work(state, subtask_id, report.draft, report.problem)
    if (unreached := report.unreached) is not None:
        waiting = outages.begin(state, unreached, move.goal.model.tier, move.purpose)
        state = waiting or state
        if report.outcome == "unreachable" and (waiting or unreached.lost):
            return state
    if report.stopping:
        state = stop_for(state, report.stopping, report.why)
    return _give_up(state, subtask_id, report)


def _give_up(state: State, subtask_id: str, report: AgentReport) -> State:
    """Hand up what the agent has so far. Why it was cut the run knows, and not the agent."""
    if report.outcome == "cut" and state.stop:
        return _cut_short(state, subtask_id, state.stop)
    if report.outcome == "stopped" and not state.stop:
        return repair.out_of_turns(state, subtask_id, report.why, report.resume.text)
    if report.too_long and not state.stop:
        return repair.too_long(state, subtask_id, report.why, report.resume.text)
    return settle(state, subtask_id, "failed", report.why)


def _cut_short(state: State, subtask_id: str, stop: Stop, more: tuple[str, ...] = ()) -> State:
    """Settle an agent that the run's stop has cut, keeping its partial answer."""
    status: FindingStatus = "cancelled" if stop.reason == "cancelled" else "failed"
    return settle(state, subtask_id, status, "; ".join((f"not finished: {stop.why}", *more)))


def _take_loss(state: State, event: AgentEnded) -> State:
    """Take in the loss of a segment; the next one goes on where it began."""
    move = event.move
    state = paying.settle_lost(state, event, priced=bool(move.goal.model.prices))
    if not event.unpaid:
        state = approvals.mark_unknown(state, move.subtask_id)
    failures = state.transport.get(move.purpose, 0) + 1
    state = replace(state, transport={**state.transport, move.purpose: failures})
    if state.work[move.subtask_id].ending:
        return end_for_person(state, move.subtask_id)
    if state.stop:
        return _cut_short(state, move.subtask_id, state.stop, (event.why,))
    if failures >= policies.TRANSPORT_TRIES:
        return settle(state, move.subtask_id, "failed", event.why)
    return state
