"""Cases of an eval, what must hold of each, and what came of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue

from holdfast.contracts.base import Contract, Money, Percent, ProjectName
from holdfast.contracts.calls import Bill
from holdfast.contracts.findings import Finding
from holdfast.contracts.goals import Goal
from holdfast.contracts.plans import Check

EVALUATION = "EvaluationWorkflow"
"""The workflow that holds an eval."""
MOST_TRIALS = 1_000
"""So many surely fit into one history."""


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""Several texts, or one."""
Count = Annotated[int, Field(ge=0)]


class PlanShape(Contract):
    """What a plan must be like."""

    least: Count = 1
    most: Count = 1_000
    """Subtasks."""
    independent: Count = 0
    """Subtasks, at least, that wait for no other."""
    longest: Count = 0
    """Subtasks of the longest chain, at most; 0: any."""
    roles: Texts = ()
    """Roles of which each has a subtask."""
    only: Texts = ()
    """The only roles that subtasks have; none named: any."""
    second: Texts = ()
    """The only second roles that subtasks have; none named: any."""
    vague: Count | None = None
    """The most instructions that name no matter or no form, and edges without a reason; None: any
    number.
    """
    filler: Count | None = None
    """The most subtasks that only coordinate, review everything or merge findings."""
    inputs: Texts = ()
    """Inputs of which each is given to a subtask."""
    maps: Texts | None = None
    """The inputs that are mapped, and no others; None: any."""
    attempts: Count = 0
    """Subtasks, at least, that attempt one question of which the best answer is taken."""
    composed: Count | None = None
    """The most roles that are composed for it."""
    bounded: bool | None = None
    """True if each subtask must have a bound of its own, False if none may."""


class Found(Contract):
    """Faults that were planted, in a list of what was found."""

    planted: Texts = ()
    """A pattern for each (RE2, any case), which must match something that was found."""
    most_false: Count = 0
    """Things found that match no pattern, at most."""
    at: str = ""
    """Where the list is in the answer's data, as `critique.issues`; empty: `issues` of a critique,
    the remarks of a review.
    """


class Must(Contract):
    """One thing that must hold: exactly one field is given."""

    says: Texts = ()
    """Texts of which each is in the answer, in any case."""
    says_not: Texts = ()
    matches: Texts = ()
    """Patterns (RE2, any case, at most 200 characters) of which each matches."""
    matches_not: Texts = ()
    told: Texts = ()
    """Like `matches`, where the reasons of a run's gaps may say it, too."""
    has: dict[str, JsonValue] = Field(default_factory=dict)
    """Values of the answer's data by their places, as `winner` or `rows.0.rate`."""
    result: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON schema of the answer's data."""
    cites: Count | Texts = 0
    """Findings that the answer cites: at least so many, or these; and nothing is without support.
    """
    check: Check | None = None
    """A check as plans have them."""
    route: Texts = ()
    """Roles: each subtask has one of them."""
    plan: PlanShape | None = None
    finds: Found | None = None
    status: Texts = ()
    """How the run may end; without this a run with gaps passes, and a failed one does not."""
    gaps: Count | None = None
    """Subtasks without a finding, at most."""
    dollars: Annotated[Money, Field(ge=0)] | None = None
    """At most."""
    seconds: Annotated[float, Field(ge=0)] | None = None
    """At most, without what the run waited."""
    judge: str = ""
    """What must be true of the answer, where only a model can decide it."""

    @property
    def kind(self) -> str:
        """Return the name of the field that is given."""
        return next(
            name
            for name, field in type(self).model_fields.items()
            if getattr(self, name) != field.get_default(call_default_factory=True)
        )


