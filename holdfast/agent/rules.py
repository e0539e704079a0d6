"""Decide what an agent does next, and change its state: `next_moves` and `apply`, pure.

Decisions follow from the sequence of events alone; the only moments are those that events carry.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.agent.approvals import (
    answer_unaskable,
    error,
    gather_results,
    must_wait,
    put_off,
)
from holdfast.agent.money import (
    bill_report,
    of_endpoint,
    room_of,
    settle_lost_turn,
    settle_turn,
    worst_turn,
)
from holdfast.agent.state import (
    AgentState,
    End,
    Event,
    Flight,
    Flying,
    Move,
    TakeTurn,
    ToolEnded,
    ToolLost,
    TurnEnded,
    TurnLost,
    UseTool,
)
from holdfast.calls.turn import (
    OF_SERVERS,
    TAKE_TURN,
    AgentReport,
    Slice,
    ToolResult,
    ToolUse,
    Turn,
    TurnMaterial,
)
from holdfast.calls.work import exchange_seconds
from holdfast.contracts import Call, Problem, policies
from holdfast.contracts.made_files import merge_files
from holdfast.contracts.policies import USE_TOOL, Options
from holdfast.contracts.replacing import replace
from holdfast.ledger.ledger import Amount
from holdfast.state.edits import without
from holdfast.state.events import CutAsked, HoldAsked, Trouble

TOO_MANY = (
    f"This call was not made: of one message at most {policies.MOST_TOOL_CALLS} calls are. Make"
    " fewer at once."
)
REPEATED = (
    "This call was not made: you made it twice before with the same arguments. Its result stands"
    " above, as that of {place}. Work with it, or ask for something else."
)
MENDABLE = ("malformed", "truncated")
"""Problems that a model can mend in the same conversation."""
LAST_TURN = "This is your last turn: answer now, with what you have. No tool will be run any more."
MOST = policies.MOST_TOOL_CALLS
MOST_TEXT = 4_000
"""Characters kept of what the model said last, in case the agent is cut."""
HOPELESS = ("refused", "stopping", "allowance", "not_billed")
"""Another turn would end the same way."""


def next_moves(state: AgentState) -> tuple[Move, ...]:
    """Return everything that can start now: a turn, all calls of a turn at once, or the end."""
    if state.flights:
        return ()
    if state.ending is not None:
        return (End(bill_report(state, state.ending)),)
    if state.cut:
        return (End(bill_report(state, AgentReport(outcome="cut", why=state.cut))),)
    if state.held:
        state = put_off(state) if state.uses else state
        return (End(bill_report(state, AgentReport(outcome="more"))),)
    if state.uses:
        return _uses(state) or (End(bill_report(put_off(state), AgentReport(outcome="asks"))),)
    amount = worst_turn(state.goal, state.resume)
    if not state.ledger.fits(amount):
        needs = Slice(dollars=amount.dollars, calls=amount.calls, tokens=amount.tokens)
        return (End(bill_report(state, AgentReport(outcome="more", needs=needs))),)
    return (_turn(state, amount),)


def _uses(state: AgentState) -> tuple[Move, ...]:
    """Return the calls that can be made now; none if all that are left need approval."""
    return tuple(
        UseTool(use, state.resume.turns, place, approved=place in state.approved)
        for place, use in enumerate(state.uses, start=1)
        if place not in state.results and not must_wait(state, place, use)
    )


def _turn(state: AgentState, amount: Amount) -> TakeTurn:
    goal, resume = state.goal, state.resume
    last = resume.turns + 1 >= goal.turns
    said = "\n\n".join(filter(None, (resume.said, LAST_TURN if last else "")))
    searches, rounds = of_endpoint(goal)
    call = Call(
        kind=TAKE_TURN.name,
        purpose="turn" if not resume.losses else f"turn-again{resume.losses}",
        number=resume.turns + 1,
        subtask_id=goal.work.subtask.id,
        tier=goal.model.tier,
        model=goal.model,
        role=goal.role.name,
        max_output=room_of(goal, resume),
        effort=goal.role.effort,
        ceiling=amount.dollars,
        token_ceiling=amount.tokens,
        capabilities=goal.capabilities,
        searches=searches,
        rounds=rounds,
        run=goal.first_run,
        project=goal.project,
    )
    material = TurnMaterial(
        work=goal.work,
        tools=goal.role.tools,
        specs=goal.role.specs,
        approval=goal.role.approval,
        transcript=resume.transcript,
        results=resume.results,
        said=said,
    )
    return TakeTurn(call, material, amount)


def options_of(state: AgentState, move: Flying) -> Options:
    limit = state.goal.work.timeout_seconds
    if isinstance(move, TakeTurn):
        subtask = state.goal.work.subtask
        seconds = (
            policies.BATCH_SECONDS
            if move.call.by_batch
            else exchange_seconds(subtask, limit, move.call.max_output)
        )
        return TAKE_TURN.policy.options(seconds + policies.CALL_MARGIN_SECONDS)
    return USE_TOOL.options(limit + policies.LENS_MARGIN_SECONDS)


# ---------------------------------------------------------------- how the state changes


def take_off(state: AgentState, flight: Flight) -> AgentState:
    """Return the state once a move is carried out; a turn is reserved before it is asked for."""
    move, ledger = flight.move, state.ledger
    if isinstance(move, TakeTurn):
        ledger = ledger.reserve(move.id, move.amount)
    return replace(state, ledger=ledger, flights={**state.flights, move.id: flight})


def apply(state: AgentState, event: Event) -> AgentState:
    if event.at is not None and event.at > state.now:
        state = replace(state, now=event.at)
    match event:
        case CutAsked():
            return replace(state, cut=event.why, cut_at=event.at)
        case HoldAsked():
            return replace(state, held=True)
        case TurnEnded():
            return _end_turn(_land(state, event.move), event)
        case TurnLost():
            return _lose_turn(_land(state, event.move), event.move, event.trouble)
        case ToolEnded():
            state = _take_made(state, event.result)
            update: dict[str, object] = {"span": None, "unknown": False, "files": (), "opened": ()}
            if event.result.digest:
                update["text"] = ""
            state = _mark_unsure(state, event.move.use) if event.result.unknown else state
            return _end_tool(state, event.move, event.result.model_copy(update=update))
        case ToolLost():
            may = "It was not called." if event.unsent else "It may have run."
            said = error(event.move.use, f"The tool did not answer: {event.why}. {may}")
            name = event.move.use.name
            effects = name in state.goal.role.effects or name.startswith(OF_SERVERS)
            if effects and not event.unsent:
                state = _mark_unsure(state, event.move.use)
            return _end_tool(state, event.move, said)


def _take_made(state: AgentState, result: ToolResult) -> AgentState:
    files = merge_files(state.resume.files, result.files)
    opened = tuple(dict.fromkeys((*state.resume.opened, *result.opened)))
    update = {"files": files, "opened": opened}
    return replace(state, resume=state.resume.model_copy(update=update))


def _mark_unsure(state: AgentState, use: ToolUse) -> AgentState:
    return replace(state, may_have_run=(*state.may_have_run, use))


def _land(state: AgentState, move: Flying) -> AgentState:
    return replace(state, flights=without(state.flights, move.id))


def _end_turn(state: AgentState, event: TurnEnded) -> AgentState:
    reply, turn = event.reply, event.reply.value
    state = settle_turn(state, event.move, reply.bill)
    state = replace(state, served=reply.bill.model or state.served)
    state = _skip_message(state) if turn is None else _take_message(state, turn)
    if turn is None or reply.problem is not None:
        return _problem(state, reply.problem or Problem(kind="malformed", why="nothing came back"))
    if turn.draft is not None:
        return replace(state, ending=AgentReport(outcome="answered", draft=turn.draft))
    if state.resume.turns >= state.goal.turns:
        why = f"it used all its {state.goal.turns} turns and gave no answer"
        return replace(state, ending=AgentReport(outcome="stopped", why=why))
    if not turn.uses:
        return state
    placed = enumerate(turn.uses, start=1)
    unmade = {place: error(use, TOO_MANY) for place, use in placed if place > MOST}
    known = _answer_repeats(state, turn)
    told = answer_unaskable(state, turn)
    nobody = () if state.goal.ask_people else told
    return gather_results(
        replace(
            state,
            uses=turn.uses,
            results={**known, **told, **unmade},
            unasked=(*state.unasked, *(turn.uses[place - 1].name for place in nobody)),
            repeated=(*state.repeated, *(turn.uses[place - 1].name for place in known)),
        )
    )


def _answer_repeats(state: AgentState, turn: Turn) -> Mapping[int, ToolResult]:
    """Return results for calls whose result the agent knows, by place."""
    role = state.goal.role
    made = (*role.effects, *role.approval, *role.volatile)
    return {
        place: error(use, REPEATED.format(place=turn.repeats[use.id]))
        for place, use in enumerate(turn.uses[:MOST], start=1)
        if use.id in turn.repeats and use.name not in made and not use.name.startswith(OF_SERVERS)
    }


def _skip_message(state: AgentState) -> AgentState:
    """Count a turn whose message no conversation can go on from, and leave it out."""
    update = {"turns": state.resume.turns + 1, "losses": 0, "excused": 0, "needed": 0}
    return replace(state, resume=state.resume.model_copy(update=update))


def _take_message(state: AgentState, turn: Turn) -> AgentState:
    before = state.resume
    resume = before.model_copy(
        update={
            "transcript": turn.transcript,
            "results": (),
            "said": "",
            "turns": before.turns + 1,
            "tool_calls": before.tool_calls + len(turn.uses),
            "tokens": turn.tokens,
            "needed": 0,
            "losses": 0,
            "excused": 0,
            "text": turn.text[:MOST_TEXT] or before.text,
        }
    )
    return replace(state, resume=resume)


def _problem(state: AgentState, problem: Problem) -> AgentState:
    """Have a flawed message mended in the same conversation, twice at most."""
    no_json = state.resume.no_json + problem.no_json
    resume = state.resume.model_copy(update={"no_json": no_json})
    state = replace(state, resume=resume)
    mendable = problem.kind in MENDABLE and resume.repairs < policies.REPAIRS
    # Whoever calls tools can do JSON.
    mendable = mendable and (resume.tool_calls > 0 or no_json < state.goal.no_json)
    if not mendable or resume.turns >= state.goal.turns:
        return replace(state, ending=AgentReport(outcome="answered", problem=problem))
    said = f"Your answer is not in the right form: {problem.why}\nGive it again in the right form."
    if problem.kind == "truncated":
        said = f"Your last message was too long to be taken: {problem.why}. Say it in less."
    update: dict[str, object] = {"said": said, "repairs": resume.repairs + 1}
    if problem.kind == "truncated" and state.goal.room:
        update["roomier"] = True
    resume = resume.model_copy(update=update)
    return replace(state, resume=resume)


def _lose_turn(state: AgentState, move: TakeTurn, trouble: Trouble) -> AgentState:
    """Take in a turn without an answer; the next one goes on where it began."""
    state = settle_lost_turn(state, move, trouble)
    if trouble.kind == "cancelled" or state.cut:
        return replace(state, cut=state.cut or trouble.why)
    unreached = trouble.unreached
    away = AgentReport(outcome="unreachable", unreached=unreached, why=trouble.why)
    if unreached is not None and not unreached.lost:
        return replace(state, ending=away)
    losses = state.resume.losses + 1
    state = replace(state, resume=state.resume.model_copy(update={"losses": losses}))
    too_long = trouble.too_long and trouble.kind not in HOPELESS
    most = policies.TOO_LONG_TRIES if too_long else policies.TRANSPORT_TRIES
    own = losses - state.resume.excused
    if own >= most or (unreached is None and trouble.kind in HOPELESS):
        stopping = {"stopping": "endpoint", "allowance": "allowance"}.get(trouble.kind, "")
        ending = AgentReport.model_validate(
            {"outcome": "lost", "why": trouble.why, "stopping": stopping, "too_long": too_long}
        )
        return replace(state, ending=ending.model_copy(update={"unreached": unreached}))
    # Whether others are lost as well, and when it is worth another turn, its run finds out.
    return state if unreached is None else replace(state, ending=away)


def _end_tool(state: AgentState, move: UseTool, result: ToolResult) -> AgentState:
    state = _land(state, move)
    return gather_results(replace(state, results={**state.results, move.place: result}))
