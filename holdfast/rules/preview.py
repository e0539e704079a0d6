"""Predicting a plan's price range, critical path and makespan, from sizes alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_UP, Decimal

from holdfast.agent.money import predict_talk
from holdfast.calling import context, fixing, gathering, proving, verifying, warming
from holdfast.calling.finishing import READINGS, Reading
from holdfast.calling.reserving import fitting_call, input_tokens, usual_model, work_call
from holdfast.calls.changes import size_of_change
from holdfast.calls.critique import CRITIQUE
from holdfast.calls.digest import DIGEST
from holdfast.calls.fix import FIX
from holdfast.calls.judge import JUDGE
from holdfast.calls.kind import AnyKind
from holdfast.calls.match import MATCH
from holdfast.calls.plan import PLAN
from holdfast.calls.prove import PROVE
from holdfast.calls.review import REVIEW
from holdfast.calls.synthesize import SYNTHESIZE
from holdfast.calls.turn import READS_ON
from holdfast.calls.work import most_written
from holdfast.contracts import Contract, ModelCard, Remark, Subtask, Usage, policies
from holdfast.contracts.replacing import replace
from holdfast.contracts.view import Preview, PreviewRow, RowKind
from holdfast.ledger.pricing import price, worst
from holdfast.ledger.ranges import FREE, PLACES, Money, Range, range_of, total_of
from holdfast.plans import composing
from holdfast.rules import agents, approvals, map_preview, one_agent, past, teams, tight
from holdfast.rules.leaving import list_outlets, list_scopes, list_sent, unused_inputs
from holdfast.rules.prices import list_sources
from holdfast.rules.templates import say_template, used_template
from holdfast.state import graph
from holdfast.state.moves import Ask
from holdfast.state.parts import Progress
from holdfast.state.run import State

MOST_COMPARED = 100
"""Subtasks of a plan that is priced once more for each tier: a workflow task may not take long."""


def predict(state: State, *, compares: bool = True) -> Preview:
    """Return the expected cost and time of a state's plan, were it to start now. `compares`: also
    what it would cost with the model of each tier, which takes as long as all else.
    """
    rows = _rows(state)
    share = _share_of_sizes(state, rows)
    asks = any(row.asks for row in rows)
    expected = total_of([row.expected for row in rows])
    # Without models there is nothing to lower, and no price to take it from.
    ample = _rows(tight.with_cap(state, tight.AMPLE)) if asks else rows
    lowered = tight.list_lowered(rows, ample)
    short = asks and (lowered or (expected or 0) > state.ledger.cap.dollars)
    subtasks = [progress.subtask for progress in state.work.values()]
    seconds = {row.id: row.seconds for row in rows if row.of_plan}
    return Preview(
        rows=rows,
        low=total_of([row.low for row in rows]),
        expected=expected,
        high=total_of([row.high for row in rows]),
        critical_path=graph.longest_chain(subtasks, seconds),
        makespan=round(graph.makespan(subtasks, seconds, state.goal.limits.concurrency), 1),
        leaves=list_sent(state) if asks else (),
        endpoint=state.brief.endpoint,
        reached=list_outlets(state),
        taken=list_scopes(state),
        without=(
            *(f"{each.what}: {each.why}" for each in (*state.not_run, *unused_inputs(state))),
            *approvals.list_unasked(state),
        ),
        composed=tuple(composing.describe_composed(state.brief, state.plan)) if state.plan else (),
        brought=tuple(_brought(state)),
        prices=list_sources(state) if asks else (),
        lowered=lowered,
        enough=tight.find_enough(state, _rows, ample) if short else None,
        choice=state.choice,
        template=say_template(state),
        single=one_agent.say_single(state),
        alone=_one_agent(state, share),
        by_tier=_by_tier(tight.with_cap(state, tight.AMPLE), share) if asks and compares else {},
        overstaffed=one_agent.say_overstaffed(state),
        plan=state.plan,
    )


def _share_of_sizes(state: State, rows: Sequence[PreviewRow]) -> Decimal:
    """Return what the past makes of the price that the plan has by sizes alone: what nobody has run
    yet is compared with it at the same share.
    """
    if not any(row.past for row in rows):
        return Decimal(1)
    learned = total_of([row.expected for row in rows if row.asks])
    sizes = total_of([row.expected for row in _by_sizes(state) if row.asks])
    return learned / sizes if learned and sizes else Decimal(1)


def _at_share(amount: Money, share: Decimal) -> Money:
    if amount is None or share == 1:
        return amount
    return (amount * share).quantize(PLACES, rounding=ROUND_UP)


def _by_tier(state: State, share: Decimal) -> dict[str, Money]:
    """Price the rows as if one model served every tier, for the model of each tier in turn."""
    cards = state.brief.models
    if len(state.work) > MOST_COMPARED or all(each.prices == cards[0].prices for each in cards):
        return {}
    found: dict[str, Money] = {}
    for card in cards:
        known = {"id": card.id, "prices": card.prices, "search": card.search}
        models = tuple(each.model_copy(update=known) for each in cards)
        brief = state.brief.model_copy(update={"models": models})
        rows = _by_sizes(replace(state, briefing=brief))
        paid = total_of([row.expected for row in rows if row.paid])
        due = total_of([_at_share(row.expected, share) for row in rows if not row.paid])
        found[card.tier] = total_of((paid, due))
    return found


def _one_agent(state: State, share: Decimal) -> PreviewRow | None:
    """Price the whole goal by one agent, beside a team of several."""
    alone = None if verifying.is_wanted(state) else one_agent.with_one_agent(state)
    if alone is None:
        return None
    row = next(_work(alone))
    learned = past.as_before(past.known_past(alone.brief), row)
    if learned.past:
        return learned
    names = ("low", "expected", "high")
    return row.model_copy(update={each: _at_share(getattr(row, each), share) for each in names})


def _brought(state: State) -> Iterator[str]:
    playbook, used = state.brief.playbook, {each.subtask.role for each in state.work.values()}
    if playbook and playbook.source:
        yield f"playbook {playbook.name}, {playbook.source}"
    if playbook and state.only_approved:
        yield f"playbook {playbook.name} has a person approve each plan: no option changes that"
    for role in state.brief.roles:
        if role.source and role.name in used:
            yield f"role {role.name}, {role.source}"
    named = {tool for role in state.brief.roles if role.name in used for tool in role.tools}
    for name, source in state.brief.tool_sources.items():
        if name in named:
            yield f"tool {name}, {source}"


def _rows(state: State) -> tuple[PreviewRow, ...]:
    known = past.known_past(state.brief)
    return tuple(past.as_before(known, row) for row in _by_sizes(state))


def _by_sizes(state: State) -> tuple[PreviewRow, ...]:
    rows = (*_planning(state), *_work(state))
    if verifying.is_wanted(state):
        return (*rows, *_verification(state), *_proofs(state), *_fixes(state))
    if state.single:
        return rows
    rows = (*rows, *_digests(state))
    assert state.plan is not None
    if state.plan.strategy == "select" and len(state.work) > 1:
        select = gathering.for_judge(state, state.goal.text, None)
        rows = (*rows, *_asked(state, JUDGE, select, "judge", "choosing the best finding"))
    for choice in state.work.choices:
        attempts = gathering.for_judge(state, state.goal.text, None, ids=choice)
        title = f"choosing the best of {', '.join(choice)}"
        rows = (*rows, *_asked(state, JUDGE, attempts, "judge", title))
    write = gathering.for_synthesis(state)
    last = tuple(_asked(state, SYNTHESIZE, write, "synthesis", "writing the answer"))
    for reading in READINGS.values():
        last = (*last, *_reading(state, reading, (*rows, *last)))
    return (*rows, *(map(_spare, last) if state.selects else last))


def _spare(row: PreviewRow) -> PreviewRow:
    """Return a row of what is only asked where the judge cannot decide."""
    prices = range_of(Decimal(0), Decimal(0), row.high)
    return row.model_copy(update={"title": f"{row.title}, if no attempt wins", **prices})


# ---------------------------------------------------------------- planning and the subtasks


def _planning(state: State) -> Iterator[PreviewRow]:
    """Yield what was paid so far: the plan, with the tries that were not valid."""
    ledger = state.ledger
    if not ledger.paid.calls:
        return
    paid = ledger.paid.dollars if ledger.all_priced else None
    matched = used_template(state) is not None
    title = "matching a template" if matched else "making this plan"
    tier = usual_model(state.brief, MATCH if matched else PLAN).tier
    yield _own("planning", title, tier, range_of(paid, paid, paid), paid=True)


def _own(
    kind: RowKind,
    title: str,
    tier: str,
    prices: Mapping[str, Money],
    *,
    paid: bool = False,
    tokens: int = 0,
) -> PreviewRow:
    row = PreviewRow(id=kind, kind=kind, title=title, role="supervisor", tier=tier, paid=paid)
    return row.model_copy(update={**prices, "tokens": tokens})


def _work(state: State) -> Iterator[PreviewRow]:
    for progress in state.work.values():
        subtask = progress.subtask
        row = PreviewRow(
            id=subtask.id,
            title=subtask.title,
            role=subtask.role,
            tier=progress.tier,
            depends_on=subtask.depends_on,
            why=subtask.why,
            reused=progress.finding is not None,
            max_output=subtask.max_output,
            timeout_seconds=gathering.timeout_of(state, subtask) if subtask.timeout_seconds else 0,
        )
        if progress.finding is None:
            row = _priced(state, progress, row)
        yield row


def _priced(state: State, progress: Progress, row: PreviewRow) -> PreviewRow:
    subtask = progress.subtask
    if progress.tier == "none":
        return row.model_copy(update={"seconds": policies.LENS_SECONDS})
    if state.brief.role(subtask.role).team:
        return _team(state, progress, row)
    if subtask.map is not None:
        return map_preview.price_map(state, progress, row, _expected_tokens(state, subtask))
    if agents.uses_tools(state, progress):
        return _agent(state, progress, row)
    ask = work_call(state, progress)
    assert ask.call.model is not None
    tokens, warms, begins = _expected_tokens(state, subtask), tuple[str, ...](), 0
    if ask.call.caching:
        warms = warming.readers(state, progress)
        begins = max(tokens - len(subtask.instruction) // context.EXPECTED_BYTES_PER_TOKEN, 0)
        prices = _one_alike(ask, tokens, begins, writes=bool(warms))
    else:
        prices = _one(ask.call.model, tokens, ask.amount.dollars)
    if subtask.acceptance_criteria.strip():
        # Whoever reads the draft is paid with it.
        prices = _sum(prices, _review(state, progress))
    seconds = policies.OUTPUT_TOKENS["expected"] / policies.OUTPUT_TOKENS_PER_SECOND
    seconds = min(seconds, gathering.timeout_of(state, subtask))
    update = {"tier": ask.call.tier, "tokens": tokens, "seconds": seconds, "warms": warms}
    if warms:
        update["begins"] = begins
    return row.model_copy(update={**update, **range_of(*prices)})


def _one(model: ModelCard, tokens: int, reserved: Decimal) -> Range:
    if not model.prices:
        return None, None, None
    low = _price(model, tokens, policies.OUTPUT_TOKENS["low"])
    expected = _price(model, tokens, policies.OUTPUT_TOKENS["expected"])
    return low, expected, reserved


def _one_alike(ask: Ask, tokens: int, begins: int, *, writes: bool) -> Range:
    """Return the price of one of several calls that begin alike with so many tokens: the first one
    writes them to the cache, and the others read them there.
    """
    model = ask.call.model
    assert model is not None
    if not model.prices:
        return None, None, None
    cache = "cache_write_tokens" if writes else "cache_read_tokens"
    read = Usage(input_tokens=tokens - begins, **{cache: begins})
    low, expected = (
        price(model, read.model_copy(update={"output_tokens": policies.OUTPUT_TOKENS[case]}))
        for case in ("low", "expected")
    )
    return low, expected, ask.amount.dollars


def _sum(one: Range, other: Range) -> Range:
    low, expected, high = (total_of(pair) for pair in zip(one, other, strict=True))
    return low, expected, high


def _review(state: State, progress: Progress) -> Range:
    policy = REVIEW.policy
    model = state.brief.model(policy.tier)
    written = most_written(progress.subtask)
    said = len(progress.subtask.model_dump_json()) // context.EXPECTED_BYTES_PER_TOKEN
    most = worst(model, said + written + policies.PROMPT_OVERHEAD_TOKENS, policy.max_output)
    tokens = said + policies.OUTPUT_TOKENS["expected"] + policies.EXPECTED_OVERHEAD_TOKENS
    return _one(model, tokens, most or Decimal(0))


def _team(state: State, progress: Progress, row: PreviewRow) -> PreviewRow:
    """Price a run of its own, up to its slice."""
    sonnet = state.brief.model("sonnet")
    most = teams.slice_of(state).dollars if sonnet.prices else None
    tokens = _expected_tokens(state, progress.subtask)
    one = policies.OUTPUT_TOKENS["expected"] / policies.OUTPUT_TOKENS_PER_SECOND
    prices = range_of(*predict_team(sonnet, tokens, most))
    update: dict[str, object] = {
        "kind": "team",
        "tokens": tokens + policies.EXPECTED_OVERHEAD_TOKENS,
    }
    update |= {"seconds": 4 * one, **prices}
    return row.model_copy(update=update)


def predict_team(model: ModelCard, tokens: int, most: Money) -> Range:
    """Predict the price of a goal of so many tokens, the size of whose plan is not known yet."""
    answer = policies.OUTPUT_TOKENS["expected"]
    tokens += policies.EXPECTED_OVERHEAD_TOKENS
    count = policies.TEAM_SUBTASKS
    least = _price(model, 3 * tokens, 3 * policies.OUTPUT_TOKENS["low"])
    usual = _price(model, (count + 3) * tokens + 2 * count * answer, (count + 3) * answer)
    return least, usual, most


def _agent(state: State, progress: Progress, row: PreviewRow) -> PreviewRow:
    """Price a conversation with tools, which is paid slice by slice."""
    goal, slice_ = agents.next_goal(state, progress)
    tokens = _expected_tokens(state, progress.subtask)
    talk = predict_talk(goal, tokens, slice_.calls or agents.SLICE_TURNS)
    high = None if talk.high is None else min(talk.high, state.ledger.cap.dollars)
    prices: Range = (talk.low, talk.expected, high)
    if progress.subtask.acceptance_criteria.strip():
        prices = _sum(prices, _review(state, progress))
    some = talk.slice.quantize(PLACES, rounding=ROUND_UP) if goal.model.prices else None
    update = {
        "kind": "agent",
        "tokens": tokens,
        "turns": talk.turns,
        "slice": some,
        "seconds": talk.seconds,
        "tier": goal.model.tier,
        "tools": tuple(name for name in goal.role.tools if name != READS_ON),
        "approval": goal.role.approval if state.goal.ask_people else (),
    }
    return row.model_copy(update={**update, **range_of(*prices)})


def _verification(state: State) -> Iterator[PreviewRow]:
    """Yield the agents that verify remarks: none if there is nothing to verify, usually one, at
    most as many as the playbook's number of remarks needs.
    """
    playbook = state.brief.playbook
    assert playbook is not None, "a playbook says how many remarks are verified"
    count = min(playbook.verify, policies.VERIFIED_AT_ONCE)
    subtask = verifying.subtask_for(state, "verification", count)
    subtask = subtask.model_copy(update={"depends_on": ()})
    card = state.brief.role(subtask.role)
    goal, slice_ = agents.next_goal(state, Progress(subtask, tier=card.tier))
    some = Remark(severity="warning", file="", message="", confidence=0)
    goal = goal.model_copy(
        update={"work": goal.work.model_copy(update={"remarks": (some,) * count})}
    )
    evidence = count * policies.EVIDENCE_BYTES // context.EXPECTED_BYTES_PER_TOKEN
    tokens = _expected_tokens(state, subtask) + evidence
    talk = predict_talk(goal, tokens, slice_.calls or agents.SLICE_TURNS)
    batches = -(-playbook.verify // count)
    high = None if talk.high is None else min(batches * talk.high, state.ledger.cap.dollars)
    prices = range_of(None if talk.expected is None else Decimal(0), talk.expected, high)
    title = f"verifying the first {playbook.verify} remarks"
    row = _own("verification", title, goal.model.tier, prices, tokens=tokens)
    yield row.model_copy(update={"turns": talk.turns, "seconds": talk.seconds})


def _proofs(state: State) -> Iterator[PreviewRow]:
    """Yield the scripts for confirmed criticals, each written once more if it does not run: none
    where nothing is critical, usually one. Running them is free.
    """
    playbook = state.brief.playbook
    if playbook is None or not proving.is_wanted(state) or proving.way_of(state) is None:
        return
    title = f"proving the first {playbook.prove} confirmed criticals"
    yield _about_code(state, PROVE, title, 2 * playbook.prove)


def _fixes(state: State) -> Iterator[PreviewRow]:
    """Yield the patches for confirmed remarks, if they are asked for. Trying them is free."""
    if fixing.is_wanted(state):
        title = f"patches for the first {policies.FIXED} confirmed remarks"
        yield _about_code(state, FIX, title, policies.FIXED).model_copy(update={"id": "fix"})


def _about_code(state: State, kind: AnyKind, title: str, most_calls: int) -> PreviewRow:
    """Price calls about one function each: none at least, usually one."""
    model = state.brief.model(kind.policy.tier)
    tokens = policies.PROOF_BYTES // context.EXPECTED_BYTES_PER_TOKEN
    most = policies.PROOF_BYTES // policies.RESERVED_BYTES_PER_TOKEN
    most += policies.PROMPT_OVERHEAD_TOKENS
    high = worst(model, most, kind.policy.max_output)
    usual = tokens + policies.EXPECTED_OVERHEAD_TOKENS
    _, expected, _ = _one(model, usual, high or Decimal(0))
    least = None if expected is None else Decimal(0)
    prices = range_of(least, expected, None if high is None else most_calls * high)
    return _own("proof", title, kind.policy.tier, prices, tokens=usual)


def _expected_tokens(state: State, subtask: Subtask) -> int:
    """Estimate the input tokens: instruction, role, inputs, and the findings of dependencies."""
    named = gathering.inputs_of(state, subtask)
    size = len(subtask.instruction) + gathering.role_of(state, subtask).prompt_bytes
    size += sum(pinned.size for pinned in named if pinned.enclosed)
    size += sum(map(size_of_change, named))
    lenses = sum(state.work[each].tier == "none" for each in subtask.depends_on)
    written = (len(subtask.depends_on) - lenses) * policies.OUTPUT_TOKENS["expected"]
    written += lenses * policies.LENS_TOKENS
    written += policies.REVIEW_TOKENS * any(each.change for each in named)
    return size // context.EXPECTED_BYTES_PER_TOKEN + written + policies.EXPECTED_OVERHEAD_TOKENS


def _price(model: ModelCard, input_tokens: int, output_tokens: int) -> Money:
    return price(model, Usage(input_tokens=input_tokens, output_tokens=output_tokens))


# ---------------------------------------------------------------- from findings to the answer


def _digests(state: State) -> Iterator[PreviewRow]:
    """Yield the digests of findings that are expected to be too long for the synthesis."""
    limit = state.goal.limits.digest_above_tokens
    lengths = [*_finding_tokens(state).values()]
    long = [each for each in lengths if each > limit]
    if context.is_reducing(state):
        size = context.REDUCED_AT_ONCE
        long += [sum(lengths[at : at + size]) for at in range(0, len(lengths), size)]
    if not long or not state.goal.use_models:
        return
    model = state.brief.model(DIGEST.policy.tier)
    overhead = policies.PROMPT_OVERHEAD_TOKENS
    prices = FREE
    read = sum(long) + len(long) * policies.EXPECTED_OVERHEAD_TOKENS
    for tokens in long:
        most = worst(model, 2 * tokens + overhead, DIGEST.policy.max_output)
        prices = _sum(
            prices, _one(model, tokens + policies.EXPECTED_OVERHEAD_TOKENS, most or Decimal(0))
        )
    title = f"{len(long)} long finding{'s' * (len(long) != 1)} in fewer words"
    yield _own("digest", title, model.tier, range_of(*prices), tokens=read)


def _finding_tokens(state: State) -> dict[str, int]:
    lengths = {}
    for key, each in state.work.items():
        tokens = policies.OUTPUT_TOKENS["expected"]
        if each.finding is not None:
            known = each.finding.digest or each.finding.content
            tokens = len(known) // context.EXPECTED_BYTES_PER_TOKEN
        elif each.tier == "none":
            tokens = policies.OUTPUT_TOKENS["low"]
        lengths[key] = tokens
    return lengths


def _reading(state: State, reading: Reading, rows: Sequence[PreviewRow]) -> Iterator[PreviewRow]:
    """Yield a reading, unless the expected rest of the money would not pay for it. One that a plan
    can do without costs nothing at the least.
    """
    assert state.plan is not None, "only a plan is priced"
    material = reading.gathered(state, None)
    spared = reading.kind is CRITIQUE and state.plan.critic == "unless_checked"
    for row in _asked(state, reading.kind, material, "reading", reading.title):
        before = total_of([each.expected for each in rows])
        if row.high is None or before is None or before + row.high <= state.ledger.cap.dollars:
            update: dict[str, object] = {"id": reading.kind.name}
            if spared:
                update["title"] = f"{row.title}, unless code can check it"
                update["low"] = None if row.low is None else Decimal(0)
            yield row.model_copy(update=update)


def _asked(
    state: State, kind: AnyKind, material: Contract, row: RowKind, title: str
) -> Iterator[PreviewRow]:
    """Yield a call of the supervisor's own that reads the findings."""
    if not state.goal.use_models:
        return
    lengths = _finding_tokens(state)
    beside = kind.beyond(material) // context.EXPECTED_BYTES_PER_TOKEN
    tokens = sum(lengths.values()) + beside + policies.EXPECTED_OVERHEAD_TOKENS
    ask = fitting_call(state, kind, row, material, keep=False)
    assert ask.call.model is not None
    most_read = state.goal.limits.supervisor_context_tokens
    found = min(sum(map(_most_tokens, state.work.values())), most_read)
    most = worst(ask.call.model, input_tokens(kind, material) + found, ask.call.max_output)
    prices = _one(ask.call.model, tokens, most or Decimal(0))
    yield _own(row, title, ask.call.tier, range_of(*prices), tokens=tokens)


def _most_tokens(progress: Progress) -> int:
    """Return the longest that a finding can be; one that is there counts with its material."""
    return 0 if progress.finding else most_written(progress.subtask)
