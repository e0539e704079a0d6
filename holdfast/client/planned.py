"""A plan that waits for approval, and what is asked of a changed one, wherever it was changed."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.contracts import HARD_SUBTASK_LIMIT, Plan
from holdfast.contracts.view import Preview
from holdfast.errors import OrderRefused
from holdfast.intake import plans
from holdfast.plans import validity
from holdfast.rules import planning
from holdfast.rules.preview import predict
from holdfast.state.run import State


@dataclass(frozen=True)
class Waiting:
    """A plan that waits for approval, in its run."""

    state: State
    plan: Plan

    @staticmethod
    def of(state: State) -> Waiting:
        """Return the plan that a run waits with. OrderRefused where it waits with none."""
        if state.phase != "approval" or state.plan is None:
            raise OrderRefused(f"{state.run_id}: no plan waits for approval")
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
            raise plans.refuse_plan(where, wrong)
        return plan

    def priced(self, plan: Plan) -> Preview:
        """Price a plan by the rule of the run that will take it over."""
        return predict(planning.adopt(self.state, plan))
