"""Telling addresses of the web what has happened in a run: a workflow of its own, which goes on
when the run has ended.
"""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from holdfast.contracts.notices import Delivery, Notice
from holdfast.history.troubles import describe_error
from holdfast.workflows import scheduling


@workflow.defn
class NotifyWorkflow:
    """Deliver one notice, to each address by itself. Its name stands in histories."""

    @workflow.run
    async def run(self, notice: Notice) -> Delivery:
        """Return to whom it could not be delivered, once nobody is left to try."""
        sent = [scheduling.send(notice, place) for place in range(len(notice.urls))]
        failures = []
        for each in sent:
            try:
                await each
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                failures.append(describe_error(error))
        return Delivery(failures=tuple(failures))
