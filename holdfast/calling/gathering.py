"""Gather the material of each activity: the part of the state that it needs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import JsonValue

from holdfast.calling import context, fixing, proving, verifying
from holdfast.calls.about import About
from holdfast.calls.choose import MOST_ON_MENU, GroupsMaterial, group_of, groups_of
from holdfast.calls.critique import CritiqueMaterial, Issue
from holdfast.calls.digest import DigestMaterial
from holdfast.calls.findings import author_says
from holdfast.calls.judge import JudgeMaterial
from holdfast.calls.match import MatchMaterial
from holdfast.calls.plan import PlanMaterial, many_items
from holdfast.calls.refine import RefineMaterial
from holdfast.calls.replan import ReplanMaterial, Standing
from holdfast.calls.review import ReviewMaterial
from holdfast.calls.sources import Sources, choose_sources
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.calls.turn import READ_FINDING, equip
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import (
    HARD_SUBTASK_LIMIT,
    PLANNED_SUBTASK_LIMIT,
    Finding,
    PinnedInput,
    Plan,
    Problem,
    RoleCard,
    Subtask,
    Synthesis,
    policies,
)
from holdfast.state import graph
from holdfast.state.moves import StartAgent
from holdfast.state.parts import Progress, passes_on
from holdfast.state.run import State

COMMON = "common"
"""The group of the roles that any goal may have."""
DIGEST_WORDS = 400
LEAST_SHARE = 4
"""A fourth of the context is left to findings, however long the answer beside them is."""


def ready_plan(state: State) -> Plan | None:
    """Return the plan that a person, a playbook or a template gives: no planner is asked."""
    playbook, template = state.brief.playbook, state.brief.template
    ready = state.goal.plan or (playbook.plan if playbook else None)
    return template.plan if ready is None and template and template.sure else ready


def for_match(state: State) -> MatchMaterial:
    assert state.brief.template is not None, "a question about a template has one"
    return MatchMaterial(
        goal=state.goal.text,
        template=state.brief.template,
        inputs=tuple(each.model_copy(update={"preview": ""}) for each in state.brief.inputs),
        about=about(state),
    )


def for_plan(state: State) -> PlanMaterial:
    """Show a planner goal, roles and a preview of each input; never a repository's files."""
    brief = state.brief
    return PlanMaterial(
        goal=state.goal.text,
        roles=on_menu(state),
        inputs=brief.inputs,
        guidance=brief.playbook.guidance if brief.playbook else "",
        subtask_limit=state.goal.limits.subtasks,
        subtask_timeout_seconds=state.goal.limits.subtask_timeout_seconds,
        errors=state.plan_errors,
        previous=state.plan_refused,
        begun=_begun(state),
        asked=state.goal.asked,
        about=about(state),
        barred=state.brief.barred,
        early=most_early(state),
    )


def _begun(state: State) -> Plan | None:
    """Return what was started for a plan which is still to come; None: nothing was."""
    moves = state.early.begun.values()
    works = [each.goal.work if isinstance(each, StartAgent) else each.material for each in moves]
    begun = [each for each in works if isinstance(each, WorkMaterial)]
    subtasks = tuple(each.subtask for each in begun)
    return Plan(goal=begun[0].about.goal, subtasks=subtasks) if begun else None


def most_early(state: State) -> int:
    """Return how many subtasks may start while their plan is being written: none where a person may
    have to approve it, or where it was refused before.
    """
    goal = state.goal
    approved = goal.approval.when != "auto" or goal.plan_only or state.only_approved
    if approved or goal.by_batch or goal.fork is not None or state.plan_errors:
        return 0
    # Which subtasks are maps is written last.
    return 0 if many_items(state.brief.inputs) else goal.limits.early


def is_large_menu(state: State) -> bool:
    """True if a planner would be shown more roles than it chooses among surely, in several groups.
    Who names a playbook has chosen its roles, for its teams as well: the common ones beside them do
    not count.
    """
    groups = groups_of(state.brief.roles)
    beside = COMMON if state.goal.playbook or state.goal.roles_of else ""
    count = sum(len(roles) for name, roles in groups.items() if name != beside)
    return count > MOST_ON_MENU and len(groups) > 1


