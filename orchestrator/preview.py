"""Predicting a plan: price range, critical path and makespan, from sizes alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from orchestrator import graph, material, policies
from orchestrator.calls import paid_call
from orchestrator.contracts import ModelCard, Subtask, Usage, dollars
from orchestrator.pricing import price
from orchestrator.state import Progress, State
from orchestrator.view import Preview, PreviewRow

Money = Decimal | None


def predict(state: State) -> Preview:
    """What the plan of a state is expected to cost and take, were it to start now."""
    rows = tuple(_row(state, progress) for progress in state.work.values())
    subtasks = [progress.subtask for progress in state.work.values()]
    seconds = {row.id: row.seconds for row in rows}
    low, expected, high = _finish(state)
    cap = state.goal.limits.dollars
    highest = _total([row.high for row in rows], high)
    return Preview(
        rows=rows,
        low=_total([row.low for row in rows], low),
        expected=_total([row.expected for row in rows], expected),
        high=None if highest is None else min(highest, cap),
        critical_path=longest_chain(subtasks, seconds),
        makespan=round(makespan(subtasks, seconds, state.goal.limits.concurrency), 1),
        leaves=_leaves(state),
    )


def _row(state: State, progress: Progress) -> PreviewRow:
    subtask = progress.subtask
    low: Money = Decimal(0)
    expected: Money = Decimal(0)
    high: Money = Decimal(0)
    seconds = 0.0 if progress.finding else policies.TOOL_SECONDS
    if progress.tier != "none" and progress.finding is None:
        ask = paid_call(
            state,
            "work",
            f"work-{subtask.id}",
            material.for_work(state, progress),
            tier=progress.tier,
            role=state.brief.role(subtask.role),
        )
        assert ask.call.model is not None
        tokens = _expected_tokens(state, subtask)
        low = _price(ask.call.model, tokens, policies.OUTPUT_TOKENS["low"])
        expected = _price(ask.call.model, tokens, policies.OUTPUT_TOKENS["expected"])
        high = ask.amount.dollars if ask.call.model.prices else None
        seconds = policies.OUTPUT_TOKENS["expected"] / policies.OUTPUT_TOKENS_PER_SECOND
    return PreviewRow(
        id=subtask.id,
        title=subtask.title,
        role=subtask.role,
        tier=progress.tier,
        depends_on=subtask.depends_on,
        low=low,
        expected=expected,
        high=high,
        seconds=seconds,
    )


def _expected_tokens(state: State, subtask: Subtask) -> int:
    """Input tokens: instruction, role, inputs, and what the dependencies are expected to say."""
    named = [pinned for pinned in state.brief.inputs if pinned.name in subtask.inputs]
    size = len(subtask.instruction) + state.brief.role(subtask.role).prompt_bytes
    size += sum(pinned.size for pinned in named if pinned.kind != "repository")
    written = len(subtask.depends_on) * policies.OUTPUT_TOKENS["expected"]
    return size // material.CHARACTERS_PER_TOKEN + written + policies.PROMPT_OVERHEAD_TOKENS // 2


def _price(model: ModelCard, input_tokens: int, output_tokens: int) -> Money:
    return price(model, Usage(input_tokens=input_tokens, output_tokens=output_tokens))


def _finish(state: State) -> tuple[Money, Money, Money]:
    """Low, expected and highest price of the synthesis and its critic."""
    if not state.goal.use_models:
        return Decimal(0), Decimal(0), Decimal(0)
    model = state.brief.model(policies.POLICIES["synthesize"].tier)
    tokens = len(state.work) * policies.OUTPUT_TOKENS["expected"] + policies.PROMPT_OVERHEAD_TOKENS
    low = _price(model, tokens, policies.OUTPUT_TOKENS["low"])
    expected = _price(model, 2 * tokens, 2 * policies.OUTPUT_TOKENS["expected"])
    return low, expected, state.ledger.kept.dollars if model.prices else None


def _total(amounts: Sequence[Money], more: Money) -> Money:
    known = [amount for amount in (*amounts, more) if amount is not None]
    return dollars(sum(known, Decimal(0))) if len(known) > len(amounts) else None


def _leaves(state: State) -> tuple[str, ...]:
    asking = [each for each in state.work.values() if each.tier != "none" and not each.finding]
    named = {name: None for progress in asking for name in progress.subtask.inputs}
    return tuple(
        f"{pinned.name} ({pinned.size} bytes)"
        for pinned in state.brief.inputs
        if pinned.name in named
    )


def longest_chain(subtasks: Sequence[Subtask], seconds: Mapping[str, float]) -> tuple[str, ...]:
    """The ids along the critical path, first to last."""
    finish: dict[str, float] = {}
    before: dict[str, str] = {}
    below = graph.chain_below(subtasks)
    for subtask in sorted(subtasks, key=lambda each: -below[each.id]):
        latest = max(subtask.depends_on, key=lambda edge: finish.get(edge, 0.0), default="")
        before[subtask.id] = latest
        finish[subtask.id] = finish.get(latest, 0.0) + seconds.get(subtask.id, 0.0)
    chain: list[str] = []
    step = max(finish, key=lambda each: finish[each], default="")
    while step:
        chain.append(step)
        step = before[step]
    return tuple(reversed(chain))


def makespan(subtasks: Sequence[Subtask], seconds: Mapping[str, float], concurrency: int) -> float:
    """Seconds until the last subtask ends, the longest remaining chain first, so many at once."""
    below = graph.chain_below(subtasks)
    finish: dict[str, float] = {}
    running: list[tuple[float, str]] = []
    left = sorted(subtasks, key=lambda each: -below[each.id])
    now = 0.0
    while left or running:
        ready = [each for each in left if all(edge in finish for edge in each.depends_on)]
        for subtask in ready[: concurrency - len(running)]:
            running.append((now + seconds.get(subtask.id, 0.0), subtask.id))
            left.remove(subtask)
        running.sort()
        now, ended = running.pop(0)
        finish[ended] = now
    return now
