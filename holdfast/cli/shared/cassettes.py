"""Make a cassette of a run that is over: what its history asked models, and what the journal of
this machine has them answer.

Each call is prepared once more by its own activity, with the prompts and roles of today, and given
its recorded answer: nothing is sent, marked or paid.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.replies import load_answer
from holdfast.activities.model_endpoint import ModelEndpoint
from holdfast.activities.recording import recorded
from holdfast.activities.wiring import build
from holdfast.calls import KINDS
from holdfast.contracts.errors import CallRefused
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.replaying.cassette import Cassette
from holdfast.untrusted.known_secrets import KnownSecrets

_KEY: ContextVar[str] = ContextVar("key")
"""The journal's key of the call that is prepared just now."""


@dataclass
class _Journal:
    """Implements `Journal`: says of no call that it was sent, and keeps nothing."""

    async def sent(self, key: str) -> bool:
        _KEY.set(key)
        return False

    async def mark_sent(self, key: str) -> None: ...

    async def withdraw(self, key: str) -> None: ...

    async def answer(self, key: str) -> str | None: ...

    async def record(self, key: str, answer: str) -> None: ...


@dataclass
class _Model:
    """Implements `Model`: answers as the journal has it."""

    kept: FileJournal
    missing: list[str] = field(default_factory=list)
    """The activities whose answers it does not have."""

    async def ask(self, request: ModelRequest) -> ModelAnswer:  # noqa: ARG002
        found = await self.kept.answer(_KEY.get())
        if found is None:
            self.missing.append(activity.info().activity_id)
            raise CallRefused("its answer is not in the journal of this machine")
        return load_answer(found)

    async def count_tokens(self, request: ModelRequest) -> int:  # noqa: ARG002
        return 0

    async def reach(self) -> str:
        return ""


async def cassette_of(
    connection: Connection, run_id: str, *, inputs: bool
) -> tuple[Cassette, list[str]]:
    """Return the cassette of a run, and the calls whose answers are not in the journal."""
    uncapped = {"projects": (), "most_dollars_run": None, "most_dollars_day": None}
    settings = connection.settings.model_copy(update=uncapped)
    model = _Model(FileJournal(StateDir.of(settings).journal))
    cassette = Cassette(inputs=inputs)
    endpoint = recorded(ModelEndpoint(model), cassette, KnownSecrets(settings.secrets))
    served = build(
        settings, connection.target, make_journal=lambda _: _Journal(), endpoint=endpoint
    )
    asking = {each.__name__: each for each in served.asking if each.__name__ in KINDS}
    async for info, payloads in _scheduled(connection.client, run_id):
        if info.activity_type in asking:
            await _ask_again(connection.client, info, payloads, asking[info.activity_type])
    return cassette, model.missing


async def _ask_again(
    client: Client, info: activity.Info, payloads: Sequence[Payload], asks: Callable[..., Any]
) -> None:
    types = activity._Definition.must_from_callable(asks).arg_types
    arguments = await client.data_converter.decode(payloads, types)
    environment = ActivityEnvironment()
    environment.info = info
    try:
        await environment.run(asks, *arguments)
    except Exception:
        # What became of the answer is the run's; here it counts that it was given.
        return


async def _scheduled(
    client: Client, workflow_id: str, run_id: str | None = None
) -> AsyncIterator[tuple[activity.Info, Sequence[Payload]]]:
    """Yield each activity that a run and all below it scheduled, with what it was given."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    history = await handle.fetch_history()
    first = history.events[0].workflow_execution_started_event_attributes
    place = replace(
        ActivityEnvironment.default_info(),
        namespace=client.namespace,
        workflow_namespace=client.namespace,
        workflow_id=workflow_id,
        workflow_run_id=run_id or first.original_execution_run_id,
        start_to_close_timeout=timedelta(minutes=10),
    )
    for event in history.events:
        if event.HasField("activity_task_scheduled_event_attributes"):
            asked = event.activity_task_scheduled_event_attributes
            id, type = asked.activity_id, asked.activity_type.name
            yield replace(place, activity_id=id, activity_type=type), asked.input.payloads
        elif event.HasField("child_workflow_execution_started_event_attributes"):
            child = event.child_workflow_execution_started_event_attributes.workflow_execution
            async for below in _scheduled(client, child.workflow_id, child.run_id):
                yield below
        elif event.HasField("workflow_execution_continued_as_new_event_attributes"):
            following = event.workflow_execution_continued_as_new_event_attributes
            async for later in _scheduled(client, workflow_id, following.new_execution_run_id):
                yield later
