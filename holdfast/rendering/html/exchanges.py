"""What each agent was told, what it answered, and why that was not accepted."""

from __future__ import annotations

import json
from typing import Any

from htpy import Element, Node, code, details, div, h4, p, summary
from pydantic import BaseModel

from holdfast.calls import KINDS
from holdfast.calls.changes import size_of_change
from holdfast.calls.envelopes import mend
from holdfast.calls.kind import AnyKind, ModelKind
from holdfast.calls.prove import ProveMaterial, show_proof_without_code
from holdfast.calls.work import Told, WorkMaterial, work_prompt
from holdfast.contracts import Contract, Draft, PinnedInput, Plan, Report, Synthesis
from holdfast.history.steps import Step
from holdfast.rendering.amounts import at_most, hands, seconds
from holdfast.rendering.blocks import Block, Code, Paragraph, Prose
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.pictured import Pictured, command, cut
from holdfast.rendering.html.refusals import why_not
from holdfast.rendering.html.turns import turns
from holdfast.rendering.prices import KINDS_OF_STEPS
from holdfast.rules.map_findings import describe_rows
from holdfast.state.events import AgentEnded, Answered, Examined, MapEnded, TeamEnded
from holdfast.state.moves import Ask, Examine, StartAgent, StartMap, StartTeam


def exchange(step: Step, run: Pictured, title: Element = h4) -> Element:
    """Return one step: facts, what it was told, what it did with tools, what it said."""
    wrong, own = why_not(step), run.report.run_id
    return div(class_="try refused" if wrong else "try")[
        title[_name(step)],
        p(".soft.small")[" · ".join(filter(None, _facts(step)))],
        p(".why")["Not accepted: ", wrong] if wrong else None,
        _unfold(run, "What it was told", _told(step)),
        turns(run, step.move.run_of(own)) if isinstance(step.move, StartAgent) else None,
        command("Its own run has a page:", run.to_type("report", step.move.run_of(own)))
        if isinstance(step.move, StartTeam)
        else None,
        _unfold(run, "What it answered", _said(step)),
    ]


def _name(step: Step) -> Node:
    return [KINDS_OF_STEPS.get(step.kind, step.kind), " ", code[step.id]]


def _facts(step: Step) -> tuple[str, ...]:
    begun, ended = step.worked
    took = seconds((ended - begun).total_seconds()) if ended else "under way"
    model = _model(step)
    paid = at_most(step.spent, step.assumed) if step.calls or step.assumed else ""
    used = ""
    if isinstance(step.landing, AgentEnded) and step.landing.report:
        resume = step.landing.report.resume
        used = hands(resume.turns, resume.tool_calls, resume.failed_calls)
    return (step.tier, model, took, f"{step.tokens:,} tokens" if step.tokens else "", paid, used)


def _model(step: Step) -> str:
    match step.landing:
        case Answered(reply=reply):
            return reply.bill.model
        case AgentEnded(report=report) if report:
            return report.bill.model
        case MapEnded(report=report) if report:
            return report.bill.model
    return ""


# ---------------------------------------------------------------- what it was told


def _told(step: Step) -> list[Block]:
    match step.move:
        case Ask(call=call, material=material):
            inputs = material.inputs if isinstance(material, WorkMaterial) else ()
            return _prompt(_turn(KINDS[call.kind], material), inputs)
        case Examine(material=material):
            return _prompt(
                f"Lens: {material.lens}\n\n{work_prompt(material, Told({}))}", material.inputs
            )
        case StartAgent(goal=goal):
            return _prompt(work_prompt(goal.work, Told({})), goal.work.inputs)
        case StartMap(goal=goal):
            return _prompt(goal.work.subtask.instruction, goal.work.inputs)
        case StartTeam(goal=goal):
            return _prompt(goal.text, ())
    return []


def _prompt(text: str, inputs: tuple[PinnedInput, ...]) -> list[Block]:
    enclosed = [f"{each.name} ({each.size:,} bytes)" for each in inputs if each.enclosed]
    enclosed += [
        f"the diff and messages of {each.name} ({size:,} bytes)"
        for each in inputs
        if (size := size_of_change(each))
    ]
    with_it = Paragraph(f"With it went {', '.join(enclosed)}.")
    return [Code(text), *([with_it] if enclosed else [])]


def _turn(kind: Any, material: Contract) -> str:
    """Return the user turn, without what a worker adds from files, which stands in no history."""
    if not isinstance(kind, ModelKind):
        return ""
    asked: AnyKind = kind
    added: tuple[Any, ...] = (Told({}),) if asked.name == "work" else ()
    if isinstance(material, ProveMaterial):
        added = (show_proof_without_code(material),)
    prompt = asked.turn(material, *added)
    return mend(prompt, getattr(material, "broken", None))


# ---------------------------------------------------------------- what it answered


def _said(step: Step) -> list[Block]:
    match step.landing:
        case Answered(reply=reply) if reply.problem and not reply.value:
            return _code(reply.problem.answer)
        case Answered(reply=reply):
            return _value(reply.value)
        case Examined(draft=draft):
            return _value(draft)
        case AgentEnded(report=report) if report:
            return _value(report.draft) if report.draft else _code(report.resume.text)
        case MapEnded(report=report) if report and report.table.counts.items:
            return [Paragraph(describe_rows(report.table))]
        case TeamEnded(report=report) if report:
            return _value(report)
    return []


def _value(value: object) -> list[Block]:
    match value:
        case Draft():
            text = value.content or (value.escalation.partial if value.escalation else "")
            sure = "" if value.confidence is None else f", confidence {value.confidence} of 100"
            return [Paragraph(f"{value.status}{sure}"), *([Prose(cut(text))] if text else [])]
        case Synthesis() | Report():
            return [Prose(cut(value.answer))]
        case Plan():
            return _code(
                "\n".join(f"{each.id} {each.title} ({each.role})" for each in value.subtasks)
            )
        case BaseModel():
            return _code(json.dumps(value.model_dump(mode="json"), indent=1, ensure_ascii=False))
    return []


def _code(text: str) -> list[Block]:
    return [Code(text)] if text else []


def _unfold(run: Pictured, title: str, blocks: list[Block]) -> Node:
    return details[summary[title], write(run, blocks)] if blocks else None
