"""The price of a plan before it runs: every cent in a row, and nothing called free that is paid."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from driving import BRIEFING, START, Drive, model, subtask
from holdfast.contracts import (
    Approval,
    Briefing,
    Capabilities,
    Finding,
    Fork,
    Goal,
    Limits,
    ModelCard,
    Omission,
    Outlet,
    PinnedChange,
    PinnedInput,
    Plan,
    PlaybookCard,
    RoleCard,
    Subtask,
    Tier,
    ToolReads,
    policies,
)
from holdfast.contracts.view import Preview
from holdfast.ledger.ledger import Amount
from holdfast.ledger.ranges import format_price
from holdfast.rendering.amounts import money
from holdfast.rendering.board import board
from holdfast.rendering.preview import alternatives, totals
from holdfast.rendering.running import run_view
from holdfast.rules import keeping, leaving, teams, tight
from holdfast.rules.next_moves import next_moves
from holdfast.rules.preview import predict
from holdfast.rules.reducer import apply
from holdfast.rules.reporting import report
from holdfast.state.events import Examined, Prepared, Started
from holdfast.state.moves import Ask, Prepare
from holdfast.state.run import State, first_state
from outcomes import AMPLE, comes_back, draft, value_of
from serving import TEAM, WITH_TEAM

TIERS: tuple[Tier, ...] = ("haiku", "sonnet", "opus")
ROLES = [card.name for card in WITH_TEAM.roles]
NOTES = PinnedInput(name="notes", kind="text", size=4_000, digest="ab", preview="notes")


@st.composite
def cards(draw: st.DrawFn) -> tuple[ModelCard, ...]:
    """Models of any price, or of none."""
    made = []
    for tier in TIERS:
        card = model(tier, draw(st.integers(1, 40)))
        made.append(card if draw(st.integers(0, 9)) else card.model_copy(update={"prices": ()}))
    return tuple(made)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    subtasks: list[Subtask] = []
    for number in range(draw(st.integers(1, 6))):
        edges = draw(st.lists(st.sampled_from([each.id for each in subtasks] or [""]), max_size=2))
        role = draw(st.sampled_from(ROLES))
        one = subtask(f"t{number}", *sorted({edge for edge in edges if edge}), role=role)
        more = {
            "acceptance_criteria": draw(st.sampled_from(("", "It is plausible"))),
            "inputs": draw(st.sampled_from(((), ("notes",)))),
            "tier": draw(st.sampled_from((None, *TIERS))),
        }
        subtasks.append(one.model_copy(update=more))
    strategy = draw(st.sampled_from(("merge", "select")))
    return Plan(goal="Compare", strategy=strategy, subtasks=tuple(subtasks))


def planned(wanted: Plan, brief: Briefing, **fields: object) -> State:
    """A run whose plan waits for approval; making it cost half of its reservation."""
    limits = fields.pop("limits", Limits())
    goal = Goal.model_validate(
        {"text": "Compare", "use_models": True, "approval": {"when": "always"}, "limits": limits}
        | fields
    )
    state = first_state("run", goal, START, "first")
    brief = brief.model_copy(update={"inputs": (NOTES,), "endpoint": "http://models"})
    state = apply(apply(state, Started(Prepare())), Prepared(brief))
    if state.phase != "planning":
        return state
    (ask,) = next_moves(state)
    state = apply(state, Started(ask))
    assert isinstance(ask, Ask)
    return apply(state, comes_back(ask, "complete", Decimal("0.5"), wanted))


@settings(max_examples=60, deadline=None, database=None)
@given(
    plan=plans(),
    models=cards(),
    dollars=st.sampled_from(("10000", "20", "5")),
    digest=st.sampled_from((100, 2_000)),
)
def test_the_rows_of_any_plan_add_up_to_its_prices_to_the_digit(
    plan: Plan, models: tuple[ModelCard, ...], dollars: str, digest: int
) -> None:
    limits = {"dollars": dollars, "digest_above_tokens": digest}
    brief = WITH_TEAM.model_copy(update={"models": models})
    preview = planned(plan, brief, limits=limits).estimate
    assert preview is not None
    for name in ("low", "expected", "high"):
        parts = [getattr(row, name) for row in preview.rows]
        whole = getattr(preview, name)
        assert (whole is None) == any(each is None for each in parts)
        if whole is not None:
            assert whole == sum(parts)
            assert all(each == each.quantize(Decimal("0.0001")) for each in parts)
    for row in preview.rows:
        if row.low is not None and row.expected is not None and row.high is not None:
            assert row.low <= row.expected <= row.high
    kinds = [row.kind for row in preview.rows]
    assert kinds[0] == "planning" and preview.rows[0].paid
    alone = len(plan.subtasks) == 1 and preview.subtasks[0].tier != "none"
    assert kinds.count("synthesis") == (not alone) and preview.asks and preview.leaves
    assert ("judge" in kinds) == (plan.strategy == "select" and len(plan.subtasks) > 1)
    assert ("digest" in kinds) == (digest == 100 and not alone)
    assert [row.id for row in preview.subtasks] == [each.id for each in plan.subtasks]
    assert preview.plan == plan


def preview_of(plan: Plan, **fields: object) -> Preview:
    state = planned(plan, WITH_TEAM, plan=plan, **fields)
    assert state.estimate is not None
    return state.estimate


def test_a_model_that_sums_up_what_tools_found_is_counted_and_its_material_leaves() -> None:
    preview = preview_of(Plan(goal="Scan", subtasks=(subtask("a", role="scanner"),)))
    tool, synthesis, critique = preview.rows
    assert (tool.high, tool.asks) == (Decimal(0), False)
    assert [synthesis.id, critique.id] == ["synthesis", "critique"]
    assert synthesis.expected is not None and synthesis.expected > 0
    assert preview.leaves == ("the goal", "the findings")
    assert preview.endpoint == "http://models"


def test_without_models_tools_are_free_and_nothing_leaves() -> None:
    plan = Plan(goal="Scan", subtasks=(subtask("a", role="scanner"),))
    preview = preview_of(plan, use_models=False)
    assert preview.high == Decimal(0)
    assert not preview.leaves and not preview.asks


def test_a_fork_that_only_writes_the_answer_anew_is_not_free() -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b")))
    found = Finding(subtask_id="a", status="complete", content="found " * 100, confidence=90)
    other = found.model_copy(update={"subtask_id": "b"})
    preview = preview_of(plan, fork=Fork(run_id="first", findings=(found, other)))
    reused, _, synthesis, _ = preview.rows
    assert reused.reused and not reused.asks and reused.high == 0
    assert synthesis.asks and preview.expected is not None and preview.expected > 0
    assert preview.leaves == ("the goal", "the findings")


def test_a_team_is_a_slice_and_its_own_run() -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a", role=TEAM.name), subtask("b", "a")))
    state = planned(plan, WITH_TEAM, plan=plan)
    assert state.estimate is not None
    team = state.estimate.rows[0]
    assert team.kind == "team"
    assert team.high is not None and 0 <= team.high - teams.slice_of(state).dollars < Decimal(
        "0.0001"
    )
    assert team.low is not None and team.expected is not None
    assert team.low < team.expected < team.high


def test_a_draft_that_is_read_against_criteria_is_paid_with_its_reader() -> None:
    plain = subtask("a")
    read = plain.model_copy(update={"acceptance_criteria": "It is plausible"})
    one, other = (preview_of(Plan(goal="g", subtasks=(each,))).rows[0] for each in (plain, read))
    assert one.expected is not None and other.expected is not None
    assert other.expected > one.expected


def test_under_a_small_cap_a_row_has_the_model_that_will_be_asked() -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a", tier="opus"),))
    kept = Drive(plan, Limits(dollars=Decimal("0.14"))).state.ledger.kept.dollars
    preview = preview_of(plan, limits={"dollars": kept + Decimal("0.05")})
    assert preview.rows[0].tier == "haiku"


def test_the_board_shows_at_approval_all_that_a_decision_needs() -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b", "a", role=TEAM.name)))
    state = planned(plan, WITH_TEAM, approval={"when": "always"})
    shown = board(run_view(state))
    assert shown.startswith("**waiting for approval of the plan**")
    for part in ("| paid", "| a", "a team: a run of its own", "never above \\$2.00"):
        assert part in shown
    for command in ("approve", "edit", "reject"):
        assert f"`starter.py {command} run`" in shown
    assert "Sent to the models at http" in shown
    table = [each for each in shown.splitlines() if each.startswith("|")]
    assert len({each.replace("\\|", "").count("|") for each in table}) == 1


def test_a_plan_says_which_of_its_roles_and_tools_and_whether_its_playbook_do_not_ship() -> None:
    mine = RoleCard(name="mine", description="M.", source="from your project", tools=("say",))
    cards = [*WITH_TEAM.roles, mine]
    cards.append(RoleCard(name="idle", description="I.", source="from package pack"))
    own = PlaybookCard(name="notes", source="from your project")
    given: dict[str, object] = {"roles": tuple(cards), "playbook": own}
    given["tool_sources"] = {"say": "from your project", "idle": "from package pack"}
    brief = WITH_TEAM.model_copy(update=given)
    plan = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b", role="mine")))
    preview = planned(plan, brief, plan=plan).estimate
    assert preview is not None
    assert preview.brought == (
        "playbook notes, from your project",
        "role mine, from your project",
        "tool say, from your project",
    )
    lines = totals(preview, Decimal(2))
    assert "Role mine, from your project" in lines
    assert not preview_of(plan.model_copy(update={"subtasks": (subtask("a"),)})).brought


# ---------------------------------------------------------------- the same work otherwise

PAIR = Plan(goal="Compare", subtasks=(subtask("a", role="researcher"), subtask("b", "a")))


def compared(plan: Plan, brief: Briefing) -> Preview | None:
    """The price of a plan that a person may still refuse."""
    return Drive(plan, AMPLE, brief, approval=Approval(when="always")).state.estimate


def test_the_same_plan_by_each_tier_is_what_it_costs_where_all_models_have_that_price() -> None:
    brief = WITH_TEAM
    found = compared(PAIR, brief)
    assert found is not None and [*found.by_tier] == [*TIERS]
    for card in brief.models:
        same = [card.model_copy(update={"tier": tier}) for tier in TIERS]
        alike = brief.model_copy(update={"models": tuple(same)})
        only = compared(PAIR, alike)
        assert only is not None
        assert found.by_tier[card.tier] == only.expected
        assert only.by_tier == {}, "one price for all: there is nothing to compare"
    haiku, sonnet, opus = (found.by_tier[tier] for tier in TIERS)
    assert haiku and sonnet and opus and found.expected
    assert haiku < found.expected < sonnet < opus


def test_a_table_compares_a_plan_with_the_same_work_by_each_tier_and_by_one_agent() -> None:
    found = compared(PAIR, WITH_TEAM)
    assert found is not None and found.alone is not None
    (table,) = alternatives(found)
    cells = {line.cells[0]: line.cells[1:] for line in table.lines}
    assert cells["As planned"] == (format_price(found.expected), "100%")
    assert cells["Every call to come by opus"][0] == format_price(found.by_tier["opus"])
    assert cells["One agent, one call"][0] == format_price(found.alone.expected)
    assert len(cells) == 5


def test_a_small_cap_does_not_make_the_work_of_another_tier_cheaper() -> None:
    few, many = (preview_of(PAIR, limits={"dollars": each}).by_tier for each in ("0.15", "100"))
    assert few == many


def test_a_model_without_a_price_is_compared_as_unpriced_and_tools_alone_not_at_all() -> None:
    models = (*BRIEFING.models[:2], BRIEFING.models[2].model_copy(update={"prices": ()}))
    brief = WITH_TEAM.model_copy(update={"models": models})
    found = compared(PAIR, brief)
    assert found is not None and found.by_tier["opus"] is None
    (table,) = alternatives(found)
    assert ("Every call to come by opus", "unpriced", "") in [each.cells for each in table.lines]
    scan = Plan(goal="g", subtasks=(subtask("a", role="scanner"), subtask("b", role="scanner")))
    assert alternatives(preview_of(scan, use_models=False)) == []


def test_a_plan_that_is_too_large_to_be_priced_over_and_over_is_not_compared() -> None:
    for count, may in ((100, True), (101, False)):
        plan = Plan(goal="g", subtasks=tuple(subtask(f"t{each}") for each in range(count)))
        found = compared(plan, WITH_TEAM)
        assert found is not None and bool(found.by_tier) == may


# ---------------------------------------------------------------- the least cap


def goal_of(dollars: Decimal, **fields: object) -> Goal:
    limits = Limits(dollars=dollars)
    return Goal.model_validate({"text": "Compare", "use_models": True, "limits": limits} | fields)


def play(drive: Drive) -> State:
    """To the end; each call costs a tenth of what was reserved."""
    while not drive.closed:
        move = drive.in_flight[0]
        if isinstance(move, Ask):
            value = value_of(move, "complete", drive.plan or ONE)
            drive.put(comes_back(move, "complete", Decimal("0.1"), value))
        else:
            drive.put(Examined(move, draft(move.id)))
    return drive.state


ONE = Plan(goal="Compare", subtasks=(subtask("a"), subtask("b", role="researcher")))


@pytest.mark.parametrize("models", [(1, 3, 5), (2, 2, 2), (1, 30, 60)])
@pytest.mark.parametrize("plan", [None, ONE])
def test_the_cap_that_a_refusal_names_would_do_and_a_tenth_of_a_cent_less_is_refused(
    models: tuple[int, int, int], plan: Plan | None
) -> None:
    cards = tuple(model(tier, price) for tier, price in zip(TIERS, models, strict=True))
    brief = BRIEFING.model_copy(update={"models": cards})
    said = keeping.short_of(goal_of(Decimal(0), plan=plan), brief)
    least = keeping.least(goal_of(Decimal(0), plan=plan), brief).dollars
    enough = Decimal(said.rsplit("dollars=", 1)[1])
    assert keeping.short_of(goal_of(enough, plan=plan), brief) == ""
    assert keeping.short_of(goal_of(least - Decimal("0.001"), plan=plan), brief)
    if plan is None:
        # For a plan that is ready it names what usually gets through all of it.
        assert keeping.short_of(goal_of(enough - Decimal("0.001"), plan=plan), brief)
    state = play(Drive(plan, Limits(dollars=enough), brief))
    assert state.stop is None
    assert [each.status for each in state.findings] == ["complete", "complete"]
    assert state.finishing.synthesis is not None and not state.finishing.synthesis.by_template


def test_calls_and_tokens_that_are_too_few_are_named_too() -> None:
    limits = Limits(model_calls=1, tokens=100)
    goal = Goal(text="Compare", use_models=True, limits=limits)
    said = keeping.short_of(goal, BRIEFING)
    assert "1 model calls and 100 tokens" in said
    assert "--limits model_calls=3 --limits tokens=" in said and "dollars" not in said


def test_a_second_level_of_teams_has_what_it_needs_at_the_default_cap() -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a", role=TEAM.name),))
    cards = (model("haiku", 1), model("sonnet", 2), model("opus", 4))
    brief = WITH_TEAM.model_copy(update={"models": cards})
    dollars, levels = Limits().dollars, 0
    while not keeping.short_of(goal_of(dollars, plan=plan), brief):
        state = planned(plan, brief, limits={"dollars": dollars})
        dollars, levels = teams.slice_of(state).dollars, levels + 1
    assert levels >= 2


HANDS = RoleCard(
    name="clerk",
    description="reads",
    tier="sonnet",
    tools=("read_file",),
    turns=6,
    prompt_bytes=6_000,
    reads=(ToolReads(tool="read_file", inputs=("folder",)), ToolReads(tool="web_fetch")),
)
REPORTS = PinnedInput(name="reports", kind="folder", size=90_000_000, digest="cd")


OUTLETS = (
    Outlet(tool="mcp__clock__", what="MCP server clock, the local program clock"),
    Outlet(tool="mcp__far__", what="MCP server far, the host far.example"),
    Outlet(tool="web_fetch", what="web_fetch, any address"),
)


def with_hands(
    *inputs: str, role: RoleCard = HANDS, reports: PinnedInput = REPORTS, **fields: object
) -> Preview:
    """The preview of one subtask of a reader with these inputs."""
    hands = role.model_copy(update={"tools": fields.pop("tools", role.tools)})
    update = {"roles": (*WITH_TEAM.roles, hands), "outlets": OUTLETS}
    brief = WITH_TEAM.model_copy(update=update)
    one = subtask("a", role="clerk").model_copy(update={"inputs": inputs})
    plan = Plan(goal="Read", subtasks=(one,))
    state = planned(plan, brief, plan=plan, **fields)
    both = {"inputs": (NOTES, reports)}
    state = replace(state, briefing=state.brief.model_copy(update=both))
    return predict(state)


def test_an_agent_of_a_change_is_priced_by_the_size_of_the_change() -> None:
    def priced(files: int, size: int) -> tuple[Decimal, Decimal]:
        change = PinnedChange(files=files, added=0, deleted=0, diff="ab", diff_bytes=size)
        pinned = REPORTS.model_copy(update={"kind": "repository", "change": change})
        role = HANDS.model_copy(update={"turns": 10, "reads": ()})
        preview = with_hands("reports", role=role, reports=pinned, limits={"dollars": "100"})
        row = preview.subtasks[0]
        assert row.low is not None and row.expected is not None and row.high is not None
        assert row.low < row.expected < row.high
        return row.low, row.expected

    small, middle, large = priced(1, 1_000), priced(5, 50_000), priced(40, 400_000)
    assert small[0] < middle[0] < large[0] and small[1] < middle[1] < large[1]
    assert priced(400, 500_000) == pytest.approx(large, rel=Decimal("0.3")), "it stays bounded"


def test_an_agent_with_tools_is_priced_by_its_turns_and_reserved_by_slices() -> None:
    preview = with_hands("reports", limits={"dollars": "100"})
    row = preview.subtasks[0]
    assert (row.kind, row.turns, row.tools) == ("agent", 6, ("read_file",))
    assert row.low is not None and row.expected is not None and row.high is not None
    assert row.slice is not None
    once = with_hands("notes", limits={"dollars": "100"}).subtasks[0]
    assert once.expected is not None
    assert row.low < row.expected < row.slice < row.high < 100
    assert row.expected > once.expected and row.seconds > once.seconds
    assert "what agents read of reports (90,000,000 bytes)" in preview.leaves


@pytest.mark.parametrize("people", [True, False])
def test_the_preview_says_which_calls_wait_for_a_person_or_are_not_made(people: bool) -> None:
    asks = HANDS.model_copy(update={"approval": ("write",)})
    plan = with_hands("reports", role=asks, limits={"dollars": "100"}, ask_people=people)
    declined = [each for each in plan.without if each.startswith("calls of write by clerk: ")]
    assert (plan.subtasks[0].approval, len(declined)) == ((("write",), 0) if people else ((), 1))
    shown = totals(plan, Decimal(100))
    assert ("a waits for your approval of each call of write" in shown) == people
    assert any("--ask" in line for line in shown) != people


def test_an_input_that_no_subtask_uses_is_said_before_and_after_the_run() -> None:
    brief = WITH_TEAM
    one = subtask("a", role="researcher").model_copy(update={"inputs": ("notes",)})
    state = planned(Plan(goal="Read", subtasks=(one,)), brief)
    base = NOTES.model_copy(update={"name": "base"})

    def shown(*inputs: PinnedInput) -> State:
        return replace(state, briefing=state.brief.model_copy(update={"inputs": inputs}))

    assert predict(shown(NOTES)).without == () == report(shown(NOTES)).not_run
    both = shown(NOTES, REPORTS)
    assert predict(both).without == ("input reports: no subtask of the plan uses it",)
    (told,) = report(both).not_run
    assert (told.what, told.why) == ("input reports", "no subtask of the plan uses it")
    # What only others of this deployment go without is no matter of this run.
    away = tuple(
        Omission(what=f"tool of {name}", why="gone", roles=(name,)) for name in ("researcher", "x")
    )
    alone = replace(state, briefing=state.brief.model_copy(update={"not_run": away}))
    assert predict(alone).without == ("tool of researcher: gone",)
    assert [each.what for each in report(alone).not_run] == ["tool of researcher"]
    # A base is used when its repository is pinned; without one nobody uses it.
    repository = REPORTS.model_copy(update={"name": "notes", "kind": "repository"})
    assert predict(shown(repository, base)).without == ()
    assert predict(shown(NOTES, base)).without == ("input base: no subtask of the plan uses it",)
    # An option of a review is no material: that patches are written is its use.
    option = NOTES.model_copy(update={"name": "fix"})
    asked = state.goal.model_copy(update={"use_models": True})
    verifier = brief.roles[0].model_copy(update={"name": policies.VERIFIER})
    roles = {"roles": (*brief.roles, verifier)}
    for verify, without in ((30, ()), (0, ("input fix: no subtask of the plan uses it",))):
        given = shown(repository, option)
        known = {**roles, "playbook": PlaybookCard(name="review", verify=verify)}
        briefing = given.brief.model_copy(update=known)
        assert predict(replace(given, goal=asked, briefing=briefing)).without == without
    assert leaving.unused_inputs(first_state("run", state.goal, state.started, "first")) == ()


def test_servers_and_web_tools_are_named_with_the_agents_whose_words_go_there() -> None:
    preview = with_hands("reports", tools=("mcp__clock__now", "web_fetch"))
    assert preview.reached == (
        "MCP server clock, the local program clock: words of clerk (a)",
        "web_fetch, any address: words of clerk (a)",
    )
    lines = totals(preview, Decimal(5))
    assert "Reached by tools: web_fetch, any address: words of clerk (a)" in lines
    assert not with_hands("reports", tools=("read_file",)).reached
    # A tool that reads no input is there without one, too.
    assert with_hands("notes", tools=("web_fetch",)).reached


def test_the_agents_of_a_team_may_send_words_wherever_a_tool_leads() -> None:
    team = Plan(goal="Ask", subtasks=(subtask("t1", role="department"),))
    state = planned(team, WITH_TEAM.model_copy(update={"outlets": OUTLETS[1:2]}))
    assert predict(state).reached == (
        "MCP server far, the host far.example: words of agents of the team t1",
    )


def test_no_agent_is_said_to_cost_more_than_the_cap() -> None:
    row = with_hands("reports", limits={"dollars": "3"}).subtasks[0]
    assert row.high == 3


def test_a_role_whose_tools_read_nothing_of_its_inputs_is_priced_as_one_call() -> None:
    row = with_hands("notes").subtasks[0]
    assert (row.kind, row.turns, row.slice) == ("subtask", 0, None)


def bounded(**fields: int) -> Preview:
    """Of a plan whose first subtask has these fields."""
    first = subtask("t1").model_copy(update=fields)
    wanted = Plan(goal="g", subtasks=(first, subtask("t2")))
    preview = planned(wanted, BRIEFING).estimate
    assert preview is not None
    return preview


def test_bounds_of_a_subtask_are_shown_and_a_shorter_answer_costs_less_at_worst() -> None:
    usual, short = bounded(), bounded(timeout_seconds=60, max_output=2_000)
    before, after = usual.subtasks[0], short.subtasks[0]
    assert before.high is not None and after.high is not None
    assert after.high < before.high and after.expected == before.expected
    # What reads the finding is bounded with it.
    assert usual.high is not None and short.high is not None
    assert usual.high - short.high > before.high - after.high
    said = "at most 2,000 tokens an answer, at most 60 s a call"
    assert f"t1 has its own bounds: {said}" in totals(short, Decimal(2))
    assert bounded(timeout_seconds=5).subtasks[0].seconds == 5.0


def test_the_least_cap_pays_for_the_room_that_a_subtask_sets_for_itself() -> None:
    """A room of 3,000 tokens cannot be halved: no call has less than 2,000."""
    usual = Plan(goal="g", subtasks=(subtask("t1"),))
    wide = Plan(goal="g", subtasks=(subtask("t1").model_copy(update={"max_output": 3_000}),))
    before, after = (
        keeping.least(goal_of(Decimal(0), plan=each), BRIEFING) for each in (usual, wide)
    )
    # What tells the agent of it is reserved, too.
    assert 1_000 <= after.tokens - before.tokens < 1_100
    assert after.dollars > before.dollars


TOLD_ALONE = 40
"""Tokens by which the prompts of a plan's only subtask and of one of several differ at most."""


