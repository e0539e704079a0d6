"""`prepare`: what it resolves, and every goal that it refuses for good."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from temporalio.testing import ActivityEnvironment

from driving import BRIEFING, subtask
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.mapping.scanning import Inputs
from holdfast.activities.preparation import INPUT_BYTES, PREVIEW_BYTES, Preparation
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.review.lenses import analysers
from holdfast.activities.snapshots import plain
from holdfast.activities.tools.read_document import explain_unreadable
from holdfast.activities.toolset.shelf import shipped_tools
from holdfast.calls.row import row_prompt
from holdfast.calls.rows import Item
from holdfast.cli.commands.care import doctor
from holdfast.contracts import (
    Briefing,
    Capabilities,
    Check,
    Fork,
    Goal,
    GoalInput,
    ModelCard,
    Omission,
    PinnedInput,
    Plan,
    Tier,
    Usage,
)
from holdfast.contracts.errors import BadGoal
from holdfast.contracts.goals import RoleAsWas
from holdfast.deployment.extras import needs
from holdfast.deployment.settings import HOME
from holdfast.ports import Store
from holdfast.storage import DirectoryStore
from holdfast.untrusted.roots import Root, Roots
from shipped import shipped_catalogue

pytestmark = pytest.mark.anyio
REVIEW_TOOLS = tuple(analysers())
FULL = Capabilities()


class Cards:
    """Prices of three models, or of none."""

    def __init__(self, cards: tuple[ModelCard, ...] = BRIEFING.models) -> None:
        self._cards = cards

    def planner(self) -> ModelCard | None:
        return None

    def cards(self) -> tuple[ModelCard, ...]:
        return self._cards

    def card(self, tier: Tier, model: str) -> ModelCard:
        return next(each for each in BRIEFING.models if each.tier == tier).model_copy(
            update={"id": model}
        )

    def price(self, model: str, usage: Usage) -> Decimal | None:
        raise AssertionError("nothing is paid in preparing")


async def take_snapshot(
    name: str, path: Path, _roots: Roots, wanted: Wanted, _store: Store
) -> PinnedInput:
    return PinnedInput(
        name=name, kind="repository", size=1, preview=f"{path.name} {wanted.base} {wanted.scope}"
    )


async def capabilities() -> Capabilities:
    return FULL


Prepare = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    folder = tmp_path / "allowed"
    folder.mkdir()
    return folder


@pytest.fixture
def preparation(store: DirectoryStore, allowed: Path) -> Preparation:
    root = Root.of(allowed)
    return Preparation(
        catalogue=shipped_catalogue(),
        store=store,
        pricing=Cards(),
        lenses=REVIEW_TOOLS,
        tools=tuple(shipped_tools()),
        take_snapshot=take_snapshot,
        take_folder=plain.take,
        mapped=Inputs(store, Snapshots(store, allowed.parent / "snapshots")),
        allowed_roots=lambda: (root,),
        capabilities=capabilities,
        has_endpoint=True,
        version="9",
    )


def goal(text: str = "Compare the two", **fields: Any) -> Goal:
    return Goal.model_validate({"text": text, "use_models": True, **fields})


def given(value: str | Path, kind: str = "file", name: str = "report") -> tuple[GoalInput, ...]:
    return (GoalInput.model_validate({"name": name, "kind": kind, "value": str(value)}),)


async def prepare(preparation: Preparation, goal: Goal) -> Briefing:
    return await ActivityEnvironment().run(preparation.prepare, goal)


async def refusal(preparation: Preparation, goal: Goal) -> str:
    with pytest.raises(BadGoal) as refused:
        await prepare(preparation, goal)
    assert refused.value.non_retryable
    return refused.value.message


# ---------------------------------------------------------------- what is resolved


async def test_a_goal_is_resolved_into_all_that_the_run_needs_to_know(
    preparation: Preparation, store: DirectoryStore, allowed: Path
) -> None:
    path = allowed / "report.txt"
    path.write_text("ä" * PREVIEW_BYTES, encoding="utf-8")
    briefing = await prepare(preparation, goal(inputs=given(path)))
    (pinned,) = briefing.inputs
    assert (pinned.kind, pinned.size) == ("file", 2 * PREVIEW_BYTES)
    assert await store.get(pinned.digest) == path.read_bytes()
    assert pinned.preview == "ä" * (PREVIEW_BYTES // 2)
    assert briefing.models == BRIEFING.models
    assert {"researcher", "analyst", "writer", "reviewer"} <= {each.name for each in briefing.roles}
    kept = {each.name: (await store.get(each.prompt)).decode() for each in briefing.roles}
    assert kept == {name: preparation.catalogue.roles[name].prompt for name in kept}
    assert briefing.version == "9"


async def test_a_run_without_a_model_gets_no_models_and_only_the_roles_it_can_serve(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "repo").mkdir()
    review = goal(
        playbook="code-review",
        use_models=False,
        inputs=given(allowed / "repo", "repository", "repo"),
    )
    briefing = await prepare(replace(preparation, has_endpoint=False), review)
    assert briefing.models == ()
    assert {each.name for each in briefing.roles} == set(REVIEW_TOOLS)
    assert not any(each.prompt for each in briefing.roles), "nobody is told anything"
    (agents,) = briefing.not_run
    assert (agents.what, agents.agents) == ("6 agents", 6) and "--models" in agents.why


async def test_a_lens_whose_tool_is_missing_is_said_and_not_planned(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "repo").mkdir()
    review = goal(
        playbook="code-review",
        use_models=False,
        inputs=given(allowed / "repo", "repository", "repo"),
    )
    briefing = await prepare(replace(preparation, lenses=("bugs", "history")), review)
    assert briefing.playbook is not None and briefing.playbook.plan is not None
    assert [each.role for each in briefing.playbook.plan.subtasks] == ["bugs", "history"]
    lenses = [each for each in briefing.not_run if not each.agents]
    assert len(lenses) == len(REVIEW_TOOLS) - 2
    assert all("which this worker does not have" in each.why for each in lenses)


async def test_a_lens_that_no_role_uses_is_said_of_a_review_and_by_doctor(
    preparation: Preparation, allowed: Path, tmp_path: Path
) -> None:
    for name in ("roles", "playbooks"):
        shutil.copytree(HOME / name, tmp_path / "home" / name)
    (tmp_path / "home/playbooks/code-review/roles/secrets.md").unlink()
    catalogue = Catalogue.load(tmp_path / "home")
    review = goal(
        playbook="code-review", use_models=False, inputs=given(allowed, "repository", "repo")
    )
    before = (await prepare(preparation, review)).not_run
    briefing = await prepare(replace(preparation, catalogue=catalogue), review)
    assert briefing.not_run == (*before, Omission(what="lens secrets", why="no role uses it"))
    (check,) = doctor.find_idle(catalogue)
    assert (check.mark, check.name) == ("note", "analyser secrets")
    assert doctor.find_idle(shipped_catalogue()) == []


async def test_a_fork_reads_nothing_of_its_inputs_again_and_is_refused_if_the_store_lost_them(
    preparation: Preparation, tmp_path: Path, allowed: Path
) -> None:
    path = allowed / "report.txt"
    path.write_text("before")
    inputs = given(path)
    (pinned,) = (await prepare(preparation, goal(inputs=inputs))).inputs
    path.unlink()
    fork = goal(inputs=inputs, pinned=(pinned,), fork=Fork(run_id="first"))
    assert (await prepare(preparation, fork)).inputs == (pinned,)
    shutil.rmtree(tmp_path / "store")
    said = await refusal(preparation, fork)
    assert said.startswith(f"input {pinned.name!r}: what run first read of it is no longer in")
    assert said.endswith("start a new run in place of a fork")


async def test_a_fork_may_have_roles_otherwise_than_their_files_and_is_refused_without_their_text(
    preparation: Preparation, store: DirectoryStore
) -> None:
    usual = (await prepare(preparation, goal())).role("analyst")
    kept = await store.put(b"You are brief.")
    was = RoleAsWas(name="analyst", tier="haiku", effort="low", prompt=kept, model="other")
    fork = Fork(run_id="first", roles=(was,))
    role = (await prepare(preparation, goal(fork=fork))).role("analyst")
    assert (role.tier, role.effort, role.prompt) == ("haiku", "low", kept)
    assert role.model is not None and (role.model.id, role.model.tier) == ("other", "haiku")
    shorter = len(preparation.catalogue.roles["analyst"].prompt.encode()) - len(b"You are brief.")
    assert role.prompt_bytes == usual.prompt_bytes - shorter
    lost = was.model_copy(update={"prompt": "0" * 64})
    said = await refusal(preparation, goal(fork=Fork(run_id="first", roles=(lost,))))
    assert said.startswith("role 'analyst': the text that the fork is to be told is no longer in")


async def test_a_repository_is_pinned_with_the_revision_it_differs_from(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "repo").mkdir()
    inputs = given(allowed / "repo", "repository", "repo") + given("v1", "text", "base")
    briefing = await prepare(
        preparation, goal(playbook="code-review", use_models=False, inputs=inputs)
    )
    assert briefing.inputs[0].preview == "repo v1 changed"


async def test_an_unpriced_model_is_accepted_when_the_caller_says_so(
    preparation: Preparation,
) -> None:
    unpriced = tuple(card.model_copy(update={"prices": ()}) for card in BRIEFING.models)
    briefing = await prepare(replace(preparation, pricing=Cards(unpriced)), goal(unpriced=True))
    assert briefing.models == unpriced


async def test_a_probe_that_the_store_holds_is_no_obstacle(
    preparation: Preparation, store: DirectoryStore
) -> None:
    await prepare(preparation, goal(probe=await store.put(b"probe")))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("text", ["", " \n\t "])
async def test_an_empty_goal_is_refused(preparation: Preparation, text: str) -> None:
    assert "the goal is empty" in await refusal(preparation, goal(text))


async def test_an_unknown_playbook_is_refused_with_those_that_exist(
    preparation: Preparation,
) -> None:
    said = await refusal(preparation, goal(playbook="code-reveiw"))
    assert "unknown playbook 'code-reveiw'; known: " in said and "code-review" in said


async def test_a_playbooks_missing_input_is_refused_by_name(preparation: Preparation) -> None:
    said = await refusal(preparation, goal(playbook="code-review", use_models=False))
    assert said == "playbook 'code-review' needs the input 'repo'"


async def test_an_input_that_the_playbook_does_not_declare_is_refused_and_not_read(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "id_rsa").write_text("key")
    inputs = (*given(allowed, "repository", "repo"), *given(allowed / "id_rsa", name="steal"))
    asked = goal(playbook="code-review", use_models=False, inputs=inputs)
    said = await refusal(preparation, asked)
    known = "base, fix, intent, prove, repo, scope"
    assert said == f"playbook 'code-review' has no input 'steal'; it has: {known}"


async def test_a_file_without_a_word_of_what_it_is_taken_for_is_refused(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "case.md").write_text("Bread and two lemons")
    inputs = given(allowed / "case.md", name="case")
    said = await refusal(preparation, goal(playbook="patient-case", inputs=inputs))
    assert "case.md' has none of the words patient, " in said and "\n" not in said


async def test_the_text_of_a_pull_request_is_kept_without_secrets(
    preparation: Preparation, allowed: Path
) -> None:
    told = allowed / "pull.md"
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    told.write_text(f"Use the token {secret} to try it\n")
    inputs = (*given(allowed, "repository", "repo"), *given(told, name="intent"))
    brief = await prepare(preparation, goal(playbook="code-review", inputs=inputs))
    (pinned,) = [each for each in brief.inputs if each.name == "intent"]
    assert await preparation.store.get(pinned.digest) == b"Use the token [redacted] to try it\n"
    assert secret not in brief.model_dump_json()


async def test_a_scope_that_is_none_is_refused_in_one_line(
    preparation: Preparation, allowed: Path
) -> None:
    repo = given(allowed, "repository", "repo")
    asked = goal(playbook="code-review", inputs=repo + given("some", "text", "scope"))
    said = await refusal(preparation, asked)
    assert said == "input 'scope': 'some' is none of changed, all; give one of these"
    both = repo + given("all", "text", "scope") + given("v1", "text", "base")
    said = await refusal(preparation, goal(playbook="code-review", inputs=both))
    assert said.startswith("scope=all takes the whole tree and base='v1'")


async def test_an_input_of_another_kind_is_refused(preparation: Preparation) -> None:
    review = goal(playbook="code-review", use_models=False, inputs=given("x", "text", "repo"))
    assert await refusal(preparation, review) == "input 'repo' must be a repository, not a text"


async def test_an_input_that_is_given_twice_is_refused(preparation: Preparation) -> None:
    twice = given("a", "text") + given("b", "text")
    assert await refusal(preparation, goal(inputs=twice)) == "input 'report' is given twice"


async def test_a_missing_file_is_refused(preparation: Preparation, allowed: Path) -> None:
    said = await refusal(preparation, goal(inputs=given(allowed / "none.txt")))
    assert said.startswith("input 'report': no such path: ") and "none.txt" in said


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 5_000])
async def test_a_value_that_is_no_path_is_refused(preparation: Preparation, value: str) -> None:
    assert "input 'report': " in await refusal(preparation, goal(inputs=given(value)))


async def test_a_file_that_is_not_text_is_refused(preparation: Preparation, allowed: Path) -> None:
    path = allowed / "binary"
    path.write_bytes(b"\x89PNG\0\0")
    said = await refusal(preparation, goal(inputs=given(path)))
    assert "neither text nor a document that a tool reads" in said
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old")
    said = await refusal(preparation, goal(inputs=given(path)))
    assert "an old or encrypted Office document; save it as .docx" in said


@pytest.mark.parametrize(
    ("content", "reader"),
    [
        (b"%PDF-1.7 \xff", "read_document"),
        (b"PK\x03\x04 \xff word/document.xml", "read_document"),
        (b"GIF89a begins a picture", ""),
        (b"PAR1\0\0", "query_data"),
        (b"SQLite format 3\0", "query_data"),
        ("name;size\nMüller;3\n".encode("latin-1"), "read_document"),
        ("a line".encode("utf-16"), "read_document"),
        (b"a line, and %PDF afterwards", ""),
    ],
)
async def test_a_document_is_pinned_as_it_is_with_the_tool_that_reads_it(
    preparation: Preparation, store: DirectoryStore, allowed: Path, content: bytes, reader: str
) -> None:
    path = allowed / "report"
    path.write_bytes(content)
    (pinned,) = (await prepare(preparation, goal(inputs=given(path)))).inputs
    assert (pinned.kind, pinned.reader, pinned.size) == ("file", reader, len(content))
    assert await store.get(pinned.digest) == content
    assert pinned.enclosed == (not reader)
    assert bool(pinned.preview) == (not reader), "the planner is shown no bytes of a document"


@pytest.mark.parametrize(
    ("content", "extra"),
    [
        (b"%PDF-1.7 \xff", "documents"),
        (b"PK\x03\x04 \xff word/document.xml", "documents"),
        (b"PAR1\0\0", "data"),
        ("a line".encode("utf-16"), ""),
    ],
)
async def test_a_document_that_nothing_here_can_read_is_refused_with_what_to_install(
    preparation: Preparation,
    allowed: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    extra: str,
) -> None:
    path = allowed / "report"
    path.write_bytes(content)
    assert await explain_unreadable(b"PK\x03\x04 broken word/document.xml")
    monkeypatch.setattr("holdfast.deployment.extras.has_module", lambda _: False)
    assert not await explain_unreadable(b"PK\x03\x04 broken word/document.xml"), (
        "another may read it"
    )
    asked = goal(inputs=given(path))
    if not extra:
        assert (await prepare(preparation, asked)).inputs
        return
    said = await refusal(preparation, asked)
    assert said == f"input 'report': to read it this worker {needs(extra)}"


async def test_a_document_for_a_role_that_cannot_read_it_is_refused_before_anything_is_paid(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "figures").write_bytes(b"PAR1\0")
    named = subtask("t1", role="writer").model_copy(update={"inputs": ("report",)})
    plan = Plan(goal="g", subtasks=(named,))
    said = await refusal(preparation, goal(inputs=given(allowed / "figures"), plan=plan))
    assert "t1: input 'report' is a document" in said and "query_data" in said


@pytest.mark.parametrize("letter", ["a", "ä", "\U0001f600"])
async def test_a_file_that_is_too_large_is_refused_as_such(
    preparation: Preparation, allowed: Path, letter: str
) -> None:
    path = allowed / "large"
    path.write_text(letter * (INPUT_BYTES + 1), encoding="utf-8")
    assert "is larger than" in await refusal(preparation, goal(inputs=given(path)))


async def test_a_text_that_is_too_large_is_refused(preparation: Preparation) -> None:
    large = given("x" * (INPUT_BYTES + 1), "text")
    assert "is larger than" in await refusal(preparation, goal(inputs=large))


async def test_a_folder_and_a_pipe_are_no_files(preparation: Preparation, allowed: Path) -> None:
    os.mkfifo(allowed / "pipe")
    for path in (allowed, allowed / "pipe"):
        assert "not a regular file" in await refusal(preparation, goal(inputs=given(path)))


async def test_a_path_outside_the_allowed_roots_is_refused_also_through_a_link(
    preparation: Preparation, allowed: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    (allowed / "link").symlink_to(outside)
    beside = tmp_path / "allowed-not"
    beside.mkdir()
    for path in (outside, allowed / "link", allowed / ".." / "outside.txt", beside):
        said = await refusal(preparation, goal(inputs=given(path)))
        assert "is below no allowed root" in said, path


async def test_a_link_that_leads_to_itself_is_refused(
    preparation: Preparation, allowed: Path
) -> None:
    (allowed / "loop").symlink_to(allowed / "loop")
    said = await refusal(preparation, goal(inputs=given(allowed / "loop")))
    assert said.endswith("/loop': cannot be read: Too many levels of symbolic links")


async def test_without_an_endpoint_a_goal_that_needs_a_model_is_refused(
    preparation: Preparation,
) -> None:
    said = await refusal(replace(preparation, has_endpoint=False), goal())
    assert "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL" in said


async def test_an_unpriced_model_is_refused_by_name(preparation: Preparation) -> None:
    cards = (BRIEFING.models[0], BRIEFING.models[1].model_copy(update={"prices": ()}))
    said = await refusal(replace(preparation, pricing=Cards(cards)), goal())
    assert "no price is known for a-sonnet;" in said and "--unpriced" in said


async def test_a_probe_that_the_store_does_not_hold_names_the_mistake(
    preparation: Preparation,
) -> None:
    said = await refusal(preparation, goal(probe="0" * 64))
    assert "give both the same STORE_URL" in said


async def test_without_a_model_and_without_a_plan_nothing_can_run(preparation: Preparation) -> None:
    said = await refusal(preparation, goal(use_models=False))
    assert said.startswith("without a model a run needs a ready plan")


async def test_an_invalid_plan_is_refused_with_all_its_errors_at_once(
    preparation: Preparation,
) -> None:
    wrong = subtask("b", "nobody", role="wizard").model_copy(
        update={"inputs": ("table",), "checks": (Check(kind="regex", argument="("),)}
    )
    plan = Plan(goal="Compare", subtasks=(subtask("a", "a"), wrong))
    said = await refusal(preparation, goal(plan=plan))
    for expected in (
        "subtasks[1] 'b': unknown role 'wizard'",
        "subtasks[1] 'b': unknown input 'table'",
        "subtasks[1] 'b': depends_on: unknown subtask 'nobody'",
        "subtasks[1] 'b': checks: regex '('",
        "there is a cycle: a -> a",
    ):
        assert expected in said


async def test_a_plan_whose_role_needs_a_model_is_refused_in_a_run_without_one(
    preparation: Preparation,
) -> None:
    plan = Plan(goal="Compare", subtasks=(subtask("a", role="analyst"),))
    said = await refusal(preparation, goal(plan=plan, use_models=False))
    assert (
        "role 'analyst' cannot be used: needs a model, and this run uses none: --models asks"
        in said
    )


async def test_a_cap_that_is_too_small_is_refused_before_anything_is_paid(
    preparation: Preparation,
) -> None:
    small = goal(limits={"dollars": "0.0001"})
    said = await refusal(preparation, small)
    assert "a cap of $0.0001 does not cover" in said
    enough = said.rsplit("--limits ", 1)[1]
    name, dollars = enough.split("=")
    assert name == "dollars"
    await prepare(preparation, goal(limits={"dollars": dollars}))
    # Who waits for a higher cap is asked for one by the run.
    await prepare(preparation, small.model_copy(update={"wait_for_raise": True}))


# ---------------------------------------------------------------- tools and their keys


def reader(tools: str, home: Path) -> Catalogue:
    """The shipped roles, and a reader with these tools."""
    (home / "roles").mkdir()
    text = f"---\nname: reader\ndescription: Reads\ntools: {tools}\n---\nYou read.\n"
    (home / "roles" / "reader.md").write_text(text)
    extra, shipped = Catalogue.load(home), shipped_catalogue()
    return Catalogue({**shipped.roles, **extra.roles}, shipped.playbooks)


def without_key(preparation: Preparation, tools: str, home: Path) -> Preparation:
    return replace(
        preparation,
        catalogue=reader(tools, home),
        tools=tuple(shipped_tools()),
        lacking={"search_files": "needs SEARCH_KEY, which is not set here"},
    )


async def test_a_role_goes_on_without_a_tool_whose_key_is_not_set_and_the_run_says_so(
    preparation: Preparation, tmp_path: Path
) -> None:
    here = without_key(preparation, "read_file, search_files", tmp_path)
    briefing = await prepare(here, goal())
    assert briefing.role("reader").tools == ("read_file", "read_result")
    (told,) = [each for each in briefing.not_run if each.what == "tool search_files"]
    # Until there is a plan nobody knows whether it has the role at work.
    assert {"reader", "researcher"} <= {*told.roles} and "document-reader" not in told.roles
    assert told.why.startswith("it needs SEARCH_KEY, which is not set here; ")
    assert "reader" in told.why and told.why.endswith("on without")


async def test_a_common_role_whose_only_tool_lacks_its_key_is_not_offered_and_a_plan_told_why(
    preparation: Preparation, tmp_path: Path
) -> None:
    here = without_key(preparation, "search_files", tmp_path)
    briefing = await prepare(here, goal())
    assert "reader" not in [each.name for each in briefing.roles]
    assert "role reader" not in [each.what for each in briefing.not_run], "doctor tells it"
    plan = Plan(goal="g", subtasks=(subtask("t1", role="reader"),))
    assert "search_files needs SEARCH_KEY" in await refusal(here, goal(plan=plan))


@pytest.mark.parametrize(
    ("folder", "playbook", "said"),
    [
        ("roles", "", False),
        ("roles", "tech-support", False),
        ("playbooks/tech-support/roles", "", False),
        ("playbooks/tech-support/roles", "tech-support", True),
    ],
)
async def test_a_broken_role_file_is_said_only_by_runs_of_the_playbook_that_it_is_of(
    preparation: Preparation, tmp_path: Path, allowed: Path, folder: str, playbook: str, said: bool
) -> None:
    home = tmp_path / "home"
    for name in ("roles", "playbooks"):
        shutil.copytree(HOME / name, home / name)
    (home / folder / "odd.md").write_text("---\nname: odd\ndescripton: x\n---\nYou read.\n")
    (allowed / "ticket.md").write_text("It does not start")
    inputs = given(allowed / "ticket.md", name="ticket") if playbook else ()
    here = replace(preparation, catalogue=Catalogue.load(home))
    briefing = await prepare(here, goal(playbook=playbook, inputs=inputs))
    assert any(each.what == "role odd" for each in briefing.not_run) == said
    plan = Plan(goal="g", subtasks=(subtask("t1", role="odd"),))
    refused = await refusal(here, goal(plan=plan, playbook=playbook, inputs=inputs))
    assert ("descripton" in refused) == (folder == "roles" or said), "a plan names it"


async def test_a_plan_whose_roles_need_no_key_is_told_nothing_of_it(
    preparation: Preparation, tmp_path: Path
) -> None:
    here = without_key(preparation, "read_file, search_files", tmp_path)
    plan = Plan(goal="g", subtasks=(subtask("t1", role="document-reader"),))
    assert (await prepare(here, goal(plan=plan))).not_run == ()


async def test_a_briefing_says_where_the_tools_of_its_roles_come_from(
    preparation: Preparation,
) -> None:
    sources = {"read_file": "from your project", "web_search": "from package pack"}
    told = replace(preparation, tool_sources=sources, lacking={"web_search": "needs a key"})
    briefing = await ActivityEnvironment().run(told.prepare, goal())
    assert briefing.tool_sources == {"read_file": "from your project"}


async def test_an_input_that_only_models_read_is_refused_without_them(
    preparation: Preparation, allowed: Path
) -> None:
    repo = given(allowed, "repository", "repo")
    told = goal(
        playbook="code-review", use_models=False, inputs=(*repo, *given("yes", "text", "fix"))
    )
    assert await refusal(preparation, told) == "input 'fix': only models read it; add --models"


def mapping_plan(by: str = "records", **spec: Any) -> Plan:
    over = {"over": "report", "by": by, **spec}
    task = {
        "id": "t1",
        "title": "Label",
        "instruction": "Return the one word that says best what the text {x} is about",
        "role": "analyst",
        "map": over,
    }
    return Plan.model_validate({"goal": "g", "subtasks": [task]})


async def test_items_of_a_mapped_input_are_counted_and_measured(
    preparation: Preparation, allowed: Path
) -> None:
    path = allowed / "items.jsonl"
    path.write_text('{"id": 1, "x": "abc"}\n{"id": 2, "x": "de"}\n{"id"\n{"id": 3, "x": "de"}\n')
    asked = goal(inputs=given(path), plan=mapping_plan(id="id", tolerate=25))
    (pinned,) = (await prepare(preparation, asked)).inputs
    assert pinned.items is not None
    assert (pinned.items.count, pinned.items.broken, pinned.items.fields) == (4, 1, ("id", "x"))
    assert (pinned.items.repeated, pinned.items.asked) == (1, 2)
    assert pinned.items.samples == ("line 3 is no JSON: Expecting ':' delimiter (character 6)",)
    alone = pinned.items.shown(["x"])
    prompts = [row_prompt(Item(n=0, id="", place="", fields={"x": x})) for x in ("abc", "de")]
    # No item is larger than was said, and none is much smaller.
    assert 0 <= alone - sum(map(len, prompts)) <= 4


async def test_what_is_wrong_with_mapped_items_is_said_before_anything_is_paid(
    preparation: Preparation, allowed: Path
) -> None:
    path = allowed / "items.jsonl"
    path.write_text('{"id": 1, "x": 1}\n{"id": 1, "x": 2}\n')
    why = await refusal(preparation, goal(inputs=given(path), plan=mapping_plan(id="id")))
    assert why == "input 'report' line 2 has the 'id' '1' again, which names line 1"
    why = await refusal(preparation, goal(inputs=given(path), plan=mapping_plan("files")))
    assert why == "input 'report' is JSON, which has no files; map it by records"


async def test_more_broken_items_than_may_fail_are_refused_unless_a_person_is_to_decide(
    preparation: Preparation, allowed: Path
) -> None:
    path = allowed / "items.jsonl"
    path.write_text('{"id": 1, "x": 1}\n{"id"\n{"id"\n{"id": 3, "x": 2}\n{"id": 4, "x": 3}\n')
    asked = goal(inputs=given(path), plan=mapping_plan(id="id", tolerate=39))
    assert await refusal(preparation, asked) == (
        "input 'report': 2 of 5 records cannot be asked, more than the 39 % of t1 that may fail"
        " (line 2 is no JSON: Expecting ':' delimiter (character 6)); mend them, raise its"
        " `tolerate`, or decide about them with --ask"
    )
    for told in ({"ask_people": True}, {"plan_only": True}):
        assert (await prepare(preparation, asked.model_copy(update=told))).inputs


async def test_a_map_that_must_go_by_batches_is_refused_where_there_are_none(
    preparation: Preparation, allowed: Path
) -> None:
    path = allowed / "items.jsonl"
    path.write_text('{"id": 1, "x": 1}\n')
    wanted = "subtask 't1': lane: batch: this endpoint takes no batches; say now or auto"
    for told in (
        goal(inputs=given(path), plan=mapping_plan(lane="batch"), use_models=True),
        goal(inputs=given(path), plan=mapping_plan(), lane="batch", use_models=True),
    ):
        assert wanted in await refusal(preparation, told)
    assert await prepare(preparation, goal(inputs=given(path), plan=mapping_plan(lane="auto")))


async def test_a_planner_is_told_of_records_that_could_be_mapped(
    preparation: Preparation, allowed: Path
) -> None:
    path = allowed / "items.csv"
    path.write_text("id,x\n1,a\n2,b\n")
    (pinned,) = (await prepare(preparation, goal(inputs=given(path)))).inputs
    assert pinned.items is not None
    assert (pinned.items.by, pinned.items.count, pinned.items.whole) == ("rows", 2, True)


async def test_only_mapped_inputs_may_be_large_and_none_may_change_while_it_is_read(
    preparation: Preparation, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = allowed / "items.jsonl"
    row, blank = b'{"id": 1, "x": "' + b"y" * 1000 + b'"}\n', b" " * 999 + b"\n"
    path.write_bytes(row + blank * (INPUT_BYTES // 1_000 + 1))
    assert "larger than" in await refusal(preparation, goal(inputs=given(path)))
    asked = goal(inputs=given(path), plan=mapping_plan())
    (pinned,) = (await prepare(preparation, asked)).inputs
    assert (pinned.size, pinned.enclosed) == (path.stat().st_size, False)
    assert pinned.items is not None
    assert pinned.items.count == 1
    put_file = preparation.store.put_file

    async def put_and_write(source: BinaryIO) -> tuple[str, int]:
        done = await put_file(source)
        path.write_bytes(path.read_bytes() + b"{}\n")
        return done

    monkeypatch.setattr(preparation.store, "put_file", put_and_write)
    assert "changed while it was read" in await refusal(preparation, asked)
