"""The forks of a what-if, priced, run under one cap, and each compared with its run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from hashlib import sha256

from holdfast.calling import context
from holdfast.calling.gathering import judged_by
from holdfast.calling.reserving import input_tokens
from holdfast.calls.judge import JUDGE, JudgeMaterial, Judgement
from holdfast.calls.sources import Sources
from holdfast.client.ended import read_end
from holdfast.client.evaluating import follow_eval, put_trial, start_eval
from holdfast.client.reading import Reader
from holdfast.client.what_if import Candidate, Chosen, RoleChange
from holdfast.contracts import Finding, Goal, ModelCard, Report, Usage, policies
from holdfast.contracts.evals import Answered, Asked, Case, EvalGoal, EvalReport, Mark, Trial
from holdfast.errors import Refused
from holdfast.evals.marking import single_goal
from holdfast.evals.tally import NOT_RUN
from holdfast.intake.connection import Connection, Tell
from holdfast.intake.launch import allow_inputs, new_id
from holdfast.ledger.pricing import LANE_SHARE, price, worst
from holdfast.ledger.ranges import total_of
from holdfast.rendering.amounts import money
from holdfast.rendering.pairs import (
    Cost,
    Decided,
    Pair,
    Verdict,
    cost_of,
    decide,
    differing,
    settle,
)
from holdfast.rendering.what_if import ForkPrice, Judging, LeftOut, WhatIf

CENT = Decimal("0.01")
BEGUN = "one of this id began before this run was over; do it again when that has ended"
WAITING_AT_ONCE = 50
"""Forks that are open at once where each waits for batches, as far as the budget covers their caps.
"""
ORDERS = 2
"""Judgements of a pair: in the second the answers stand in the other order."""
ONE, OTHER = "A1", "A2"
"""What the judge calls the two answers, in the order in which it sees them."""
QUESTION = (
    "Two answers to the same goal, from the same material. Which one answers it better: more of"
    " what is asked, right and supported, in the length, form and tone that the goal asks for? Say"
    " none if neither is better. If only what you are not shown could tell, say none, too, and let"
    " `why` begin with {undecided}."
)
UNDECIDED = "UNDECIDED"
"""How the reason begins where the judge cannot tell."""
UNSEEN = "You are not shown the material: what rests on it alone you cannot check."


@dataclass(frozen=True)
class Asking:
    """How a what-if is run."""

    id: str = ""
    budget: Decimal | None = None
    """None: twice what is expected, and the cap of one run."""
    judge: bool = True


def priced(chosen: Chosen, asking: Asking) -> WhatIf:
    """Return what the forks would cost. Refused if the budget does not pay for one of them."""
    forks = tuple(_priced(each) for each in chosen.candidates)
    judging = _judging(chosen) if asking.judge and forks else None
    made = WhatIf(
        change=str(chosen.change),
        forks=forks,
        unusable=tuple(LeftOut(run=each.run_id, why=each.why) for each in chosen.unusable),
        judging=judging,
        lane=chosen.judge.lane,
    )
    return made.model_copy(update={"budget": _budget(made, chosen, asking)})


def _priced(candidate: Candidate) -> ForkPrice:
    report, preview = candidate.report, candidate.preview
    high = preview.high
    return ForkPrice(
        run=report.run_id,
        title=report.title or report.goal,
        again=candidate.again,
        calls_of_run=report.model_calls,
        calls=sum(row.asks for row in preview.rows),
        low=preview.low,
        expected=preview.expected,
        high=None if high is None else min(high, candidate.goal.limits.dollars),
        past=min((row.past for row in preview.rows if row.asks and row.past), default=0),
    )


def _judging(chosen: Chosen) -> Judging:
    card, expected = chosen.judge, list[Decimal | None]()
    for each in chosen.candidates:
        sources = _sources(each)
        asked = len(_question(each.goal, sources).encode())
        size = asked + 2 * len(each.report.answer.encode()) + sources.size
        tokens = size // context.EXPECTED_BYTES_PER_TOKEN + policies.EXPECTED_OVERHEAD_TOKENS
        said = Usage(input_tokens=tokens, output_tokens=policies.OUTPUT_TOKENS["low"])
        expected += [price(card, said)] * ORDERS
    return Judging(model=card.id, expected=total_of(expected))


def _budget(made: WhatIf, chosen: Chosen, asking: Asking) -> Decimal:
    """Return the most that all may cost. The last fork that starts finds its run's cap free, beside
    twice what is expected of all.
    """
    largest = max((each.goal.limits.dollars for each in chosen.candidates), default=Decimal(0))
    if asking.budget is not None and asking.budget < largest:
        raise Refused(
            f"--dollars {asking.budget}: one of these runs had a cap of {money(largest)}, as its"
            " fork has; give that, or more"
        )
    judged = made.judging.expected if made.judging else Decimal(0)
    usual = 2 * ((made.expected or Decimal(0)) + (judged or Decimal(0)))
    return asking.budget or largest + usual.quantize(CENT, rounding=ROUND_UP)


# ---------------------------------------------------------------- running them


async def tried(
    connection: Connection, chosen: Chosen, made: WhatIf, asking: Asking, tell: Tell
) -> WhatIf:
    """Run the forks under the budget, compare each with its run, and have judged what code cannot
    tell apart. With the id of one before, nothing is paid twice. Refused where no price is known.
    """
    if made.expected is None or made.budget is None:
        raise Refused(
            "no price is known of a model of these forks, so no budget holds; give one in"
            " HOLDFAST_PRICE_FILE"
        )
    name = asking.id or new_id("what-if")
    tell(f"What-if {name}: whoever leaves now sees it again with the same command and --id {name}.")
    tried_on = {
        _run_of(name, chosen.change, each.report.run_id): each for each in chosen.candidates
    }
    wanted = [await _fork(connection, run, each) for run, each in tried_on.items()]
    waits = chosen.judge.lane == "batch"
    report = await _run(connection, name, wanted, made.budget, tell, by_batch=waits)
    pairs, left, open_ = list[Pair](), list[LeftOut](), list[Open]()
    for run, candidate in tried_on.items():
        mark = _mark_of(report, run)
        fork = await _read(connection, mark)
        if fork is None:
            why = "; ".join(mark.wrong) or mark.status
            left.append(LeftOut(run=candidate.report.run_id, why=why))
            continue
        pairs.append(_pair(candidate, fork))
        if pairs[-1].decided.by == "none":
            open_.append(Open(len(pairs) - 1, candidate, fork))
    if asking.judge and open_ and report.dollars is not None:
        rest = made.budget - report.dollars
        judged = await _judge(connection, chosen.judge, name, open_, rest, tell)
        for place, (decided, paid) in judged.items():
            update = {"decided": decided, "judging": paid}
            pairs[place] = pairs[place].model_copy(update=update)
    return made.model_copy(update={"pairs": tuple(pairs), "not_tried": tuple(left)})


def _run_of(name: str, change: RoleChange, run: str) -> str:
    """Return the id of a fork: that of the same change of the same run, and of no other."""
    told = f"{change.prompt}\n{change}\n{run}"
    return f"{name}.{sha256(told.encode()).hexdigest()[:10]}"


async def _fork(connection: Connection, run: str, candidate: Candidate) -> Trial:
    allow_inputs(candidate.goal, connection)
    asked = Asked(case=Case(name=candidate.report.run_id), goal=candidate.goal)
    return await put_trial(connection, asked, run, candidate.goal.limits.dollars)


async def _run(
    connection: Connection,
    name: str,
    trials: Sequence[Trial],
    dollars: Decimal,
    tell: Tell,
    *,
    by_batch: bool,
) -> EvalReport:
    """Run trials as a run of runs under one cap; return their marks when all are over."""
    goal = EvalGoal(name=name, trials=tuple(trials), dollars=dollars)
    if by_batch:
        goal = goal.model_copy(update={"concurrency": WAITING_AT_ONCE})
    done = 0

    def said(report: EvalReport) -> None:
        nonlocal done
        if len(report.marks) > done:
            done = len(report.marks)
            tell(f"{name}: {done} of {len(trials)} done, {money(report.dollars)} so far")

    await start_eval(connection, name, goal)
    return await follow_eval(connection, name, said)


def _mark_of(report: EvalReport, run: str) -> Mark:
    """Return what came of a candidate: nothing, where one of this id has begun with other runs."""
    found = (each for each in report.marks if each.run == run)
    return next(found, Mark(run=run, case=run, status=NOT_RUN, wrong=(BEGUN,)))


async def _read(connection: Connection, mark: Mark) -> Report | None:
    """Return the report of a fork that is over; None if it has none."""
    if mark.status == NOT_RUN:
        return None
    look = await Reader(connection, mark.run).look()
    return read_end(mark.run, look).report if look.closed else None


def _pair(candidate: Candidate, fork: Report) -> Pair:
    run, again = candidate.report, candidate.again
    decided = decide(run, fork, again)
    return Pair(
        run=run.run_id,
        fork=fork.run_id,
        title=run.title or run.goal,
        decided=decided or Decided(verdict="not decided", by="none", why="code sees no difference"),
        before=cost_of(run, again),
        now=at_once(cost_of(fork, again)) if candidate.goal.by_batch else cost_of(fork, again),
        differ=differing(run, fork, again),
        run_cost=run.dollars,
        calls_of_run=run.model_calls,
        calls_asked=fork.model_calls,
        paid=fork.dollars,
        assumed=fork.assumed,
    )


def at_once(cost: Cost) -> Cost:
    """Return what calls by batch would have cost at once, as those of the run before did."""
    dollars = None if cost.dollars is None else cost.dollars / LANE_SHARE["batch"]
    return cost.model_copy(update={"dollars": dollars})


# ---------------------------------------------------------------- judging


@dataclass(frozen=True)
class Open:
    """A pair that code cannot tell apart."""

    place: int
    candidate: Candidate
    fork: Report

    def material(self, *, swapped: bool) -> JudgeMaterial:
        """Return what the judge is shown, in one of both orders. It is not told which is which."""
        texts = [self.candidate.report.answer, self.fork.answer]
        shown = zip((ONE, OTHER), reversed(texts) if swapped else texts, strict=True)
        sources = _sources(self.candidate)
        return JudgeMaterial(
            question=_question(self.candidate.goal, sources),
            sources=sources,
            findings=tuple(
                Finding(subtask_id=id, status="complete", content=text, confidence=None)
                for id, text in shown
            ),
        )

    def run(self, *, swapped: bool) -> str:
        """Return the id of the judgement."""
        return f"{self.fork.run_id}.judge{2 if swapped else 1}"


def _question(goal: Goal, sources: Sources) -> str:
    told = [QUESTION.format(undecided=UNDECIDED)]
    # Of single inputs that it is not shown it is told beside the others.
    told += [] if sources.inputs or sources.unseen else [UNSEEN]
    return "\n\n".join((*told, f"The goal: {goal.text}"))


def _sources(candidate: Candidate) -> Sources:
    """Return the inputs that the run has pinned, as far as its own judges are shown them."""
    plan, most = candidate.goal.plan, candidate.goal.limits.supervisor_context_tokens
    assert plan is not None, "a fork has the plan of its run"
    return judged_by(candidate.goal.pinned, plan.subtasks, most)


def verdict_of(judgement: Judgement, *, swapped: bool) -> Verdict:
    """Return what a judgement says of the fork."""
    if not judgement.winner:
        return "not decided" if judgement.why.lstrip("`* ").startswith(UNDECIDED) else "equal"
    return "better" if (judgement.winner == OTHER) != swapped else "worse"


async def _judge(
    connection: Connection,
    model: ModelCard,
    name: str,
    pairs: Sequence[Open],
    dollars: Decimal,
    tell: Tell,
) -> dict[int, tuple[Decided, Decimal | None]]:
    """Return what the judge says of each pair, by its place, and its price."""
    wanted = [
        await _judgement(connection, model, each, swapped=swapped)
        for each in pairs
        for swapped in (False, True)
    ]
    waits = model.lane == "batch"
    report = await _run(connection, f"{name}.judge", wanted, dollars, tell, by_batch=waits)
    found = {}
    for each in pairs:
        both = [_mark_of(report, each.run(swapped=swapped)) for swapped in (False, True)]
        said = [await _answered(connection, mark) for mark in both]
        found[each.place] = settled(said), total_of([mark.dollars for mark in both])
    return found


async def _judgement(
    connection: Connection, model: ModelCard, pair: Open, *, swapped: bool
) -> Trial:
    material, run = pair.material(swapped=swapped), pair.run(swapped=swapped)
    case = Case(name=pair.fork.run_id, call=JUDGE.name, material=material.model_dump(mode="json"))
    most = worst(model, input_tokens(JUDGE, material), JUDGE.policy.max_output)
    # The worker tells it the day, too.
    cap = (most or Decimal(0)) + CENT
    goal = single_goal("judge two answers", cap, pair.candidate.goal.project)
    goal = goal.model_copy(update={"by_batch": model.lane == "batch"})
    return await put_trial(connection, Asked(case=case, goal=goal), run, cap)


async def _answered(connection: Connection, mark: Mark) -> Judgement | str:
    """Return a judgement, or why there is none."""
    if mark.status != "complete":
        return "; ".join(mark.wrong) or mark.status
    handle = connection.client.get_workflow_handle(mark.run, result_type=Answered)
    answered: Answered = await handle.result()
    return answered.why or Judgement.model_validate(answered.value)


def _named(why: str, *, swapped: bool) -> str:
    """Return a judge's reason with the names of the runs for what it was shown."""
    first, second = ("the fork", "the run") if swapped else ("the run", "the fork")
    plain = why.strip().removeprefix(UNDECIDED).lstrip(":`*, ")
    return re.sub(rf"\b{OTHER}\b", second, re.sub(rf"\b{ONE}\b", first, plain))


def settled(said: Sequence[Judgement | str]) -> Decided:
    """Return what both judgements of a pair come to."""
    verdicts, whys = list[Verdict](), list[str]()
    for swapped, each in zip((False, True), said, strict=True):
        if isinstance(each, str):
            return Decided(verdict="not decided", by="none", why=f"not judged: {each}")
        verdicts.append(verdict_of(each, swapped=swapped))
        whys.append(_named(each.why, swapped=swapped))
    told = verdicts.index("not decided") if "not decided" in verdicts else 0
    return settle(verdicts, whys[told])