@settings(max_examples=40, deadline=None, database=None)
@given(plan=plans())
def test_the_least_cap_is_that_of_the_dearest_subtask_however_few_are_priced(plan: Plan) -> None:
    def least(*subtasks: Subtask) -> Amount:
        part = plan.model_copy(update={"subtasks": subtasks})
        goal = Goal.model_validate({"text": "Compare", "use_models": True, "plan": part})
        return keeping.least(goal, WITH_TEAM)

    assume(len(plan.subtasks) > 1)
    # Beside a copy of itself, because no synthesis is kept for a single subtask.
    alone = [
        least(*(each.model_copy(update={"id": id, "depends_on": ()}) for id in ("x0", "y0")))
        for each in plan.subtasks
    ]
    whole = least(*plan.subtasks)
    dearest = max(each.tokens for each in alone)
    # The only subtask of a plan is told more of the answer, because its result is the answer.
    assert dearest - TOLD_ALONE <= whole.tokens <= dearest


def test_the_least_cap_of_an_agent_lets_its_first_turn_begin() -> None:
    one = subtask("a", role="clerk").model_copy(update={"inputs": ("reports",)})
    plan = Plan(goal="Read", subtasks=(one,))
    roles = {"roles": (*WITH_TEAM.roles, HANDS), "inputs": (REPORTS,)}
    brief = WITH_TEAM.model_copy(update=roles)
    goal = Goal.model_validate({"text": "Compare", "use_models": True, "plan": plan})
    least = keeping.least(goal, brief).dollars
    for dollars, begins in ((least, True), (least * Decimal("0.9"), False)):
        limits = Limits(dollars=dollars)
        drive = Drive(plan, limits, brief)
        assert bool(drive.state.flights) is begins, dollars


