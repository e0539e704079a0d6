"""The model activities: a call is data (`holdfast/calls/`), and an activity is a line over
`_ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Any

from temporalio import activity

from holdfast.activities.asking import provenance
from holdfast.activities.asking.call import Asking
from holdfast.activities.asking.documents import answer_shape
from holdfast.activities.asking.flights import Flights
from holdfast.activities.asking.forms import shape_of
from holdfast.activities.asking.heartbeat import Past, beating
from holdfast.activities.asking.reaching import wait_until_reached
from holdfast.activities.asking.replies import Shape, lost_call
from holdfast.activities.asking.telling import telling
from holdfast.activities.turns.taking import Unfit, accept_any, take
from holdfast.calls.changes import ChangeText
from holdfast.calls.choose import CHOOSE, ChosenGroups, GroupsMaterial
from holdfast.calls.critique import CRITIQUE, Critique, CritiqueMaterial
from holdfast.calls.digest import DIGEST, Digest, DigestMaterial, digest_problem
from holdfast.calls.envelopes import mend
from holdfast.calls.fix import FIX, Edit, FixMaterial, TryFixMaterial
from holdfast.calls.grade import GRADE, Grade, GradeMaterial
from holdfast.calls.judge import JUDGE, JudgeMaterial, Judgement
from holdfast.calls.kind import Asked, Material, ModelKind, Value
from holdfast.calls.match import MATCH, Matched, MatchMaterial
from holdfast.calls.ping import PING, Pinged, PingMaterial
from holdfast.calls.plan import PLAN, MappingPlanAnswer, PlanMaterial, may_map, to_plan
from holdfast.calls.prove import (
    PROVE,
    TESTER,
    ProveMaterial,
    Script,
    Tried,
    TryMaterial,
    proof_shape,
    to_script,
)
from holdfast.calls.reach import Reached, ReachMaterial
from holdfast.calls.refine import REFINE, Refined, RefineMaterial
from holdfast.calls.replan import REPLAN, Patch, ReplanMaterial
from holdfast.calls.review import REVIEW, Review, ReviewMaterial
from holdfast.calls.synthesize import SYNTHESIZE, SynthesisMaterial
from holdfast.calls.turn import TAKE_TURN, Turn, TurnMaterial
from holdfast.calls.verify import Shown, hold_to_places
from holdfast.calls.work import (
    COMPOSED_ROLE,
    REVIEWER_ROLE,
    WORK,
    Told,
    WorkMaterial,
    count_common,
    join_rules,
    work_prompt,
)
from holdfast.contracts import (
    Call,
    Draft,
    Fix,
    PinnedInput,
    Plan,
    Problem,
    Reply,
    Subtask,
    Synthesis,
    Usage,
)
from holdfast.contracts.errors import BlobLost, CallRefused, RunStopping
from holdfast.contracts.remarks import has_remarks
from holdfast.plans import checks, concreteness, mapping, revision, validity
from holdfast.ports import (
    Batches,
    Budget,
    Code,
    Gate,
    Journal,
    Model,
    Place,
    Prover,
    SoFar,
    Store,
    Template,
)
from holdfast.text import visible

HEAVY_TOKENS = 2**15
"""Tokens reserved for a prompt beyond which it is put together in a thread: inputs can have
megabytes, and the event loop serves every call.
"""


@dataclass(frozen=True)
class Agents:
    """Activities that may ask a model. `roles` maps a role to its system prompt, for calls of runs
    that do not say where theirs is kept.
    """

    model: Model | None
    journal: Journal
    store: Store
    roles: Mapping[str, str]
    system: Mapping[str, str]
    """The system prompt of each kind of call, by the name of its file."""
    templates: Mapping[str, Template]
    price: Callable[[str, Usage], Decimal | None]
    """Return the dollars of a call by the id of the model that served it; None if it has no price.
    """
    gate: Gate | None = None
    """Paces the calls; None: every call leaves at once."""
    code: Code | None = None
    """Returns what may be seen of remarks, without secrets; None: no review is verified here."""
    place: Place | None = None
    """Puts the remarks of agents at their places; None: they stay as they were said."""
    prover: Prover | None = None
    """Shows and runs the code of remarks; None: none is proved here."""
    flights: Flights = field(default_factory=Flights)
    """The calls that this process has under way."""
    budget: Budget | None = None
    """The spending caps of this deployment; None: there are none but the run's."""
    batches: Batches | None = None
    """The endpoint's batches, for calls that may wait; None: it has none."""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Definitions that an endpoint is given of each tool that agents may have."""
    unfit: Unfit = accept_any
    """Return what is wrong with the arguments of a call that a person is to approve."""
    address: str = ""
    """The endpoint's, as `Unreached` has it; empty: not known."""
    untold: str = ""
    """Why the system prompts cannot be used; empty: they can."""

    @activity.defn
    async def plan(self, call: Call, material: PlanMaterial) -> Reply[Plan]:
        """Return the planner's plan for this goal, always valid."""

        def judge(plan: Plan) -> Problem | None:
            return _plan_problem(plan, material, material.subtask_limit)

        async with telling(call, material, judge) as so_far:
            reply = await self._ask(
                call,
                material,
                PLAN,
                shape=Shape(MappingPlanAnswer, to_plan) if may_map(material) else None,
                problem=judge,
                so_far=so_far,
            )
        for subtask in reply.value.subtasks if reply.value else ():
            activity.logger.info(routing_line(subtask))
        return reply

    @activity.defn
    async def choose(self, call: Call, material: GroupsMaterial) -> Reply[ChosenGroups]:
        """Return the groups of roles that a planner is shown for this goal."""
        return await self._ask(call, material, CHOOSE)

    @activity.defn
    async def match(self, call: Call, material: MatchMaterial) -> Reply[Matched]:
        """Return whether the template fits this goal that comes close by its words."""
        return await self._ask(call, material, MATCH)

    @activity.defn
    async def work(self, call: Call, material: WorkMaterial) -> Reply[Draft]:
        """Return one try of an agent at a subtask; checks run here, and their verdicts are in the
        draft.

        Raise CallRefused, before anything is paid, if a check cannot be carried out: a plan that
        was edited past the starter is checked nowhere before.
        """
        wrong = checks.problems(material.subtask.checks)
        if wrong:
            raise CallRefused(f"checks: {'; '.join(wrong)}")
        role, told = await self._told(call, material)
        reply = await self._ask(
            call,
            material,
            WORK,
            told,
            role=role,
            shape=shape_of(material.form),
            common=count_common(material, told) if call.caching else 0,
        )
        if reply.value is None:
            return reply
        return reply.model_copy(update={"value": await self._finish(reply.value, material, told)})

    @activity.defn
    async def take_turn(self, call: Call, material: TurnMaterial) -> Reply[Turn]:
        """Return one turn of an agent with tools: calls of tools, or its answer, which is checked
        here.
        """
        role, told = await self._told(call, material.work)
        first = await _write_turn(call, work_prompt, material.work, told)
        system = join_rules(role, self._system_prompt(call, TAKE_TURN.prompt))
        reply = await take(
            self._asking(),
            self.store,
            call,
            material,
            system,
            first,
            self.tools,
            self.unfit,
        )
        turn = reply.value
        if turn is None or turn.draft is None:
            return reply
        draft = await self._finish(turn.draft, material.work, told)
        return reply.model_copy(update={"value": turn.model_copy(update={"draft": draft})})

    @activity.defn
    async def review(self, call: Call, material: ReviewMaterial) -> Reply[Review]:
        """Return whether a draft meets the criteria that no check covers; another role is asked."""
        contents = await self._contents(call, material.sources.inputs)
        return await self._ask(call, material, REVIEW, contents)

    @activity.defn
    async def refine(self, call: Call, material: RefineMaterial) -> Reply[Refined]:
        """Return a better instruction, from what went wrong with the tries so far."""
        return await self._ask(call, material, REFINE)

    @activity.defn
    async def replan(self, call: Call, material: ReplanMaterial) -> Reply[Patch]:
        """Return changes to the part of the plan that has not finished, always applicable."""
        return await self._ask(
            call, material, REPLAN, problem=lambda patch: _patch_problem(patch, material)
        )

    @activity.defn
    async def judge(self, call: Call, material: JudgeMaterial) -> Reply[Judgement]:
        """Return the best of several findings, or the right side of a conflict."""
        contents = await self._contents(call, material.sources.inputs)
        return await self._ask(call, material, JUDGE, contents)

    @activity.defn
    async def digest(self, call: Call, material: DigestMaterial) -> Reply[Digest]:
        """Return findings in fewer words, for a reader with a limited context; the full text is
        kept.
        """
        return await self._ask(call, material, DIGEST, problem=digest_problem)

    @activity.defn
    async def synthesize(self, call: Call, material: SynthesisMaterial) -> Reply[Synthesis]:
        """Return the answer from all findings: by the model, or by a template if the call names
        none.
        """
        if call.model is None:
            # Thousands of remarks are merged: not on the loop, which serves every call.
            template = self.templates[material.template]
            return Reply(value=await asyncio.to_thread(template, material))
        return await self._ask(
            call,
            material,
            SYNTHESIZE,
            after=lambda synthesis: provenance.flag_unsupported(synthesis, material),
            shape=answer_shape(material),
        )

    @activity.defn
    async def prove(self, call: Call, material: ProveMaterial) -> Reply[Script]:
        """Return a script that fails where a remark is right; secrets in its code stay here."""
        assert self.prover is not None, "whoever asks models can open snapshots"
        return await self._ask(
            call,
            material,
            PROVE,
            await self.prover.show(material),
            prompt=TESTER if material.by == "tests" else "",
            shape=Shape(proof_shape(material), lambda each: to_script(each, material)),
        )

    @activity.defn
    async def try_proof(self, call: Call, material: TryMaterial) -> Reply[Tried]:
        """Run a script on the head and on the base. It asks no model, and is run again if only the
        completion was lost: it changes nothing.
        """
        if self.prover is None:
            raise CallRefused(f"{call.id}: this worker runs no scripts of proofs")
        async with beating():
            return Reply(value=await self.prover.run(material))

    @activity.defn
    async def fix(self, call: Call, material: FixMaterial) -> Reply[Edit]:
        """Return a patch for a remark; secrets in its code stay here."""
        assert self.prover is not None, "whoever asks models can open snapshots"
        return await self._ask(call, material, FIX, await self.prover.show(material))

    @activity.defn
    async def try_fix(self, call: Call, material: TryFixMaterial) -> Reply[Fix]:
        """Try a patch on a copy. It asks no model, and is tried again if only the completion was
        lost: it changes nothing.
        """
        if self.prover is None:
            raise CallRefused(f"{call.id}: this worker tries no patches")
        async with beating():
            return Reply(value=await self.prover.try_fix(material))

    @activity.defn
    async def critique(self, call: Call, material: CritiqueMaterial) -> Reply[Critique]:
        """Return what is wrong with a synthesis, before anybody relies on it."""
        contents = await self._contents(call, material.sources.inputs)
        return await self._ask(call, material, CRITIQUE, contents)

    @activity.defn
    async def grade(self, call: Call, material: GradeMaterial) -> Reply[Grade]:
        """Return whether a statement about an answer is true: the judge of an eval."""
        return await self._ask(call, material, GRADE)

    @activity.defn
    async def reach(self, call: Call, material: ReachMaterial) -> Reply[Reached]:  # noqa: ARG002
        """Return as soon as the endpoint can be reached. Nothing is paid; gives up only when told
        to.
        """
        if self.model is None:
            raise CallRefused("this worker has no endpoint that it could reach")
        if material.address and self.address and material.address != self.address:
            # The deployment asks another one by now: the next call tells how that one is.
            return Reply(value=Reached(waited_seconds=0.0))
        return Reply(value=await wait_until_reached(self.model, material))

    @activity.defn
    async def ping(self, call: Call, material: PingMaterial) -> Reply[Pinged]:
        """Ask for a few tokens, to see whether this endpoint answers calls."""
        shape: Shape[Any, Pinged] = Shape(PING.answer, lambda each: PING.value(each, material))
        return await self._asking().ask(call, material, shape, "", PING.turn(material))

    async def _ask(
        self,
        call: Call,
        material: Material,
        kind: ModelKind[Material, Asked, Value],
        *added: object,
        role: str = "",
        prompt: str = "",
        after: Callable[[Value], Value] = lambda value: value,
        problem: Callable[[Value], Problem | None] = lambda _: None,
        shape: Shape[Any, Value] | None = None,
        common: int = 0,
        so_far: SoFar | None = None,
    ) -> Reply[Value]:
        """Ask for one call. `added` stands beside the material in its user turn, `role` above its
        system prompt. `after` is applied to the value of a complete answer, and `problem` says what
        is wrong with it. `prompt` and `shape` replace those of its kind. The first `common`
        characters of the user turn are those of other calls, too. `so_far` is told how to
        read the answer while it arrives.
        """
        system = self._system_prompt(call, prompt or kind.prompt)
        if role:
            system = join_rules(role, system)
        turn = await _write_turn(call, kind.turn, material, *added)
        told = mend(turn, getattr(material, "broken", None))
        usual: Shape[Any, Value] = Shape(kind.answer, lambda each: kind.value(each, material))
        wanted = shape or usual
        whole = replace(wanted, value=lambda each: after(wanted.value(each)), problem=problem)
        return await self._asking().ask(call, material, whole, system, told, common, so_far)

    async def _finish(self, draft: Draft, material: WorkMaterial, told: Told) -> Draft:
        """Return a draft with the verdicts of its checks, and with its remarks at their places."""
        if draft.status != "complete":
            return draft
        verdicts = checks.verdicts(material.subtask.checks, draft)
        draft = hold_to_places(draft.model_copy(update={"verdicts": verdicts}), told.shown)
        if self.place is None or not has_remarks(draft):
            return draft
        return await self.place(draft, material)

    @cached_property
    def _own_prompts(self) -> Mapping[str, str]:
        """The prompts of this worker's own roles, by the digest under which a run has them."""
        return {sha256(each.encode()).hexdigest(): each for each in self.roles.values()}

    async def _told(self, call: Call, material: WorkMaterial) -> tuple[str, Told]:
        """Return the system prompt of whoever works, and what it is told beside its material. Of a
        composed role, or one that is told last, the prompt is ours.
        """
        contents = await self._contents(call, material.inputs)
        changes = {
            each.name: ChangeText(
                await self._read_kept(call, each.change.messages) if each.change.messages else "",
                await self._read_kept(call, each.change.diff) if each.change.diff else "",
            )
            for each in material.inputs
            if each.change is not None
        }
        shown: tuple[Shown, ...] = ()
        if material.remarks:
            assert self.code is not None, "whoever asks models can open snapshots"
            shown = await self.code(material)
        told = Told(contents, changes, shown=shown)
        if material.composed:
            return self._system_prompt(call, COMPOSED_ROLE), told
        kept = material.prompt
        if kept:
            role = self._own_prompts.get(kept) or await self._read_kept(call, kept)
        else:
            role = self.roles[call.role]
        if material.told_last:
            return self._system_prompt(call, REVIEWER_ROLE), replace(told, role=role)
        return role, told

    def _system_prompt(self, call: Call, name: str) -> str:
        """Return the system prompt of this name. If its file is damaged by now, raise RunStopping,
        or PossiblyBilled if another attempt had sent the call.
        """
        if self.untold and Past.read().sent:
            raise lost_call(call, f"it was sent, and then: {self.untold}")
        if self.untold:
            raise RunStopping(self.untold)
        return self.system[name]

    def _asking(self) -> Asking:
        return Asking(
            self.model,
            self.journal,
            self.price,
            self.gate,
            flights=self.flights,
            budget=self.budget,
            batches=self.batches,
        )

    async def _contents(self, call: Call, inputs: Iterable[PinnedInput]) -> dict[str, str]:
        """Return the text of the inputs that stand in the prompt, by name."""
        given = [each for each in inputs if each.enclosed]
        return {each.name: await self._read_kept(call, each.digest) for each in given}

    async def _read_kept(self, call: Call, digest: str) -> str:
        """Return a text that `prepare` kept. Raise PossiblyBilled if it was lost after another
        attempt had sent the call.
        """
        try:
            return (await self.store.get(digest)).decode("utf-8")
        except BlobLost as error:
            if Past.read().sent:
                raise lost_call(call, f"it was sent, and then: {error.message}") from None
            raise


