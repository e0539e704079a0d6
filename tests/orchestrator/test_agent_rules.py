"""An agent's rules over random turns, tools, losses and cuts, segment after segment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from driving import BRIEFING, READER, START, subtask
from holdfast.agent import rules
from holdfast.agent.approvals import first_state
from holdfast.agent.money import worst_turn
from holdfast.agent.state import (
    AgentState,
    End,
    Event,
    Flight,
    TakeTurn,
    ToolEnded,
    ToolLost,
    TurnEnded,
    TurnLost,
    UseTool,
)
from holdfast.calls.turn import (
    TAKE_TURN,
    AgentGoal,
    AgentReport,
    Decision,
    Resume,
    Slice,
    ToolResult,
    ToolUse,
    Turn,
)
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import (
    Bill,
    Capabilities,
    Draft,
    Problem,
    Reply,
    Span,
    Unreached,
    Usage,
    policies,
)
from holdfast.contracts.errors import TroubleKind
from holdfast.ledger.ledger import Amount
from holdfast.ledger.pricing import read_again, worst
from holdfast.state.events import CutAsked, HoldAsked, Trouble

EXAMPLES = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
TURNS = ("uses",) * 6 + ("answers", "says nothing", "malformed", "unusable", "truncated", "refusal")
LOSSES: tuple[TroubleKind, ...] = (
    "possibly_billed", "over_reservation", "unreachable", "not_billed", "refused", "stopping"
)  # fmt: skip
SECOND = timedelta(seconds=1)


def goal(turns: int = 10, worth: int = 3, resume: Resume = Resume()) -> AgentGoal:  # noqa: B008
    """A segment with a slice that pays for so many turns at worst."""
    made = AgentGoal(
        work=WorkMaterial(goal="Compare", subtask=subtask("t1", role="reader"), dependencies=()),
        role=READER,
        model=BRIEFING.model("haiku"),
        slice=Slice(dollars=Decimal(0), calls=0, tokens=0),
        turns=turns,
        resume=resume,
        first_run="first",
    )
    one = worst_turn(made, resume)
    part = Slice(dollars=one.dollars * worth, calls=worth, tokens=one.tokens * worth)
    return made.model_copy(update={"slice": part})


WRITER = READER.model_copy(update={"tools": ("read_file", "write"), "approval": ("write",)})


class Loop:
    """One segment, as its workflow drives it; it checks what must always hold."""

    def __init__(self, goal: AgentGoal) -> None:
        self.state = first_state(goal, START)
        self.report: AgentReport | None = None
        self.events: list[Event] = []
        self.begun: list[str] = []
        self.uses: tuple[ToolUse, ...] = goal.resume.pending
        """Of the last message."""
        self.used: list[str] = []
        self.billed = Decimal(0)
        self.go_on()

    def go_on(self) -> None:
        for move in rules.next_moves(self.state):
            if isinstance(move, End):
                self.report = move.report
                return
            assert move.id not in self.begun, "an id is never used twice"
            assert not self.state.held, "nothing starts while it is held"
            self.begun.append(move.id)
            if isinstance(move, TakeTurn):
                self._check_turn(move)
            else:
                self.used.append(move.use.id)
                asks = move.use.name in self.state.goal.role.approval
                assert not asks or move.use.id in self._approved, (
                    "nothing runs that was not approved"
                )
            options = rules.options_of(self.state, move)
            self.state = rules.take_off(self.state, Flight(move, self.state.now, options))
        self._check()

    @property
    def _approved(self) -> list[str]:
        goal = self.state.goal
        return [each.use_id for each in goal.decisions if each.verdict == "approved"]

    def put(self, event: Event) -> None:
        before = self.state.ledger.spent.dollars
        self.events.append(event)
        self.state = rules.apply(self.state, event)
        self._check()
        self.billed += self.state.ledger.spent.dollars - before
        if isinstance(event, TurnEnded) and event.reply.value is not None:
            self.uses = event.reply.value.uses
        self.go_on()

    def _check(self) -> None:
        ledger = self.state.ledger
        assert ledger.spent + ledger.held <= ledger.cap, "a segment never exceeds its slice"
        assert self.state.resume.turns <= self.state.goal.turns

    def _check_turn(self, move: TakeTurn) -> None:
        state = self.state
        assert not state.cut and not state.held, "nothing is asked after a cut or a hold"
        assert move.call.ceiling == move.amount.dollars
        last = move.call.number == state.goal.turns
        assert (rules.LAST_TURN in move.material.said) == last
        if self.uses:
            told = [each.use_id for each in move.material.results]
            assert told == [each.id for each in self.uses], "all results, in the order of the calls"
            assert all(each.span is None for each in move.material.results)


def turn(loop: Loop, move: TakeTurn, kind: str, count: int) -> TurnEnded:
    """What a turn brings that costs as much as was reserved for it at most."""
    share = Decimal(len(loop.events) % 3) / 4
    usage = Usage(input_tokens=int(move.amount.tokens * share))
    bill = Bill(model="m", calls=1, dollars=move.amount.dollars * share, usage=usage)
    said = f"{move.call.number}-{len(loop.events)}"
    kept = Turn(transcript=f"transcript {said}", text=f"found {said}", tokens=usage.total)
    problem, value = None, kept
    if kind == "uses":
        names = ("write", "read_file")
        uses = tuple(
            ToolUse(id=f"u{said}-{place}", name=names[place % 2], shown="{}" * (place % 3 > 0))
            for place in range(count)
        )
        value = kept.model_copy(update={"uses": uses})
    if kind == "answers":
        value = kept.model_copy(update={"draft": Draft(content="found", confidence=90)})
    if kind in ("malformed", "unusable", "truncated", "refusal"):
        named = "malformed" if kind == "unusable" else kind
        problem = Problem.model_validate({"kind": named, "why": f"it is {kind}"})
    ended = loop.state.now + SECOND
    reply = Reply[Turn](
        value=value if kind in ("uses", "answers", "says nothing", "malformed") else None,
        problem=problem,
        bill=bill,
        span=Span(started=loop.state.now, ended=ended),
    )
    return TurnEnded(move, reply)


def loss(move: TakeTurn, kind: TroubleKind) -> TurnLost:
    bill, unreached = Bill(), None
    if kind in ("possibly_billed", "cancelled"):
        bill = Bill(model="m", calls=1, dollars=None, final=False)
    if kind == "over_reservation":
        usage = Usage(input_tokens=move.amount.tokens, output_tokens=move.call.max_output)
        bill = Bill(model="m", usage=usage)
    if kind == "unreachable":
        unreached = Unreached(address="http://a", why="refused")
    return TurnLost(move, Trouble(kind, f"it was {kind}", bill, unreached=unreached))


def result(use: ToolUse) -> ToolResult:
    at = Span(started=START, ended=START)
    return ToolResult(use_id=use.id, digest=f"of {use.id}", size=20_000, text="for people", span=at)


class Chance:
    """Decides what happens next in a segment."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.cut = False
        self.holds = 0

    def play(self, goal: AgentGoal) -> Loop:
        loop = Loop(goal)
        for _ in range(200):
            if loop.report is not None:
                return loop
            loop.put(self._event(loop))
        raise AssertionError("the segment does not end")

    def _event(self, loop: Loop) -> Event:
        draw = self.data.draw
        if not self.cut and draw(st.integers(0, 30)) == 0:
            self.cut = True
            return CutAsked("cut by the run above", loop.state.now + SECOND)
        flights = list(loop.state.flights.values())
        assert flights, "the segment has stalled"
        if not loop.state.held and draw(st.integers(0, 12)) == 0:
            self.holds += 1
            return HoldAsked()
        move = draw(st.sampled_from(flights)).move
        if isinstance(move, UseTool):
            if self.cut or draw(st.integers(0, 7)) == 0:
                return ToolLost(move, "its worker died")
            return ToolEnded(move, result(move.use))
        if self.cut and draw(st.booleans()):
            return loss(move, "cancelled")
        if draw(st.integers(0, 7)) == 0:
            return loss(move, draw(st.sampled_from(LOSSES)))
        return turn(loop, move, draw(st.sampled_from(TURNS)), draw(st.sampled_from((1, 2, 25))))


