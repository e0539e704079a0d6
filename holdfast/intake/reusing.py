"""What a run takes over of the maps of an earlier one, read from that run's history."""

from __future__ import annotations

from temporalio.service import RPCError, RPCStatusCode

from holdfast.calls.rows import MapReport
from holdfast.contracts import Goal
from holdfast.contracts.goals import Reuse
from holdfast.errors import Refused
from holdfast.history.executions import MAP, Executions
from holdfast.history.payloads import try_decode
from holdfast.intake.connection import Connection


async def with_tables(connection: Connection, goal: Goal) -> Goal:
    """Return the goal with the tables of the run that it reuses, by subtask. Refused if there is no
    such run, or none of its maps has come to an end.
    """
    if goal.reuse is None or goal.reuse.tables:
        return goal
    run_id = goal.reuse.run
    try:
        reuse = await read_tables(connection, run_id)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise Refused(
            f"--reuse {run_id}: there is no such run; `list` shows those there are"
        ) from None
    if not reuse.tables:
        raise Refused(f"--reuse {run_id}: it has no map with rows to take over")
    return goal.model_copy(update={"reuse": reuse})


async def read_tables(connection: Connection, run_id: str) -> Reuse:
    """Return the tables of a run's maps that have come to an end, kept in the store. RPCError."""
    executions = Executions()
    async for event in connection.handle(run_id).fetch_history_events():
        executions.take(event)
    tables, complete = dict[str, str](), dict[str, str]()
    for each in executions:
        if each.type != MAP or each.end != "completed":
            continue
        report: MapReport | None = await try_decode(
            connection.client.data_converter, each.result, MapReport
        )
        if report and report.table.outcomes:
            # The last segment of a map stands last, and knows of all before it.
            subtask = each.id.removeprefix(f"{run_id}.").rpartition(".")[0]
            tables[subtask] = await connection.store.put(report.table.model_dump_json().encode())
            counts = report.table.counts
            complete[subtask] = f"{counts.complete + counts.supplied:,} of {counts.items:,}"
    return Reuse(run=run_id, tables=tables, complete=complete)
