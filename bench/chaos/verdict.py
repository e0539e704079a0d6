"""What a chaos campaign found: one table, and a line for everything that must not be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.chaos.bills import Bills
from bench.instruments.histories import Histories
from holdfast.calls.ping import PING


@dataclass
class Verdict:
    """What a campaign found."""

    counts: Mapping[str, int | Counter[str]]
    """What struck, and who took part."""
    histories: Histories
    bills: Bills
    log: dict[str, Any]
    """The endpoint's."""
    behind: int = 0
    """Processes that somebody forgot to end."""

    @property
    def wrong(self) -> list[str]:
        """Everything that must not be, one line each."""
        # The small calls of an outage ask about no run's matters.
        told = (body for body in self.log["bodies"].values() if body["call"] != PING.name)
        nobodys = Counter(body["call"] for body in told if not body["mark"])
        return [
            *(f"stuck: {each}" for each in self.histories.stuck),
            *(f"does not replay: {each}" for each in self.histories.poisoned),
            *(f"replays with other arguments: {each}" for each in self.histories.different),
            *(f"bill: {each}" for each in (*self.bills.below, *self.bills.missing)),
            *([f"charges of no run: {_counted(nobodys)}"] if nobodys else []),
            *([f"{self.behind} processes left behind"] if self.behind else []),
        ]

    @property
    def _again(self) -> Counter[str]:
        """Count, by call, what was asked again. Small calls are alike; and what the proxy, or a
        dead worker behind it, lost had left the endpoint whole.
        """
        paid = Counter[str]()
        for body in self.log["bodies"].values():
            paid[body["call"]] += body["again"]
        return +paid

    def table(self) -> str:
        """The counts as Markdown."""
        histories, bills, log = self.histories, self.bills, self.log
        rows = {
            "runs": histories.runs,
            "runs closed": histories.closed,
            "runs stuck": len(histories.stuck),
            "histories that do not replay": len(histories.poisoned),
            "histories that replay with other arguments": len(histories.different),
            **self.counts,
            "reports": bills.statuses,
            "findings": bills.findings,
            "answers delivered whole": log["delivered"],
            "left the endpoint whole, paid again": self._again,
            "charged, never delivered": log["admitted"] - log["delivered"],
            "calls: ledger / charged": f"{bills.calls} / {log['admitted']}",
            "dollars: ledger / charged": f"${bills.dollars} / ${log['dollars']}",
            "bills below their charge": len(bills.below) + len(bills.missing),
            "processes left behind": self.behind,
        }
        head = "| what | count |\n|---|---|\n"
        body = "".join(f"| {what} | {_counted(count)} |\n" for what, count in rows.items())
        return head + body + "".join(f"\n{each}\n" for each in self.wrong)


def _counted(counted: object) -> str:
    if not isinstance(counted, Counter):
        return str(counted)
    return ", ".join(f"{count} {what}" for what, count in sorted(counted.items())) or "0"
