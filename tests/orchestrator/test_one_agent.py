"""One agent or a team: what the preview and the report say of it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from driving import BRIEFING, Drive, subtask
from holdfast.contracts import Briefing, Outlet, PinnedInput, Plan, RoleCard, Subtask, ToolReads
from holdfast.contracts.view import Preview
from holdfast.rendering.preview import totals
from holdfast.rules import reporting
from outcomes import AMPLE

KINDS = tuple(
    RoleCard(name=f"role{number}", description="works", tools=("web_fetch",) if number == 9 else ())
    for number in range(10)
)
BRIEF = BRIEFING.model_copy(
    update={
        "roles": (*BRIEFING.roles, *KINDS),
        "outlets": (Outlet(tool="web_fetch", what="the web"),),
    }
)


def priced(*subtasks: Subtask, brief: Briefing = BRIEF, strategy: str = "merge") -> Preview:
    plan = Plan.model_validate({"goal": "g", "subtasks": subtasks, "strategy": strategy})
    preview = Drive(plan, AMPLE, brief).state.estimate
    assert preview is not None
    return preview


def of_kinds(*numbers: int) -> tuple[Subtask, ...]:
    return tuple(subtask(f"t{place}", role=f"role{each}") for place, each in enumerate(numbers))


def test_a_plan_of_one_says_in_the_preview_that_its_finding_is_the_answer_and_why() -> None:
    one = subtask("a").model_copy(update={"why": "It is a single question"})
    preview = priced(one)
    said = "One subtask: its finding is the answer. Why one: It is a single question."
    assert said in totals(preview, Decimal(2))
    assert [row.id for row in preview.rows] == ["a"], "no synthesis, no critic"
    assert preview.leaves == ("the goal",)
    assert preview.alone is None and not preview.overstaffed


def test_nothing_is_kept_of_the_cap_for_an_answer_that_nobody_writes() -> None:
    one = Drive(Plan(goal="g", subtasks=(subtask("a"),)), AMPLE).state
    two = Drive(Plan(goal="g", subtasks=(subtask("a"), subtask("b"))), AMPLE).state
    assert one.ledger.kept.dollars == 0 < two.ledger.kept.dollars


def test_one_agent_that_has_all_in_its_prompt_is_priced_as_one_call_whatever_its_tools() -> None:
    analyst = BRIEFING.role("analyst")
    reads = (ToolReads(tool="calculate", size=4_000),)
    tools = {"tools": ("calculate",), "reads": reads, "prompt_bytes": analyst.prompt_bytes + 4_000}
    others = tuple(each for each in BRIEF.roles if each.name != "analyst")
    roles = (analyst.model_copy(update=tools), *others)
    plain, equipped = (
        priced(*of_kinds(0, 1, 2), brief=each).alone
        for each in (BRIEF, BRIEF.model_copy(update={"roles": roles}))
    )
    assert plain is not None and equipped is not None
    assert equipped.kind == "subtask" and equipped.expected == plain.expected


def test_beside_a_team_stands_what_one_agent_would_have_cost() -> None:
    preview = priced(*of_kinds(0, 1, 2))
    assert preview.alone is not None and preview.alone.role == "analyst"
    assert preview.expected is not None and preview.alone.expected is not None
    assert preview.alone.expected < preview.expected
    line = f"One agent, one call: about ${preview.alone.expected}"
    assert line in totals(preview, Decimal(2))


@pytest.mark.parametrize(
    ("subtasks", "more"),
    [
        (of_kinds(0, 1), True),  # two kinds, little material
        (of_kinds(0, 0, 1, 1), True),
        (of_kinds(0, 1, 2), False),  # three skills
        (of_kinds(0, 1, 2, 3, 4, 5), True),  # more than five agents
        (of_kinds(0, 9), False),  # one looks things up
        ((subtask("a", role="role9"), subtask("b", "a", role="role9")), True),  # one skill, a chain
        (of_kinds(0), False),
    ],
)
def test_more_agents_than_work_are_warned_of_by_what_code_can_see(
    subtasks: tuple[Subtask, ...], more: bool
) -> None:
    preview = priced(*subtasks)
    assert bool(preview.overstaffed) is more
    assert (
        any(line.startswith("More agents than work?") for line in totals(preview, Decimal(2)))
        is more
    )


@pytest.mark.parametrize("size", [199_000, 201_000])
def test_fifty_thousand_tokens_of_material_are_worth_several_agents(size: int) -> None:
    text = PinnedInput(name="notes", kind="text", size=size, digest="ab")
    preview = priced(*of_kinds(0, 1), brief=BRIEF.model_copy(update={"inputs": (text,)}))
    assert bool(preview.overstaffed) is (size < 200_000)


def test_several_attempts_at_one_question_are_meant_to_be_several() -> None:
    assert not priced(*of_kinds(0, 1), strategy="select").overstaffed


def test_the_report_repeats_the_warning() -> None:
    plan = Plan(goal="g", subtasks=of_kinds(0, 1))
    run = Drive(plan, AMPLE, BRIEF)
    (note,) = [each for each in reporting.notes(run.state) if "More agents than work?" in each]
    assert "2 agents, 2 roles, no tools that look anything up" in note
