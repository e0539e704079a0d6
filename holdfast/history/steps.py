"""The steps of a run by its rules: each call, lens, agent and team, with its input, its result, its
times and its price. Read along with the events that a history becomes; pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from holdfast.contracts import Bill, Span
from holdfast.history.judging import TAKEN_BACK, Judged, judge, judge_begun
from holdfast.ledger.ledger import Ledger
from holdfast.state.events import (
    Abandoned,
    AgentEnded,
    Answered,
    Event,
    Examined,
    MapEnded,
    NotPrepared,
    Prepared,
    Started,
    TeamEnded,
    Unanswered,
)
from holdfast.state.moves import (
    Ask,
    Examine,
    Flying,
    Prepare,
    StartAgent,
    StartMap,
    StartTeam,
)
from holdfast.state.run import State

PREPARE = Prepare().id
WORDS = {
    PREPARE: "Prepare", "choose": "Choice of roles",
    "match": "Match of a template", "plan": "Plan",
    "replan": "Change of the plan", "digest": "Digests",
    "synthesize": "Answer", "critique": "Check of the answer", "judge": "Judgement",
    "reach": "Look for the endpoint",
    "ping": "Whether it answers", "prove": "Script of a proof", "try_proof": "Run of a proof",
    "fix": "Patch", "try_fix": "Trial of a patch",
}  # fmt: skip
"""What the supervisor does itself, in words."""
Landing = (
    Prepared | NotPrepared | Answered | Unanswered | Examined | TeamEnded | AgentEnded | MapEnded
)


@dataclass(frozen=True)
class Step:
    """One thing that a run had done, from the moment in which it was scheduled."""

    move: Flying
    begun: datetime
    landing: Landing | None = None
    """The event of its return; None: it has not returned, or never will."""
    ended: datetime | None = None
    """None: it is under way."""
    spent: Decimal | None = Decimal(0)
    """Dollars, as the ledger counted them; None: its model has no price."""
    assumed: Decimal = Decimal(0)
    """The part of `spent` that is a worst case."""
    calls: int = 0
    tokens: int = 0
    try_number: int = 0
    """Number of its try at the subtask, from 1; 0: none."""
    verdict: str = ""
    """The supervisor's verdict; empty: it has none yet."""
    why: str = ""
    """The reason for the verdict."""

    @property
    def id(self) -> str:
        return self.move.id

    @property
    def subtask_id(self) -> str:
        return self.move.subtask_id

    @property
    def kind(self) -> str:
        """Return `work`, `plan`, `synthesize` and so on; `prepare`, `examine`, `agent`, `team`."""
        return self.move.kind

    @property
    def tier(self) -> str:
        """Return the tier of the model that was asked; empty: none was, or a team asked its own."""
        return self.move.tier

    @property
    def taken_back(self) -> bool:
        """True if it had begun before its plan was whole, and the run went on without it."""
        return self.verdict == TAKEN_BACK

    @property
    def worked(self) -> tuple[datetime, datetime | None]:
        """Return from when to when it was at work, less its wait for a worker where that is known.
        The end is None while it is under way.
        """
        span = _span(self.landing)
        return (span.started, span.ended) if span else (self.begun, self.ended)


@dataclass
class Steps:
    """The steps of one run, in the order in which they were scheduled."""

    by_id: dict[str, Step] = field(default_factory=dict)
    _drafts: dict[str, str] = field(default_factory=dict)
    """The last one that worked on each subtask: a review's verdict is one on its draft."""

    def take(self, before: State, event: Event, after: State) -> None:
        """Take in an event, with the state that it found and the one that it left."""
        match event:
            case Started(
                move=Prepare() | Ask() | Examine() | StartTeam() | StartAgent() | StartMap() as move
            ):
                self._begin(move, before, after)
            case Prepared() | NotPrepared():
                self._end(PREPARE, event, before, after)
            case Answered() | Unanswered() | Examined() | TeamEnded() | AgentEnded() | MapEnded():
                self._end(event.move.id, event, before, after)
            case Abandoned(ids=ids):
                for each in ids:
                    self._end(each, None, before, after)
        if (found := judge(before, event, after)) is not None:
            self._judge(found)
        for judged in judge_begun(before, after):
            self._judge(judged)

    def _begin(self, move: Flying, before: State, after: State) -> None:
        flight = after.flights.get(move.id)
        progress = before.work.get(move.subtask_id)
        number = len(progress.tries) + 1 if progress is not None else 0
        begun = flight.started if flight else after.now
        self.by_id[move.id] = Step(move, begun, try_number=number)
        if progress is not None and (not isinstance(move, Ask) or move.call.kind == "work"):
            self._drafts[move.subtask_id] = move.id

    def _judge(self, found: Judged) -> None:
        step = self.by_id.get(found.flight)
        if step is None:
            return
        draft = self._drafts.get(step.subtask_id, "") if found.of_try else ""
        for id in {found.flight, draft} & self.by_id.keys():
            self.by_id[id] = replace(self.by_id[id], verdict=found.verdict, why=found.why)

    def _end(self, id: str, landing: Landing | None, before: State, after: State) -> None:
        step = self.by_id.get(id)
        if step is None:
            return
        old, new = before.ledger, after.ledger
        alone = landing is not None
        self.by_id[id] = replace(
            step,
            landing=landing,
            ended=(landing.at if landing else None) or after.now,
            # Of what was given up together, each counts at what was reserved for it.
            spent=price_step(landing, old, new) if alone else _reserved(old, id),
            assumed=new.assumed - old.assumed if alone else _reserved(old, id),
            calls=new.spent.calls - old.spent.calls if alone else 1,
            tokens=new.usage.total - old.usage.total if alone else 0,
        )


def _reserved(ledger: Ledger, id: str) -> Decimal:
    amount = ledger.reserved.get(id)
    return amount.dollars if amount else Decimal(0)


def price_step(landing: Landing | None, old: Ledger, new: Ledger) -> Decimal | None:
    """Return what a step cost, by the ledgers before and behind it; None: nobody knows."""
    bill = _bill(landing)
    # A call that was lost tells no price; the ledger has booked its worst case where there is one.
    unpriced = bill is not None and bill.calls > 0 and bill.dollars is None and new.unpriced
    return None if unpriced else new.spent.dollars - old.spent.dollars


def _bill(landing: Landing | None) -> Bill | None:
    match landing:
        case Answered(reply=reply):
            return reply.bill
        case Unanswered(trouble=trouble):
            return trouble.bill
        case AgentEnded(report=report) if report:
            return report.bill
        case MapEnded(report=report) if report:
            return report.bill
    return None


def _span(landing: Landing | None) -> Span | None:
    match landing:
        case Answered(reply=reply):
            return reply.span
        case Prepared(briefing=briefing):
            return briefing.span
    return None
