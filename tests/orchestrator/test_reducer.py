"""The supervisor's rules over random plans, outcomes, orders and moments; `driving` checks after
every step what must always hold.
"""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from driving import BRIEFING, READER, ROLES, STRENGTH, TEAM, Drive, subtask
from holdfast.calls.judge import Judgement
from holdfast.calls.replan import Change, Patch, ReplanMaterial
from holdfast.calls.turn import Resume
from holdfast.contracts import (
    Draft,
    Limits,
    Plan,
    Report,
    ReportStatus,
    RoleCard,
    Subtask,
    Tier,
    dollars,
)
from holdfast.ledger.ledger import Amount
from holdfast.plans import revision
from holdfast.rendering import running
from holdfast.rules import approvals, reporting
from holdfast.state.events import AgentEnded, Answered, Examined, TeamEnded, Unanswered
from holdfast.state.moves import Ask, Examine, StartAgent, StartTeam
from outcomes import (
    AMPLE,
    DRAFTS,
    PLANNED,
    PROBLEMS,
    SEGMENT_ENDS,
    TROUBLES,
    WORK_OUTCOMES,
    begun,
    comes_back,
    end,
    in_flight,
    segment_ends,
    value_of,
)
from parameters import rest_long

EXAMPLES = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    # Without `explain`, which takes minutes over runs of this length.
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
TEAM_ENDS: tuple[ReportStatus, ...] = (
    "complete", "complete_with_gaps", "deadline_partial", "cancelled", "failed"
)  # fmt: skip
EVERY = (*ROLES, TEAM, READER)
SHARES = (Decimal(0), Decimal("0.5"), Decimal(1))
TWENTY = tuple(subtask(f"t{number}", role="reader") for number in range(20))
FAIR = ("more",) * 12 + ("complete",) * 6
ASSIGNED: tuple[Tier | None, ...] = (None, "haiku", "sonnet")

# ---------------------------------------------------------------- random runs


@st.composite
def plans(draw: st.DrawFn, largest: int = 12, roles: tuple[RoleCard, ...] = EVERY) -> Plan:
    size = draw(st.integers(1, largest))
    subtasks: list[Subtask] = []
    for place in range(size):
        earlier = [each.id for each in subtasks]
        edges = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        role = draw(st.sampled_from(roles))
        tier: Tier | None = draw(st.sampled_from(ASSIGNED)) if role.tier != "none" else None
        each = subtask(f"t{place}", *edges, role=role.name, tier=tier)
        criteria = draw(st.sampled_from(("", "", "It is plausible")))
        seconds = ("", "") if role.tier == "none" else ("", "analyst", "expert")
        second = draw(st.sampled_from(seconds))
        update = {"acceptance_criteria": criteria, "secondary": second}
        subtasks.append(each.model_copy(update=update))
    strategy = draw(st.sampled_from(("merge", "select", "reduce")))
    choices: tuple[tuple[str, str], ...] = ()
    if strategy != "select" and size > 1 and draw(st.booleans()):
        subtasks, choices = with_choice(subtasks, draw(st.integers(0, size - 2)))
    return Plan(
        goal="Compare",
        strategy=strategy,
        choices=choices,
        subtasks=tuple(draw(st.permutations(subtasks))),
    )


def with_choice(
    subtasks: list[Subtask], place: int
) -> tuple[list[Subtask], tuple[tuple[str, str], ...]]:
    """Two neighbours attempt one question: what needs one of them needs both."""
    pair = subtasks[place].id, subtasks[place + 1].id
    changed = []
    for each in subtasks:
        edges = tuple(edge for edge in each.depends_on if edge not in pair)
        if each.id not in pair and edges != each.depends_on:
            edges = (*edges, *pair)
        changed.append(each.model_copy(update={"depends_on": edges}))
    return changed, (pair,)


