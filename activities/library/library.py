"""Find the template of a goal, where there is one that holds here and now."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.library.digests import find_stale
from holdfast.activities.library.matching import Asked, Fit, key_of
from holdfast.activities.library.outcomes import Outcomes, find_retired, know_nothing
from holdfast.activities.library.shelves import Kept, Shelves
from holdfast.activities.library.template import Template, words_of
from holdfast.activities.library.words import MOST_LETTERS
from holdfast.contracts import Briefing, Goal, Plan, TemplateUse
from holdfast.plans import validity
from holdfast.text import one_line

MOST_WRONG_TOLD = 300


@dataclass(frozen=True)
class Found:
    """The template of a goal, or why one is not used whose words fit."""

    use: TemplateUse | None = None
    why_not: str = ""


@dataclass(frozen=True)
class Library:
    """The templates of a worker."""

    shelves: Shelves
    catalogue: Catalogue
    outcomes: Outcomes = know_nothing

    async def find(self, goal: Goal, brief: Briefing) -> Found:
        """Return the template for a goal that a planner would be asked for. What is in its way is
        no error: the goal is planned instead.
        """
        fit = await asyncio.to_thread(self._search, goal)
        if fit is None:
            return Found()
        kept, template = fit.entry, fit.entry.template
        assert template is not None, "the index has usable templates alone"
        plan = _with_inputs(template, template.fill(fit.values), goal)
        why_not = find_stale(template, self.catalogue)
        why_not = f"it is stale, {why_not}" if why_not else _find_wrong(plan, goal, brief)
        why_not = why_not or find_retired(await self.outcomes(kept.version))
        if why_not:
            said = f"Template {kept.name} fits by its words and is not used: {one_line(why_not)}"
            return Found(why_not=said[:MOST_WRONG_TOLD])
        assert plan is not None, "a plan that is not there is wrong"
        use = TemplateUse(
            name=kept.name,
            version=kept.version,
            runs=template.runs,
            goal=template.first_goal,
            values=dict(fit.values),
            sure=fit.sure,
            plan=plan,
        )
        return Found(use)

    def _search(self, goal: Goal) -> Fit[Kept] | None:
        if len(goal.text) > MOST_LETTERS:
            return None
        index = self.shelves.index()
        key = key_of(goal.playbook, goal.form.kind, (each.kind for each in goal.inputs))
        return index.find(key, Asked.of(goal.text, (each.name for each in goal.inputs)))


def _find_wrong(plan: Plan | None, goal: Goal, brief: Briefing) -> str:
    """Return what is wrong with a plan for this run, as a plan of any other origin is judged."""
    if plan is None:
        return "the inputs have other names, and its plan knows them by theirs"
    wrong = validity.problems(
        plan,
        brief.roles,
        tuple(each.name for each in brief.inputs),
        goal.limits.subtasks,
        goal.asked,
        brief.barred,
        unread=validity.only_by_tools(brief.inputs),
        longest=goal.limits.subtask_timeout_seconds,
        untrusted=brief.inputs,
    )
    return f"its plan is not valid here: {'; '.join(wrong)}" if wrong else ""


def _with_inputs(template: Template, plan: Plan, goal: Goal) -> Plan | None:
    """Return the plan with this goal's inputs in place of the template's: of the same name, or the
    only ones of their kind. None if that is not plain, or the plan speaks of one by its name.
    """
    given = {each.name: each.kind for each in goal.inputs}
    known = {each.example for each in template.parameters.values() if each.kind == "input"}
    lost = {name: kind for name, kind in template.inputs.items() if name not in {*given, *known}}
    taken = {name for each in plan.subtasks for name in each.inputs} | template.inputs.keys()
    named: dict[str, str] = {}
    for name, kind in lost.items():
        free = [each for each in given if given[each] == kind and each not in taken]
        alike = [each for each in lost if lost[each] == kind]
        told = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", each) for each in words_of(plan))
        if len(free) != 1 or len(alike) != 1 or told:
            return None
        named[name] = free[0]
    subtasks = tuple(
        each.model_copy(update={"inputs": tuple(named.get(one, one) for one in each.inputs)})
        for each in plan.subtasks
    )
    return plan.model_copy(update={"subtasks": subtasks})