def check_report(loop: Loop, goal: AgentGoal) -> None:
    report, ledger = loop.report, loop.state.ledger
    assert report is not None
    assert not ledger.reserved and report.bill.dollars == ledger.spent.dollars == loop.billed
    assert (report.bill.calls, report.tokens) == (ledger.spent.calls, ledger.spent.tokens)
    assert report.bill.dollars <= goal.slice.dollars
    waits = loop.state.uses if loop.state.held and not loop.state.cut else ()
    waits = loop.state.uses if report.outcome == "asks" else waits
    assert report.resume.pending == waits, "what was not begun waits"
    known = tuple(loop.state.results[place] for place in sorted(loop.state.results))
    kept = {"pending": waits, "results": known if waits else loop.state.resume.results}
    assert report.resume == loop.state.resume.model_copy(update=kept)
    assert report.finished == loop.state.now
    if report.outcome == "asks":
        back = [each.use_id for each in report.resume.results]
        left = [use for use in report.resume.pending if use.id not in back]
        assert left and all(use.name == "write" and use.shown for use in left)
    if report.outcome == "more":
        assert loop.state.held or report.needs is not None
        assert loop.begun, "a slice pays for a turn, or its worker says what would"
    if report.outcome == "answered":
        assert (report.draft is None) != (report.problem is None)
    if loop.state.cut:
        assert report.outcome in ("cut", "stopped", "answered", "lost", "unreachable")