@st.composite
def patches(draw: st.DrawFn, material: ReplanMaterial) -> Patch:
    """Mostly valid, sometimes not."""
    planned = [each.id for each in material.plan.subtasks]
    changes = []
    for _ in range(draw(st.integers(0, 3))):
        op = draw(st.sampled_from(("add", "replace", "drop")))
        id = f"n{len(planned)}" if op == "add" else draw(st.sampled_from(planned))
        edges = draw(st.lists(st.sampled_from(planned), unique=True, max_size=2))
        changed = subtask(id, *edges, role=draw(st.sampled_from(ROLES)).name)
        changes.append(Change(op=op, subtask=changed, why="it was in the way"))
        planned.append(id)
    return Patch(changes=tuple(changes))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    """From far too little to plenty."""
    return Limits(
        dollars=draw(st.sampled_from(("100", "2", "1", "0.5", "0.15", "0.1", "0"))),
        model_calls=draw(st.sampled_from((60, 60, 12, 5, 1, 0))),
        tokens=draw(st.sampled_from((5_000_000, 5_000_000, 200_000, 50_000))),
        concurrency=draw(st.integers(1, 5)),
        tries_per_subtask=draw(st.integers(1, 4)),
        deadline_seconds=draw(st.sampled_from((60, 900))),
        digest_above_tokens=100,
        supervisor_context_tokens=1_000,
    )


