"""A fold that remembers what became of each flight: the verdicts that a trace tells. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.events import Event, Started
from orchestrator.moves import Ask, Examine, StartAgent, StartTeam
from orchestrator.recorded.history import Fold
from orchestrator.rules.state import State
from orchestrator.tracing.judging import Judged, judged

Working = Ask | Examine | StartTeam | StartAgent


@dataclass
class Watch(Fold):
    """Folds a run, and keeps which try each flight was for and the verdict on it."""

    verdicts: dict[str, Judged] = field(default_factory=dict)
    """By the id of the flight."""
    tries: dict[str, int] = field(default_factory=dict)
    """Which try at its subtask a flight belongs to, by its id."""
    _drafts: dict[str, str] = field(default_factory=dict)
    """The last flight that worked on each subtask: a review's verdict is one on its draft."""

    def flight(self, scheduled: int) -> str:
        """The flight that this event scheduled; empty: none that the rules know."""
        return self._flights.get(scheduled, "")

    def _apply(self, event: Event) -> None:
        before = self._state
        super()._apply(event)
        after = self._state
        assert before is not None and after is not None
        if isinstance(event, Started):
            self._took_off(before, event)
        elif (found := judged(before, event, after)) is not None:
            self._judge(event, found)

    def _took_off(self, before: State, event: Started) -> None:
        move = event.move
        if not isinstance(move, Working) or move.subtask_id not in before.work:
            return
        self.tries[move.id] = len(before.work[move.subtask_id].tries) + 1
        if not isinstance(move, Ask) or move.call.kind == "work":
            self._drafts[move.subtask_id] = move.id

    def _judge(self, event: Event, found: Judged) -> None:
        self.verdicts[found.flight] = found
        move = getattr(event, "move", None)
        draft = self._drafts.get(move.subtask_id, "") if move is not None else ""
        if found.of_try and draft and draft != found.flight:
            self.verdicts[draft] = Judged(draft, found.verdict, found.why, of_try=True)