@EXAMPLES
@given(st.data())
def test_an_agent_always_ends_within_its_slices_and_its_turns(data: st.DataObject) -> None:
    chance, resume, segments = Chance(data), Resume(), 0
    turns = data.draw(st.integers(1, 12))
    asked: list[str] = []
    used: list[str] = []
    people = data.draw(st.booleans())
    while True:
        wanted = goal(turns, data.draw(st.integers(1, 3)), resume)
        decisions = tuple(decided(data, use) for use in resume.pending)
        with_people = {"role": WRITER, "ask_people": people, "decisions": decisions}
        wanted = wanted.model_copy(update=with_people)
        loop = chance.play(wanted)
        check_report(loop, wanted)
        assert loop.report is not None
        asked += [each for each in loop.begun if each.startswith("turn-") and "again" not in each]
        used += [each for each in loop.begun if each.startswith("tool-")]
        assert len(used) == len(set(used)), "no call of a tool is made twice"
        resume, segments = loop.report.resume, segments + 1
        assert replayed(wanted, loop.events) == loop.state, "the same events, the same state"
        used += loop.used
        assert len(used) == len(set(used)), "no call is made twice"
        if loop.report.outcome not in ("more", "asks"):
            break
        most = 2 * turns * policies.TRANSPORT_TRIES + chance.holds
        assert people or loop.report.outcome != "asks"
        assert segments <= most, "it goes on for ever"
    assert resume.turns <= turns


def decided(data: st.DataObject, use: ToolUse) -> Decision:
    verdict = data.draw(st.sampled_from(("approved", "declined", "unknown")))
    return Decision.model_validate({"use_id": use.id, "verdict": verdict})


def replayed(goal: AgentGoal, events: Sequence[Event]) -> AgentState:
    loop = Loop(goal)
    for event in events:
        loop.put(event)
    return loop.state


@EXAMPLES
@given(st.permutations(range(6)), st.data())
def test_results_go_back_in_the_order_of_the_calls_however_they_come_in(
    order: list[int], data: st.DataObject
) -> None:
    loop = Loop(goal())
    (asked,) = [each.move for each in loop.state.flights.values()]
    assert isinstance(asked, TakeTurn)
    loop.put(turn(loop, asked, "uses", 6))
    tools = [each.move for each in loop.state.flights.values()]
    for place in order:
        move = tools[place]
        assert isinstance(move, UseTool)
        lost = data.draw(st.booleans())
        loop.put(ToolLost(move, "died") if lost else ToolEnded(move, result(move.use)))
    (following,) = [each.move for each in loop.state.flights.values()]
    assert isinstance(following, TakeTurn), "`Loop` has checked what it is told"


# ---------------------------------------------------------------- one thing after the other


def asked_in(loop: Loop) -> TakeTurn:
    (move,) = [each.move for each in loop.state.flights.values()]
    assert isinstance(move, TakeTurn)
    return move