class Chance:
    """Decides what happens next in a run, and keeps the bill that the ledger must agree with."""

    def __init__(self, drive: Drive, data: st.DataObject, *, cancels: bool = False) -> None:
        self.drive = drive
        self.data = data
        self.cancels = cancels
        self.plan = drive.plan or PLANNED
        self.paid: dict[str, Decimal] = {}
        """Dollars by subtask; "" for planning and synthesis."""
        self.decided = 0

    def play(self) -> None:
        """Until the run is closed and everything late has arrived."""
        drive = self.drive
        for _ in range(600):
            if drive.closed and not drive.late:
                return
            flying = drive.in_flight or drive.teams or drive.late
            assert flying or drive.next_timer(), "the run has stalled"
            self._step()
        raise AssertionError("the run does not end")

    def _step(self) -> None:
        drive, draw = self.drive, self.data.draw
        if self.cancels and draw(st.integers(0, 9)) == 9:
            self.cancels = False
            drive.cancel()
            return
        asked = [each for each, one in drive.state.work.items() if one.stage == "person"]
        if asked and draw(st.integers(0, 1)) == 1:
            drive.person_answers(asked[draw(st.integers(0, len(asked) - 1))], "the second")
            return
        lost = [each for each, one in drive.state.work.items() if one.undecided]
        if lost and drive.state.phase == "working" and self.decided < 3:
            self.decided += 1
            command = draw(st.sampled_from(("answer", "retry", "hand", "skip")))
            drive.person_settles(lost[draw(st.integers(0, len(lost) - 1))], command)
            return
        known = approvals.waiting_calls(drive.state) if drive.state.phase == "working" else ()
        if known and draw(st.integers(0, 2)) > 0:
            _, call = known[draw(st.integers(0, len(known) - 1))]
            drive.person_decides(call.number, draw(st.sampled_from(("approve", "decline"))))
            return
        if draw(st.integers(0, 9)) == 9 or not (drive.in_flight or drive.teams or drive.late):
            self._wait(draw(st.sampled_from((1, 5, 11, 400, 100_000))))
            return
        self._wait(draw(st.integers(0, 2)))
        moves = [*drive.in_flight, *drive.late, *drive.teams]
        if not moves:
            return
        move = moves[draw(st.integers(0, len(moves) - 1))]
        if isinstance(move, StartTeam):
            self._end_team(move)
        elif isinstance(move, StartAgent):
            self._end_segment(move)
        else:
            self._end(move)

    def _wait(self, seconds: int) -> None:
        known, teams = len(self.drive.late), len(self.drive.abandoned)
        self.drive.wait(seconds)
        for move in (*self.drive.late[known:], *self.drive.abandoned[teams:]):
            if isinstance(move, Ask | StartTeam | StartAgent):
                self._pay(move.subtask_id, move.amount.dollars)

    def _end_team(self, move: StartTeam) -> None:
        """It hands up its report, whole or cut, or closes without one: then, unless it never began,
        its whole slice counts.
        """
        draw = self.data.draw
        share = draw(st.sampled_from((Decimal(0), Decimal("0.5"), Decimal(1))))
        status = draw(st.sampled_from((*TEAM_ENDS, None)))
        if status is None:
            unpaid = draw(st.booleans())
            paid = Decimal(0) if unpaid else move.amount.dollars
            event = TeamEnded(move, None, "it closed", unpaid)
        else:
            paid = dollars(move.amount.dollars * share)
            answer = draw(st.sampled_from(("", f"found by {move.id}")))
            report = Report(
                status=status if answer else "failed",
                run_id=move.id,
                goal=move.goal.text,
                answer=answer,
                confidence=draw(st.sampled_from((10, 90))),
                dollars=paid,
                model_calls=draw(st.integers(0, move.amount.calls)),
            )
            event = TeamEnded(move, report)
        self._pay(move.subtask_id, paid)
        self.drive.put(event)

    def _end_segment(self, move: StartAgent) -> None:
        """An agent's segment closes; what it counts at is in the ledger at once, to the token."""
        draw = self.data.draw
        outcome, share = draw(st.sampled_from(SEGMENT_ENDS)), draw(st.sampled_from(SHARES))
        event, report = segment_ends(move, outcome, share), None
        before = self.drive.state.ledger.spent
        if outcome == "lost without a trace":
            counts = move.amount
        else:
            report = event.report
            bill = report.bill if report else None
            paid = bill.dollars or Decimal(0) if bill else Decimal(0)
            counts = Amount(paid, bill.calls if bill else 0, report.tokens if report else 0)
        self._pay(move.subtask_id, counts.dollars)
        self.note(self.drive, event)
        self.drive.put(event)
        assert self.drive.state.ledger.spent == before + counts

    @staticmethod
    def note(drive: Drive, event: AgentEnded) -> None:
        """Where the agent's next segment is to go on."""
        if event.report is not None:
            again = event.report.outcome in ("answered", "stopped") or event.report.too_long
            resume = Resume() if again else event.report.resume
            drive.resumes[event.move.subtask_id] = resume
        elif event.unpaid:
            approved = {key: by for key, by in drive.approved.items() if by != event.move.id}
            drive.approved = approved

    def _end(self, move: Ask | Examine) -> None:
        late = move in self.drive.late
        if late:
            self.drive.late.remove(move)
        event: Answered | Unanswered | Examined
        if isinstance(move, Examine):
            event = Examined(move, self._tool_draft(move))
        else:
            share = self.data.draw(st.sampled_from((Decimal(0), Decimal("0.5"), Decimal(1))))
            outcome = self._outcome(move)
            value = self._value(move, outcome)
            event = comes_back(move, "invalid" if value is None else outcome, share, value)
            if not late:
                self._pay(move.call.subtask_id, self._price(move, event))
        self.drive.put(event)

    def _value(self, ask: Ask, outcome: str) -> object:
        if outcome not in DRAFTS:
            return "nothing"
        if ask.call.kind == "replan":
            material = self.drive.replanned_from
            assert material is not None
            patch = self.data.draw(patches(material))
            return None if revision.problems(patch, material) else patch
        if ask.call.kind == "judge" and ask.call.id.startswith("judge-1"):
            usable = [each.subtask_id for each in self.drive.state.usable]
            return Judgement(winner=self.data.draw(st.sampled_from(("", *usable))))
        return value_of(ask, outcome, self.plan)

    def _price(self, ask: Ask, event: Answered | Unanswered) -> Decimal:
        if isinstance(event, Answered):
            return event.reply.bill.dollars or Decimal(0)
        # What may have been billed counts at its reservation.
        return ask.amount.dollars if event.trouble.bill.calls else Decimal(0)

    def _pay(self, subtask_id: str, amount: Decimal) -> None:
        self.paid[subtask_id] = self.paid.get(subtask_id, Decimal(0)) + amount

    def _outcome(self, ask: Ask) -> str:
        flight = self.drive.state.flights.get(ask.call.id)
        if flight and flight.cut and self.data.draw(st.booleans()):
            after = ask.call.model is not None and self.data.draw(st.booleans())
            return "cut after it left" if after else "cut"
        if ask.call.model is None:
            return self.data.draw(st.sampled_from(("complete", "complete", "refused")))
        if ask.call.kind == "work":
            return self.data.draw(st.sampled_from(WORK_OUTCOMES))
        return self.data.draw(
            st.sampled_from(("complete", "complete", "failed", *PROBLEMS, *TROUBLES))
        )

    def _tool_draft(self, move: Examine) -> Draft:
        kind = self.data.draw(st.sampled_from(("complete", "complete", "failed")))
        return DRAFTS[kind](move.id)