def on_menu(state: State) -> tuple[RoleCard, ...]:
    """Return the roles that a planner is shown: those of the chosen groups, else all, with the
    tools that the inputs of the run allow.
    """
    chosen = (
        each for each in state.brief.roles if not state.groups or group_of(each) in state.groups
    )
    return tuple(equip(each, state.brief.inputs) for each in chosen)


def for_groups(state: State) -> GroupsMaterial:
    return GroupsMaterial(
        goal=state.goal.text,
        roles=state.brief.roles,
        inputs=tuple(each.model_copy(update={"preview": ""}) for each in state.brief.inputs),
        about=about(state),
    )


def about(state: State) -> About:
    """Return the day of the run, and what the plan says of the answer."""
    plan, today = state.plan, state.brief.today
    if plan is None:
        return About(today=today)
    only = state.single
    if only is not None:
        # In the words of whoever asks, unless these are the instruction itself.
        asked = "" if only.instruction == state.goal.text else state.goal.text
        return About(today=today, goal=asked, answer=plan.synthesis_instruction, alone=True)
    ready = state.brief.playbook and state.brief.playbook.plan
    # What a playbook is for stands in its orders; the caller's words, or its inputs, do not.
    goal = state.title if ready and ready.goal == plan.goal else plan.goal
    answer = plan.synthesis_instruction
    return About(today=today, goal=goal, answer=answer, attempt=state.selects)


SOURCES_SHARE = 4
"""A fourth of a context is the most for sources beside all findings."""


def _sources(state: State, names: Collection[str], room: int) -> Sources:
    """Return the inputs of these names, as far as somebody who judges can read them."""
    return _readable(state.brief.inputs, _subtasks(state), names, room)


def judged_by(
    inputs: Sequence[PinnedInput], subtasks: Sequence[Subtask], context_tokens: int
) -> Sources:
    """Return the inputs that the findings of these subtasks rest on, as a judge reads them beside
    what it judges.
    """
    room = context_tokens * context.EXPECTED_BYTES_PER_TOKEN // SOURCES_SHARE
    return _readable(inputs, subtasks, _given(subtasks), room)


def _readable(
    inputs: Sequence[PinnedInput], subtasks: Sequence[Subtask], names: Collection[str], room: int
) -> Sources:
    """Return inputs as far as they fit: not those of many items, whose results are judged by what
    stands of all.
    """
    mapped = {each.map.over for each in subtasks if each.map}
    named = [each for each in inputs if each.name in names]
    found = choose_sources(tuple(each for each in named if each.name not in mapped), room)
    unseen = (*found.unseen, *(each.name for each in named if each.name in mapped))
    return found.model_copy(update={"unseen": unseen})


def _subtasks(state: State) -> list[Subtask]:
    return [each.subtask for each in state.work.values()]


def _given(subtasks: Sequence[Subtask]) -> Collection[str]:
    """Return the names of the inputs that findings rest on."""
    mapped = [each.map.over for each in subtasks if each.map]
    return [*(name for each in subtasks for name in each.inputs), *mapped]


def needed_findings(state: State, subtask: Subtask) -> tuple[Finding, ...]:
    """Return what the dependencies of a subtask found: of several attempts, the one chosen, or all
    that there are. A verifier is not told: it does not know who made a remark.
    """
    if verifying.remarks_for(state, subtask):
        return ()
    found = (state.work[each].finding for each in subtask.depends_on if each not in state.set_aside)
    return tuple(_say_chosen(state, each) for each in found if each is not None)


def long_findings(state: State, subtask: Subtask) -> tuple[Finding, ...]:
    """Return the findings that a subtask depends on and is not given the whole of: what models and
    people wrote. What code found is not put in other words.
    """
    if not state.brief.shortens or state.brief.role(subtask.role).tier == "none":
        return ()
    return tuple(
        each
        for each in needed_findings(state, subtask)
        if state.work[each.subtask_id].tier != "none" and context.is_long(state, each)
    )


