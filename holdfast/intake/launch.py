"""Starting a run exactly once: its id, its words for the Web UI, and what a used id means."""

from __future__ import annotations

import hashlib
import secrets
import string
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from holdfast.contracts import Approval, Goal
from holdfast.contracts.base import Urgency
from holdfast.contracts.search import (
    MEMO_CAP,
    MEMO_DRY,
    MEMO_PROJECT,
    MEMO_REQUESTER,
    MEMO_TITLE,
    OUTAGE,
    RUNS,
    SEARCH_ATTRIBUTES,
    STATUS,
    WORKFLOW,
)
from holdfast.contracts.titles import title_of
from holdfast.embedded import StateDir, register_root
from holdfast.errors import IdTaken, Refused, Unreachable
from holdfast.intake.connection import Connection, Tell, require_worker, tell_nobody
from holdfast.intake.login import login
from holdfast.intake.repositories import describe_inputs, roots_of
from holdfast.intake.reusing import with_tables
from holdfast.rendering.amounts import money, seconds
from holdfast.storage import StoreAway
from holdfast.temporal.connection import is_part
from holdfast.text import PLAIN_ID, code_span, for_markdown, inline
from holdfast.tracing.context import MEMO_CONTEXT
from holdfast.untrusted.roots import Roots

if TYPE_CHECKING:
    from holdfast.activities.catalogue.catalogue import Catalogue

PROBE = "holdfast: worker and starter share this store, {}"
_MEMO_CHARACTERS = 160
_SUMMARY_CHARACTERS = 100
_SUMMARY_BYTES = 400
FAIRNESS_BYTES = 64
"""The longest key that Temporal takes."""
PRIORITIES: Mapping[Urgency, int] = {"urgent": 1, "normal": 3, "bulk": 5}
_RANDOM = string.ascii_lowercase + string.digits


def check_id(run_id: str) -> str:
    """Return the caller's own id. Refused if it cannot name a run and its files."""
    if run_id and (not PLAIN_ID.fullmatch(run_id) or len(run_id) > 100):
        raise Refused(
            f"--id {run_id!r}: use up to 100 letters, digits, '.', '_' and '-', the first a letter"
            " or digit"
        )
    return run_id


def new_id(kind: str) -> str:
    """Return `KIND-MMDD-xxxxx`."""
    suffix = "".join(secrets.choice(_RANDOM) for _ in range(5))
    return f"{kind}-{datetime.now(UTC):%m%d}-{suffix}"


@dataclass(frozen=True)
class Launched:
    """A started run, or the existing one of the same id and goal."""

    run_id: str
    attached: bool = False
    same_approval: bool = True
    """False if the existing run asks for a person's yes where this goal does not, or otherwise."""


async def launch(
    connection: Connection,
    goal: Goal,
    run_id: str,
    tell: Tell = tell_nobody,
    *,
    traceparent: str = "",
    below: tuple[Path, ...] | None = None,
) -> Launched:
    """Start the run, or attach to the one of this id and goal; without an id, a random one is made.

    `traceparent`: the parent span of the run. `below`: the only places that its worker may read for
    it; None: what the goal names, too. Refused if the id belongs to another goal, or no
    worker would take it.
    """
    check_id(run_id)
    if run_id and (known := await _attach(connection, goal, run_id)):
        return known
    allow_inputs(goal, connection, below)
    await require_worker(connection, tell, models=goal.use_models)
    # It holds no word of the goal.
    chosen = run_id or new_id(goal.playbook or "goal")
    goal, shown = await prepare_start(connection, goal, traceparent)
    try:
        await connection.client.start_workflow(
            WORKFLOW,
            goal,
            id=chosen,
            task_queue=connection.target.task_queue,
            # Closed runs count too: the same id and goal again gets that run's report.
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            **shown,
        )
    except WorkflowAlreadyStartedError:
        # Another start came between.
        if known := await _attach(connection, goal, chosen):
            return known
        raise
    return Launched(chosen)


async def _attach(connection: Connection, goal: Goal, run_id: str) -> Launched | None:
    """Return the run that has this id; None if there is none. IdTaken if its goal is another."""
    try:
        known = await goal_of_run(connection, run_id)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    if known is None or not _same(known, goal):
        raise IdTaken(
            f"--id {run_id!r} is in use by a run with another goal; choose another id", run_id
        )
    return Launched(run_id, attached=True, same_approval=known.approval == goal.approval)


async def prepare_start(
    connection: Connection, goal: Goal, traceparent: str = "", catalogue: Catalogue | None = None
) -> tuple[Goal, dict[str, Any]]:
    """Return the goal as a run is started with it, and what lists and the Web UI show of it, as
    options of Temporal's start. `catalogue`: that of its project, where it was read already.
    """
    goal = await _complete(await with_tables(connection, goal), connection)
    project = connection.settings.project
    title = await title_before(goal, _roots(goal, connection), project, catalogue)
    return goal, {
        "memo": _memo(title, goal, traceparent),
        "static_summary": summary(title),
        "static_details": details(goal),
        "priority": priority_of(goal.urgency, goal.requester),
    }


def priority_of(urgency: Urgency, requester: str) -> Priority:
    """Return the priority of a workflow, which all that it starts has, too: by urgency, and of one
    urgency in turns by who asks.
    """
    key = requester
    if len(key.encode()) > FAIRNESS_BYTES:
        key = hashlib.sha256(key.encode()).hexdigest()
    return Priority(priority_key=PRIORITIES[urgency], fairness_key=key or None)


def _roots(goal: Goal, connection: Connection) -> Roots:
    return roots_of(goal.inputs, connection.settings, embedded=connection.target.embedded)


