"""How often a planner chooses the role that people chose, on the labelled cases of tech-support.

    python -m bench.routing                      the scripted planner, whose mistakes are intended
    python -m bench.routing --models TIER ...    the models of this deployment, which costs money

Each case is planned as a run of the playbook would plan it, by the same prompts, and goes no
further. What a tier costs at most is said first; add --yes to go on.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, SecretStr
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from bench.instruments.tables import head, row
from holdfast.activities.wiring import Served, build
from holdfast.calling import gathering
from holdfast.calling.reserving import paid_call
from holdfast.calls.plan import PLAN
from holdfast.certifying.deployment import simulated
from holdfast.contracts import Briefing, Goal, GoalInput, Plan, Tier
from holdfast.deployment.settings import HOME, Settings
from holdfast.rules.reducer import apply
from holdfast.state.events import Prepared, Started
from holdfast.state.moves import Ask, Prepare
from holdfast.state.run import first_state
from holdfast.temporal.connection import Target

PLAYBOOK = "tech-support"
ROLES = ("troubleshooter", "documenter", "refund-clerk", "escalator")
COLUMNS = (
    ("planner", "cases", "right role", "right second role, where the first is right", "dollars"),
    ("labelled", *ROLES, "another", "no plan"),
)
TIERS: tuple[Tier, ...] = ("haiku", "sonnet", "opus")


class Case(BaseModel):
    """A support case with the roles that people chose for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    text: str
    role: str
    secondary: str
    scripted: str = ""
    """Whom the scripted planner chooses, where that is to be a mistake."""


@dataclass(frozen=True)
class Choice:
    """What a planner chose for a case."""

    case: Case
    role: str
    secondary: str = ""
    dollars: Any = 0


def labelled() -> tuple[Case, ...]:
    """All cases that come with the playbook."""
    text = (HOME / "playbooks" / PLAYBOOK / "cases.yaml").read_text(encoding="utf-8")
    return tuple(Case.model_validate(each) for each in yaml.safe_load(text))


def script_of(cases: Sequence[Case]) -> dict[str, Any]:
    """The scripted planner: right but for the intended mistakes."""
    return {
        "rules": [
            {
                "call": "plan",
                "text": case.text,
                "plan": [{"id": "case", "role": case.scripted or case.role, **_second(case)}],
            }
            for case in cases
        ]
    }


def _second(case: Case) -> dict[str, str]:
    return {"secondary": case.secondary if case.scripted != case.secondary else case.role}


# ---------------------------------------------------------------- asking


async def asked(served: Served, folder: Path, case: Case, tier: Tier) -> Ask:
    """The call by which a run of the playbook would plan this case."""
    ticket = folder / f"{case.id}.md"
    ticket.write_text(f"{case.text}\n", encoding="utf-8")
    given = [GoalInput(name="ticket", kind="file", value=str(ticket))]
    given.append(GoalInput(name="refunds", kind="file", value=str(_refunds(folder))))
    goal = Goal(text="Answer the case", playbook=PLAYBOOK, inputs=tuple(given), use_models=True)
    prepare = next(each for each in served.preparing if each.__name__ == "prepare")
    briefing: Briefing = await ActivityEnvironment().run(prepare, goal)
    state = first_state(case.id, goal, datetime.now(UTC), case.id)
    state = apply(apply(state, Started(Prepare())), Prepared(briefing))
    return paid_call(state, PLAN, "plan", gathering.for_plan(state), model=briefing.model(tier))


def _refunds(folder: Path) -> Path:
    """Return the refund rules of the example, where a run may read them."""
    example = HOME / "playbooks" / PLAYBOOK / "examples" / "refunds.csv"
    return Path(shutil.copy(example, folder))


async def chosen(served: Served, case: Case, ask: Ask) -> Choice:
    """What the planner answers; a plan with several roles is none of these."""
    plan = next(each for each in served.asking if each.__name__ == "plan")
    try:
        reply = await ActivityEnvironment().run(plan, ask.call, ask.material)
    except ApplicationError as error:
        sys.stderr.write(f"{case.id}: {error.message}\n")
        return Choice(case, "no plan")
    if not isinstance(reply.value, Plan):
        return Choice(case, "no plan", dollars=reply.bill.dollars or 0)
    roles = {(each.role, each.secondary) for each in reply.value.subtasks}
    role, second = roles.pop() if len(roles) == 1 else ("another", "")
    role = role if role in ROLES else "another"
    return Choice(case, role, second, reply.bill.dollars or 0)


async def measured(
    settings: Settings, cases: Sequence[Case], tier: Tier, *, only_price: bool = False
) -> tuple[list[Choice], Any]:
    """The choices of one tier, and what they cost at most; without asking, if only that counts."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        own = settings.model_copy(
            update={"state_dir": folder / "state", "allowed_roots": (folder,)}
        )
        store = (folder / "store").as_uri()
        served = build(own, Target("", store_url=store, embedded=False))
        try:
            asks = [await asked(served, folder, case, tier) for case in cases]
            most = sum(ask.amount.dollars for ask in asks)
            pairs = [] if only_price else [*zip(cases, asks, strict=True)]
            return [await chosen(served, case, ask) for case, ask in pairs], most
        finally:
            await served.close()


# ---------------------------------------------------------------- printing


def tables(planner: str, choices: Sequence[Choice]) -> tuple[str, str]:
    """A row of figures, and the confusion matrix of one planner."""
    right = [each for each in choices if each.role == each.case.role]
    second = sum(each.secondary == each.case.secondary for each in right)
    share = f"{len(right)} of {len(choices)} ({len(right) / len(choices):.0%})"
    paid = sum(each.dollars for each in choices)
    figures = row((planner, len(choices), share, f"{second} of {len(right)}", f"${paid:.4f}"))
    count = Counter((each.case.role, each.role) for each in choices)
    matrix = head(COLUMNS[1])
    for label in ROLES:
        matrix += row((label, *(count[label, name] for name in (*ROLES, "another", "no plan"))))
    return head(COLUMNS[0]) + figures, matrix


async def main(arguments: argparse.Namespace) -> int:
    cases = labelled()
    if not arguments.models:
        with tempfile.TemporaryDirectory() as place:
            async with simulated(Path(place), script_of(cases)) as simulator:
                settings = Settings(
                    _env_file=None,
                    anthropic_base_url=simulator.url,
                    anthropic_api_key=SecretStr("scripted"),
                )
                choices, _ = await measured(settings, cases, "sonnet")
        sys.stdout.write("\n".join(tables("scripted, no model", choices)))
        return 0
    settings = Settings()
    if not settings.has_endpoint:
        sys.stderr.write("no endpoint is configured; set ANTHROPIC_API_KEY\n")
        return 2
    for tier in arguments.models:
        _, most = await measured(settings, cases, tier, only_price=True)
        sys.stderr.write(f"{tier}: {len(cases)} calls, at most ${most:.2f}\n")
        if arguments.yes:
            choices, _ = await measured(settings, cases, tier)
            sys.stdout.write("\n".join(tables(tier, choices)) + "\n")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.routing", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=TIERS, default=[])
    parser.add_argument("--yes", action="store_true", help="spend what was said")
    sys.exit(asyncio.run(main(parser.parse_args())))