def inputs_of(state: State, subtask: Subtask) -> tuple[PinnedInput, ...]:
    """Return the inputs of a subtask, with the tables of the maps that it depends on, where its
    role can ask them.
    """
    named = tuple(each for each in state.brief.inputs if each.name in subtask.inputs)
    return (*named, *_tables_for(state, subtask))


ASKS_TABLES = "query_data"
"""The tool of agents that asks tables."""


def _tables_for(state: State, subtask: Subtask) -> tuple[PinnedInput, ...]:
    if ASKS_TABLES not in state.brief.role(subtask.role).tools:
        return ()
    known = (state.work.get(each) for each in subtask.depends_on)
    tables = (each.mapped.table for each in known if each is not None)
    return tuple(each.table for each in tables if each is not None and each.table is not None)


def role_of(state: State, subtask: Subtask) -> RoleCard:
    """Return the role of a subtask with the tools that its agent has there."""
    role = equip(state.brief.role(subtask.role), inputs_of(state, subtask))
    if role.team or not long_findings(state, subtask):
        return role
    tools = tuple(dict.fromkeys((*role.tools, READ_FINDING)))
    size = role.prompt_bytes + policies.READ_FINDING_BYTES
    return role.model_copy(update={"tools": tools, "prompt_bytes": size})


def for_work(state: State, progress: Progress) -> WorkMaterial:
    subtask = progress.subtask
    role = state.brief.role(subtask.role)
    long = {each.subtask_id: each for each in long_findings(state, subtask)}
    remarks = verifying.remarks_for(state, subtask)
    return WorkMaterial(
        subtask=subtask,
        inputs=inputs_of(state, subtask),
        dependencies=tuple(
            context.shorten(state, finding) if finding.subtask_id in long else finding
            for finding in needed_findings(state, subtask)
        ),
        shortened={key: "digest" if each.digest else "beginning" for key, each in long.items()},
        lens=role.tools[0] if role.tier == "none" else "",
        timeout_seconds=timeout_of(state, subtask),
        number=len(progress.tries) + 1,
        why=progress.why,
        previous=_rejected_result(progress),
        partial=progress.partial,
        broken=last_malformed(state, f"work-{subtask.id}"),
        composed=role.description if role.name.startswith(graph.COMPOSED) else "",
        form=_form(state, progress),
        prompt=role.prompt,
        told_last=role.told_last,
        about=about(state),
        remarks=tuple(each.model_copy(update=verifying.UNSAID) for each in remarks),
        withheld=verifying.withheld_from(state, remarks),
    )


def for_map(state: State, progress: Progress) -> WorkMaterial:
    """Return what all rows of a map are asked by: the same for each, however often the map goes on,
    with the input that it goes over.
    """
    spec = progress.subtask.map
    assert spec is not None, "only a map is done once for each item"
    work = for_work(state, progress)
    over = (each for each in state.brief.inputs if each.name == spec.over)
    others = (each for each in work.inputs if each.name != spec.over)
    anew: dict[str, object] = {"number": 1, "why": "", "previous": "", "partial": ""}
    return work.model_copy(update={**anew, "broken": None, "inputs": (*over, *others)})


MOST_PREVIOUS = 12_000
"""Characters of a result that was not accepted, for whoever tries next."""


def _rejected_result(progress: Progress) -> str:
    """Return the result that the last verdict is about; empty if there was none."""
    last = progress.last
    if last is None or last.status == "escalated" or not (progress.tries and progress.why):
        return ""
    more = len(last.content) - MOST_PREVIOUS
    cut = f"\n[… {more:,} letters more]" if more > 0 else ""
    return last.content[:MOST_PREVIOUS] + cut


def timeout_of(state: State, subtask: Subtask) -> int:
    """Return the seconds for one call of a subtask: the plan's, within the run's limit."""
    most = state.goal.limits.subtask_timeout_seconds
    return min(subtask.timeout_seconds or most, most)


