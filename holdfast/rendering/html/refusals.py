"""Why a step was not accepted: one rule for what the page says of it and for how it is drawn."""

from __future__ import annotations

from holdfast.contracts import Draft, Problem
from holdfast.history.judging import ACCEPTED
from holdfast.history.steps import Step
from holdfast.state.events import (
    AgentEnded,
    Answered,
    Examined,
    MapEnded,
    NotPrepared,
    TeamEnded,
    Unanswered,
)

JUDGED = ("work", "plan", "agent")
GOOD = ("", ACCEPTED, "answered", "more", "asks")
"""Verdicts on an answer, or on a part of the work of an agent, that nothing is wrong with."""


def why_not(step: Step) -> str:
    """Return why what came back was not what was asked for; empty if it was, or is under way."""
    return _judged(step) if step.taken_back else _landed(step) or _judged(step)


def _judged(step: Step) -> str:
    """Return what the supervisor had against an answer that seemed good; of a review that would be
    said of its draft, not of itself.
    """
    if step.kind not in JUDGED or step.verdict in GOOD:
        return ""
    return ": ".join(filter(None, (step.verdict.replace("_", " "), step.why)))


def _landed(step: Step) -> str:
    match step.landing:
        case Answered(reply=reply) if reply.problem:
            return _problem(reply.problem)
        case Answered(reply=reply):
            return _not_good(reply.value)
        case Unanswered(trouble=trouble):
            return f"no answer: {trouble.why}"
        case Examined(draft=draft):
            return _not_good(draft)
        case MapEnded(report=None, why=why):
            return why
        case MapEnded(report=report) if report is not None:
            return "" if report.outcome in ("done", "more") else report.why or report.outcome
        case AgentEnded() as ended:
            return _of_agent(ended)
        case TeamEnded(report=report, why=why):
            bad = report is None or report.status == "failed"
            return (why or "its run failed") if bad else ""
        case NotPrepared(why=why):
            return why
    return ""


def _problem(problem: Problem) -> str:
    return f"{problem.kind.replace('_', ' ')}: {problem.why}"


def _not_good(value: object) -> str:
    if not isinstance(value, Draft) or (value.status == "complete" and not value.verdicts):
        return ""
    return "; ".join(filter(None, (*value.verdicts, value.why))) or value.status


def _of_agent(ended: AgentEnded) -> str:
    if ended.report is None:
        return ended.why
    if ended.report.outcome in ("answered", "more", "asks"):
        return _not_good(ended.report.draft)
    return ended.report.why or ended.report.outcome
