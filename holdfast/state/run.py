"""The state of a run: a plain value. Only `reducer.apply` changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from holdfast.contracts import (
    AnswerForm,
    Briefing,
    Finding,
    Given,
    Goal,
    Omission,
    Plan,
    Problem,
    Share,
    Standstill,
    Subtask,
    Undone,
    policies,
)
from holdfast.contracts.replacing import replace
from holdfast.contracts.titles import title_of
from holdfast.contracts.view import Phase, Preview
from holdfast.ledger.ledger import Ledger
from holdfast.state.moves import Ask, Stop, StopReason
from holdfast.state.parts import (
    Early,
    Finishing,
    Flight,
    Noticed,
    Outage,
    Progress,
    Replanning,
    Went,
)
from holdfast.state.work import Work


@dataclass(frozen=True)
class State:
    run_id: str
    goal: Goal
    started: datetime
    now: datetime
    """The latest recorded moment: no later event carries an earlier one."""
    ledger: Ledger
    first_run_id: str = ""
    """Temporal's id of the first execution: it survives a reset, and so do its calls."""
    phase: Phase = "preparing"
    briefing: Briefing | None = None
    groups: tuple[str, ...] | None = None
    """Groups of roles that the planner is shown, where there are too many roles for one menu; none:
    all of them. None: nobody has chosen.
    """
    choice: str = ""
    """Says which groups they are, and why."""
    matched: bool | None = None
    """True if a model found that the template fits; None: none was asked, or not yet."""
    plan: Plan | None = None
    plan_errors: tuple[str, ...] = ()
    plan_refused: str = ""
    """The planner's last answer, as far as it may be shown, if that has these errors."""
    plan_tries: int = 0
    early: Early = field(default_factory=Early)
    work: Work = field(default_factory=Work)
    flights: Mapping[str, Flight] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Activities so far by purpose (`work-t3`), for the number in the next id."""
    transport: Mapping[str, int] = field(default_factory=dict)
    """Calls without an answer by purpose, since its last answer."""
    needed: Mapping[str, int] = field(default_factory=dict)
    """Input tokens by purpose and tier, as counted by a worker that refused a reservation."""
    broken: Mapping[str, tuple[Problem, ...]] = field(default_factory=dict)
    roomier: tuple[str, ...] = ()
    """Purposes to ask again with twice the room: the last answer was cut off."""
    replanning: Replanning = field(default_factory=Replanning)
    finishing: Finishing = field(default_factory=Finishing)
    first_paid: datetime | None = None
    waited: float = 0.0
    """Seconds after the first paid call in which only a person or a lost endpoint kept the run, or
    no worker served it. The deadline stood still.
    """
    waited_before: float = 0.0
    """Seconds of such waiting before the first paid call, when no deadline ran yet."""
    waiting_since: datetime | None = None
    estimate: Preview | None = None
    """Price and time that the plan was expected to take, before it ran."""
    proposed: datetime | None = None
    """Since when the plan waits for approval."""
    warmed: tuple[str, ...] = ()
    """What calls begin with that the endpoint has read by now, for others to find in its cache."""
    paused: bool = False
    short: str = ""
    short_of: tuple[str, ...] = ()
    """The limits that are too small, while the run waits for a higher cap; `short` says why."""
    short_least: Decimal | None = None
    """The least cap in dollars under which it goes on, where known."""
    short_since: datetime | None = None
    outage: Outage | None = None
    standing: Mapping[str, Standstill] = field(default_factory=dict)
    """What each team in flight last said of its waiting, by the id of its flight."""
    told_above: Standstill | None = None
    """What this team last told the run above it."""
    lately: Mapping[str, tuple[Went, ...]] = field(default_factory=dict)
    heard: bool = False
    """True once a model has answered this run."""
    heard_json: bool = False
    """True once an answer held JSON, in the right form or not."""
    no_json: int = 0
    """Answers without any JSON, before one that held some."""
    cuts: int = 0
    calls_asked: int = 0
    """Calls of tools that people were asked to approve so far."""
    orders: tuple[Given, ...] = ()
    resets: tuple[Undone, ...] = ()
    """What resets undid, one for each execution that was left."""
    stop: Stop | None = None
    notes: tuple[str, ...] = ()
    of_bills: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cheaper: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Subtasks by the pair of tiers, where the cap allowed only a cheaper model than was due."""
    shares: Mapping[tuple[str, str, str], Share] = field(default_factory=dict)
    """What was settled, by kind of call, tier and team."""
    unpaid_calls: int = 0
    """Calls without an answer that surely cost nothing, those of teams included."""
    notices: tuple[Noticed, ...] = ()
    """What addresses of the web were told so far."""
    finished: datetime | None = None

    @property
    def brief(self) -> Briefing:
        """The Briefing. AssertionError before `prepare` has returned."""
        assert self.briefing is not None, "no Briefing before prepare has returned"
        return self.briefing

    @property
    def only_approved(self) -> bool:
        """True if nothing runs but a plan as a person approved it, whatever the goal says."""
        playbook = self.briefing.playbook if self.briefing else None
        return playbook is not None and playbook.approval == "always"

    @property
    def answer(self) -> str:
        """The answer as people get it, below the notice of its playbook; empty: there is none."""
        answer = self.finishing.synthesis.answer if self.finishing.synthesis else ""
        playbook = self.briefing.playbook if self.briefing else None
        notice = playbook.notice if playbook else ""
        return f"> **{notice}**\n\n{answer}" if notice and answer.strip() else answer

    @property
    def form(self) -> AnswerForm:
        """The form of the answer: the caller's, else the playbook's."""
        if self.goal.form.kind or self.briefing is None or self.briefing.playbook is None:
            return self.goal.form
        return self.briefing.playbook.form

    @property
    def title(self) -> str:
        """The goal's words, or what the playbook calls a run whose caller says none."""
        playbook = self.briefing.playbook if self.briefing else None
        if playbook is None:
            return self.goal.text
        own = playbook.plan.goal if playbook.plan else playbook.description
        return title_of(self.goal.text, own, playbook.title, self.brief.inputs)

    @property
    def single(self) -> Subtask | None:
        """The only subtask of a plan, where its finding is the answer as it stands: text, of an
        agent, for an answer that is text. None: an answer is made of the findings.
        """
        if len(self.work) != 1 or not self.goal.use_models or self.form.is_data:
            return None
        if self.early.plan is not None:
            # More is being written.
            return None
        playbook = self.brief.playbook
        (progress,) = self.work.values()
        if (playbook and playbook.verify) or not self._is_text(progress):
            return None
        return progress.subtask

    @property
    def selects(self) -> bool:
        """True if all subtasks attempt the goal, and the best finding is the answer."""
        if self.plan is None or self.plan.strategy != "select" or self.form.is_data:
            return False
        several = len(self.work) > 1 or self.early.plan is not None
        return several and self.goal.use_models and all(map(self._is_text, self.work.values()))

    def _is_text(self, progress: Progress) -> bool:
        """True if what a subtask finds is text of an agent, as an answer is."""
        roles = map(self.brief.role, (progress.subtask.role, *progress.former))
        return not any(role.result or role.tier == "none" for role in roles)

    def find_order(self, number: int) -> Given | None:
        return next((each for each in self.orders if each.number == number), None)

    @property
    def out_of_reach(self) -> bool:
        """True if no model can be asked now because the endpoint does not answer. Without money for
        a small call the next one that is due finds out.
        """
        outage = self.outage
        if outage is None or outage.stage != "asking":
            return outage is not None and outage.stage == "looking"
        return self.is_asking("ping") or self.ledger.fits(outage.price, keep=self.keeps)

    @property
    def keeps(self) -> bool:
        """True if a call must leave alone what is kept for the synthesis."""
        return self.finishing.synthesis is None

    def is_asking(self, kind: str) -> bool:
        return any(_asks(flight, kind) for flight in self.flights.values())

    def next_number(self, purpose: str) -> int:
        return self.numbers.get(purpose, 0) + 1

    @property
    def at_work(self) -> bool:
        """True if anything is in flight that does more than wait."""
        return not all(
            _asks(flight, "reach") or _asks(flight, "ping") or key in self.waiting_teams
            for key, flight in self.flights.items()
        )

    @property
    def waiting_teams(self) -> Mapping[str, Standstill]:
        """Teams in flight that only wait, by the id of their flight."""
        return {key: word for key, word in self.standing.items() if word.why}

    def is_settled(self, subtask_id: str) -> bool:
        return self.work[subtask_id].finding is not None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.work.findings

    @property
    def usable(self) -> tuple[Finding, ...]:
        """Findings that an answer can be made of: complete ones, and escalations with a partial.
        Attempts that were put aside for a better one are none of them.
        """
        aside = self.set_aside
        if not aside:
            return self.work.usable
        return tuple(each for each in self.work.usable if each.subtask_id not in aside)

    @property
    def set_aside(self) -> tuple[str, ...]:
        """Subtasks whose attempt at a question was judged less good than another one."""
        return tuple(
            each
            for choice, judgement in self.finishing.chosen.items()
            for each in choice
            if judgement.winner and each != judgement.winner
        )

    @property
    def not_run(self) -> tuple[Omission, ...]:
        """Omissions that concern the roles of this run."""
        at_work = {
            name
            for each in self.work.values()
            for name in (each.subtask.role, each.subtask.secondary, *each.former)
        }
        # Whom a team will plan with is not known.
        if any(card.team and card.name in at_work for card in self.brief.roles):
            return self.brief.not_run
        told = (each for each in self.brief.not_run if {*each.roles} & at_work or not each.roles)
        return tuple(told)

    @property
    def work_deadline(self) -> datetime | None:
        """When work is cut so that the synthesis still fits. None while the clock stands: nothing
        was paid yet, or the run waits for a person.
        """
        return self._after(self._work_seconds)

    @property
    def deadline(self) -> datetime | None:
        """When the synthesis is cut as well, and a template answers. None as above."""
        return self._after(self.goal.limits.deadline_seconds)

    @property
    def counts_from(self) -> datetime | None:
        """When the deadline would have begun, had the run never waited since. None as above."""
        return self._after(0.0)

    @property
    def _work_seconds(self) -> float:
        total = self.goal.limits.deadline_seconds
        least = min(policies.MIN_SYNTHESIS_SECONDS, total * policies.MOST_SYNTHESIS_SHARE)
        return total - max(total * policies.SYNTHESIS_SHARE, least)

    @property
    def work_over(self) -> str:
        """Why work is cut at its deadline, and by which limit."""
        total = self.goal.limits.deadline_seconds
        whose = "this team's" if self.goal.depth else "this run's"
        above = ", which the run above had left" if self.goal.depth else ""
        most = f"work may take {self._work_seconds:g} s of {whose} {total} s{above}"
        return f"the deadline was reached: {most}"

    @property
    def seconds_left(self) -> float:
        """Seconds left for work, without those kept for the synthesis."""
        if self.first_paid is None:
            return self._work_seconds
        gone = (self.waiting_since or self.now) - self.first_paid
        return self._work_seconds + self.waited - gone.total_seconds()

    def waited_until(self, now: datetime) -> float:
        """Return the seconds in which only a person or a lost endpoint kept the run."""
        since = self.waiting_since
        return self.waited_before + self.waited + ((now - since).total_seconds() if since else 0.0)

    def _after(self, seconds: float) -> datetime | None:
        if self.first_paid is None or self.waiting_since is not None:
            return None
        return self.first_paid + timedelta(seconds=seconds + self.waited)

    def stopped_by(self, *reasons: StopReason) -> bool:
        return self.stop is not None and self.stop.reason in reasons


def first_state(run_id: str, goal: Goal, started: datetime, first_run_id: str) -> State:
    ledger = Ledger.under(goal.limits)
    state = State(run_id, goal, started, started, ledger, first_run_id)
    return replace(state, heard=goal.heard, heard_json=goal.heard_json)


def _asks(flight: Flight, kind: str) -> bool:
    return isinstance(flight.move, Ask) and flight.move.call.kind == kind