# ---------------------------------------------------------------- under a small cap


@pytest.mark.long
@settings(max_examples=40, deadline=None, database=None)
@given(plan=plans(), models=cards(), dollars=st.sampled_from(("0.05", "0.2", "0.7", "1.5")))
def test_what_a_cap_lowers_is_said_and_the_cap_that_is_named_lowers_nothing(
    plan: Plan, models: tuple[ModelCard, ...], dollars: str
) -> None:
    brief = WITH_TEAM.model_copy(update={"models": models})
    state = planned(plan, brief, plan=plan, limits={"dollars": dollars})
    preview = state.estimate
    if preview is None:
        return
    cap = state.ledger.cap.dollars
    ample = {row.id: row.tier for row in predict(tight.with_cap(state, tight.AMPLE)).rows}
    found = {row.id: row.tier for row in preview.rows}
    assert len(preview.lowered) == sum(found.get(id) != tier for id, tier in ample.items())
    said = totals(preview, cap)
    assert all(any(each in line for line in said) for each in preview.lowered)
    more = preview.expected is not None and preview.expected > cap
    assert ("more than the cap" in said[0]) == more or not preview.asks
    over = preview.asks and preview.high is not None and preview.high > cap and not more
    assert (f"to the cap of {money(cap)})" in said[0]) == over
    if preview.enough is None:
        return
    assert preview.enough > cap and (preview.lowered or more)
    then = predict(tight.with_cap(state, preview.enough))
    assert (then.lowered, then.enough) == ((), None)
    assert then.expected is not None and then.expected <= preview.enough