def check_closed(drive: Drive, chance: Chance) -> None:
    """What holds of every run that has ended, whatever happened on the way."""
    state = drive.state
    assert not state.flights
    assert state.ledger.held.calls == 0
    assert state.ledger.spent.dollars == sum(chance.paid.values())
    assert [each.subtask_id for each in state.findings] == list(state.work)
    for progress in state.work.values():
        check_finding(drive, chance, progress.subtask)
    report = reporting.report(state)
    assert (report.status == "complete") <= (not report.gaps)
    complete = [each for each in state.findings if each.status == "complete"]
    if state.stop is None or state.stop.reason not in ("cancelled", "endpoint", "allowance"):
        synthesized = any(each.startswith("synthesize-") for each in drive.started)
        whole = bool(state.single and complete)
        assert synthesized == (bool(state.usable) and not whole), "what exists is synthesized"
        if whole:
            assert report.answer == complete[0].content and report.confidence == 90
            assert not any(each.startswith("critique-") for each in drive.started)
    if not complete:
        stopped = "budget_stopped" if state.stopped_by("allowance") else "failed"
        assert report.status in (stopped, "cancelled")
        paid = [ask.call.kind for ask in drive.asks.get("", [])]
        assert "synthesize" not in paid, "nothing complete, nothing to pay a synthesis for"
    assert running.run_view(state).phase == "closed"


def check_finding(drive: Drive, chance: Chance, planned: Subtask) -> None:
    finding = drive.finding(planned.id)
    asks = drive.asks.get(planned.id, [])
    assert finding.dollars == chance.paid.get(planned.id, Decimal(0)), "each finding has its bill"
    relieved = drive.state.work[planned.id].relieved
    assert len(finding.tries) <= drive.limits.tries_per_subtask + relieved
    assert [each.number for each in finding.tries] == list(range(1, len(finding.tries) + 1))
    assert (finding.status == "complete") == (finding.why == "")
    if finding.content:
        owner = finding.content.split()[2].rpartition("-")[0]
        assert owner.partition("-")[2] == planned.id, "what a subtask found is its own"
    if finding.status == "skipped":
        check_skipped(drive, planned)
        assert not asks, "what was asked was not skipped"
    if drive.briefing.role(planned.role).fixed_tier:
        own = {ask.call.tier for ask in asks if ask.call.kind == "work"}
        assert own <= {"haiku"}, "a fixed tier stays"
    if drive.strict_order:
        tiers = [STRENGTH[each.tier] for each in finding.tries]
        assert all(later - tier in (0, 1) for tier, later in pairwise(tiers))