async def _write_turn(call: Call, write: Callable[..., str], *parts: object) -> str:
    if call.token_ceiling - call.max_output < HEAVY_TOKENS:
        return write(*parts)
    return await asyncio.to_thread(write, *parts)


def routing_line(subtask: Subtask) -> str:
    """Return who was chosen for a subtask and why, for the worker's log."""
    second = f", else {subtask.secondary}" if subtask.secondary else ""
    why = f": {subtask.why}" if subtask.why else ""
    return visible(f"planned {subtask.id}: {subtask.role}{second}{why}")


def _plan_problem(plan: Plan, material: PlanMaterial, limit: int) -> Problem | None:
    names = tuple(pinned.name for pinned in material.inputs)
    unread = validity.only_by_tools(material.inputs)
    longest = material.subtask_timeout_seconds
    wrong = validity.problems(
        plan,
        material.roles,
        names,
        limit,
        material.asked,
        material.barred,
        unread=unread,
        longest=longest,
        untrusted=material.inputs,
    )
    wrong += (*concreteness.problems(plan, material.goal),)
    wrong += tuple(
        f"subtasks[{place}] {each.id!r}: {problem}"
        for place, each in enumerate(plan.subtasks)
        for problem in mapping.field_problems(each, material.inputs)
    )
    if not material.errors:
        # Sent back once: whether it needs what it waits for, the planner knows better in the end.
        wrong += (*concreteness.needless_edges(plan),)
    return Problem(kind="invalid", why="\n".join(wrong)) if wrong else None


def _patch_problem(patch: Patch, material: ReplanMaterial) -> Problem | None:
    wrong = revision.problems(patch, material)
    return Problem(kind="invalid", why="\n".join(wrong)) if wrong else None
