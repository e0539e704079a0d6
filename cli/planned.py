"""A plan that waits for approval, and what is asked of a changed one, wherever it was changed."""

from __future__ import annotations

from dataclasses import dataclass

from cli.exits import Exit
from intake import plans
from orchestrator.contracts import HARD_SUBTASK_LIMIT, Plan
from orchestrator.money.preview import predict
from orchestrator.plans import validity
from orchestrator.rules import planning
from orchestrator.rules.state import State
from orchestrator.view import Preview


@dataclass(frozen=True)
class Waiting:
    """A plan that waits for approval, in its run."""

    state: State
    plan: Plan

    @staticmethod
    def of(state: State) -> Waiting:
        """Return the plan that a run waits with. Exit where it waits with none."""
        if state.phase != "approval" or state.plan is None:
            raise Exit(f"{state.run_id}: no plan waits for approval")
        return Waiting(state, state.plan)

    @property
    def run_id(self) -> str:
        return self.state.run_id

    def checked(self, plan: Plan, where: str) -> Plan:
        """The same plan; Refused, naming `where`, lists everything that is wrong with it."""
        brief = self.state.brief
        names = [each.name for each in brief.inputs]
        unread = validity.only_by_tools(brief.inputs)
        longest = self.state.goal.limits.subtask_timeout_seconds
        wrong = validity.problems(
            plan, brief.roles, names, HARD_SUBTASK_LIMIT, unread=unread, longest=longest
        )
        if wrong:
            raise plans.invalid(where, wrong)
        return plan

    def priced(self, plan: Plan) -> Preview:
        """What the run will expect of a plan when it takes it over: by the same rule."""
        return predict(planning.adopt(self.state, plan))