def _form(state: State, progress: Progress) -> dict[str, JsonValue]:
    """Return the first role's schema: it was promised to dependents, so a fallback keeps it."""
    first = progress.former[0] if progress.former else progress.subtask.role
    return state.brief.role(first).result or state.brief.role(progress.subtask.role).result


def for_review(state: State, progress: Progress) -> ReviewMaterial:
    assert progress.last is not None, "only a draft is reviewed"
    subtask, half = progress.subtask, context.room(state) // 2
    given = needed_findings(state, subtask)
    return ReviewMaterial(
        subtask=subtask,
        draft=progress.last,
        sources=_sources(state, subtask.inputs, half),
        dependencies=context.cut_to_fit(given, half)[0],
        broken=last_malformed(state, f"review-{subtask.id}"),
        about=about(state),
    )


def for_refine(state: State, progress: Progress) -> RefineMaterial:
    return RefineMaterial(
        subtask=progress.subtask,
        role=equip(state.brief.role(progress.subtask.role), state.brief.inputs),
        whys=tuple(each.why for each in progress.tries),
        previous=_rejected_result(progress),
        broken=last_malformed(state, f"refine-{progress.subtask.id}"),
        about=about(state),
    )


def for_replan(state: State) -> ReplanMaterial:
    assert state.plan is not None, "only a plan can be changed"
    standings = tuple(_standing(key, each) for key, each in state.work.items())
    setbacks = state.replanning.setbacks
    return ReplanMaterial(
        goal=state.goal.text,
        plan=state.plan,
        standings=standings,
        trouble="; ".join(f"{each.subtask_id}: {each.why}" for each in setbacks),
        roles=on_menu(state),
        inputs=state.brief.inputs,
        used_ids=state.replanning.used_ids,
        addable=min(state.goal.limits.subtasks, HARD_SUBTASK_LIMIT - len(state.work)),
        subtask_timeout_seconds=state.goal.limits.subtask_timeout_seconds,
        errors=state.replanning.errors,
        previous=state.replanning.refused,
        asked=state.goal.asked,
        about=about(state),
        barred=state.brief.barred,
    )


def _standing(subtask_id: str, progress: Progress) -> Standing:
    done = progress.finding
    if done is not None:
        return Standing(subtask_id=subtask_id, status=done.status, why=done.why)
    status: Literal["waiting", "running"] = "running" if progress.started else "waiting"
    return Standing(subtask_id=subtask_id, status=status, why=progress.why)


def for_digest(
    state: State, findings: tuple[Finding, ...], broken: Problem | None
) -> DigestMaterial:
    """Return one finding, whole; or a batch of them, within the context."""
    cut: tuple[str, ...] = ()
    if len(findings) > 1:
        findings, cut = context.cut_to_fit(findings, context.room(state))
    return DigestMaterial(
        goal=state.goal.text,
        findings=findings,
        cut=cut,
        words=DIGEST_WORDS,
        broken=broken,
        about=about(state),
    )


