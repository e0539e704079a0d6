"""What somebody asks for has an effect, or is refused in a line that names it: pure rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from driving import ROLES, Drive, subtask
from holdfast.activities.agents import Agents
from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.prompts.files import system_prompts
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Check, Plan, RoleCard, Subtask, policies
from holdfast.contracts.errors import CallRefused
from holdfast.plans import checks, validity
from holdfast.storage import DirectoryStore
from holdfast.untrusted.unread import find_unread
from outcomes import begun, end

MARGIN = policies.CALL_MARGIN_SECONDS


def seconds_of(run: Drive, flight_id: str) -> float:
    return run.state.flights[flight_id].timeouts["start_to_close_timeout"].total_seconds()


@pytest.mark.parametrize("seconds", [7, 900])
def test_the_time_that_a_run_gives_its_calls_is_in_force_and_doubles_with_their_room(
    seconds: int,
) -> None:
    run = begun(subtask("a"), subtask("b", "a"), subtask_timeout_seconds=seconds)
    assert seconds_of(run, "work-a-1") == seconds + MARGIN
    end(run, "work-a-1", "truncated")
    assert seconds_of(run, "work-a-2") == 2 * seconds + MARGIN
    end(run, "work-a-2")
    end(run, "work-b-1")
    assert seconds_of(run, "synthesize-1") == 400 + MARGIN, "others take what their room needs"


@pytest.mark.parametrize(
    ("role", "fields", "named"),
    [
        ("scanner", {"tier": "haiku"}, "tier: no effect"),
        ("scanner", {"acceptance_criteria": "short"}, "acceptance_criteria: no effect"),
        ("scanner", {"checks": (Check(kind="valid_json"),)}, "checks: no effect"),
        ("sorter", {"tier": "sonnet"}, "tier: no effect, because role 'sorter' is always"),
    ],
)
def test_a_field_that_a_subtask_s_role_ignores_is_refused(
    role: str, fields: dict[str, object], named: str
) -> None:
    asked = Subtask.model_validate(subtask("a", role=role).model_dump() | fields)
    (wrong,) = validity.problems(Plan(goal="g", subtasks=(asked,)), ROLES, (), 6)
    assert named in wrong


def test_a_role_that_cannot_be_used_is_refused_with_its_reason() -> None:
    plan = Plan(goal="g", subtasks=(subtask("a", role="reader"),))
    (wrong,) = validity.problems(plan, ROLES, (), 6, unusable={"reader": "one.md: tools: Bash"})
    assert wrong.endswith("role 'reader' cannot be used: one.md: tools: Bash")


def test_a_folder_is_refused_where_an_agent_would_have_to_read_it() -> None:
    read = Plan(
        goal="g",
        subtasks=(Subtask.model_validate(subtask("a").model_dump() | {"inputs": ("repo",)}),),
    )
    scanned = Plan(
        goal="g",
        subtasks=(
            Subtask.model_validate(
                subtask("a", role="scanner").model_dump() | {"inputs": ("repo",)}
            ),
        ),
    )
    (wrong,) = validity.problems(read, ROLES, ["repo"], 6, unread={"repo": ""})
    assert wrong == validity.unread_problem(read, ROLES, {"repo": ""})
    assert "a: input 'repo' is a folder" in wrong
    assert "input 'repo' is a folder" in validity.unread_problem(None, ROLES, {"repo": ""})
    assert validity.unread_problem(scanned, ROLES, {"repo": ""}) == ""
    assert validity.unread_problem(None, ROLES, {}) == ""


def test_a_document_is_refused_where_the_role_has_other_tools_alone() -> None:
    reads = RoleCard(name="reads", description="d", tools=("read_file", "read_document"))
    asks = RoleCard(name="asks", description="d", tools=("query_data",))
    for role, refused in ((reads, False), (asks, True)):
        named = subtask("a", role=role.name).model_copy(update={"inputs": ("report",)})
        plan = Plan(goal="g", subtasks=(named,))
        wrong = validity.unread_problem(plan, (role,), {"report": "read_document"})
        assert bool(wrong) == refused
        whole = validity.unread_problem(None, (role,), {"report": "read_document"})
        assert bool(whole) == refused
    assert "a: input 'report' is a document" in wrong and "read_document" in wrong


def test_a_misspelt_field_of_a_plan_is_named_with_its_place() -> None:
    given = {"goal": "g", "stratgy": "merge", "subtasks": [{"id": "a", "depend_on": []}]}
    assert find_unread(Plan, given) == ("stratgy", "subtasks[0].depend_on")


def test_an_argument_that_a_check_ignores_is_refused() -> None:
    (wrong,) = checks.problems([Check(kind="cites_sources", argument="3")])
    assert "takes no argument" in wrong


@pytest.mark.anyio
async def test_a_check_that_cannot_be_carried_out_is_refused_before_anything_is_paid(
    tmp_path: Path,
) -> None:
    store, system = DirectoryStore(tmp_path), system_prompts()
    agents = Agents(None, FileJournal(tmp_path), store, {}, system, {}, lambda *_: None)
    edited = subtask("a").model_copy(update={"checks": (Check(kind="regex", argument="("),)})
    call = Call(purpose="work-a", kind="work", subtask_id="a", role="analyst")
    with pytest.raises(CallRefused, match=r"checks: regex '\('"):
        await ActivityEnvironment().run(agents.work, call, WorkMaterial(subtask=edited))
