"""Which tools an agent has: those that need no input, and those that find one to read."""

from __future__ import annotations

import pytest

from driving import BRIEFING, START, subtask
from holdfast.activities.toolset.serving import serve
from holdfast.calls.plan import menu
from holdfast.calls.turn import equip
from holdfast.contracts import Goal, PinnedInput, Plan, RoleCard, ToolReads, policies
from holdfast.contracts.plans import MapSpec
from holdfast.plans import validity
from holdfast.rules import agents
from holdfast.rules.reducer import apply
from holdfast.state.events import Prepared, Started
from holdfast.state.moves import Prepare
from holdfast.state.run import State, first_state

READS = (
    ToolReads(tool="list_files", inputs=("folder", "repository"), size=300),
    ToolReads(tool="git_diff", inputs=("change",), size=200),
    ToolReads(tool="read_document", inputs=("folder", "repository", "document"), size=100),
    ToolReads(tool="query_data", inputs=("folder", "repository", "table"), size=50),
    ToolReads(tool="calculate"),
    ToolReads(tool="read_result"),
)
ROLE = RoleCard(
    name="clerk",
    description="Reads and counts",
    tools=(*(each.tool for each in READS), "own_tool"),
    reads=READS,
    prompt_bytes=5_000,
)
FOLDER = PinnedInput(name="folder", kind="folder", size=9, digest="ab")
REPOSITORY = PinnedInput(name="repository", kind="repository", size=9, digest="cd")
CHANGE = REPOSITORY.model_copy(update={"name": "change", "base": "ef" * 20})
PDF = PinnedInput(name="pdf", kind="file", size=9, path="/x/a.pdf", reader="read_document")
PARQUET = PinnedInput(name="parquet", kind="file", size=9, path="/x/a", reader="query_data")
BOOK = PinnedInput(name="book", kind="file", size=9, path="/x/a.XLSX", reader="read_document")
CSV = PinnedInput(name="csv", kind="file", size=9, path="/x/a.csv")
NOTES = PinnedInput(name="notes", kind="text", size=9)
ALWAYS = {"calculate", "read_result", "own_tool"}


def state_of(role: RoleCard, *inputs: PinnedInput, dollars: str = "100") -> State:
    """A run of one subtask of this role, which is about to start."""
    names = tuple(each.name for each in inputs)
    task = subtask("t1", role=role.name).model_copy(update={"inputs": names})
    limits = {"dollars": dollars}
    plan = Plan(goal="g", subtasks=(task,))
    goal = Goal.model_validate({"text": "g", "use_models": True, "plan": plan, "limits": limits})
    brief = BRIEFING.model_copy(update={"roles": (*BRIEFING.roles, role), "inputs": inputs})
    return apply(
        apply(first_state("run", goal, START, "first"), Started(Prepare())), Prepared(brief)
    )


@pytest.mark.parametrize(
    ("inputs", "more"),
    [
        ((), set()),
        ((NOTES,), set()),
        ((CSV,), {"query_data"}),
        ((PARQUET,), {"query_data"}),
        ((PDF,), {"read_document"}),
        ((BOOK,), {"read_document", "query_data"}),
        ((FOLDER,), {"list_files", "read_document", "query_data"}),
        ((NOTES, REPOSITORY), {"list_files", "read_document", "query_data"}),
        ((NOTES, CHANGE), {"list_files", "git_diff", "read_document", "query_data"}),
    ],
    ids=lambda each: "+".join(one.name for one in each) if isinstance(each, tuple) else "",
)
def test_an_agent_has_the_tools_that_need_no_input_and_those_that_read_one_of_its_own(
    inputs: tuple[PinnedInput, ...], more: set[str]
) -> None:
    card = equip(ROLE, inputs)
    assert {*card.tools} == ALWAYS | more
    gone = {*ROLE.tools} - {*card.tools}
    assert ROLE.prompt_bytes - card.prompt_bytes == sum(
        each.size for each in READS if each.tool in gone
    )


def test_a_role_whose_tools_all_read_what_is_not_there_has_none_and_is_asked_once() -> None:
    reader = ROLE.model_copy(update={"tools": ("list_files", "git_diff", "read_result")})
    assert equip(reader, [CSV]).tools == ()
    for role, talks in ((reader, False), (ROLE, True)):
        state = state_of(role, CSV)
        assert agents.uses_tools(state, state.work["t1"]) is talks


def test_a_planner_is_told_the_tools_that_the_inputs_of_its_run_allow() -> None:
    (line,) = menu([equip(ROLE, [NOTES])]).splitlines()
    assert line.endswith("Its tools: calculate, own_tool.")
    (line,) = menu([equip(ROLE, [NOTES, CSV])]).splitlines()
    assert line.endswith("Its tools: calculate, own_tool; query_data for inputs that they read.")


def test_a_planner_is_told_the_tools_that_a_role_goes_on_without_on_this_worker() -> None:
    lacking = {"web_search": "needs SETTING, which is not set here"}
    surfer = RoleCard(name="surfer", description="Looks up", tools=("web_search", "web_fetch"))
    here = serve([surfer], (), surfer.tools, lacking, use_models=True)
    assert menu(here.roles).endswith("Its tools: web_fetch. Not here: web_search.")
    whole = serve([surfer], (), surfer.tools, {}, use_models=True)
    assert menu(whole.roles).endswith("Its tools: web_search, web_fetch.")


def test_a_folder_is_not_given_to_a_role_whose_tools_cannot_look_into_one() -> None:
    def said(*tools: str) -> str:
        role = ROLE.model_copy(update={"tools": tools})
        task = subtask("t1", role="clerk").model_copy(update={"inputs": ("folder",)})
        plan = Plan(goal="g", subtasks=(task,))
        return validity.unread_problem(plan, [role], {"folder": ""})

    assert "role 'clerk' has no tool that reads it" in said("calculate", "read_result")
    assert not said("list_files") and not said("own_tool")


def test_a_turn_with_nothing_to_read_has_the_room_of_a_call_and_less_under_a_small_cap() -> None:
    def room(dollars: str, *inputs: PinnedInput) -> int:
        state = state_of(ROLE, *inputs, dollars=dollars)
        return agents.next_goal(state, state.work["t1"])[0].room

    assert room("100") == room("100", CSV) == 8_000
    assert policies.LEAST_OUTPUT <= room("0.05") < 8_000
    assert room("100", PDF) == 0, "what is read may have to be told at length"


def test_what_is_mapped_needs_no_tool_and_beside_it_an_item_can_open_nothing() -> None:
    task = subtask("t1", role="clerk").model_copy(
        update={"inputs": ("folder", "rules"), "map": MapSpec(over="folder", by="files")}
    )
    plan, role = Plan(goal="g", subtasks=(task,)), ROLE.model_copy(update={"name": "clerk"})
    assert not validity.unread_problem(plan, [role], {"folder": ""})
    said = validity.unread_problem(plan, [role], {"folder": "", "rules": "read_document"})
    assert said == (
        "t1: input 'rules' is a document, and what is asked item by item has no tool that opens"
        " one; give its text as a plain file"
    )