def test_under_a_small_cap_an_agent_is_priced_by_the_model_and_the_turns_it_will_get() -> None:
    dear = HANDS.model_copy(update={"tier": "sonnet"})
    cap = Decimal("0.2")
    preview = with_hands("reports", role=dear, limits={"dollars": cap})
    agent, *_ = preview.subtasks
    assert (agent.kind, agent.tier) == ("agent", "haiku")
    assert agent.slice is not None and agent.slice <= cap
    assert "a on haiku instead of sonnet" in preview.lowered
    assert preview.enough is not None
    ample = with_hands("reports", role=dear, limits={"dollars": preview.enough})
    assert (ample.subtasks[0].tier, ample.lowered) == ("sonnet", ())


def test_calls_that_begin_alike_are_priced_as_the_cache_will_have_them() -> None:
    book = NOTES.model_copy(update={"size": 80_000})
    parts = [subtask(name, role="analyst") for name in ("a", "b", "c")]
    plan = Plan(goal="C", subtasks=[p.model_copy(update={"inputs": ("notes",)}) for p in parts])
    goal = Goal(text="Compare", plan=plan, use_models=True, limits=Limits(dollars=Decimal(50)))

    def of(*, caching: bool, size: int = 80_000) -> Preview:
        pinned = book.model_copy(update={"size": size})
        known = {"inputs": (pinned,), "capabilities": Capabilities(caching=caching)}
        state = apply(first_state("run", goal, START, "first"), Started(Prepare()))
        return predict(apply(state, Prepared(BRIEFING.model_copy(update=known))))

    warm, cold = of(caching=True), of(caching=False)
    ahead, *others = warm.subtasks
    plain = cold.subtasks[0].expected
    assert ahead.warms == ("b", "c") and not any(each.warms for each in others)
    assert ahead.expected and plain and ahead.expected > plain, "it writes what it reads"
    assert all(each.expected and each.expected * 2 < plain for each in others)
    assert warm.expected and cold.expected and warm.expected * 3 < cold.expected * 2
    read, given = 2 * ahead.begins, 3 * ahead.tokens
    assert ahead.tokens - 50 < ahead.begins < ahead.tokens and not others[0].begins
    line = "a goes first: b, c then read from the cache what all begin with"
    told = f"{line}, some {read:,} of the {given:,} tokens of all"
    assert told in totals(warm, Decimal(50)) and line not in "\n".join(totals(cold, Decimal(50)))
    short = of(caching=True, size=400)
    assert [each.expected for each in short.subtasks] == [
        each.expected for each in of(caching=False, size=400).subtasks
    ]
