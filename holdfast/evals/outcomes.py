"""What came of a trial, in one form for runs, single calls and tools. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal

from pydantic import JsonValue

from holdfast.contracts import Draft, Finding, Gap, Money, Plan, Report
from holdfast.contracts.evals import Answered, Case
from holdfast.contracts.remarks import read_review


@dataclass(frozen=True)
class Outcome:
    """What checks look at."""

    status: str = "complete"
    why: str = ""
    """Why there is no answer; empty: there is one."""
    text: str = ""
    document: JsonValue = None
    """The answer as data; None: it is text alone."""
    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    flags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    dollars: Money | None = Decimal(0)
    assumed: Money = Decimal(0)
    seconds: float = 0.0

    @property
    def draft(self) -> Draft:
        """Return the answer as the checks of plans take it."""
        return Draft(content=self.text, sources=self.sources)


def of_report(report: Report) -> Outcome:
    """Return what a run brought."""
    review = read_review(report)
    return Outcome(
        status=report.status,
        text=report.answer or _told_in(report.plan),
        document=_data_of(report),
        plan=report.plan,
        findings=report.findings,
        gaps=report.gaps,
        flags=report.flags,
        sources=tuple(source for each in report.findings for source in each.sources),
        remarks=tuple(
            f"{each.file}:{each.line} {each.rule} {each.message}"
            for each in (review.remarks if review else ())
        ),
        dollars=report.dollars,
        assumed=report.assumed,
        seconds=max(report.timings.makespan - report.timings.waited, 0.0),
    )


def _data_of(report: Report) -> JsonValue:
    """Return the answer as data, or what the only agent handed up as data."""
    if report.document is not None:
        return report.document
    alone = report.findings[0].data if len(report.findings) == 1 else {}
    return dict(report.data) or dict(alone) or None


def _told_in(plan: Plan | None) -> str:
    """Return the words of a plan, where it is all that there is."""
    if plan is None:
        return ""
    said = [line for each in plan.subtasks for line in (each.title, each.instruction)]
    return "\n".join((*said, plan.synthesis_instruction))


def of_answer(answered: Answered, case: Case, text: str = "") -> Outcome:
    """Return what a call or tool brought. `text`: that of a tool."""
    value = answered.value
    fields = value if isinstance(value, dict) else {}
    answer, flags = fields.get("answer"), fields.get("flags")
    given = case.material.get("findings")
    return Outcome(
        status="failed" if answered.why or answered.failed else "complete",
        why=answered.why,
        text=text or (answer if isinstance(answer, str) else _as_json(value)),
        document=value,
        findings=tuple(map(Finding.model_validate, given)) if isinstance(given, list) else (),
        flags=tuple(map(str, flags)) if isinstance(flags, list) else (),
        dollars=answered.bill.dollars,
        assumed=answered.bill.assumed,
        seconds=answered.seconds,
    )


def _as_json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