def for_judge(
    state: State, question: str, broken: Problem | None, *, ids: Collection[str] = ()
) -> JudgeMaterial:
    """Return the findings of these subtasks, or of all, with what they rest on."""
    room = context.room(state)
    usable = (each for each in state.usable if not ids or each.subtask_id in ids)
    findings, cut = context.cut_to_fit(usable, room)
    return JudgeMaterial(
        question=question,
        findings=findings,
        cut=cut,
        sources=_sources(state, _given(_subtasks(state)), room // SOURCES_SHARE),
        broken=broken,
        about=about(state),
    )


def for_synthesis(state: State, room: int | None = None) -> SynthesisMaterial:
    """Return every finding, failures included; in a revision also what is to change. `room`: bytes
    of findings that a model may read; None: all of them, for a template.
    """
    assert state.plan is not None, "only a plan's findings are synthesized"
    playbook = state.brief.playbook
    finishing = state.finishing
    serious = [each for each in finishing.issues or () if each.severity != "info"]
    previous = finishing.synthesis.answer if finishing.synthesis else ""
    said = author_says(finishing.synthesis) if finishing.synthesis else ""
    findings, cut = (
        (_whole(state), ()) if room is None else _fit_beside(previous + said, state, room)
    )
    return SynthesisMaterial(
        goal=state.goal.text,
        instruction=state.plan.synthesis_instruction,
        template=playbook.template if playbook else "merge",
        min_confidence=verifying.least_confidence(state),
        subtasks=_only_names(state.plan),
        findings=findings,
        cut=cut,
        inputs=state.brief.inputs,
        not_run=state.not_run,
        citable=tuple(each.subtask_id for each in _whole(state) if passes_on(each)),
        aside=tuple(each.content for each in state.findings if each.subtask_id in state.set_aside),
        previous=previous,
        beside=said,
        issues=tuple(_change(each) for each in serious),
        judged=finishing.conflicts,
        to_verify=len(verifying.chosen(state)),
        verified=fixing.add_fixes(
            state, proving.add_proofs(state, verifying.verified_remarks(state))
        ),
        broken=last_malformed(state, "synthesize"),
        about=about(state),
        form=state.form,
        counted=state.plan.critic == "unless_checked",
    )


def _change(issue: Issue) -> str:
    fix = f" Fix: {issue.fix}" if issue.fix else ""
    return f"{issue.severity}: {issue.problem}{fix}"


def _only_names(plan: Plan) -> tuple[Subtask, ...]:
    """Strip the subtasks of a plan larger than a model's: only their names are read here."""
    if len(plan.subtasks) <= PLANNED_SUBTASK_LIMIT:
        return plan.subtasks
    untold = {"instruction": "", "acceptance_criteria": "", "checks": (), "why": ""}
    return tuple(each.model_copy(update=untold) for each in plan.subtasks)


def _whole(state: State) -> tuple[Finding, ...]:
    """Return all findings but attempts that were put aside for a better one, which says so."""
    left = (each for each in state.findings if each.subtask_id not in state.set_aside)
    return tuple(_say_chosen(state, each) for each in left)


def _say_chosen(state: State, finding: Finding) -> Finding:
    """Return a finding with the attempts for which a judge preferred it, if it was chosen."""
    for choice, judgement in state.finishing.chosen.items():
        if judgement.winner == finding.subtask_id:
            others = tuple(each for each in choice if each != finding.subtask_id)
            return finding.model_copy(update={"chosen_over": others})
    return finding


def _failed(state: State) -> tuple[Finding, ...]:
    return tuple(finding for finding in state.findings if not passes_on(finding))


def _fit_beside(
    answer: str, state: State, room: int
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Cut the findings so that a model can read them together with an answer."""
    left = max(room - len(answer.encode()), room // LEAST_SHARE)
    finishing, findings = state.finishing, _whole(state)
    # What was rolled up before the best of all was chosen holds the others, too.
    selected = state.plan is not None and state.plan.strategy == "select" and state.set_aside
    if not selected and (finishing.rolled or finishing.rolling):
        findings = (*context.replace_rolled(state), *_failed(state))
    return context.cut_to_fit(findings, left)


def for_critique(state: State, broken: Problem | None) -> CritiqueMaterial:
    assert state.plan is not None
    written = state.finishing.synthesis or Synthesis(answer="")
    said = author_says(written)
    findings, cut = _fit_beside(written.answer + said, state, context.room(state))
    return CritiqueMaterial(
        goal=state.goal.text,
        instruction=state.plan.synthesis_instruction,
        synthesis=written,
        findings=findings,
        cut=cut,
        sources=_sources(state, _given(_subtasks(state)), context.room(state) // SOURCES_SHARE),
        broken=broken,
        about=about(state),
    )


def last_malformed(state: State, purpose: str) -> Problem | None:
    """Return the last malformed answer of a purpose, if it is to be mended."""
    problems = state.broken.get(purpose, ())
    return problems[-1] if problems else None