def test_of_more_calls_than_are_made_at_once_the_rest_is_told_so() -> None:
    loop = Loop(goal())
    loop.put(turn(loop, asked_in(loop), "uses", 25))
    tools = [each.move for each in loop.state.flights.values()]
    assert len(tools) == policies.MOST_TOOL_CALLS
    for move in tools:
        assert isinstance(move, UseTool)
        loop.put(ToolEnded(move, result(move.use)))
    results = asked_in(loop).material.results
    assert {each.text for each in results[:20]} == {""}, "what is said for people stays with them"
    assert [each.is_error for each in results] == [False] * 20 + [True] * 5
    assert "at most 20" in results[-1].text


@pytest.mark.parametrize("kind", ["uses", "says nothing"])
def test_the_last_turn_is_the_last_whatever_it_brings(kind: str) -> None:
    loop = Loop(goal(turns=1))
    loop.put(turn(loop, asked_in(loop), kind, 2))
    assert loop.report is not None and loop.report.outcome == "stopped"
    assert "all its 1 turns" in loop.report.why and loop.report.resume.text


@pytest.mark.parametrize("kind", ["truncated", "unusable"])
def test_a_message_that_cannot_be_taken_loses_nothing_of_what_was_said_before(kind: str) -> None:
    loop = Loop(goal())
    loop.put(turn(loop, asked_in(loop), "uses", 1))
    (tool,) = [each.move for each in loop.state.flights.values()]
    assert isinstance(tool, UseTool)
    loop.put(ToolEnded(tool, result(tool.use)))
    before = asked_in(loop)
    loop.put(turn(loop, before, kind, 0))
    again = asked_in(loop)
    assert again.material.transcript == before.material.transcript
    assert again.material.results == before.material.results
    assert f"it is {kind}" in again.material.said and again.call.number == 3


@pytest.mark.parametrize(("room", "then"), [(4_000, 8_000), (0, 16_000)])
def test_a_message_that_was_cut_off_gets_twice_the_room_if_its_agent_has_less_than_any(
    room: int, then: int
) -> None:
    loop = Loop(goal(worth=9).model_copy(update={"room": room}))
    move = asked_in(loop)
    assert move.call.max_output == (room or TAKE_TURN.policy.max_output)
    loop.put(turn(loop, move, "truncated", 0))
    assert asked_in(loop).call.max_output == then


def test_a_call_with_effects_whose_outcome_is_unknown_is_reported() -> None:
    wanted = goal()
    role = wanted.role.model_copy(update={"tools": ("read_file", "send"), "effects": ("send",)})
    loop = Loop(wanted.model_copy(update={"role": role}))
    first = asked_in(loop)
    names = ("read_file", "send", "mcp__mail__send", "send")
    uses = tuple(ToolUse(id=f"u{n}", name=name, says=str(n)) for n, name in enumerate(names))
    value = Turn(transcript="one", uses=uses, tokens=10)
    loop.put(TurnEnded(first, Reply[Turn](value=value, bill=Bill(model="m", calls=1))))
    tools = [each.move for each in loop.state.flights.values()]
    for move in tools[:3]:
        assert isinstance(move, UseTool)
        loop.put(ToolLost(move, "its worker died"))
    assert isinstance(tools[3], UseTool)
    loop.put(ToolEnded(tools[3], result(uses[3]).model_copy(update={"unknown": True})))
    assert not any(each.unknown for each in asked_in(loop).material.results)
    loop.put(CutAsked("enough", loop.state.now))
    loop.put(loss(asked_in(loop), "cancelled"))
    assert loop.report is not None
    assert [each.says for each in loop.report.may_have_run] == ["1", "2", "3"]


def test_only_a_call_that_surely_brings_the_same_again_is_not_carried_out_a_third_time() -> None:
    wanted = goal()
    marks = {"effects": ("send",), "volatile": ("clock",), "approval": ("order",)}
    names = ("read_file", "send", "mcp__mail__list", "clock", "order", "read_file")
    role = wanted.role.model_copy(update={"tools": tuple(dict.fromkeys(names)), **marks})
    loop = Loop(wanted.model_copy(update={"role": role, "ask_people": True}))
    uses = tuple(ToolUse(id=f"u{n}", name=name, shown="{}") for n, name in enumerate(names))
    repeats = {f"u{n}": "call 1 of your message 1" for n in range(5)}
    value = Turn(transcript="one", uses=uses, repeats=repeats, tokens=10)
    loop.put(TurnEnded(asked_in(loop), Reply[Turn](value=value, bill=Bill(model="m", calls=1))))
    made = [
        each.move.use.id for each in loop.state.flights.values() if isinstance(each.move, UseTool)
    ]
    assert made == ["u1", "u2", "u3", "u5"], "u4 waits for a person"
    (told,) = loop.state.results.values()
    assert (told.use_id, told.is_error) == ("u0", True)
    assert "as that of call 1 of your message 1" in told.text
    assert loop.state.repeated == ("read_file",)


