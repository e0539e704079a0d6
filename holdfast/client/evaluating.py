"""Evals, as a door asks for them: suites become trials, these a run of runs, and that a report."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from temporalio.client import (
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.toolset.shelf import find_lacking, tools_for
from holdfast.contracts import Tier
from holdfast.contracts.base import Urgency
from holdfast.contracts.evals import (
    EVALUATION,
    MOST_TRIALS,
    Asked,
    Case,
    EvalGoal,
    EvalReport,
    Priced,
    Suite,
    Trial,
)
from holdfast.contracts.goals import Fork
from holdfast.contracts.search import MEMO_REQUESTER, MEMO_TITLE
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused, RunFailed
from holdfast.evals.checks import rubrics
from holdfast.evals.marking import GRADE_DOLLARS
from holdfast.evals.single import USE
from holdfast.intake.cases import goal_of_case
from holdfast.intake.connection import Connection, Tell, require_worker, tell_nobody
from holdfast.intake.launch import allow_inputs, check_id, prepare_start, priority_of
from holdfast.intake.login import login

LOOK_SECONDS = 1.0
"""How often the marks so far are asked for."""
FINAL = (
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.UNAUTHENTICATED,
    RPCStatusCode.PERMISSION_DENIED,
)
"""What a server says that is there. All else, as of a request that was under way when the server
died, may be otherwise at the next look.
"""


async def trials_of(
    connection: Connection,
    suites: Iterable[Suite],
    eval_id: str,
    *,
    runs: int = 1,
    tier: Tier | None = None,
    tell: Tell = tell_nobody,
) -> tuple[Trial, ...]:
    """Return the trials of suites, each case so many times, kept in the store; `tell` is told of
    cases that are left out. Refused lists what is wrong with cases.
    """
    catalogue = Catalogue.of(connection.settings.project)
    made: list[Trial] = []
    wrong: dict[str, list[str]] = {}
    for suite in suites:
        for case in suite.cases:
            if lacking := _lacking(case, connection.settings):
                tell(f"{suite.name}/{case.name} is left out: {lacking}", warning=True)
                continue
            try:
                asked = await _asked(connection, suite, case, catalogue, tier)
            except Refused as error:
                wrong.setdefault(str(error), []).append(f"{suite.name}/{case.name}")
                continue
            named = f"{eval_id}.{suite.name}.{case.name}"
            first = await put_trial(connection, asked, named, cap_of(asked), catalogue)
            # Another question under the same eval is another run.
            ids = [f"{named}.{number}-{_fingerprint(asked)}" for number in range(1, runs + 1)]
            made += [first.model_copy(update={"run": each}) for each in ids]
    if wrong:
        raise Refused("\n".join(f"{_some(names)}: {why}" for why, names in wrong.items()))
    if len(made) > MOST_TRIALS:
        raise Refused(
            f"{len(made)} trials, the most of one eval is {MOST_TRIALS}; name fewer suites, or"
            " fewer --runs"
        )
    return tuple(made)


def _some(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _lacking(case: Case, settings: Settings) -> str:
    """Return which tool a case needs that there is not here, and why; empty: none."""
    tools = tools_for(settings.project) if case.needs else {}
    for name in case.needs:
        if name not in tools:
            return f"there is no tool {name}"
        if why := find_lacking(tools[name], settings, endpoint_web=settings.endpoint_web):
            return f"{name} {why}"
    return ""


async def put_trial(
    connection: Connection,
    asked: Asked,
    run: str,
    cap: Decimal,
    catalogue: Catalogue | None = None,
) -> Trial:
    """Return a trial whose run has this id; what is asked is kept in the store. `catalogue`: as
    `prepare_start` takes it.
    """
    started, shown = await prepare_start(connection, asked.goal, catalogue=catalogue)
    kept = asked.model_copy(
        update={
            "goal": started,
            "memo": shown["memo"],
            "summary": shown["static_summary"],
            "details": shown["static_details"],
        }
    )
    return Trial(
        run=run,
        suite=asked.suite,
        case=asked.case.name,
        asked=await connection.store.put(kept.model_dump_json().encode()),
        cap=cap,
        project=asked.goal.project,
    )


def cap_of(asked: Asked) -> Decimal:
    """Return the most that a trial may cost, with the judging of its answer."""
    own = asked.goal.limits.dollars if asked.goal.use_models else Decimal(0)
    return own + GRADE_DOLLARS * len(rubrics(asked.case))


async def _asked(
    connection: Connection, suite: Suite, case: Case, catalogue: Catalogue, tier: Tier | None
) -> Asked:
    goal = await goal_of_case(case, catalogue, connection)
    update: dict[str, Any] = {"tier": tier, "plan_only": case.stop == "plan"}
    if case.findings:
        update["fork"] = Fork(run_id=f"case-{case.name}", findings=case.findings)
    goal = goal.model_copy(update=update)
    allow_inputs(goal, connection)
    transcript = await _transcript(connection, case) if case.tool else ""
    return Asked(suite=suite.name, case=case, goal=goal, transcript=transcript)


async def _transcript(connection: Connection, case: Case) -> str:
    """Return the digest of a conversation whose last message calls the tool, as an agent's does."""
    use = {"type": "tool_use", "id": USE, "name": case.tool, "input": case.arguments}
    message = await connection.store.put(json.dumps([use]).encode())
    spoke = {"exchanges": [{"told": {}, "message": message}]}
    return await connection.store.put(json.dumps(spoke).encode())


