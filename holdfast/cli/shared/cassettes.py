"""Make a cassette of a run that is over: what its history asked models, and what the journal of
this machine has them answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client

from holdfast.activities.recording import recorded
from holdfast.client.kept_answers import ROWS, KeptAnswers, place_in
from holdfast.intake.connection import Connection
from holdfast.replaying.cassette import Cassette
from holdfast.untrusted.known_secrets import KnownSecrets


async def cassette_of(
    connection: Connection, run_id: str, *, inputs: bool
) -> tuple[Cassette, list[str]]:
    """Return the cassette of a run, and the calls whose answers are not in the journal."""
    cassette = Cassette(inputs=inputs)
    known = KnownSecrets(connection.settings.secrets)
    kept = KeptAnswers(connection, lambda endpoint: recorded(endpoint, cassette, known))
    batches = list[str]()
    async for info, payloads in _scheduled(connection.client, run_id):
        if info.activity_type in (*kept.asking, ROWS):
            await kept.again(info, payloads)
        elif info.activity_type == "collect_rows":
            batches.append(f"{info.activity_id} (rows by batch)")
    return cassette, [*kept.missing, *batches]


async def _scheduled(
    client: Client, workflow_id: str, run_id: str | None = None
) -> AsyncIterator[tuple[activity.Info, Sequence[Payload]]]:
    """Yield each activity that a run and all below it scheduled, with what it was given."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    history = await handle.fetch_history()
    first = history.events[0].workflow_execution_started_event_attributes
    place = place_in(client, workflow_id, run_id or first.original_execution_run_id)
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
