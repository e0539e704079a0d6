"""The receipt of a run that is over: its histories are read once, each call's digests taken, and
compared with what the journal of this machine has.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.service import RPCError, RPCStatusCode

from holdfast import __version__
from holdfast.client.ended import read_end
from holdfast.client.kept_answers import KeptAnswers, place_in
from holdfast.client.reading import Look, Reader
from holdfast.client.receipt_key import check_installed, signing_key
from holdfast.contracts.errors import BlobLost
from holdfast.errors import Refused, Unreachable
from holdfast.history.executions import Execution
from holdfast.history.fold import Fold
from holdfast.intake.connection import Connection
from holdfast.receipts.digests import digest_history, digest_payloads
from holdfast.receipts.file import MOST_BYTES, Receipt
from holdfast.receipts.making import Digests, History, Material, make_receipt
from holdfast.storage.codec import decrypt
from holdfast.storage.payloads import inline
from holdfast.tracing.steps import TraceStep, place_steps
from holdfast.tracing.trace import make_steps, runs_below
from holdfast.untrusted.known_secrets import KnownSecrets


async def receipt_of(connection: Connection, run_id: str, *, content: bool = False) -> Receipt:
    """Return the signed receipt of a run that is over. Refused if it is not, RunFailed if it has no
    report. `content`: also what each call was asked and answered.
    """
    check_installed("a receipt")
    look = await Reader(connection, run_id).look()
    if look.away:
        raise Unreachable("; ".join(look.notes))
    if not look.closed:
        raise Refused(f"{run_id} is open, and a receipt is for a run that is over; wait for it")
    ended = read_end(run_id, look)
    if ended.report is None:
        assert ended.failure is not None
        raise ended.failure
    # Only who signs loads what signs.
    from holdfast.receipts.signing import public_of, sign

    key = signing_key(connection.settings)
    found = await _Histories(connection, run_id, content).read()
    material = Material(
        report=ended.report,
        execution=found.first,
        steps=found.steps,
        histories=found.histories,
        unread=found.unread,
        version=__version__,
        made=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        single=_single(look),
        content=content,
    )
    blot = KnownSecrets(connection.settings.secrets).blot_all
    made = make_receipt(material, public_of(key), lambda root: sign(key, root), blot)
    if len(made.dump()) > MOST_BYTES:
        most = f"{MOST_BYTES // 2**20} MiB"
        more = "; leave out the inputs" if content else ""
        raise Refused(
            f"the receipt of {run_id} would be larger than {most}, the most there is{more}"
        )
    return made


def _single(look: Look) -> str:
    written = look.state.finishing.synthesis if look.state else None
    return written.finding if written else ""


# ---------------------------------------------------------------- histories


@dataclass
class _Histories:
    """Reads the history of a run, and those of all agents and teams below it."""

    connection: Connection
    run_id: str
    content: bool
    first: str = ""
    """Temporal's id of the run's first execution."""
    steps: tuple[TraceStep, ...] = ()
    histories: list[History] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    async def read(self) -> _Histories:
        self._kept = KeptAnswers(self.connection)
        steps = await self._read(self.run_id, None)
        self.steps = place_steps(steps)
        return self

    async def _read(self, workflow: str, execution: str | None) -> list[TraceStep]:
        client, store = self.connection.client, self.connection.store
        fold, events, lost = Fold(workflow, client.data_converter), list[HistoryEvent](), 0
        handle = client.get_workflow_handle(workflow, run_id=execution)
        try:
            async for event in handle.fetch_history_events():
                try:
                    await inline(event, store)
                except BlobLost:
                    lost += 1
                decrypt(event, self.connection.target.keys)
                events.append(event)
                await fold.take(event)
        except RPCError as error:
            if execution is None or error.status is not RPCStatusCode.NOT_FOUND:
                raise
            self.unread.append(workflow)
            return []
        first = events[0].workflow_execution_started_event_attributes
        if execution is None:
            self.first = first.first_execution_run_id
        above = workflow if execution else ""
        made = await make_steps(fold, self.run_id, above=above, with_content=self.content)
        steps = [*made]
        own = execution or first.original_execution_run_id
        self.histories.append(await self._history(fold, events, lost, own))
        for below in runs_below(fold):
            steps += await self._read(below.workflow_id, below.run_id)
        return steps

    async def _history(
        self, fold: Fold, events: list[HistoryEvent], lost: int, own: str
    ) -> History:
        calls = {
            f"{fold.run_id}/{each.id}": await self._digests(each, fold.run_id, own)
            for each in fold.executions
            if not each.is_workflow
        }
        return History(
            workflow=fold.run_id,
            execution=own,
            events=len(events),
            digest="" if lost else digest_history(events),
            lost=lost,
            unreadable=fold.unreadable,
            calls=calls,
        )

    async def _digests(self, call: Execution, workflow: str, own: str) -> Digests:
        ended = (call.ended.event_id,) if call.ended else ()
        asked, answered = digest_payloads(call.input), digest_payloads(call.result)
        made = Digests((call.scheduled.event_id, *ended), asked, answered)
        if call.type not in self._kept.asking or not (asked and answered):
            return made
        client = self.connection.client
        place = place_in(client, workflow, own)
        info = replace(place, activity_id=call.id, activity_type=call.type)
        kept = await self._kept.again(info, call.input)
        if not kept.asked:
            return made
        if not kept.digest:
            return Digests(made.events, asked, answered, journal="gone")
        kind = self._kept.result_type(call.type)
        (told,) = await client.data_converter.decode(list(call.result), [kind])
        same = kept.reply is not None and _essence(kept.reply) == _essence(told)
        return Digests(made.events, asked, answered, kept.digest, "same" if same else "other")


def _essence(reply: Any) -> tuple[Any, ...]:
    """Return what of a reply is the model's, whatever worker and prices made the rest of it."""
    return (reply.value, reply.problem, reply.bill.model, reply.bill.usage)
