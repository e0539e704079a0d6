"""A case of an eval that is a single call of a model, or of a tool."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError

from holdfast.contracts.evals import Answered, Asked
from holdfast.evals import single
from holdfast.rules.timers import to_datetime
from holdfast.state.moves import Ask, Prepare
from holdfast.state.run import State
from holdfast.workflows import scheduling


@workflow.defn
class TrialWorkflow:
    """Ask one thing once. Its name stands in histories."""

    @workflow.run
    async def run(self, asked: Asked) -> Answered:
        """Return what came of it; fails only where nothing could be asked."""
        info = workflow.info()
        state, options = single.begin(
            asked.goal, info.workflow_id, info.first_execution_run_id, info.workflow_start_time
        )
        if asked.case.tool:
            briefing = await scheduling.pin_inputs(Prepare(), asked.goal, options)
            return await self._use(single.prepared(state, briefing), asked)
        state = single.prepared(state, await scheduling.prepare(Prepare(), asked.goal, options))
        ask = single.call_of(state, asked)
        if not single.fits(state, ask):
            return single.too_dear(state, ask)
        return await self._ask(state, ask)

    async def _ask(self, state: State, ask: Ask) -> Answered:
        options, now = single.options_for(state, ask), to_datetime(workflow.time_ns())
        try:
            reply = await scheduling.ask(ask.call, ask.material, options)
        except ActivityError as error:
            return single.lost(ask, error, now, options)
        return single.answered(ask, reply)

    async def _use(self, state: State, asked: Asked) -> Answered:
        material, options = single.use_of(state, asked)
        try:
            return single.used(await scheduling.use_one(material, options))
        except ActivityError as error:
            return single.unused(error)
