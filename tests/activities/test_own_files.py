"""Roles, playbooks and tools of a project and of installed packages, beside those that ship."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.activities.catalogue import sources
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.review import lenses
from holdfast.activities.toolset import shelf
from holdfast.cli.commands.care import doctor
from holdfast.deployment.packages import Brought
from holdfast.deployment.settings import HOME
from holdfast.errors import BadSettings
from parameters import rest_long
from shipped import shipped_catalogue

TOOL = '''
from holdfast import Here, tool

@tool()
async def {name}(here: Here, word: str) -> str:
    """Says a word."""
    return word
'''
LENS = """
from dataclasses import replace
from holdfast.activities.review.analysers import bugs

ANALYSER = replace(bugs.ANALYSER, name="mine")
"""
SHIPPED = shipped_catalogue()


def role(name: str, tools: str = "read_file", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: Mine.\ntools: {tools}\n{more}---\nYou do as asked.\n"


def needing(given: str) -> str:
    return TOOL.replace("@tool()", f"@tool({given})").format(name="f")


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder on Python's path, and the entry points of two packages in it."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = [
        Brought("pack", "1.0", f"holdfast.{kind}", "mine", f"pack.{kind}")
        for kind in ("roles", "playbooks", "tools", "lenses")
    ]
    found.append(Brought("zebra", "1.0", "holdfast.roles", "mine", "zebra.nowhere"))
    for module in (sources, shelf, lenses):
        monkeypatch.setattr(
            module, "of_group", lambda group: tuple(each for each in found if each.group == group)
        )
    for cached in (shelf.brought_tools, lenses.analysers, lenses.brought_lenses):
        cached.cache_clear()
    yield tmp_path / "site"
    for cached in (shelf.brought_tools, lenses.analysers, lenses.brought_lenses):
        cached.cache_clear()
    for name in [each for each in sys.modules if each.split(".")[0] == "pack"]:
        del sys.modules[name]


def test_without_a_project_everything_is_as_it_ships() -> None:
    assert Catalogue.of(None) == SHIPPED
    assert shelf.tools_for(None) == shelf.shipped_tools()


def test_an_own_role_stands_for_the_shipped_one_of_its_name_and_the_others_stay(
    tmp_path: Path,
) -> None:
    own = Catalogue.of(write(tmp_path, {"roles/a.md": role("analyst"), "roles/b.md": role("new")}))
    assert {*own.roles} == {*SHIPPED.roles, "new"}
    assert own.roles["analyst"].prompt == "You do as asked."
    sourced = {name for name, each in own.roles.items() if each.card.source}
    assert sourced == {"analyst", "new"}
    assert own.roles["new"].card.source == "from your project"


def test_an_own_role_that_cannot_be_read_does_not_let_the_shipped_one_through(
    tmp_path: Path,
) -> None:
    own = Catalogue.of(write(tmp_path, {"roles/analyst.md": "no front matter"}))
    assert "analyst" not in own.roles
    (bad,) = [each for each in own.unusable_roles if each.name == "analyst"]
    assert bad.why.startswith("analyst.md: ") and bad.source == "from your project"


def test_an_own_playbook_comes_with_its_roles_alone_and_one_without_a_file_adds_to_the_shipped(
    tmp_path: Path,
) -> None:
    name = "contract-review"
    extra = {f"playbooks/{name}/roles/extra.md": role("extra")}
    added = Catalogue.of(write(tmp_path / "adds", extra))
    assert added.own_roles(name) == SHIPPED.own_roles(name) | {"extra"}
    assert not added.sources
    shutil.copytree(HOME / "playbooks" / name, tmp_path / "all" / "playbooks" / name)
    (tmp_path / "all" / "playbooks" / name / "roles" / "second-reader.md").unlink()
    whole = Catalogue.of(tmp_path / "all")
    assert whole.own_roles(name) == SHIPPED.own_roles(name) - {"second-reader"}
    assert whole.sources == {name: "from your project"}
    assert {*whole.playbooks} == {*SHIPPED.playbooks}


def test_what_is_added_never_breaks_what_ships(tmp_path: Path) -> None:
    case = next(role.card.cases[0] for role in SHIPPED.roles.values() if role.card.cases)
    own = Catalogue.of(
        write(
            tmp_path,
            {
                "roles/security.md": role("security"),
                "roles/claims.md": role("claims", more=f"cases: ['{case}']\n"),
            },
        )
    )
    assert {*own.roles} == {*SHIPPED.roles}
    assert own.playbooks["code-review"].plan == SHIPPED.playbooks["code-review"].plan
    why = {each.name: each.why for each in own.unusable_roles}
    assert "another playbook or package has one of that name" in why["security"]
    assert "claims" in why and case in why["claims"]


def test_an_own_tool_may_be_named_by_an_own_role_and_replaces_a_shipped_one(
    tmp_path: Path,
) -> None:
    files = {"tools/one.py": TOOL.format(name="say"), "roles/r.md": role("sayer", "say")}
    own = Catalogue.of(write(tmp_path, files))
    assert own.roles["sayer"].card.tools == ("say", "read_result")
    tools = shelf.tools_for(tmp_path)
    assert {*tools} == {*shelf.shipped_tools(), "say"}
    assert shelf.source_of(tools["say"]) == "from your project"
    assert shelf.source_of(tools["calculate"]) == ""
    write(tmp_path, {"tools/two.py": TOOL.format(name="calculate")})
    shadowed = shelf.tools_for(tmp_path)["calculate"]
    assert shelf.source_of(shadowed) == "from your project, in place of the shipped one"
    assert shadowed.description == "Says a word."


def test_tools_of_two_projects_and_their_modules_are_not_in_each_others_way(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        helper = f"from .words import WORD\n{TOOL.format(name=name)}"
        write(tmp_path / name, {"tools/say.py": helper, "tools/words.py": f"WORD = {name!r}"})
    for name in ("one", "two"):
        assert [*shelf.tools_for(tmp_path / name).keys() - shelf.shipped_tools()] == [name]
    assert not [each for each in sys.modules if each in ("words", "say")]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("def x(:", "other.py:1: ", "SyntaxError"),
        ("x = 1\nraise RuntimeError('no\\nway')", "other.py:2: ", "RuntimeError: no way; mend it"),
        ("import sys; sys.exit(3)", "other.py:1: ", "SystemExit: 3"),
        ("class Odd(BaseException): pass\nraise Odd('no')", "other.py:2: ", "Odd: no; mend it"),
        ("import no_such_module", "other.py:1: ", "ModuleNotFoundError: No module named"),
        (
            TOOL.replace("async ", "").format(name="f"),
            "other.py:4: ",
            "f: a tool is an async",
        ),
        (needing('needs=("MY_KEY",)'), "other.py:4: ", "no setting 'MY_KEY'; a key of your own is"),
        (needing('needs=("web_serch",)'), "other.py:4: ", "(did you mean 'web_search'?)"),
        (
            needing('needs=("HOLDFAST_WEB_SEARCH",)'),
            "other.py:4: ",
            "f: needs: 'HOLDFAST_WEB_SEARCH' is a variable; name its field, 'web_search'",
        ),
        (needing('needs="web_search"'), "other.py:4: ", "write a tuple of settings: ('web_search'"),
        (needing('reads="table"'), "other.py:4: ", "write a tuple of inputs: ('table',)"),
        (
            needing('reads=("tabel",)'),
            "other.py:4: ",
            "no input is a 'tabel' (did you mean 'table'",
        ),
        (needing('extra="documnts"'), "other.py:4: ", "(did you mean 'documents'?); there are"),
        (needing("extra=lambda _: 'nosuch'"), "other.py:4: ", "holdfast has no extra 'nosuch'"),
        (TOOL.replace("()", "", 1).format(name="f"), "other.py:4: ", "f: write `@tool()`, with"),
        (TOOL.format(name="say"), ": ", "two tools are named 'say': in one.py and in other.py"),
    ],
)
def test_a_tool_that_cannot_be_used_is_one_line_with_its_file(
    text: str, place: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path, {"tools/one.py": TOOL.format(name="say"), "tools/other.py": text})
    with pytest.raises(BadSettings) as refused:
        Catalogue.of(tmp_path)
    line = str(refused.value)
    assert line.startswith(str(tmp_path / "tools")) and place in line and said in line
    assert "\n" not in line and "_holdfast_project_" not in line


def test_two_roles_of_one_name_in_one_folder_are_said_to_be_two_of_yours(tmp_path: Path) -> None:
    own = Catalogue.of(write(tmp_path, {"roles/a.md": role("same"), "roles/b.md": role("same")}))
    whys = {each.why for each in own.unusable_roles if each.name == "same"}
    assert whys == {"role 'same' from your project is defined twice; rename one"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    rest_long(
        [
            ("import time\ntime.sleep(60)", r"slow\.py:2: its import has not ended after 1 s"),
            ("while True:\n    pass", r"slow\.py:[12]: its import has not ended after 1 s"),
            ("input()", r"slow\.py:1: EOFError"),
            ("fifo", r"slow\.py: NotRegular: .*not a regular file"),
            ("loop", r"slow\.py: OSError: .*symbolic links"),
        ]
    ),
)
def test_a_tool_whose_import_does_not_end_is_named_and_no_command_waits_for_it(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "tools" / "slow.py"
    write(tmp_path, {"tools/slow.py": text})
    if text in ("fifo", "loop"):
        file.unlink()
        os.mkfifo(file) if text == "fifo" else file.symlink_to(file.name)
    look = "from holdfast.activities.catalogue.catalogue import Catalogue; from holdfast.deployment"
    look += " import importing; from pathlib import Path; importing.SECONDS = 1.0; Catalogue.of"
    program = (sys.executable, "-c", f"{look}(Path({str(tmp_path)!r}))")
    # A process, as the thread would go on beside other tests; its input is one that never comes.
    with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stderr is not None
        last = done.stderr.read().decode().splitlines()[-1]
    assert re.search(f"BadSettings: {re.escape(str(file.parent))}/{said}", last), last
    assert "_holdfast_project_" not in last


def test_every_broken_tool_is_named_at_once_and_the_others_can_be_used(tmp_path: Path) -> None:
    bad = {f"tools/{name}.py": "1 / 0" for name in ("a", "c")}
    write(tmp_path, bad | {"tools/b.py": TOOL.format(name="say")})
    found, flaws = shelf.look_at_tools(tmp_path)
    assert "say" in found
    assert [flaw.partition(": ")[0][-6:] for flaw in flaws] == ["a.py:1", "c.py:1"]
    with pytest.raises(BadSettings, match=r"a\.py:1: .*; .*c\.py:1: "):
        shelf.tools_for(tmp_path)


def test_what_a_tool_prints_when_it_is_imported_is_no_part_of_a_commands_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"tools/one.py": "print('hello')\n" + TOOL.format(name="say")})
    assert "say" in shelf.tools_for(tmp_path)
    assert capsys.readouterr() == ("", "hello\n")


def test_a_package_brings_roles_playbooks_and_tools_by_its_entry_points(
    packages: Path, tmp_path: Path
) -> None:
    write(
        packages / "pack",
        {
            "__init__.py": "",
            "lenses.py": LENS,
            "tools.py": TOOL.format(name="say"),
            "roles/r.md": role("packed", "say"),
            "roles/analyst.md": role("analyst"),
            "playbooks/packing/playbook.yaml": "name: packing\ndescription: Packs.\n",
        },
    )
    found = Catalogue.of(None)
    assert found.roles["packed"].card.source == "from package pack"
    assert found.roles["analyst"].card.source == "from package pack"
    assert found.sources == {"packing": "from package pack"}
    assert shelf.source_of(shelf.tools_for(None)["say"]) == "from package pack"
    (flaw,) = [each for each in found.unusable_playbooks if each.source == "from package zebra"]
    assert flaw.why == (
        "package zebra: holdfast.roles: mine = zebra.nowhere: there is no such folder"
    )
    assert [each.mark for each in doctor.find_unusable(found)] == ["bad"], "it is in the way"
    own = Catalogue.of(write(tmp_path / "own", {"roles/analyst.md": role("analyst")}))
    assert own.roles["analyst"].card.source == "from your project"


def test_a_package_whose_tools_cannot_be_imported_is_named(packages: Path) -> None:
    write(packages / "pack", {"__init__.py": "", "tools.py": "import no_such_module"})
    with pytest.raises(BadSettings, match=r"^package pack: holdfast.tools: mine = pack.tools: Mod"):
        shelf.tools_for(None)


def test_a_package_brings_a_lens_and_one_that_is_none_is_named(packages: Path) -> None:
    write(packages / "pack", {"__init__.py": "", "lenses.py": LENS})
    assert lenses.analysers()["mine"].command == lenses.analysers()["bugs"].command
    for text, why in (("x = 1", "there is no ANALYSER in it"), ("1 / 0", "ZeroDivisionError: div")):
        sys.modules.pop("pack.lenses", None)
        lenses.analysers.cache_clear()
        lenses.brought_lenses.cache_clear()
        write(packages / "pack", {"lenses.py": text})
        shutil.rmtree(packages / "pack" / "__pycache__", ignore_errors=True)
        with pytest.raises(BadSettings, match=f"^package pack: holdfast.lenses: .*: {why}"):
            lenses.analysers()
        with pytest.raises(BadSettings, match=f"^package pack: holdfast.lenses: .*: {why}"):
            Catalogue.of(None)