def test_a_call_with_effects_that_no_worker_was_given_surely_did_not_run() -> None:
    wanted = goal()
    role = wanted.role.model_copy(update={"tools": ("send",), "effects": ("send",)})
    loop = Loop(wanted.model_copy(update={"role": role}))
    use = ToolUse(id="u1", name="send", says="1")
    value = Turn(transcript="one", uses=(use,), tokens=10)
    loop.put(TurnEnded(asked_in(loop), Reply[Turn](value=value, bill=Bill(model="m", calls=1))))
    (move,) = [each.move for each in loop.state.flights.values()]
    assert isinstance(move, UseTool)
    loop.put(CutAsked("enough", loop.state.now))
    loop.put(ToolLost(move, "cancelled", unsent=True))
    assert loop.report is not None and loop.report.may_have_run == ()


def test_a_bill_that_is_not_final_counts_at_the_reservation() -> None:
    loop = Loop(goal())
    move = asked_in(loop)
    ended = turn(loop, move, "answers", 0)
    unsure = ended.reply.bill.model_copy(update={"final": False, "note": "no price is known"})
    loop.put(TurnEnded(move, ended.reply.model_copy(update={"bill": unsure})))
    assert loop.report is not None
    assert loop.report.bill.dollars == loop.report.bill.assumed == move.amount.dollars
    assert loop.report.tokens == move.amount.tokens
    assert loop.report.bill.note == "no price is known"


def test_losses_count_across_segments() -> None:
    resume = Resume()
    for number in range(policies.TRANSPORT_TRIES):
        loop = Loop(goal(worth=1, resume=resume))
        loop.put(loss(asked_in(loop), "possibly_billed"))
        assert loop.report is not None
        last = number + 1 == policies.TRANSPORT_TRIES
        assert loop.report.outcome == ("lost" if last else "more")
        resume = loop.report.resume


@pytest.mark.parametrize("earlier", [True, False])
def test_a_segment_is_found_again_if_all_of_its_bills_are(earlier: bool) -> None:
    loop = Loop(goal())
    for number, kind in enumerate(("says nothing", "answers")):
        ended = turn(loop, asked_in(loop), kind, 0)
        bill = ended.reply.bill.model_copy(update={"earlier": earlier or number == 0})
        loop.put(TurnEnded(ended.move, ended.reply.model_copy(update={"bill": bill})))
    assert loop.report is not None and loop.report.bill.earlier == earlier


def test_a_turn_is_reserved_with_what_an_endpoint_may_search_and_read_by_itself() -> None:
    plain = goal()
    assert plain.model.prices
    card = plain.model.model_copy(update={"search": Decimal("0.01")})
    web = Capabilities(web=True)
    hands = plain.role.model_copy(update={"tools": ("web_search", "web_fetch")})
    own = plain.model_copy(update={"model": card, "role": hands, "capabilities": web})
    rounds = policies.WEB_SEARCHES + policies.WEB_FETCHES
    room, one = TAKE_TURN.policy.max_output, worst_turn(plain, plain.resume)
    most = read_again(one.tokens - room, rounds)
    amount = worst_turn(own, own.resume)
    assert amount.tokens == most + room
    assert amount.dollars == worst(card, most, room, policies.WEB_SEARCHES)
    (turn,) = rules.next_moves(first_state(own.model_copy(update={"slice": plenty(amount)}), START))
    assert isinstance(turn, TakeTurn)
    assert (turn.call.searches, turn.call.rounds) == (policies.WEB_SEARCHES, rounds)
    assert turn.call.ceiling == amount.dollars
    # Without the capability, or without the tools, a turn is what it was.
    assert worst_turn(own.model_copy(update={"capabilities": Capabilities()}), own.resume) == one
    assert worst_turn(own.model_copy(update={"role": plain.role}), own.resume) == one


def plenty(amount: Amount) -> Slice:
    return Slice(dollars=amount.dollars, calls=1, tokens=amount.tokens)
