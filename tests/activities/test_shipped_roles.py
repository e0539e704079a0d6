"""The common roles: each has its own tools, and its prompt says what they are for."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from holdfast.activities.catalogue.files import Role
from holdfast.calls.turn import READS_ON, equip
from holdfast.contracts import PinnedInput
from shipped import shipped_catalogue

COMMON = {name: role for name, role in shipped_catalogue().roles.items() if not role.playbook}
READERS = {
    name: role
    for name, role in shipped_catalogue().roles.items()
    if role.playbook == "code-review" and role.card.tier != "none" and not role.only_changes
}
"""Who reads a whole tree, too."""
USES = {
    "calculate": r"calculat",
    "format_data": r"format",
    "git_diff": r"differ|diff\b",
    "git_history": r"history|commits",
    "list_files": r"\blist",
    "query_data": r"query",
    "read_document": r"documents?\b|the place",
    "read_file": r"\bread",
    "run_python": r"python",
    "search_documents": r"search",
    "search_files": r"search",
    "web_fetch": r"fetch",
    "web_search": r"search",
}
"""How a prompt says that a tool is used."""


def tools_of(role: Role) -> frozenset[str]:
    return frozenset(role.card.tools) - {READS_ON}


@pytest.mark.parametrize(("one", "other"), [*combinations(sorted(COMMON), 2)])
def test_no_two_common_roles_have_the_same_tools(one: str, other: str) -> None:
    assert tools_of(COMMON[one]) != tools_of(COMMON[other])


@pytest.mark.parametrize("name", sorted(COMMON))
def test_a_common_role_uses_each_of_its_tools_as_its_prompt_says(name: str) -> None:
    role = COMMON[name]
    assert tools_of(role), "each has some"
    told = role.prompt.lower()
    assert not [tool for tool in tools_of(role) if not re.search(USES[tool], told)]


def test_what_only_one_common_role_has_says_what_it_is_for() -> None:
    def having(tool: str) -> set[str]:
        return {name for name, role in COMMON.items() if tool in role.card.tools}

    assert having("query_data") == {"analyst"}
    assert having("format_data") == {"writer"}
    assert having("search_documents") == {"researcher"}
    assert having("git_history") == having("git_diff") == {"coder"}
    assert having("web_search") == having("web_fetch") == {"web-researcher"}
    assert having("calculate") == {"analyst", "reviewer"}


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_reader_of_whole_trees_too_is_told_of_changes_only_as_what_may_be(name: str) -> None:
    sentences = re.split(r"(?<=[.?])\s", READERS[name].prompt)
    of_changes = [each for each in sentences if re.search(r"\bchange(?!log)|delet|\bold\b", each)]
    assert not [each for each in of_changes if not re.search(r"\b(a|the) change\b", each)]


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_reader_of_a_whole_tree_is_not_offered_the_diff_of_a_change(name: str) -> None:
    tree = PinnedInput(name="repo", kind="repository", size=9, digest="ab")
    change = tree.model_copy(update={"base": "cd" * 20})
    gone = {*equip(READERS[name].card, [change]).tools} - {*equip(READERS[name].card, [tree]).tools}
    assert gone == {"git_diff"}
