"""Drives the pure core as the executor does, without Temporal: carries out moves, lets a test
decide what comes back and when, and checks after every step what must always hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache

from holdfast.calling import finishing, gathering
from holdfast.calls.replan import ReplanMaterial
from holdfast.calls.turn import Resume
from holdfast.contracts import (
    Approval,
    Bill,
    Briefing,
    Finding,
    Goal,
    Limits,
    ModelCard,
    Order,
    Plan,
    PriceStep,
    RoleCard,
    RoleTier,
    Subtask,
    Tier,
    Usage,
)
from holdfast.ledger.ledger import Amount
from holdfast.rules import steering
from holdfast.rules.next_moves import next_moves
from holdfast.rules.prices import shares_of
from holdfast.rules.reducer import apply
from holdfast.rules.timers import timers
from holdfast.state import graph
from holdfast.state.events import (
    Abandoned,
    AgentEnded,
    Answered,
    CancelAsked,
    Event,
    Examined,
    NobodyCame,
    Prepared,
    Started,
    Steered,
    TeamEnded,
    Unanswered,
)
from holdfast.state.moves import (
    Ask,
    AskPerson,
    AskRaise,
    Cut,
    Examine,
    Flying,
    Hold,
    Move,
    Prepare,
    StartAgent,
    StartTeam,
    Stop,
)
from holdfast.state.parts import passes_on
from holdfast.state.run import State, first_state

START = datetime(2026, 1, 1, tzinfo=UTC)
STRENGTH: Mapping[RoleTier, int] = {"none": 0, "haiku": 1, "sonnet": 2, "opus": 3}
ROLES = (
    RoleCard(name="researcher", description="finds", tier="haiku", fallback="analyst"),
    RoleCard(name="analyst", description="weighs", tier="sonnet"),
    RoleCard(name="expert", description="decides", tier="opus"),
    RoleCard(name="sorter", description="sorts", tier="haiku", fixed_tier=True),
    RoleCard(name="scanner", description="scans", tier="none", tools=("scan",)),
)


def model(tier: Tier, dollars_per_million: int) -> ModelCard:
    rate = Decimal(dollars_per_million) / 1_000_000
    step = PriceStep(input=rate, output=rate * 5, cache_read=rate / 10, cache_write=rate * 5 / 4)
    return ModelCard(tier=tier, id=f"a-{tier}", prices=(step,))


TEAM = RoleCard(name="department", description="a whole team", team=True, fallback="analyst")
READER = RoleCard(name="reader", description="reads", tier="haiku", tools=("read_file",), turns=10)


BRIEFING = Briefing(
    shortens=True,
    roles=(*ROLES, TEAM, READER),
    models=(model("haiku", 1), model("sonnet", 3), model("opus", 5)),
    version="test",
)


def subtask(id: str, *depends_on: str, role: str = "analyst", tier: Tier | None = None) -> Subtask:
    return Subtask(
        id=id,
        title=f"Subtask {id}",
        instruction=f"Find out everything about part {id}",
        role=role,
        tier=tier,
        depends_on=depends_on,
    )


Ended = Answered | Unanswered | Examined | TeamEnded | AgentEnded


@dataclass
class Drive:
    """One run. Time stands still until `wait`; nothing comes back unless the test says so."""

    plan: Plan | None
    limits: Limits = field(default_factory=Limits)
    briefing: Briefing = BRIEFING
    people: bool = False
    """Whether a person may be asked."""
    approval: Approval = field(default_factory=Approval)
    strict_order: bool = False
    """Whether money can never be the reason to start another subtask first."""

    def __post_init__(self) -> None:
        goal = Goal(text="Compare", plan=self.plan, limits=self.limits, use_models=True)
        goal = goal.model_copy(update={"ask_people": self.people, "approval": self.approval})
        self.now = START
        self.state = first_state("run", goal, START, "first")
        self.started: list[str] = []
        self.asks: dict[str, list[Ask]] = {}
        """Every paid call of a subtask, in order."""
        self.late: list[Ask | Examine] = []
        """What was abandoned and may still answer."""
        self.abandoned: list[StartTeam | StartAgent] = []
        self.resumes: dict[str, Resume] = {}
        """Where the last segment of each agent stopped."""
        self.approved: dict[str, str] = {}
        """The segment that each approved call was handed to."""
        self.replanned_from: ReplanMaterial | None = None
        """What the replan in flight works from."""
        self._carry_out(Prepare())
        self.put(Prepared(self.briefing))

    # ------------------------------------------------------------ as the executor does it

    def put(self, event: Event) -> None:
        """Take in one event at the present time, then carry out what follows."""
        self.state = replace(self.state, now=max(self.state.now, self.now))
        self._apply(event)
        while self.state.phase != "closed":
            moves = next_moves(self.state)
            for move in moves:
                self._carry_out(move)
            if not moves:
                self._check_cut()
                return

    def wait(self, seconds: float) -> None:
        """Let time pass; timers fire in order on the way."""
        until = self.now + timedelta(seconds=seconds)
        while (timer := self.next_timer()) is not None and timer <= until:
            self.now = max(self.now, timer)
            self._fire()
        self.now = until

    def next_timer(self) -> datetime | None:
        """When the next timer fires; None when nothing is set."""
        return min((each.due for each in timers(self.state).values()), default=None)

    def cancel(self) -> None:
        self.put(CancelAsked())

    def person_answers(self, subtask_id: str, text: str = "") -> None:
        """Somebody answers for a subtask that waits for a person; nothing: nobody came."""
        if text:
            order = Order(subtask_id=subtask_id, text=text)
            assert steering.refusal(self.state, "answer", order) == ""
            self.put(Steered(len(self.started), "answer", order))
        else:
            self.put(NobodyCame(subtask_id))

    def person_settles(self, subtask_id: str, command: str) -> None:
        """Somebody decides what becomes of a subtask, where that makes sense."""
        order = Order(subtask_id=subtask_id, text="the second", role="expert")
        if not steering.refusal(self.state, command, order):
            self.put(Steered(len(self.started), command, order))

    def person_decides(self, call: int, command: str) -> None:
        """Somebody approves or declines a call of a tool."""
        order = Order(call=call, by="somebody")
        assert steering.refusal(self.state, command, order) == ""
        self.put(Steered(len(self.started), command, order))

    @property
    def closed(self) -> bool:
        return self.state.phase == "closed"

    @property
    def in_flight(self) -> list[Ask | Examine]:
        moves = (flight.move for flight in self.state.flights.values())
        return [each for each in moves if isinstance(each, Ask | Examine)]

    @property
    def teams(self) -> list[StartTeam | StartAgent]:
        """Runs of their own that are in flight: teams, and segments of agents."""
        moves = (flight.move for flight in self.state.flights.values())
        return [each for each in moves if isinstance(each, StartTeam | StartAgent)]

    def finding(self, subtask_id: str) -> Finding:
        finding = self.state.work[subtask_id].finding
        assert finding is not None, f"{subtask_id} has not settled"
        return finding

    def _fire(self) -> None:
        for timer in [each for each in timers(self.state).values() if each.due <= self.now]:
            if isinstance(timer.then, Abandoned):
                flights = self.state.flights
                cut = [flights[each].move for each in timer.then.ids if each in flights]
                self.late += [each for each in cut if isinstance(each, Ask | Examine)]
                below = (StartTeam, StartAgent)
                self.abandoned += [each for each in cut if isinstance(each, below)]
            self.put(timer.then)

    def _carry_out(self, move: Move) -> None:
        before = self.state
        self._apply(Started(move))
        match move:
            case Ask() | Examine() | StartTeam() | StartAgent():
                self._check_start(before, move)
                if isinstance(move, Ask) and move.call.kind == "replan":
                    self.replanned_from = gathering.for_replan(self.state)
            case Cut():
                assert set(move.ids) <= set(before.flights), "only what is in flight is cut"
            case Hold():
                assert before.paused and set(move.ids) <= set(before.flights)
            case AskPerson():
                assert self.people, "nobody is asked who was not offered"
            case AskRaise():
                raise AssertionError("this goal does not wait for money")
            case Stop():
                assert before.stop is None, "work stops once"

    # ------------------------------------------------------------ what must always hold

    def _apply(self, event: Event) -> None:
        before = self.state
        self.state = apply(before, event)
        after = self.state
        self._check_ledger()
        if not after.work:
            return
        for subtask_id, progress in before.work.items():
            if progress.finding is not None and subtask_id not in after.early.taken:
                now = after.work[subtask_id].finding
                assert now is not None
                frozen = now.model_copy(update={"digest": progress.finding.digest})
                assert frozen == progress.finding, "findings are frozen, but for their digest"
        if isinstance(event, Ended) and not after.stop:
            self._check_isolation(before, event)

    def _check_ledger(self) -> None:
        ledger = self.state.ledger
        assert ledger.spent + ledger.held <= ledger.cap
        paid = {key for key, each in self.state.flights.items() if _is_paid(each.move)}
        assert set(ledger.reserved) == paid, "one reservation a paid call in flight"
        kept = ledger.kept if self.state.phase in ("planning", "working") else Amount()
        if kept <= ledger.cap:
            assert ledger.spent + ledger.held + kept <= ledger.cap, "the synthesis's part is kept"
        else:
            assert not self.asks, "nothing is asked when the synthesis itself does not fit"
        self._check_shares()

    def _check_shares(self) -> None:
        """What was paid for what adds up to the price, to the microdollar."""
        ledger, shares = self.state.ledger, shares_of(self.state)
        assert sum(each.calls for each in shares) == (ledger.paid + ledger.held).calls
        assert sum((each.usage for each in shares), Usage()) == ledger.all_usage
        assumed = sum((each.assumed for each in shares), Decimal(0))
        assert assumed == ledger.all_assumed + ledger.held.dollars
        if ledger.all_priced:
            paid = sum((each.dollars or Decimal(0) for each in shares), Decimal(0))
            assert paid == (ledger.paid + ledger.held).dollars
        assert ledger.all_priced == all(each.dollars is not None for each in shares)

    def _check_cut(self) -> None:
        """Nothing that is paid goes on after a cancel or past the deadline of the work."""
        state, deadline = self.state, self.state.work_deadline
        cancelled = state.stop is not None and state.stop.reason == "cancelled"
        late = deadline is not None and self.now >= deadline and state.phase != "synthesizing"
        if cancelled or late:
            assert all(flight.cut for flight in state.flights.values())

    def _check_isolation(self, before: State, event: Ended) -> None:
        ended = event.move.subtask_id
        if event.move.id in before.early.back:
            assert self.state.work == before.work, "what was taken back touches nothing"
            return
        if not ended or self.state.plan is None:
            return
        touched = (ended, *graph.dependents(self.state.plan.subtasks, ended))
        for subtask_id, progress in before.work.items():
            if subtask_id not in touched:
                assert self.state.work[subtask_id] == progress, "siblings are left alone"

    def _check_start(self, before: State, move: Ask | Examine | StartTeam | StartAgent) -> None:
        assert move.id not in self.started, "an id is never used twice"
        self.started.append(move.id)
        assert len(self.state.flights) <= self.limits.concurrency
        subtask_id = move.subtask_id
        if isinstance(move, StartTeam):
            slice_, limits = move.amount, move.goal.limits
            own = Amount(limits.dollars, limits.model_calls, limits.tokens)
            assert own <= slice_, "a team's cap is its slice"
            most = before.work_deadline
            left = (most - self.now).total_seconds() if most else self.limits.deadline_seconds
            assert limits.deadline_seconds <= max(left, 1), "and its time is what is left"
        if isinstance(move, StartAgent):
            self._check_segment(before, move)
        if isinstance(move, Ask) and move.call.model is not None:
            assert move.call.ceiling == move.amount.dollars
            self.asks.setdefault(subtask_id, []).append(move)
        if subtask_id:
            self._check_subtask_start(before, subtask_id)

    def _check_segment(self, before: State, move: StartAgent) -> None:
        """It has its slice, of a few turns, and goes on exactly where the one before stopped."""
        part, resume = move.goal.slice, move.goal.resume
        assert Amount(part.dollars, part.calls, part.tokens) == move.amount
        assert 1 <= part.calls <= 3
        stood = resume.model_copy(update={"excused": 0})
        assert stood == self.resumes.get(move.subtask_id, Resume()).model_copy(
            update={"excused": 0}
        )
        for each in move.goal.decisions:
            if each.verdict == "approved":
                assert each.use_id not in self.approved, "an approved call is made once"
                self.approved[each.use_id] = move.id
        if resume.transcript:
            called = before.work[move.subtask_id].called
            assert move.goal.model.tier == called, "a conversation stays with its model"

    def _check_subtask_start(self, before: State, subtask_id: str) -> None:
        assert before.stop is None, "no work starts after a stop"
        if before.phase == "planning":
            known = before.work.get(subtask_id)
            again = known and not known.flight and known.finding is None
            assert known is None or again, "what starts early starts again only if it was lost"
            return
        progress = before.work[subtask_id]
        assert progress.finding is None and not progress.flight
        for edge in progress.subtask.depends_on:
            attempts = next((each for each in before.work.choices if edge in each), (edge,))
            found = [self.finding(each) for each in attempts]
            assert any(map(passes_on, found)), f"{subtask_id} started before {edge}"
        if self.strict_order:
            chains = longest_chains(self.state.plan)
            ready = [each for each in before.work if self._is_ready(before, each)]
            longest = max(chains[each] for each in ready)
            assert chains[subtask_id] == longest, f"{subtask_id} was not the most urgent"

    def _is_ready(self, state: State, subtask_id: str) -> bool:
        assert state.plan is not None
        progress = state.work[subtask_id]
        for setback in state.replanning.setbacks:
            if subtask_id in graph.dependents(state.plan.subtasks, setback.subtask_id):
                return False
        for choice in finishing.open_choices(state):
            if subtask_id in graph.dependents(state.plan.subtasks, choice[0]):
                return False
        if state.out_of_reach and progress.tier != "none":
            return False
        return (
            progress.finding is None
            and not progress.flight
            and not (progress.stage == "person" and progress.asked)
            and progress.stage != "approval"
            and all(state.is_settled(edge) for edge in progress.subtask.depends_on)
        )


def longest_chains(plan: Plan | None) -> dict[str, int]:
    """How many subtasks the longest chain has that starts with each, by definition."""
    assert plan is not None
    subtasks = plan.subtasks

    @cache
    def chain(subtask_id: str) -> int:
        below = (other.id for other in subtasks if subtask_id in other.depends_on)
        return 1 + max((chain(each) for each in below), default=0)

    return {each.id: chain(each.id) for each in subtasks}


def _is_paid(move: Flying) -> bool:
    return isinstance(move, StartTeam | StartAgent) or (
        isinstance(move, Ask) and move.call.model is not None
    )


def bill_of(ask: Ask, share: Decimal = Decimal(1)) -> Bill:
    """What a call cost that used this share of its reservation."""
    if ask.call.model is None:
        return Bill()
    return Bill(model=ask.call.model.id, calls=1, dollars=ask.amount.dollars * share)