def _fingerprint(asked: Asked) -> str:
    """Return a mark of what is asked: another question under the same eval is another run, other
    checks of the same answer are not.
    """
    told = asked.goal.model_dump_json() + asked.transcript
    told += json.dumps([asked.case.call, asked.case.material], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:6]


async def start_eval(
    connection: Connection,
    eval_id: str,
    goal: EvalGoal,
    tell: Tell = tell_nobody,
    urgency: Urgency = "normal",
) -> None:
    """Start an eval, or go on with the one of this id: what has run is only marked again."""
    check_id(eval_id)
    await require_worker(connection, tell, models=any(each.cap for each in goal.trials))
    title = f"eval {goal.name}, {len(goal.trials)} trials"
    try:
        await connection.client.start_workflow(
            EVALUATION,
            goal,
            id=eval_id,
            task_queue=connection.target.task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            memo={MEMO_TITLE: title, MEMO_REQUESTER: login()},
            static_summary=title,
            priority=priority_of(urgency, login()),
        )
    except WorkflowAlreadyStartedError as error:
        if await _type_of(connection, eval_id) != EVALUATION:
            raise Refused(f"--id {eval_id!r} is in use by a run; choose another id") from error


async def is_known(connection: Connection, eval_id: str) -> bool:
    """Return True if there is an eval of this id, over or not."""
    try:
        return await _type_of(connection, eval_id) == EVALUATION
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False


async def _type_of(connection: Connection, eval_id: str) -> str:
    return (await connection.handle(eval_id).describe()).workflow_type or ""


async def prices_of(
    connection: Connection,
    eval_id: str,
    goal: EvalGoal,
    suites: Iterable[Suite],
    tell: Tell = tell_nobody,
) -> tuple[Priced, ...]:
    """Return what each case is expected to cost. A worker prepares and prices them, but not cases
    of tools, which are free.
    """
    free = {(suite.name, case.name) for suite in suites for case in suite.cases if case.tool}
    once = {(each.suite, each.case): each for each in goal.trials}
    priced = {name: Priced(suite=name[0], case=name[1]) for name in once}
    asked = tuple(trial for name, trial in once.items() if name not in free)
    if asked:
        asking = goal.model_copy(update={"trials": asked, "only_prices": True})
        await start_eval(connection, f"{eval_id}.prices", asking, tell)
        found = (await follow_eval(connection, f"{eval_id}.prices")).prices
        priced |= {(each.suite, each.case): each for each in found}
    return tuple(priced.values())


async def follow_eval(
    connection: Connection, eval_id: str, tell: Callable[[EvalReport], None] = lambda _: None
) -> EvalReport:
    """Return the report of an eval when it is over; `tell` is called with what there is so far. It
    waits for a server that is away. RunFailed if the eval closed without a report.
    """
    while True:
        try:
            return await _follow(_handle(connection, eval_id), tell)
        except WorkflowFailureError as error:
            raise RunFailed(f"eval {eval_id} has no report: {error.cause}") from error
        except RPCError as error:
            if error.status in FINAL:
                raise
            await asyncio.sleep(LOOK_SECONDS)


async def _follow(
    handle: WorkflowHandle[Any, EvalReport], tell: Callable[[EvalReport], None]
) -> EvalReport:
    ending = asyncio.ensure_future(handle.result())
    try:
        while not (await asyncio.wait([ending], timeout=LOOK_SECONDS))[0]:
            # Nobody may be there to answer just now: the next look may find somebody.
            with suppress(RPCError, WorkflowQueryFailedError):
                tell(await handle.query("report", result_type=EvalReport))
        return ending.result()
    finally:
        ending.cancel()


def _handle(connection: Connection, eval_id: str) -> WorkflowHandle[Any, EvalReport]:
    return connection.client.get_workflow_handle(eval_id, result_type=EvalReport)
