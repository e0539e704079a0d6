"""The model activities: a model call is data (`Shape`), each activity is a line or two over
`_ask`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from temporalio import activity

from activities import checks, prompts, provenance, repair_prompts
from activities.asking import Asked, Asking, Shape, Value
from activities.seam import Gate, Journal, Model, Store
from orchestrator import answers, graph, revision
from orchestrator.contracts import Call, Contract, Draft, Plan, Problem, Reply, Synthesis, Usage
from orchestrator.materials import (
    Critique,
    CritiqueMaterial,
    Digest,
    DigestMaterial,
    JudgeMaterial,
    Judgement,
    Patch,
    PlanMaterial,
    Refined,
    RefineMaterial,
    ReplanMaterial,
    Review,
    ReviewMaterial,
    SynthesisMaterial,
    WorkMaterial,
)


@dataclass(frozen=True)
class Agents:
    """Activities that may ask a model. `roles` maps a role to its system prompt."""

    model: Model | None
    journal: Journal
    store: Store
    roles: Mapping[str, str]
    templates: Mapping[str, Callable[[SynthesisMaterial], Synthesis]]
    price: Callable[[str, Usage], Decimal | None]
    """Dollars of a call by the id of the model that served it; None when it is unpriced."""
    gate: Gate | None = None
    """None: every call leaves at once."""

    @activity.defn
    async def plan(self, call: Call, material: PlanMaterial) -> Reply[Plan]:
        """The ready plan, if there is one; else what the planner makes of the goal. Always
        valid.
        """
        if material.ready is not None:
            problem = _plan_problem(material.ready, material, len(material.ready.subtasks))
            return Reply(problem=problem) if problem else Reply(value=material.ready)
        shape = Shape(
            answers.PlanAnswer,
            answers.to_plan,
            lambda plan: _plan_problem(plan, material, material.subtask_limit),
        )
        return await self._ask(
            call, material, shape, prompts.PLANNER, prompts.plan_prompt(material)
        )

    @activity.defn
    async def work(self, call: Call, material: WorkMaterial) -> Reply[Draft]:
        """One try of an agent at a subtask; checks run here and their verdicts are in the draft."""
        contents = {each.name: await self._text(each.digest) for each in material.inputs}
        system = self.roles[call.role] + "\n" + prompts.WORK_RULES
        shape = Shape(
            answers.WorkAnswer, lambda answer: _checked(answers.to_draft(answer), material)
        )
        prompt = prompts.mend(prompts.work_prompt(material, contents), material.broken)
        return await self._ask(call, material, shape, system, prompt)

    @activity.defn
    async def review(self, call: Call, material: ReviewMaterial) -> Reply[Review]:
        """Whether a draft meets the criteria that no check covers; by another role than the
        author.
        """
        shape = Shape(answers.ReviewAnswer, answers.to_review)
        prompt = prompts.mend(repair_prompts.review_prompt(material), material.broken)
        return await self._ask(call, material, shape, repair_prompts.REVIEWER, prompt)

    @activity.defn
    async def refine(self, call: Call, material: RefineMaterial) -> Reply[Refined]:
        """A better instruction, from what went wrong with the tries so far."""
        shape = Shape(answers.RefineAnswer, answers.to_refined)
        prompt = prompts.mend(repair_prompts.refine_prompt(material), material.broken)
        return await self._ask(call, material, shape, repair_prompts.REFINER, prompt)

    @activity.defn
    async def replan(self, call: Call, material: ReplanMaterial) -> Reply[Patch]:
        """Changes to the part of the plan that has not finished. Always applicable."""
        shape = Shape(
            answers.ReplanAnswer, answers.to_patch, lambda patch: _patch_problem(patch, material)
        )
        prompt = prompts.mend(repair_prompts.replan_prompt(material), material.broken)
        return await self._ask(call, material, shape, repair_prompts.REPLANNER, prompt)

    @activity.defn
    async def judge(self, call: Call, material: JudgeMaterial) -> Reply[Judgement]:
        """The best of several findings, or the right side of a conflict."""
        shape = Shape(answers.JudgeAnswer, lambda answer: _known(answer, material))
        prompt = prompts.mend(repair_prompts.judge_prompt(material), material.broken)
        return await self._ask(call, material, shape, repair_prompts.JUDGE, prompt)

    @activity.defn
    async def digest(self, call: Call, material: DigestMaterial) -> Reply[Digest]:
        """Findings in fewer words, for a reader with a limited context; the full text is kept."""
        shape = Shape(answers.DigestAnswer, answers.to_digest)
        prompt = prompts.mend(repair_prompts.digest_prompt(material), material.broken)
        return await self._ask(call, material, shape, repair_prompts.DIGESTER, prompt)

    @activity.defn
    async def synthesize(self, call: Call, material: SynthesisMaterial) -> Reply[Synthesis]:
        """The answer from all findings: by the model, or by a template when the call names none."""
        if call.model is None:
            return Reply(value=self.templates[material.template](material))
        shape = Shape(
            answers.SynthesisAnswer,
            lambda answer: provenance.flagged(answers.to_synthesis(answer), material),
        )
        prompt = prompts.mend(prompts.synthesis_prompt(material), material.broken)
        return await self._ask(call, material, shape, prompts.SYNTHESIZER, prompt)

    @activity.defn
    async def critique(self, call: Call, material: CritiqueMaterial) -> Reply[Critique]:
        """What is wrong with a synthesis, before anybody relies on it."""
        shape = Shape(answers.CritiqueAnswer, answers.to_critique)
        prompt = prompts.mend(repair_prompts.critique_prompt(material), material.broken)
        return await self._ask(call, material, shape, repair_prompts.CRITIC, prompt)

    async def _ask(
        self,
        call: Call,
        material: Contract,
        shape: Shape[Asked, Value],
        system: str,
        prompt: str,
    ) -> Reply[Value]:
        asking = Asking(self.model, self.journal, self.price, self.gate)
        return await asking.ask(call, material, shape, system, prompt)

    async def _text(self, digest: str) -> str:
        return (await self.store.get(digest)).decode("utf-8")


def _checked(draft: Draft, material: WorkMaterial) -> Draft:
    if draft.status != "complete":
        return draft
    return draft.model_copy(update={"verdicts": checks.verdicts(material.subtask.checks, draft)})


def _plan_problem(plan: Plan, material: PlanMaterial, limit: int) -> Problem | None:
    names = tuple(pinned.name for pinned in material.inputs)
    wrong = graph.problems(plan, material.roles, names, limit)
    wrong += checks.plan_problems(plan)
    return Problem(kind="invalid", message="\n".join(wrong)) if wrong else None


def _patch_problem(patch: Patch, material: ReplanMaterial) -> Problem | None:
    wrong = revision.problems(patch, material)
    wrong += checks.plan_problems(revision.patched(material.plan, patch))
    return Problem(kind="invalid", message="\n".join(wrong)) if wrong else None


def _known(answer: answers.JudgeAnswer, material: JudgeMaterial) -> Judgement:
    judgement = answers.to_judgement(answer)
    known = [finding.subtask_id for finding in material.findings]
    if judgement.winner and judgement.winner not in known:
        raise ValueError(f"winner: {judgement.winner!r} is none of {', '.join(known)}")
    return judgement
