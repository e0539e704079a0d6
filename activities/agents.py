"""The model activities: a call is data (`Shape`), and each activity a line or two over `_ask`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from temporalio import activity

from activities.asking import checks, provenance
from activities.asking.call import Asking
from activities.asking.flights import Flights
from activities.asking.past import Past
from activities.asking.reaching import until_reached
from activities.asking.replies import Asked, Shape, Value, lost
from activities.prompts import repair as repair_prompts
from activities.prompts import user_turns as prompts
from activities.prompts.system import SystemPrompts
from activities.seam import Budget, Code, Gate, Journal, Model, Store
from orchestrator import answers
from orchestrator.contracts import Call, Contract, Draft, Plan, Problem, Reply, Synthesis, Usage
from orchestrator.errors import BlobLost, CallRefused
from orchestrator.materials import (
    Critique,
    CritiqueMaterial,
    Digest,
    DigestMaterial,
    JudgeMaterial,
    Judgement,
    Patch,
    PlanMaterial,
    Reached,
    ReachMaterial,
    Refined,
    RefineMaterial,
    ReplanMaterial,
    Review,
    ReviewMaterial,
    SynthesisMaterial,
    Verdicts,
    VerifyMaterial,
    WorkMaterial,
)
from orchestrator.rules import graph, revision


@dataclass(frozen=True)
class Agents:
    """Activities that may ask a model. `roles` maps a role to its system prompt."""

    model: Model | None
    journal: Journal
    store: Store
    roles: Mapping[str, str]
    system: SystemPrompts
    templates: Mapping[str, Callable[[SynthesisMaterial], Synthesis]]
    price: Callable[[str, Usage], Decimal | None]
    """Dollars of a call by the id of the model that served it; None when it is unpriced."""
    gate: Gate | None = None
    """None: every call leaves at once."""
    code: Code | None = None
    """The code around remarks, without secrets; None: no review is verified here."""
    flights: Flights = field(default_factory=Flights)
    """The calls that this process has under way."""
    budget: Budget | None = None
    """What this deployment lets calls cost. None: what their runs do."""
    address: str = ""
    """Of the endpoint, as `Unreached` has it; empty: not known."""

    @activity.defn
    async def plan(self, call: Call, material: PlanMaterial) -> Reply[Plan]:
        """The ready plan, if there is one, else the planner's for this goal: always valid."""
        if material.ready is not None:
            problem = _plan_problem(material.ready, material, len(material.ready.subtasks))
            return Reply(problem=problem) if problem else Reply(value=material.ready)
        shape = Shape(
            answers.PlanAnswer,
            answers.to_plan,
            lambda plan: _plan_problem(plan, material, material.subtask_limit),
        )
        return await self._ask(
            call, material, shape, self.system.planner, prompts.plan_prompt(material)
        )

    @activity.defn
    async def work(self, call: Call, material: WorkMaterial) -> Reply[Draft]:
        """One try of an agent at a subtask; checks run here and their verdicts are in the draft.

        CallRefused, before anything is paid, when a check cannot be carried out: a plan that was
        edited past the starter is checked nowhere before.
        """
        wrong = checks.problems(material.subtask.checks)
        if wrong:
            raise CallRefused(f"checks: {'; '.join(wrong)}")
        contents = await self._contents(call, material)
        system = self.system.of_work(self.roles[call.role])
        shape = Shape(
            answers.WorkAnswer, lambda answer: _checked(answers.to_draft(answer), material)
        )
        prompt = await asyncio.to_thread(prompts.work_prompt, material, contents)
        prompt = prompts.mend(prompt, material.broken)
        return await self._ask(call, material, shape, system, prompt)

    @activity.defn
    async def review(self, call: Call, material: ReviewMaterial) -> Reply[Review]:
        """Whether a draft meets the criteria that no check covers; its author is never asked."""
        shape = Shape(answers.ReviewAnswer, answers.to_review)
        prompt = prompts.mend(repair_prompts.review_prompt(material), material.broken)
        return await self._ask(call, material, shape, self.system.reviewer, prompt)

    @activity.defn
    async def refine(self, call: Call, material: RefineMaterial) -> Reply[Refined]:
        """A better instruction, from what went wrong with the tries so far."""
        shape = Shape(answers.RefineAnswer, answers.to_refined)
        prompt = prompts.mend(repair_prompts.refine_prompt(material), material.broken)
        return await self._ask(call, material, shape, self.system.refiner, prompt)

    @activity.defn
    async def replan(self, call: Call, material: ReplanMaterial) -> Reply[Patch]:
        """Changes to the part of the plan that has not finished. Always applicable."""
        shape = Shape(
            answers.ReplanAnswer, answers.to_patch, lambda patch: _patch_problem(patch, material)
        )
        prompt = repair_prompts.replan_prompt(material)
        return await self._ask(call, material, shape, self.system.replanner, prompt)

    @activity.defn
    async def judge(self, call: Call, material: JudgeMaterial) -> Reply[Judgement]:
        """The best of several findings, or the right side of a conflict."""
        shape = Shape(answers.JudgeAnswer, lambda answer: _known(answer, material))
        prompt = prompts.mend(repair_prompts.judge_prompt(material), material.broken)
        return await self._ask(call, material, shape, self.system.judge, prompt)

    @activity.defn
    async def digest(self, call: Call, material: DigestMaterial) -> Reply[Digest]:
        """Findings in fewer words, for a reader with a limited context; the full text is kept."""
        shape = Shape(answers.DigestAnswer, answers.to_digest)
        prompt = prompts.mend(repair_prompts.digest_prompt(material), material.broken)
        return await self._ask(call, material, shape, self.system.digester, prompt)

    @activity.defn
    async def synthesize(self, call: Call, material: SynthesisMaterial) -> Reply[Synthesis]:
        """The answer from all findings: by the model, or by a template when the call names none."""
        if call.model is None:
            # Thousands of remarks are merged: not on the loop, which serves every call.
            template = self.templates[material.template]
            return Reply(value=await asyncio.to_thread(template, material))
        shape = Shape(
            answers.SynthesisAnswer,
            lambda answer: provenance.flagged(answers.to_synthesis(answer), material),
        )
        prompt = prompts.mend(prompts.synthesis_prompt(material), material.broken)
        return await self._ask(call, material, shape, self.system.synthesizer, prompt)

    @activity.defn
    async def verify(self, call: Call, material: VerifyMaterial) -> Reply[Verdicts]:
        """Whether remarks of analysers hold, by the code around each; secrets in it stay here."""
        count = len(material.remarks)
        shape = Shape(answers.VerifyAnswer, lambda answer: answers.to_verdicts(answer, count))
        assert self.code is not None, "whoever asks models can open snapshots"
        code = await self.code(material)
        prompt = prompts.mend(repair_prompts.verify_prompt(material, code), material.broken)
        return await self._ask(call, material, shape, self.system.verifier, prompt)

    @activity.defn
    async def critique(self, call: Call, material: CritiqueMaterial) -> Reply[Critique]:
        """What is wrong with a synthesis, before anybody relies on it."""
        shape = Shape(answers.CritiqueAnswer, answers.to_critique)
        prompt = prompts.mend(repair_prompts.critique_prompt(material), material.broken)
        return await self._ask(call, material, shape, self.system.critic, prompt)

    @activity.defn
    async def reach(self, call: Call, material: ReachMaterial) -> Reply[Reached]:  # noqa: ARG002
        """Return as soon as the endpoint can be reached; asks for nothing that is paid, and gives
        up only when it is told to.
        """
        if self.model is None:
            raise CallRefused("this worker has no endpoint that it could reach")
        if material.address and self.address and material.address != self.address:
            # The deployment asks another one by now: the next call tells how that one is.
            return Reply(value=Reached(waited_seconds=0.0))
        return Reply(value=await until_reached(self.model, material))

    async def _ask(
        self,
        call: Call,
        material: Contract,
        shape: Shape[Asked, Value],
        system: str,
        prompt: str,
    ) -> Reply[Value]:
        asking = Asking(
            self.model,
            self.journal,
            self.price,
            self.gate,
            flights=self.flights,
            budget=self.budget,
        )
        return await asking.ask(call, material, shape, system, prompt)

    async def _contents(self, call: Call, material: WorkMaterial) -> dict[str, str]:
        """The inputs of a subtask by name. PossiblyBilled when one was lost after another attempt
        had sent the call.
        """
        try:
            return {each.name: await self._text(each.digest) for each in material.inputs}
        except BlobLost as error:
            if Past.read().sent:
                raise lost(call, f"it was sent, and then: {error.message}") from None
            raise

    async def _text(self, digest: str) -> str:
        return (await self.store.get(digest)).decode("utf-8")


def _checked(draft: Draft, material: WorkMaterial) -> Draft:
    if draft.status != "complete":
        return draft
    return draft.model_copy(update={"verdicts": checks.verdicts(material.subtask.checks, draft)})


def _plan_problem(plan: Plan, material: PlanMaterial, limit: int) -> Problem | None:
    names = tuple(pinned.name for pinned in material.inputs)
    wrong = graph.problems(plan, material.roles, names, limit, material.asked)
    wrong += checks.plan_problems(plan)
    return Problem(kind="invalid", why="\n".join(wrong)) if wrong else None


def _patch_problem(patch: Patch, material: ReplanMaterial) -> Problem | None:
    wrong = revision.problems(patch, material)
    wrong += checks.plan_problems(revision.patched(material.plan, patch))
    return Problem(kind="invalid", why="\n".join(wrong)) if wrong else None


def _known(answer: answers.JudgeAnswer, material: JudgeMaterial) -> Judgement:
    judgement = answers.to_judgement(answer)
    known = [finding.subtask_id for finding in material.findings]
    if judgement.winner and judgement.winner not in known:
        raise ValueError(f"winner: {judgement.winner!r} is none of {', '.join(known)}")
    return judgement
