"""Every role, playbook and analyser that exists is usable; unusable files are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.templates import TEMPLATES
from holdfast.activities.catalogue.tools import OF_CLAUDE_CODE
from holdfast.activities.prompts.files import system_prompts
from holdfast.activities.review.lenses import analysers
from holdfast.activities.toolset.shelf import shipped_tools
from holdfast.calls.turn import READS_ON
from holdfast.calls.work import join_rules
from holdfast.contracts import HARD_SUBTASK_LIMIT, policies
from holdfast.deployment.settings import HOME
from holdfast.plans import validity
from shipped import shipped_catalogue

CATALOGUE = shipped_catalogue()
TOOLS = analysers()

# ---------------------------------------------------------------- what exists


@pytest.mark.parametrize("name", sorted(CATALOGUE.roles))
def test_each_role_can_be_planned_and_served(name: str) -> None:
    role = CATALOGUE.roles[name]
    card = role.card
    assert card.description.strip(), "the planner chooses by it"
    assert role.prompt.strip() or card.team
    assert card.prompt_bytes >= len(role.prompt.encode())
    here = TOOLS if card.tier == "none" else shipped_tools()
    unknown = [tool for tool in card.tools if tool not in here]
    assert not unknown, f"tools that nobody registers: {unknown}"
    if card.tier == "none":
        assert len(card.tools) == 1, "a role without a model is one tool"
    # Of roles that stand in for each other one is the last.
    assert bool(card.fallback) == (card.tier != "none" and name != "analyst")
    if card.fallback:
        fallback = CATALOGUE.roles[card.fallback]
        assert fallback.card.tier != "none"
        assert fallback.playbook in ("", role.playbook), "a fallback is within reach"


LEAST_CACHED = 512
"""Tokens: no prompt cache takes a shorter beginning of a request."""


def test_what_calls_of_a_shipped_role_have_in_common_is_too_short_for_any_cache() -> None:
    """Else a fan-out that waits for its first answer could save something: docs/models.md."""
    prompts = system_prompts()
    asked = [role for role in CATALOGUE.roles.values() if role.card.tier != "none"]
    # Those of a review have tools in each call, whose specifications are cached.
    asked = [role for role in asked if role.playbook != "code-review"]
    for rules in (prompts["work_rules"], prompts["row_rules"]):
        longest = max(len(join_rules(role.prompt, rules).encode()) / 4 for role in asked)
        assert longest < LEAST_CACHED


@pytest.mark.parametrize("name", sorted(CATALOGUE.playbooks))
def test_each_playbook_has_a_valid_plan_over_its_roles_and_inputs(name: str) -> None:
    playbook = CATALOGUE.playbooks[name]
    assert playbook.description.strip()
    assert playbook.template in TEMPLATES
    if playbook.plan is None:
        assert playbook.guidance.strip(), "without a plan, the planner needs guidance"
        return
    roles = CATALOGUE.roles_for(name)
    plan = playbook.plan
    assert validity.problems(plan, roles, tuple(playbook.inputs), HARD_SUBTASK_LIMIT) == ()


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_each_analyser_is_the_tool_of_a_role_that_some_plan_uses(name: str) -> None:
    roles = [each for each, role in CATALOGUE.roles.items() if name in role.card.tools]
    assert roles, f"no role names {name}"
    planned = {
        subtask.role
        for playbook in CATALOGUE.playbooks.values()
        if playbook.plan
        for subtask in playbook.plan.subtasks
    }
    assert planned & set(roles)


def test_the_role_that_takes_over_a_goal_without_a_plan_exists() -> None:
    assert CATALOGUE.roles[policies.FALLBACK_ROLE].playbook == ""


def test_every_role_and_playbook_file_was_found() -> None:
    files = [*HOME.glob("roles/*.md"), *HOME.glob("playbooks/*/roles/*.md")]
    assert len(CATALOGUE.roles) == len(files) > 0
    assert len(CATALOGUE.playbooks) == len(list(HOME.glob("playbooks/*/playbook.yaml"))) > 0


# ---------------------------------------------------------------- files that others wrote


def write(home: Path, text: str, name: str = "roles/one.md") -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return home


def role(front: str = "", body: str = "You review code.") -> str:
    return f"---\nname: code-reviewer\ndescription: Reviews code\n{front}---\n{body}\n"


def why(home: Path, name: str = "code-reviewer", playbook: str = "") -> str:
    catalogue = Catalogue.load(home)
    assert name not in catalogue.roles
    return catalogue.unusable_for(playbook)[name]


def test_two_roles_that_claim_the_same_case_are_both_unusable_and_each_names_the_other(
    tmp_path: Path,
) -> None:
    write(tmp_path, role("cases: [a crash, a how-to question]\n"))
    other = role("cases: [A  crash]\n").replace("code-reviewer", "mender")
    write(tmp_path, other, "roles/two.md")
    same = "claims 'a crash', too; give it to one of them"
    assert why(tmp_path) == f"code-reviewer.md: cases: role 'mender' {same}"
    assert why(tmp_path, "mender") == f"mender.md: cases: role 'code-reviewer' {same}"


def test_the_names_of_composed_roles_are_kept_for_them(tmp_path: Path) -> None:
    text = role().replace("code-reviewer", "made-reviewer")
    found = why(write(tmp_path, text), "made-reviewer")
    assert found == (
        "one.md: front matter: name: made- begins the names of roles that planners compose; give it"
        " another"
    )


def test_roles_of_two_playbooks_may_claim_the_same_case(tmp_path: Path) -> None:
    for playbook in ("one", "two"):
        text = role("cases: [a crash]\n").replace("code-reviewer", f"mender-{playbook}")
        write(tmp_path, text, f"playbooks/{playbook}/roles/mender.md")
    assert len(Catalogue.load(tmp_path).roles) == 2


def test_a_subagent_file_of_claude_code_without_tools_works_as_it_is(tmp_path: Path) -> None:
    text = role("model: inherit\ncolor: blue\n", "You review.\n\n---\n\nBe brief.")
    loaded = Catalogue.load(write(tmp_path, text)).roles["code-reviewer"]
    assert loaded.card.tier == "sonnet"
    assert loaded.prompt == "You review.\n\n---\n\nBe brief."


@pytest.mark.parametrize(
    ("tools", "ours"),
    [
        ("Read, Grep", ("read_file", "read_document", "search_files", READS_ON)),
        ("[Glob, LS]", ("list_files", READS_ON)),
        ("\n  - Read\n  - read_file", ("read_file", "read_document", READS_ON)),
        ("calculate", ("calculate", READS_ON)),
    ],
)
def test_a_subagent_file_of_claude_code_gets_its_tools_by_our_names_and_each_of_them_once(
    tmp_path: Path, tools: str, ours: tuple[str, ...]
) -> None:
    loaded = Catalogue.load(write(tmp_path, role(f"tools: {tools}\n")))
    card = loaded.roles["code-reviewer"].card
    assert card.tools == ours
    told = sum(len(shipped_tools()[name].description.encode()) for name in ours)
    assert card.prompt_bytes > len("You review code.") + told, "what an endpoint is told is paid"


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        ("Read, Bash, Edit", "are no tools Bash, Edit"),
        ("[bugs]", "is no tool bugs"),
        ("read_files", "is no tool read_files"),
    ],
)
def test_tools_that_there_are_not_are_named_with_those_there_are(
    tmp_path: Path, tools: str, named: str
) -> None:
    said = why(write(tmp_path, role(f"tools: {tools}\n")))
    assert said.startswith(f"one.md: tools: there {named}; there are: ")
    assert "read_file" in said.partition("there are: ")[2]


@pytest.mark.parametrize("tool", ["read_file", "Grep", "mcp__clock__convert_time"])
def test_a_role_without_a_model_has_no_tool_of_agents(tmp_path: Path, tool: str) -> None:
    said = why(write(tmp_path, role(f"model: none\ntools: {tool}\n")))
    assert said == (
        f"one.md: tools: {tool} is for agents, and a role without a model runs one lens;"
        " name a lens, or give the role a model"
    )


def test_each_tool_of_claude_codes_that_we_take_is_one_of_ours() -> None:
    assert {name for names in OF_CLAUDE_CODE.values() for name in names} <= {*shipped_tools()}


def test_the_turns_of_a_role_are_read_and_bounded(tmp_path: Path) -> None:
    write(tmp_path, role("tools: Read\nturns: 4\n"))
    assert Catalogue.load(tmp_path).roles["code-reviewer"].card.turns == 4
    assert "turns" in why(write(tmp_path, role("tools: Read\nturns: 101\n")))


def test_a_role_knows_what_its_tools_read_and_which_of_them_may_read_anything(
    tmp_path: Path,
) -> None:
    write(tmp_path, role("tools: [git_diff, calculate, run_python, mcp__clock__now]\n"))
    card = Catalogue.load(tmp_path).roles["code-reviewer"].card
    assert {each.tool: each.inputs for each in card.reads} == {
        "git_diff": ("change",),
        "calculate": (),
        "read_result": (),
    }


def own(name: str, tools: str = "Read") -> str:
    return role(f"tools: {tools}\n").replace("code-reviewer", name)


def test_two_roles_of_one_playbook_may_not_share_a_tool_unless_it_says_why(tmp_path: Path) -> None:
    write(tmp_path, "name: other\ndescription: d\n", "playbooks/other/playbook.yaml")
    write(tmp_path, own("one"), "playbooks/other/roles/one.md")
    write(tmp_path, own("two", "read_file"), "playbooks/other/roles/two.md")
    write(tmp_path, own("third", "Grep"), "playbooks/other/roles/third.md")
    write(tmp_path, own("common"), "roles/common.md")
    said = why(tmp_path, "one", "other")
    assert said == why(tmp_path, "two", "other")
    assert "roles 'one' and 'two' share the tool read_file" in said
    assert "shared_tools" in said and "other/playbook.yaml" in said
    assert sorted(Catalogue.load(tmp_path).roles) == ["common", "third"], "nothing else is stopped"
    reason = "name: other\ndescription: d\nshared_tools:\n  read_file: both read the same code\n"
    write(tmp_path, reason, "playbooks/other/playbook.yaml")
    assert sorted(Catalogue.load(tmp_path).roles) == ["common", "one", "third", "two"]


def test_a_reason_for_what_nobody_shares_is_refused(tmp_path: Path) -> None:
    text = "name: other\ndescription: d\nshared_tools: {read_file: both read}\n"
    write(tmp_path, text, "playbooks/other/playbook.yaml")
    write(tmp_path, own("one"), "playbooks/other/roles/one.md")
    loaded = Catalogue.load(tmp_path)
    assert "shared_tools.read_file: no effect" in loaded.unusable_playbook("other")
    assert not loaded.playbooks


def test_remarks_that_no_role_verifies_are_refused(tmp_path: Path) -> None:
    text = "name: other\ndescription: d\ntemplate: review\nverify: 3\n"
    write(tmp_path, text, "playbooks/other/playbook.yaml")
    write(tmp_path, own("one"), "playbooks/other/roles/one.md")
    refused = Catalogue.load(tmp_path).unusable_playbook("other")
    assert "verify: no effect without a role 'verifier'" in refused
    write(tmp_path, own("verifier", tools=""), "playbooks/other/roles/verifier.md")
    assert Catalogue.load(tmp_path).playbooks["other"].verify == 3


@pytest.mark.parametrize(
    ("front", "named"),
    [
        ("turns: 4\n", "turns"),
        ("model: none\ntools: [bugs]\nturns: 4\n", "turns"),
        ("team: true\nturns: 4\n", "turns"),
        ("model: none\ntools: [bugs]\neffort: high\nfallback: x\n", "effort, fallback"),
        ("team: true\nfixed_tier: true\n", "fixed_tier"),
        ("repeat: 2\n", "repeat"),
        ("title: Review\n", "title"),
        ("model: none\ntools: [bugs]\ntitle: Find bugs\n", "title"),
    ],
)
def test_a_field_without_effect_makes_a_role_unusable_and_is_named(
    tmp_path: Path, front: str, named: str
) -> None:
    assert f"one.md: front matter: {named}: no effect" in why(write(tmp_path, role(front)))


def test_of_a_misspelt_model_that_is_said_and_not_what_else_would_follow(tmp_path: Path) -> None:
    said = why(write(tmp_path, role("model: gold\ntitle: Find bugs\n")))
    known = "'none', 'haiku', 'sonnet', 'opus' or 'inherit'"
    assert said == f"one.md: front matter: model: Input should be {known}"


def test_a_team_has_no_text_of_its_own_because_nobody_would_read_it(tmp_path: Path) -> None:
    text = why(write(tmp_path, role("team: true\n", "Work it out together.")))
    assert "one.md: the text below the front matter: no effect for a role that is a team" in text
    assert (
        Catalogue.load(write(tmp_path, role("team: true\n", ""))).roles["code-reviewer"].card.team
    )


def test_a_team_may_not_be_repeated_no_times_at_all(tmp_path: Path) -> None:
    text = why(write(tmp_path, role("team: true\nrepeat: 0\n", "")))
    assert text.endswith("one.md: front matter: repeat: Input should be greater than or equal to 1")


@pytest.mark.parametrize("tools", ["", "tools: [bugs, security]\n"])
def test_a_role_without_a_model_is_exactly_one_tool(tmp_path: Path, tools: str) -> None:
    assert "exactly one tool" in why(write(tmp_path, role(f"model: none\n{tools}")))


def test_a_fallback_that_cannot_be_used_takes_along_who_needs_it(tmp_path: Path) -> None:
    write(tmp_path, role("fallback: reader\n"))
    write(tmp_path, role("tools: Bash\n").replace("code-reviewer", "reader"), "roles/two.md")
    assert "fallback 'reader' is not a usable role" in why(tmp_path)


def test_a_role_without_a_fallback_of_its_own_has_the_common_one_unless_that_leads_back(
    tmp_path: Path,
) -> None:
    write(tmp_path, role())
    assert Catalogue.of(tmp_path).roles["code-reviewer"].card.fallback == "analyst"
    mine = role("fallback: code-reviewer\n").replace("name: code-reviewer", "name: analyst")
    write(tmp_path, mine, "roles/analyst.md")
    loaded = Catalogue.of(tmp_path).roles
    assert loaded["analyst"].card.fallback == "code-reviewer"
    assert loaded["code-reviewer"].card.fallback == ""
    assert loaded["coder"].card.fallback == "analyst"


def test_a_role_that_stands_in_for_itself_at_once_or_by_others_is_refused(tmp_path: Path) -> None:
    write(tmp_path, role("fallback: code-reviewer\n"))
    assert why(tmp_path).endswith("fallback 'code-reviewer' is the role itself; name another")
    write(tmp_path, role("fallback: two\n"))
    for name, other in (("two", "three"), ("three", "code-reviewer"), ("four", "two")):
        text = role(f"fallback: {other}\n").replace("name: code-reviewer", f"name: {name}")
        write(tmp_path, text, f"roles/{name}.md")
    said = "fallback 'two' leads back to it: code-reviewer → two → three → code-reviewer"
    assert said in why(tmp_path)
    assert "is not a usable role" in why(tmp_path, "four"), "its fallback is one of them"


def test_a_file_that_cannot_be_used_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, role("tools: Bash\n"))
    write(tmp_path, role().replace("code-reviewer", "sound"), "roles/two.md")
    write(tmp_path, "name: other\n", "playbooks/other/playbook.yaml")
    catalogue = Catalogue.load(tmp_path)
    assert list(catalogue.roles) == ["sound"]
    assert [card.name for card in catalogue.roles_for("")] == ["sound"]
    assert "description" in catalogue.unusable_playbook("other")


def test_line_ends_and_a_byte_order_mark_of_another_system_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path, "") / "roles" / "one.md"
    path.write_bytes(b"\xef\xbb\xbf" + role("model: opus\n").replace("\n", "\r\n").encode())
    loaded = Catalogue.load(tmp_path).roles["code-reviewer"]
    assert (loaded.card.tier, loaded.prompt) == ("opus", "You review code.")


def test_three_dashes_within_a_line_do_not_end_the_front_matter(tmp_path: Path) -> None:
    write(tmp_path, role("fallback: a---\n"))
    write(tmp_path, role().replace("code-reviewer", "a---"), "roles/two.md")
    assert Catalogue.load(tmp_path).roles["code-reviewer"].card.fallback == "a---"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("You review code.", "one.md: must begin with front matter between two lines of ---"),
        ("---\nname: x\n", "one.md: must begin with front matter"),
        ("---\nname: [\n---\nBody\n", "one.md: front matter: "),
        ("---\n---\nBody\n", "one.md: front matter: "),
        ("---\nname: x\n---\nBody\n", "one.md: front matter: description: Field required"),
        (role("model: gpt\n"), "one.md: front matter: model"),
        (
            role("modle: haiku\nturn: 3\n"),
            "one.md: front matter: modle: unknown field (did you mean 'model'?); turn: unknown"
            " field (did you mean 'turns'?); there are: name, description, cases, model, ",
        ),
        (role(body=""), "one.md: there is no system prompt"),
    ],
)
def test_a_role_file_with_a_mistake_cannot_be_used_and_its_place_is_said(
    tmp_path: Path, text: str, said: str
) -> None:
    (unusable,) = Catalogue.load(write(tmp_path, text)).unusable_roles
    assert said in unusable.why


def test_a_role_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "") / "roles" / "one.md"
    path.write_bytes(b"---\nname: \xff\n---\nBody\n")
    assert why(tmp_path, "one") == "one.md: not UTF-8 text"


def test_role_names_are_unique_over_all_playbooks(tmp_path: Path) -> None:
    write(tmp_path, role())
    write(tmp_path, "name: other\ndescription: d\n", "playbooks/other/playbook.yaml")
    write(tmp_path, role(), "playbooks/other/roles/same.md")
    assert "'code-reviewer' is defined twice" in why(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: wrong\ndescription: d\n", "name must be the folder's name"),
        ("name: other\n", "other/playbook.yaml: description: Field required"),
        ("name: other\ndescription: d\nroels: []\n", "other/playbook.yaml: roels: unknown field"),
        (
            "name: other\ndescription: d\nguidanc: x\n",
            "other/playbook.yaml: guidanc: unknown field (did you mean 'guidance'?)",
        ),
        ("name: [", "other/playbook.yaml: "),
        ("name: other\ndescription: d\nplan: {goal: g}\n", "plan.subtasks: Field required"),
        ("name: other\ndescription: d\ntemplate: revue\n", "unknown template 'revue'"),
        ("name: other\ndescription: d\nmin_confidence: 5\n", "min_confidence: no effect"),
        (
            "name: other\ndescription: d\nguidance: x\nplan: {goal: g, subtasks: []}\n",
            "guidance: no effect",
        ),
        (
            "name: other\ndescription: d\nguidance: x\nlenses: {goal: g, inputs: []}\n",
            "guidance: no effect",
        ),
        (
            "name: other\ndescription: d\nplan: {goal: g, subtasks: []}\n"
            "lenses: {goal: g, inputs: []}\n",
            "lenses: no effect",
        ),
        (
            "name: other\ndescription: d\nplan:\n  goal: g\n  subtasks:\n"
            "    - {id: a, title: t, instruction: i, role: r, depend_on: [b]}\n",
            "plan.subtasks[0].depend_on: no effect",
        ),
        (
            "name: other\ndescription: d\napproval: never\n",
            "approval: Input should be '' or 'always'",
        ),
        (
            "name: other\ndescription: d\nnotice: Careful.\nanswer: {kind: table}\n",
            "answer: data has no room for `notice`",
        ),
        (
            "name: other\ndescription: d\ninputs: {a: {kind: folder, mentions: [x]}}\n",
            "inputs.a.mentions: no effect but for a file",
        ),
    ],
)
def test_a_playbook_file_with_a_mistake_cannot_be_used_and_its_place_is_said(
    tmp_path: Path, text: str, said: str
) -> None:
    loaded = Catalogue.load(write(tmp_path, text, "playbooks/other/playbook.yaml"))
    assert said in loaded.unusable_playbook("other")


def test_a_role_of_one_playbook_is_out_of_reach_for_another(tmp_path: Path) -> None:
    write(tmp_path, "name: other\ndescription: d\n", "playbooks/other/playbook.yaml")
    write(tmp_path, role(), "playbooks/other/roles/one.md")
    catalogue = Catalogue.load(tmp_path)
    assert [card.name for card in catalogue.roles_for("other")] == ["code-reviewer"]
    assert catalogue.roles_for("") == ()


LENSES = "name: other\ndescription: d\nlenses: {goal: Look, inputs: [repo]}\n"
LENS = (
    "---\nname: bugs\ndescription: Finds bugs\nmodel: none\ntools: [bugs]\ntitle: Find bugs\n---\n"
)


def test_each_lens_of_a_playbook_is_a_subtask_of_its_plan(tmp_path: Path) -> None:
    write(tmp_path, LENSES, "playbooks/other/playbook.yaml")
    write(tmp_path, f"{LENS}Looks for bugs in code.\n", "playbooks/other/roles/bugs.md")
    said = role().replace("Reviews code", "Reads code for mistakes of logic")
    write(tmp_path, said, "playbooks/other/roles/agent.md")
    write(tmp_path, "---\nname: common\ndescription: d\nmodel: none\ntools: [x]\n---\n")
    plan = Catalogue.load(tmp_path).playbooks["other"].plan
    assert plan is not None and plan.goal == "Look"
    subtask, agent = plan.subtasks
    assert (subtask.id, subtask.role, subtask.inputs) == ("bugs", "bugs", ("repo",))
    assert (subtask.title, subtask.instruction) == ("Find bugs", "Looks for bugs in code.")
    assert agent.depends_on == ("bugs",), "agents are told what the lenses found"


def test_a_lens_that_cannot_be_used_is_planned_so_that_a_run_is_refused_and_not_poorer(
    tmp_path: Path,
) -> None:
    write(tmp_path, LENSES, "playbooks/other/playbook.yaml")
    write(tmp_path, LENS.replace("title", "titel"), "playbooks/other/roles/bugs.md")
    catalogue = Catalogue.load(tmp_path)
    plan = catalogue.playbooks["other"].plan
    assert plan is not None
    (wrong,) = validity.problems(
        plan, catalogue.roles_for("other"), ("repo",), 30, unusable=catalogue.unusable_for("other")
    )
    assert "titel" in wrong


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("Looks for bugs.", "the text below the front matter: 'Looks for bugs.' is not concrete"),
        ("", "front matter: description: 'Finds bugs' is not concrete"),
    ],
)
def test_a_lens_that_says_too_little_is_refused_by_its_file_before_a_review_is_planned(
    tmp_path: Path, body: str, said: str
) -> None:
    write(tmp_path, LENSES, "playbooks/other/playbook.yaml")
    write(tmp_path, f"{LENS}{body}\n", "playbooks/other/roles/lens.md")
    assert why(tmp_path, "bugs", "other").startswith(f"lens.md: {said}; say in 5 words or more")
