"""Replay, strictly: today's workflow code against a recorded history.

Temporal's own replay compares activity types and ids, never arguments, so it misses a changed
input. Here the recorded and the produced arguments of each activity are decoded into today's
contracts and compared by value: a field that was added with a default makes no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    Replayer,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from holdfast.history.executions import executions_in
from holdfast.storage import Store
from holdfast.storage.codec import decrypt
from holdfast.storage.keys import Keyring, keyring
from holdfast.storage.payloads import inline
from holdfast.temporal.connection import data_converter, plugin
from holdfast.text.mistakes import mistakes

Workflows = Sequence[type[Any]]
"""The workflow classes of a deployment; they come as an argument, since this room knows none."""


@dataclass
class _Produced:
    """The activities that today's code schedules, by id."""

    arguments: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    runs: list[Any] = field(default_factory=list)
    """The workflow's own object."""

    def interceptor(self) -> Interceptor:
        produced, runs = self.arguments, self.runs

        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
                produced[input.activity_id or ""] = tuple(input.args)
                return super().start_activity(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

            async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
                runs.append(workflow.instance())
                return await super().execute_workflow(input)

        class Capture(Interceptor):
            def workflow_interceptor_class(
                self, _input: WorkflowInterceptorClassInput
            ) -> type[WorkflowInboundInterceptor] | None:
                return Inbound

        return Capture()


@dataclass(frozen=True)
class Played:
    """A history that today's code was led through."""

    differences: tuple[str, ...]
    """The differences, one line each."""
    state: object
    """The run's, as the workflow itself has it at the end of the history."""


async def replay(
    history: WorkflowHistory,
    workflows: Workflows,
    store: Store | None = None,
    keys: Keyring | None = None,
) -> tuple[str, ...]:
    """Return what differs between a history and what today's code does, one line each; empty:
    nothing.

    Without a store the history must have every payload inlined, and without keys in plain, as
    `export` writes it.
    """
    return (await play(history, workflows, store, keys)).differences


async def play(
    history: WorkflowHistory,
    workflows: Workflows,
    store: Store | None = None,
    keys: Keyring | None = None,
) -> Played:
    """Return what `replay` does, and the state that the run came to."""
    produced = _Produced()
    replayer = _replayer(workflows, store, keys, produced.interceptor())
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    state = getattr(produced.runs[-1], "_state", None) if produced.runs else None
    if result.replay_failure is not None:
        return Played((" ".join(str(result.replay_failure).split()),), state)
    if not produced.runs:
        return Played(("not one step of it was taken: there is nothing to compare",), None)
    if store is not None:
        for event in history.events:
            await inline(event, store)
    differences = await _differences(history, produced.arguments, data_converter(None, keys))
    return Played(differences, state)


async def find_divergence(
    history: WorkflowHistory,
    workflows: Workflows,
    store: Store | None = None,
    keys: Keyring | None = None,
) -> str:
    """Return why Temporal itself cannot lead today's code through a history; empty: it can.
    Arguments are not compared: a run goes on when only they differ.
    """
    result = await _replayer(workflows, store, keys).replay_workflow(
        history, raise_on_replay_failure=False
    )
    return " ".join(str(result.replay_failure or "").split())


def _replayer(
    workflows: Workflows, store: Store | None, keys: Keyring | None, *interceptors: Interceptor
) -> Replayer:
    # Without the limit of two seconds on a step: a long one on a busy machine says nothing.
    return Replayer(
        workflows=workflows,
        plugins=[plugin(store, keys)],
        interceptors=interceptors,
        debug_mode=True,
        # Without one the SDK hashes every imported module, which takes a second.
        build_id="replay",
    )


async def _differences(
    history: WorkflowHistory, produced: Mapping[str, tuple[Any, ...]], converter: DataConverter
) -> tuple[str, ...]:
    found = []
    for activity in executions_in(history.events):
        if activity.is_workflow:
            continue
        today = produced.get(activity.id)
        if today is None:
            found.append(f"{activity.id}: is not scheduled any more")
            continue
        kinds = [type(argument) for argument in today]
        try:
            recorded = await converter.decode(activity.input, kinds)
        except ValidationError as error:
            whole = f"its {error.title}"
            wrong = "; ".join(mistakes(error, whole))
            found.append(f"{activity.id}: {whole} is none of today's: {wrong}")
            continue
        if tuple(recorded) != today:
            found.append(f"{activity.id}: {_first_difference(recorded, today)}")
    return tuple(found)


def _first_difference(recorded: list[Any], today: tuple[Any, ...]) -> str:
    for old, new in zip(recorded, today, strict=False):
        for name in type(new).model_fields if old != new else ():
            before, after = getattr(old, name, None), getattr(new, name)
            if before != after:
                return f"{type(new).__name__}.{name} was {before!r:.200}, is now {after!r:.200}"
    return f"had {len(recorded)} arguments, has now {len(today)}"


async def export(
    client: Client, workflow_id: str, store: Store, keys: Keyring | None = None
) -> str:
    """Return a run's history as JSON with every payload inlined and in plain, as `replay` takes it.
    BlobLost; Undecipherable.
    """
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    events: list[HistoryEvent] = list(history.events)
    for event in events:
        await inline(event, store)
        decrypt(event, keys or keyring(""))
    return WorkflowHistory(workflow_id, events).to_json()
