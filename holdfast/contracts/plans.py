"""What is to be done: the graph of subtasks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from pydantic import Field, JsonValue, field_validator

from holdfast.contracts.base import CheckKind, Contract, Strategy, Tier

ID_LENGTH = 32
SUBTASK_ID = re.compile(rf"[a-z0-9_-]{{1,{ID_LENGTH}}}")


class Check(Contract):
    """A criterion that code can decide; `argument` is as in a plan: `250`, or `name,date`."""

    kind: CheckKind
    argument: str = ""


Lane = Literal["now", "batch", "auto"]
"""`batch`: at half price, some time within a day; `auto`: by batches while the deadline allows."""
MapUnit = Literal["records", "lines", "rows", "files", "pages"]


class MapSpec(Contract):
    """That a subtask is done once for each item of an input."""

    over: str
    """Name of the input."""
    by: MapUnit
    """`records`: objects of JSON lines or of a JSON list. `rows`: of CSV, Excel, Parquet. `lines`
    of a text, `files` of a folder, `pages` of a document.
    """
    id: str = ""
    """The field that names an item; empty: its place does."""
    most: int = Field(default=100_000, ge=1, le=100_000)
    """An input with more items is refused."""
    lane: Lane = "auto"
    tolerate: float = Field(default=2.0, ge=0, le=100)
    """Percent of the items that may fail; beyond it the map stops and asks."""
    result: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON schema of one item's result, closed objects only; empty: the role's, else text."""
    usual_output: int = Field(default=0, ge=0, le=8_000)
    """Tokens of one usual answer, of which the price said before is made; 0: assumed by the form of
    the result.
    """
    reduce: str = ""
    """How the texts of all items are merged into one; empty: they are not."""


class Subtask(Contract):
    """A node of the plan: what one agent does."""

    id: str
    title: str
    instruction: str
    inputs: tuple[str, ...] = ()
    role: str
    secondary: str = ""
    """The role that takes over where its own is passed over, gives it back as out of scope, or has
    tried in vain. Empty: the fallback of its own role.
    """
    tier: Tier | None = None
    """None: the tier of the role."""
    depends_on: tuple[str, ...] = ()
    acceptance_criteria: str = ""
    checks: tuple[Check, ...] = ()
    timeout_seconds: int = 0
    """The most for one call of its model or one tool; 0: the run's limit."""
    max_output: int = 0
    """Tokens of one answer of its model, thoughts included; 0: the usual limit."""
    why: str = ""
    """Why it is in the plan and why its role does it: a sentence for people."""
    map: MapSpec | None = Field(default=None, exclude_if=lambda spec: spec is None)
    """Set: it is done once for each item of an input."""


class ComposedRole(Contract):
    """A role made for one plan, from tools and tiers that the run has anyway."""

    name: str
    description: str
    """What kind of work it does, in a sentence."""
    tier: Literal["haiku", "sonnet"] = "haiku"
    tools: tuple[str, ...] = ()


class Plan(Contract):
    """The graph of subtasks that answers a goal."""

    goal: str
    strategy: Strategy = "merge"
    synthesis_instruction: str = ""
    subtasks: tuple[Subtask, ...]
    choices: tuple[tuple[str, ...], ...] = ()
    """Ids of subtasks that are attempts at one question: the best is used, the others put aside."""
    roles: tuple[ComposedRole, ...] = ()
    """Made for this plan, beside those of the deployment."""
    critic: Literal["always", "unless_checked"] = Field(
        default="always", exclude_if=lambda when: when == "always"
    )
    """`unless_checked`: none is asked where code finds each figure of the answer in a finding that
    its line cites. No planner says so: what it reads could ask for it.
    """

    @classmethod
    def single(cls, goal: str, role: str, inputs: Iterable[str] = ()) -> Plan:
        """Return the plan in which one agent of this role gets the goal as it stands."""
        whole = Subtask(
            id="t1", title="The whole goal", instruction=goal, inputs=tuple(inputs), role=role
        )
        return cls(goal=goal, subtasks=(whole,))

    @property
    def is_goal(self) -> bool:
        """True if its only subtask is the goal as it stands, in the words of whoever asks."""
        return len(self.subtasks) == 1 and self.subtasks[0].instruction == self.goal


class PlanSoFar(Contract):
    """What stands of a plan that is being written: an activity tells its run."""

    call: str = Field(max_length=100)
    """Id of the planner's call."""
    plan: Plan
    """Its subtasks are valid by themselves."""

    @field_validator("plan")
    @classmethod
    def _check(cls, plan: Plan) -> Plan:
        """Refuse what no activity of ours tells: anybody can send a Signal."""
        for each in plan.subtasks:
            if not SUBTASK_ID.fullmatch(each.id) or each.max_output or each.timeout_seconds:
                raise ValueError("an id that no subtask can have, or bounds, which come last")
        return plan
