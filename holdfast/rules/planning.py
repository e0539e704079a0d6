"""Taking over a plan, and changing it while it runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from holdfast.calling.reserving import usual_model
from holdfast.calls.choose import ChosenGroups, groups_of
from holdfast.calls.kind import AnyKind
from holdfast.calls.match import Matched
from holdfast.calls.plan import PLAN
from holdfast.calls.replan import REPLAN, Change, Patch
from holdfast.contracts import Plan, Revision, Subtask, Usage, policies
from holdfast.contracts.replacing import replace
from holdfast.plans.composing import brief_for_plan
from holdfast.rules import early, keeping
from holdfast.rules.preview import predict
from holdfast.state import graph
from holdfast.state.choices import choices_of
from holdfast.state.edits import begin_subtask
from holdfast.state.moves import Stop
from holdfast.state.parts import Progress
from holdfast.state.run import State
from holdfast.state.settling import skip
from holdfast.state.work import Work
from holdfast.text import group_lines, one_line, sentence

DRY = Stop("declined", "it was a dry run: its plan was shown, and none of it was run")


def take_groups(state: State, choice: ChosenGroups | None, why: str) -> State:
    """Show the planner the chosen groups of roles; all of them where no choice came."""
    every = groups_of(state.brief.roles)
    count = sum(map(len, every.values()))
    if choice is None:
        said = f"The planner was shown all {count} roles: no groups of them were chosen ({why})"
        return replace(state, groups=(), choice=sentence(said))
    shown = sum(len(every[name]) for name in choice.groups)
    said = f"Of {count} roles the planner was shown the {shown} of {' and '.join(choice.groups)}"
    told = f": {one_line(choice.why)}" if choice.why.strip() else ""
    return replace(state, groups=choice.groups, choice=sentence(f"{said}{told}"))


def take_match(state: State, matched: Matched | None, why: str) -> State:
    """Take over the template's plan if it fits; else the goal is planned."""
    used = state.brief.template
    assert used is not None, "a question about a template has one"
    if matched is not None and matched.fits:
        return judge_plan(replace(state, matched=True), used.plan, "")
    because = (matched.why if matched else why).strip()
    told = f"Template {used.name} came close and was not used"
    note = sentence(f"{told}: {one_line(because)}" if because else told)
    return replace(state, matched=False, notes=(*state.notes, note))


def judge_plan(state: State, plan: Plan | None, why: str, refused: str = "") -> State:
    """Take over a valid plan; send an invalid one, `refused`, back with its errors, at most
    twice.
    """
    state = replace(state, plan_tries=state.plan_tries + 1)
    if plan is not None:
        return _propose(state, plan, early.why_otherwise(state))
    state = replace(state, plan_errors=tuple(why.splitlines()), plan_refused=refused)
    return fall_back(state) if state.plan_tries > policies.REPAIRS else state


def no_plan(state: State, why: str, *, too_long: bool = False) -> State:
    """Ask the strongest model for what took too long; else one agent takes it all, unless the run
    stops anyway.
    """
    state = replace(state, plan_errors=(why,), plan_refused="")
    if too_long and state.plan_tries < policies.REPAIRS and _can_climb(state, PLAN):
        return replace(state, plan_tries=policies.REPAIRS)
    return state if state.stop else fall_back(state)


def _can_climb(state: State, kind: AnyKind) -> bool:
    return not state.stop and usual_model(state.brief, kind).tier != policies.STRONGEST


def fall_back(state: State) -> State:
    role = next((card for card in state.brief.roles if card.name == policies.FALLBACK_ROLE), None)
    if role is None:
        return replace(state, stop=Stop("endpoint", "no valid plan, and no role can take the goal"))
    names = (pinned.name for pinned in state.brief.inputs)
    plan = Plan.single(state.goal.text, role.name, names)
    if role.team and graph.fingerprint(plan.subtasks[0]) in state.goal.asked:
        return replace(
            state, stop=Stop("endpoint", f"no valid plan, and {role.name} was asked above")
        )
    note = (
        f"The planner gave no valid plan ({group_lines(state.plan_errors)}): one agent took it all."
    )
    state = replace(state, notes=(*state.notes, note))
    return _propose(state, plan, "one agent took the whole goal")


def _propose(state: State, plan: Plan, otherwise: str) -> State:
    """Take over a plan with its price; it waits for a person if the goal says so. `otherwise`: why
    it may have otherwise what was started before.
    """
    begun, state = state.work, adopt(early.end_writing(state, otherwise), plan)
    state = early.join(replace(state, estimate=predict(state, compares=False)), begun)
    if not (state.goal.plan_only or needs_approval(state)):
        return state
    # Only who can still choose is shown what other tiers would cost.
    state = replace(state, phase="approval", estimate=predict(state))
    return replace(state, stop=DRY) if state.goal.plan_only else replace(state, proposed=state.now)


def needs_approval(state: State) -> bool:
    """True if a person must see the plan first. An unknown price is above every amount, and what
    its playbook says no goal can change.
    """
    if state.only_approved:
        return True
    approval, estimate = state.goal.approval, state.estimate
    if approval.when != "above" or estimate is None:
        return approval.when == "always"
    return estimate.expected is None or estimate.expected > approval.dollars