def _memo(title: str, goal: Goal, traceparent: str) -> dict[str, object]:
    context = {MEMO_CONTEXT: traceparent} if traceparent else {}
    place = {MEMO_PROJECT: goal.project} if goal.project else {}
    return {
        MEMO_TITLE: title[:_MEMO_CHARACTERS],
        MEMO_DRY: goal.plan_only,
        MEMO_REQUESTER: goal.requester,
        MEMO_CAP: str(goal.limits.dollars if goal.use_models else 0),
        **place,
        **context,
    }


def allow_inputs(goal: Goal, connection: Connection, below: tuple[Path, ...] | None = None) -> None:
    """Let an embedded worker read what the goal names and what this shell's settings allow: the
    worker may be older. Of a goal whose paths must be `below` some places, these are allowed, and
    no path of it: it may lead elsewhere since it was looked at.
    """
    settings = connection.settings
    if not connection.target.embedded:
        return
    named = [Path(each.value) for each in goal.inputs if each.kind != "text"]
    if below is not None:
        kept = StateDir.of(settings).inputs.resolve()
        named = [*below, *(each for each in named if each.is_relative_to(kept))]
    for path in (*named, *settings.allowed_roots):
        register_root(settings, path)


async def _complete(goal: Goal, connection: Connection) -> Goal:
    """Return the goal with a probe of the store and the requester. Raise Unreachable if the store
    cannot be used.
    """
    namespace = connection.target.namespace
    try:
        # Random: a worker finds it in no other store, whatever was written there before.
        probe = await connection.store.put(PROBE.format(uuid.uuid4()).encode())
    except StoreAway as away:
        raise Unreachable(f"nothing was started: {away}") from away
    return goal.model_copy(
        update={
            "probe": probe,
            "search_attributes": await search_attributes_of(connection.client, namespace),
            "requester": goal.requester or login(),
        }
    )


async def title_before(
    goal: Goal, roots: Roots, project: Path | None = None, catalogue: Catalogue | None = None
) -> str:
    """Return in one line what a run is about to work on; its report names what it really read."""
    # Whoever lists runs starts none.
    from holdfast.activities.catalogue.catalogue import Catalogue

    known = catalogue or Catalogue.of(project)
    playbook = known.playbooks.get(goal.playbook)
    title = goal.text
    if playbook is not None:
        inputs = goal.pinned or await describe_inputs(goal.inputs, playbook.inputs, roots)
        title = title_of(goal.text, playbook.words, playbook.title, inputs)
    return " ".join(title.split())


def summary(title: str) -> str:
    """Return one line of Markdown for the Web UI's lists: what the run is about."""
    shown = for_markdown(title[:_SUMMARY_CHARACTERS])
    # The server refuses more than 400 bytes, and an escaped sign has several.
    return shown if len(shown.encode()) <= _SUMMARY_BYTES else for_markdown(title[:40])


def details(goal: Goal) -> str:
    """Return what the run was asked, as Markdown for the Web UI; literal inputs by size alone."""
    lines = [f"**Goal.** {inline(goal.text)}", ""]
    if goal.project:
        lines.append(f"- project **{inline(goal.project)}**")
    for each in goal.inputs:
        shown = f"{len(each.value)} characters" if each.kind == "text" else code_span(each.value)
        lines.append(f"- input **{inline(each.name)}** ({each.kind}): {shown}")
    if goal.form.is_data:
        columns = ", ".join(map(inline, goal.form.columns))
        lines.append(f"- the answer as **{goal.form.kind}**{': ' * bool(columns)}{columns}")
    limits = goal.limits
    lines.append(
        f"- at most {for_markdown(money(limits.dollars))}, {limits.model_calls} model calls,"
        f" {limits.subtasks} subtasks, {seconds(limits.deadline_seconds)}"
        if goal.use_models
        else "- no model is asked"
    )
    return "\n".join(lines)


async def search_attributes_of(client: Client, namespace: str) -> tuple[str, ...]:
    """Return the project's search attributes that the namespace has; none if it does not say."""
    request = ListSearchAttributesRequest(namespace=namespace)
    try:
        answer = await client.operator_service.list_search_attributes(request)
    except RPCError:
        return ()
    return tuple(name for name in SEARCH_ATTRIBUTES if name in answer.custom_attributes)


async def in_outage(client: Client, namespace: str) -> int:
    """Return how many runs that people started wait for the endpoint of the models; 0 also where
    the namespace does not keep where a run is.
    """
    if STATUS.name not in await search_attributes_of(client, namespace):
        return 0
    query = f"{RUNS} AND ExecutionStatus = 'Running' AND {STATUS.name} = '{OUTAGE}'"
    return sum([not is_part(each) async for each in client.list_workflows(query)])


async def goal_of_run(connection: Connection, run_id: str) -> Goal | None:
    """Return the Goal in a run's first event; None if the run was not started with one."""
    async for event in connection.handle(run_id).fetch_history_events(page_size=1):
        payloads = event.workflow_execution_started_event_attributes.input.payloads
        try:
            (goal,) = await connection.client.data_converter.decode(payloads, [Goal])
        except (ValueError, RuntimeError):
            return None
        return goal if isinstance(goal, Goal) else None
    return None


def _same(one: Goal, other: Goal) -> bool:
    """True if two Goals ask for the same, apart from what the starter adds, the requester, and
    whether a terminal was there to approve at.
    """
    own: dict[str, object] = {
        "probe": "",
        "search_attributes": (),
        "requester": "",
        "approval": Approval(),
        "templates": False,
        "urgency": "normal",
        "reuse": None,
    }
    taken = [each.reuse.run if each.reuse else "" for each in (one, other)]
    return taken[0] == taken[1] and one.model_copy(update=own) == other.model_copy(update=own)