def check_skipped(drive: Drive, planned: Subtask) -> None:
    """Only what depends on something that failed is skipped, or what a stop left over."""
    finding = drive.finding(planned.id)
    stop = drive.state.stop
    if finding.why.startswith(("not started: ", "dropped by revision ")):
        assert stop or drive.state.replanning.revisions
        return
    culprits = [
        each
        for each in drive.state.findings
        if finding.why.startswith(f"needs {each.subtask_id}, which ")
        and each.subtask_id in planned.depends_on
    ]
    assert culprits and culprits[0].status != "complete", finding.why


# ---------------------------------------------------------------- the properties


@EXAMPLES
@given(plans(), limits(), st.data())
def test_every_run_settles_each_subtask_once_within_its_limits(
    plan: Plan, limits: Limits, data: st.DataObject
) -> None:
    drive = Drive(plan, limits, people=data.draw(st.booleans()))
    chance = Chance(drive, data)
    chance.play()
    check_closed(drive, chance)


@pytest.mark.long
@EXAMPLES
@given(plans(roles=ROLES), st.integers(1, 5), st.data())
def test_with_money_to_spare_the_longest_remaining_chain_always_starts_first(
    plan: Plan, concurrency: int, data: st.DataObject
) -> None:
    limits = AMPLE.model_copy(update={"concurrency": concurrency, "replans": 2})
    # Handing over to another role would begin at that role's tier.
    roles = tuple(each.model_copy(update={"fallback": ""}) for each in ROLES)
    briefing = BRIEFING.model_copy(update={"roles": roles})
    drive = Drive(plan, limits, briefing, strict_order=True)
    chance = Chance(drive, data)
    chance.play()
    check_closed(drive, chance)


@EXAMPLES
@given(plans(6), limits(), st.data())
def test_a_cancel_at_any_moment_ends_closed_with_everything_settled(
    plan: Plan, limits: Limits, data: st.DataObject
) -> None:
    drive = Drive(data.draw(st.sampled_from((plan, None))), limits)
    chance = Chance(drive, data, cancels=True)
    chance.play()
    check_closed(drive, chance)
    if not chance.cancels:
        assert drive.state.stop is None or drive.state.stop.reason == "cancelled"


@pytest.mark.parametrize("cap", rest_long(["20", "1", "0.1"]))
def test_twenty_agents_at_once_stay_below_the_cap_to_the_cent(cap: str) -> None:
    """`Drive` checks after every step that spent and reserved are within the cap."""
    reached = 0
    for seed in range(10):
        chance = random.Random(seed)
        run = begun(*TWENTY, dollars=Decimal(cap), concurrency=20, tries_per_subtask=2)
        assert len(run.teams) == 20 or cap != "20"
        paid = Decimal(0)
        for _ in range(2_000):
            if run.closed:
                break
            if not run.teams:
                end(run, in_flight(run)[0])
                continue
            move = chance.choice(run.teams)
            assert isinstance(move, StartAgent)
            share = Decimal(chance.randint(0, 1_000_000)) / 1_000_000
            ends = [each for each in SEGMENT_ENDS if each != "asks"]
            event = segment_ends(move, chance.choice((*FAIR, *ends)), share)
            before = run.state.ledger.spent.dollars
            Chance.note(run, event)
            run.put(event)
            paid += run.state.ledger.spent.dollars - before
        findings = [each.dollars or Decimal(0) for each in run.state.findings]
        assert run.closed and sum(findings) == paid <= Decimal(cap)
        reached += run.state.stopped_by("budget")
    assert reached or Decimal(cap) > 3, "some must meet the cap"


@settings(EXAMPLES, max_examples=40)
@given(limits(), st.data())
def test_a_planner_that_may_do_anything_leads_to_a_plan_or_an_end(
    limits: Limits, data: st.DataObject
) -> None:
    drive = Drive(None, limits)
    chance = Chance(drive, data)
    chance.play()
    check_closed(drive, chance)
    assert drive.state.plan is not None or drive.state.stop is not None