def adopt(state: State, plan: Plan) -> State:
    """Begin to work on a plan, with the roles that it composes."""
    state = replace(state, briefing=brief_for_plan(state.brief, plan))
    work = {subtask.id: begin_subtask(state, subtask) for subtask in plan.subtasks}
    work |= _take_over(state, work)
    replanning = replace(state.replanning, used_ids=tuple(work))
    state = replace(
        state,
        plan=plan,
        plan_errors=(),
        plan_refused="",
        work=Work(work, choices_of(plan)),
        phase="working",
        replanning=replanning,
    )
    return keeping.keep_for_answer(state)


def _take_over(state: State, work: Mapping[str, Progress]) -> dict[str, Progress]:
    """Return the findings of the forked run that still stand on the same inputs."""
    fork = state.goal.fork
    if fork is None:
        return {}
    pinned = {each.name: each.digest for each in state.brief.inputs}
    changed = [each.name for each in fork.inputs if pinned.get(each.name) != each.digest]
    taken = {}
    for finding in fork.findings:
        progress = work.get(finding.subtask_id)
        if progress is None or any(
            name in changed for name in graph.named_inputs(progress.subtask)
        ):
            continue
        reused = finding.model_copy(
            update={"reused_from": fork.run_id, "dollars": Decimal(0), "usage": Usage()}
        )
        taken[finding.subtask_id] = replace(progress, finding=reused)
    while stale := [key for key, each in taken.items() if _built_on_other(each, taken)]:
        taken = {key: each for key, each in taken.items() if key not in stale}
    return taken


def _built_on_other(progress: Progress, taken: Mapping[str, Progress]) -> bool:
    """True if a dependency is done anew, so that what was built on it cannot stand."""
    return any(edge not in taken for edge in progress.subtask.depends_on)


def add_subtasks(state: State, subtasks: Sequence[Subtask]) -> State:
    """Add subtasks behind all that were planned."""
    plan = state.plan
    assert plan is not None, "subtasks are added to a plan"
    work = {**state.work, **{each.id: begin_subtask(state, each) for each in subtasks}}
    plan = plan.model_copy(update={"subtasks": (*plan.subtasks, *subtasks)})
    replanning = replace(state.replanning, used_ids=tuple(work))
    return replace(state, plan=plan, work=Work(work, state.work.choices), replanning=replanning)


# ---------------------------------------------------------------- changing a plan that runs


def count_replan(state: State) -> State:
    """Count a replan before its call, so that no crash makes it free."""
    before = state.replanning
    return replace(
        state,
        replanning=replace(before, count=before.count + 1, covered=len(before.setbacks)),
    )


def judge_patch(state: State, patch: Patch | None, why: str, refused: str = "") -> State:
    """Apply a valid patch; send an invalid one, `refused`, back with its errors, at least once:
    then the strongest model is asked.
    """
    if patch is not None and not patch.changes:
        note = "The plan was not changed: the planner was asked what could help, and knew nothing."
        return replace(_drop_covered(state), notes=(*state.notes, note))
    if patch is not None:
        return _apply_patch(state, patch)
    before = state.replanning
    errors = tuple(why.splitlines())
    state = replace(state, replanning=replace(before, errors=errors, refused=refused))
    if before.count < state.goal.limits.replans or not before.errors:
        return state
    return no_patch(state, why)


def no_patch(state: State, why: str, *, too_long: bool = False) -> State:
    """Ask the strongest model for what took too long; else leave the plan, and note why."""
    if too_long and not state.replanning.errors and _can_climb(state, REPLAN):
        return replace(state, replanning=replace(state.replanning, errors=(why,)))
    note = f"The plan could not be changed: {'; '.join(why.splitlines())}"
    return replace(_drop_covered(state), notes=(*state.notes, note))


def _drop_covered(state: State) -> State:
    before = state.replanning
    left = before.setbacks[before.covered :]
    return replace(
        state, replanning=replace(before, setbacks=left, covered=0, errors=(), refused="")
    )


def _apply_patch(state: State, patch: Patch) -> State:
    plan = state.plan
    assert plan is not None
    number = len(state.replanning.revisions) + 1
    # While the planner thought, a subtask may have started: what runs is frozen.
    changes = [each for each in patch.changes if each.op == "add" or is_waiting(state, each)]
    work = dict(state.work)
    for change in changes:
        if change.op != "drop":
            work[change.subtask.id] = begin_subtask(state, change.subtask)
    state = replace(state, work=Work(work, choices_of(plan)))
    for change in changes:
        if change.op == "drop":
            why = f"dropped by revision {number}: {change.why}"
            state = skip(state, change.subtask.id, why)
    revision = Revision(
        number=number,
        why="; ".join(dict.fromkeys(change.why for change in changes)),
        added=_ids(changes, "add"),
        replaced=_ids(changes, "replace"),
        dropped=_ids(changes, "drop"),
    )
    before = state.replanning
    replanning = replace(
        before,
        revisions=(*before.revisions, revision),
        used_ids=tuple(dict.fromkeys((*before.used_ids, *work))),
    )
    subtasks = tuple(progress.subtask for progress in state.work.values())
    plan = plan.model_copy(update={"subtasks": subtasks})
    state = keeping.keep_for_answer(replace(state, plan=plan, replanning=replanning))
    return _drop_covered(state)


def is_waiting(state: State, change: Change) -> bool:
    progress = state.work.get(change.subtask.id)
    return progress is not None and not (progress.started or progress.finding)


def _ids(changes: list[Change], op: str) -> tuple[str, ...]:
    return tuple(change.subtask.id for change in changes if change.op == op)
