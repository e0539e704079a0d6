"""Each run's bill against what the endpoint charged for it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowQueryFailedError
from temporalio.service import RPCError

from holdfast.certifying.deployment import outcome
from holdfast.contracts import Report

REPORT_SECONDS = 10
SEND_AGAIN = 3
"""Tries of a query for the report of a run that returned none."""


@dataclass
class Bills:
    """Sums over runs, and every run whose bill is below its charge."""

    compared: int = 0
    missing: list[str] = field(default_factory=list)
    """Runs that were charged and have no report."""
    below: list[str] = field(default_factory=list)
    calls: int = 0
    dollars: Decimal = Decimal(0)
    statuses: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)

    async def compare(self, client: Client, run_id: str, charged: dict[str, Any]) -> None:
        """One closed run; `charged` is the endpoint's count of its mark: calls and dollars."""
        report = await _report(client, run_id)
        if report is None:
            if charged["calls"]:
                self.missing.append(f"{run_id}: no report, charged ${charged['dollars']}")
            return
        self.compared += 1
        self.statuses[report.status] += 1
        self.findings.update(finding.status for finding in report.findings)
        self.calls += report.model_calls
        self.dollars += report.dollars or Decimal(0)
        # A report without dollars says that it does not know them.
        cheaper = report.dollars is not None and report.dollars < Decimal(charged["dollars"])
        if cheaper or report.model_calls < charged["calls"]:
            self.below.append(
                f"{run_id}: its report says {report.model_calls} calls, ${report.dollars}; the "
                f"endpoint {charged['calls']} calls, ${charged['dollars']}"
            )


async def _report(client: Client, run_id: str) -> Report | None:
    """What a run closed with; of a cancelled one, what its code makes of its history."""
    handle = client.get_workflow_handle(run_id, result_type=Report)
    with suppress(WorkflowFailureError):
        return await outcome(handle, timedelta(seconds=REPORT_SECONDS))
    for _ in range(SEND_AGAIN):
        try:
            report: Report = await handle.query(
                "report", result_type=Report, rpc_timeout=timedelta(seconds=REPORT_SECONDS)
            )
        except (RPCError, WorkflowQueryFailedError):
            continue
        return report
    return None