class Case(Contract):
    """One thing asked, and what must hold of what comes of it."""

    name: str
    request: dict[str, JsonValue] = Field(default_factory=dict)
    """The run that is asked for, as `--goal FILE` has it; of a call or tool, its inputs alone."""
    stop: Literal["", "plan"] = ""
    """`plan`: the run ends with its plan."""
    findings: tuple[Finding, ...] = ()
    """Given findings of the plan's subtasks, which are not asked."""
    call: str = ""
    """A kind of call, asked once, of this material."""
    material: dict[str, JsonValue] = Field(default_factory=dict)
    tool: str = ""
    """A tool, called once, with these arguments."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    needs: Texts = ()
    """Tools without which the case is left out."""
    must: tuple[Must, ...] = ()

    @property
    def form(self) -> Literal["run", "call", "tool"]:
        return "call" if self.call else "tool" if self.tool else "run"


class Suite(Contract):
    """Cases that belong together."""

    name: str
    description: str = ""
    passing: Percent = 100
    """Percent of its trials that must pass."""
    cases: tuple[Case, ...]


# ---------------------------------------------------------------- one case, run once


class Asked(Contract):
    """What a trial is started with. It is kept in the store."""

    suite: str = ""
    case: Case
    goal: Goal
    """The run; of a call or tool, what it is prepared with."""
    transcript: str = ""
    """Digest of the transcript with the call of a tool; empty: it is none."""
    memo: dict[str, str | bool] = Field(default_factory=dict)
    summary: str = ""
    details: str = ""


class Trial(Contract):
    """One case that is run once."""

    run: str
    """Id of its run: the same again is not paid again."""
    suite: str = ""
    case: str
    asked: str
    """Digest of its Asked."""
    cap: Money = Decimal(0)
    """The most that it may cost, with the judging of its answer."""
    project: ProjectName = ""


class Opened(Contract):
    asked: Asked
    closed: bool = False
    """True if it has run already, and is only to be marked."""


class Answered(Contract):
    """What a single call, or a tool, brought."""

    value: JsonValue = None
    text: str = ""
    """Digest of the text of a tool."""
    failed: bool = False
    """True if a tool ended with an error: its text says which."""
    why: str = ""
    """Why there is no answer; empty: there is one."""
    bill: Bill = Bill()
    seconds: float = 0.0


class Mark(Contract):
    """What came of a trial."""

    run: str
    suite: str = ""
    case: str
    form: Literal["run", "call", "tool"] = "run"
    passed: bool = False
    wrong: tuple[str, ...] = ()
    """A sentence for each thing that does not hold."""
    kinds: Texts = ()
    """The kinds of checks that were made."""
    missed: Texts = ()
    """Those of which one did not hold."""
    status: str = ""
    """How the run ended; `not run` where the cap or a person left no time for it."""
    dollars: Money | None = Decimal(0)
    """None: a model without a known price was asked."""
    assumed: Money = Decimal(0)
    """The part of the dollars that is the worst case of calls whose answers were lost."""
    judged: Money = Decimal(0)
    """What judging its answer cost, beside the dollars."""
    seconds: float = 0.0
    answer: str = ""
    """How the answer of a call or tool begins, where it did not pass; a run can be opened."""


class Judging(Contract):
    """A question to a judge about an answer."""

    run: str
    asked: Asked


class Scored(Contract):
    """A mark by code alone, and what a judge must still be asked for it."""

    mark: Mark
    judging: tuple[Judging, ...] = ()


class Grading(Contract):
    """A mark, and the runs of the judges asked for it."""

    mark: Mark
    runs: tuple[str, ...]
    cap: Money
    """What one judge may have cost where nobody knows."""


class EvalGoal(Contract):
    """The input of an eval: what is run, and what all of it may cost."""

    name: str
    trials: tuple[Trial, ...]
    dollars: Money
    concurrency: int = Field(default=4, ge=1, le=50)
    """Trials that are open at once, at most."""
    only_prices: bool = False
    """True: nothing is run; the cases are prepared and priced."""
    marks: tuple[Mark, ...] = ()
    """Of trials that are over: its history grew too long, and it goes on with a new one."""


class Priced(Contract):
    """What one trial of a case is expected to cost, the judge apart; None: no price is known."""

    suite: str = ""
    case: str
    low: Money | None = Decimal(0)
    expected: Money | None = Decimal(0)
    high: Money | None = Decimal(0)
    judge: Money | None = Decimal(0)
    """Expected, for judging its answer."""
    why: str = ""
    """Why it could not even be prepared; empty: it could."""


class EvalReport(Contract):
    """What came of an eval, or what it would cost."""

    name: str
    marks: tuple[Mark, ...] = ()
    prices: tuple[Priced, ...] = ()
    trials: int = 0
    """How many were to be run."""
    stopped: Literal["", "cap", "cancelled"] = ""
    """Why some of them were not run; empty: all were."""
    dollars: Money | None = Decimal(0)
    """All that was paid by its runs, judging included; None: not all is known."""
    assumed: Money = Decimal(0)
    judged: Money = Decimal(0)
