"""The model activities: a model call is data (`_Shape`), each activity is one line over one
private `_ask`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from temporalio import activity

from activities import checks, prompts
from activities.heartbeat import beating
from activities.seam import Journal, Model, ModelAnswer, ModelRequest, Store
from orchestrator import graph, policies
from orchestrator.answers import (
    Answer,
    PlanAnswer,
    SynthesisAnswer,
    WorkAnswer,
    to_draft,
    to_plan,
    to_synthesis,
)
from orchestrator.contracts import (
    Bill,
    Call,
    Contract,
    Draft,
    Plan,
    PlanMaterial,
    Problem,
    Reply,
    Synthesis,
    SynthesisMaterial,
    Usage,
    WorkMaterial,
)
from orchestrator.errors import OrchestrationError, OverReservation, PossiblyBilled
from orchestrator.pricing import price, worst

MARGIN_SECONDS = 5.0
"""How much sooner than its start-to-close a call is cut, so that it can still say what it used."""

BROKEN_CHARACTERS = 20_000
"""How much of a malformed answer goes back to be mended."""

Asked = TypeVar("Asked", bound=Answer)
Value = TypeVar("Value", bound=Contract)


@dataclass(frozen=True)
class _Shape(Generic[Asked, Value]):
    """One kind of model call: what it asks for, and what becomes of the answer."""

    answer: type[Asked]
    value: Callable[[Asked], Value]
    problem: Callable[[Value], Problem | None] = lambda _: None


@dataclass(frozen=True)
class Agents:
    """Activities that may ask a model. `roles` maps a role to its system prompt."""

    model: Model | None
    journal: Journal
    store: Store
    roles: Mapping[str, str]
    templates: Mapping[str, Callable[[SynthesisMaterial], Synthesis]]
    price: Callable[[str, Usage], Any]
    """Dollars of a call by the id of the model that served it; None when it is unpriced."""

    @activity.defn
    async def plan(self, call: Call, material: PlanMaterial) -> Reply[Plan]:
        """The ready plan, if there is one; else what the planner makes of the goal. Always
        valid.
        """
        if material.ready is not None:
            return _checked_plan(material.ready, material)
        shape = _Shape(PlanAnswer, to_plan, lambda plan: _plan_problem(plan, material))
        return await self._ask(
            call, material, shape, prompts.PLANNER, prompts.plan_prompt(material)
        )

    @activity.defn
    async def work(self, call: Call, material: WorkMaterial) -> Reply[Draft]:
        """One try of an agent at a subtask; checks run here and their verdicts are in the draft."""
        contents = {each.name: await self._text(each.digest) for each in material.inputs}
        system = self.roles[call.role] + "\n" + prompts.WORK_RULES
        shape = _Shape(WorkAnswer, lambda answer: _checked(to_draft(answer), material))
        prompt = prompts.mend(prompts.work_prompt(material, contents), material.broken)
        return await self._ask(call, material, shape, system, prompt)

    @activity.defn
    async def synthesize(self, call: Call, material: SynthesisMaterial) -> Reply[Synthesis]:
        """The answer from all findings: by the model, or by a template when the call names none."""
        if call.model is None:
            return Reply(value=self.templates[material.template](material))
        shape = _Shape(SynthesisAnswer, to_synthesis)
        prompt = prompts.mend(prompts.synthesis_prompt(material), material.broken)
        return await self._ask(call, material, shape, prompts.SYNTHESIZER, prompt)

    async def _ask(
        self,
        call: Call,
        material: Contract,
        shape: _Shape[Asked, Value],
        system: str,
        prompt: str,
    ) -> Reply[Value]:
        """One paid call: recorded answers are returned, unanswered ones are never sent again."""
        assert self.model is not None and call.model is not None, "prepare admits no such run"
        key = _key(call, material)
        recorded = await self.journal.answer(key)
        if recorded is None:
            request = _request(call, shape.answer, system, prompt)
            async with beating():
                recorded = await self._send(key, call, request)
        return self._reply(call, shape, ModelAnswer(**_decoded(recorded)))

    async def _send(self, key: str, call: Call, request: ModelRequest) -> str:
        assert self.model is not None and call.model is not None
        if await self.journal.sent(key):
            bill = Bill(model=call.model.id, calls=1, dollars=None)
            raise PossiblyBilled("the call was sent, and its worker died before the answer", bill)
        await self._within(call, request)
        await self.journal.mark_sent(key)
        try:
            answer = await self.model.ask(request)
        except PossiblyBilled:
            raise
        except OrchestrationError:
            await self.journal.withdraw(key)
            raise
        recorded = json.dumps(asdict(answer) | {"usage": answer.usage.model_dump()})
        await self.journal.record(key, recorded)
        return recorded

    async def _within(self, call: Call, request: ModelRequest) -> None:
        """OverReservation when the worst case of the real prompt is above what was reserved."""
        assert self.model is not None and call.model is not None
        # Two steps: bytes bound the tokens for nothing; only a prompt that seems too big is
        # counted.
        for count in (_byte_bound, self.model.count_tokens):
            tokens = await count(request)
            cost = worst(call.model, tokens, call.max_output)
            total = tokens + call.max_output
            if total <= call.token_ceiling and (cost is None or cost <= call.ceiling):
                return
        usage = Usage(input_tokens=tokens, output_tokens=call.max_output)
        needed = Bill(model=call.model.id, calls=0, usage=usage, dollars=cost)
        raise OverReservation(f"the prompt has {tokens} tokens; ${cost} is needed", needed)

    def _reply(self, call: Call, shape: _Shape[Asked, Value], answer: ModelAnswer) -> Reply[Value]:
        assert call.model is not None
        known = price(call.model, answer.usage) if answer.model == call.model.id else None
        cost = known if known is not None else self.price(answer.model, answer.usage)
        bill = Bill(model=answer.model, calls=1, usage=answer.usage, dollars=cost)
        problem = _stopped_short(answer)
        if problem is None:
            try:
                value = shape.value(shape.answer.model_validate_json(answer.text))
            except (ValidationError, ValueError) as error:
                text = answer.text[:BROKEN_CHARACTERS]
                problem = Problem(kind="malformed", message=_first_lines(error), answer=text)
            else:
                wrong = shape.problem(value)
                return Reply(value=None if wrong else value, problem=wrong, bill=bill)
        return Reply(problem=problem, bill=bill)

    async def _text(self, digest: str) -> str:
        return (await self.store.get(digest)).decode("utf-8")


async def _byte_bound(request: ModelRequest) -> int:
    size = len((request.system + request.prompt).encode()) + len(json.dumps(request.schema))
    return size // policies.BYTES_PER_TOKEN


def _key(call: Call, material: Contract) -> str:
    """Namespace / workflow id / run id / activity id / SHA-256 of the input; never the attempt."""
    info = activity.info()
    text = call.model_dump_json() + material.model_dump_json()
    digest = hashlib.sha256(text.encode()).hexdigest()
    run = f"{info.workflow_namespace}/{info.workflow_id}/{info.workflow_run_id}"
    return f"{run}/{info.activity_id}/{digest}"


def _request(call: Call, answer: type[Answer], system: str, prompt: str) -> ModelRequest:
    assert call.model is not None
    info = activity.info()
    limit = info.start_to_close_timeout.total_seconds() if info.start_to_close_timeout else 300.0
    return ModelRequest(
        model=call.model.id,
        system=system.strip(),
        prompt=prompt,
        schema=answer.model_json_schema(),
        max_output=call.max_output,
        effort=call.effort,
        capabilities=call.capabilities,
        deadline_seconds=max(limit - MARGIN_SECONDS, 1.0),
        attempt=info.attempt,
    )


def _decoded(recorded: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(recorded)
    return fields | {"usage": Usage.model_validate(fields["usage"])}


def _stopped_short(answer: ModelAnswer) -> Problem | None:
    """What a stop reason says against the answer; None: it ended by itself."""
    if answer.stop_reason in ("end_turn", "stop_sequence"):
        return None
    if answer.stop_reason == "refusal":
        return Problem(kind="refusal", message=f"the model refused: {answer.detail or 'no reason'}")
    if answer.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return Problem(kind="truncated", message=f"the answer was cut ({answer.stop_reason})")
    return Problem(kind="malformed", message=f"unexpected stop reason {answer.stop_reason!r}")


def _first_lines(error: Exception) -> str:
    if isinstance(error, ValidationError):
        mistakes = error.errors(include_url=False, include_input=False)[:5]
        return "; ".join(
            f"{'.'.join(str(part) for part in each['loc']) or 'answer'}: {each['msg']}"
            for each in mistakes
        )
    return str(error)[:500]


def _checked(draft: Draft, material: WorkMaterial) -> Draft:
    if draft.status != "complete":
        return draft
    return draft.model_copy(update={"verdicts": checks.verdicts(material.subtask.checks, draft)})


def _plan_problem(plan: Plan, material: PlanMaterial, limit: int = 0) -> Problem | None:
    names = tuple(pinned.name for pinned in material.inputs)
    wrong = graph.problems(plan, material.roles, names, limit or material.subtask_limit)
    wrong += checks.plan_problems(plan)
    return Problem(kind="invalid", message="\n".join(wrong)) if wrong else None


def _checked_plan(plan: Plan, material: PlanMaterial) -> Reply[Plan]:
    problem = _plan_problem(plan, material, len(plan.subtasks))
    return Reply(problem=problem) if problem else Reply(value=plan)
