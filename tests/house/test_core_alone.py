"""What is installed without extras is small, and says of all that it lacks how to get it: tried in
an environment that has nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from typing import Any

import pytest

import lone_core
from holdfast.deployment.extras import EXTRAS, how_to_get, lacking
from holdfast.deployment.settings import HOME

PROBE = HOME / "tests" / "support" / "core_probe.py"
DECLARED: dict[str, list[str]] = tomllib.loads((HOME / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
MOST_PACKAGES, MOST_MEGABYTES = 45, 130
BY_A_SERVER = 5
"""Exit code where the server is not reachable."""
WITHOUT_SERVER = {
    "down": 0,
    "init": 0,
    "doctor": 1,
    "clean": 0,
    "completion": 0,
    "token": 0,
    "schema": 0,
}
NEEDING = {
    "demo": ("embedded", "review"),
    "mcp": ("mcp",),
    **dict.fromkeys(("receipt", "verify", "countersign"), ("receipts",)),
    "serve": ("serve",),
    "slack": ("slack",),
    "codec-server": ("serve", "encryption"),
    "certify": ("testing",),
}
"""What they need beside the server, too, and before they make anything."""
REFUSED = {
    "logs": "no line of a",
    "replay": "there is no file",
    "github": "GITHUB_TOKEN is not set",
    "deploy": "is for a server of your own",
}
"""What these look for on this machine alone."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What everything says where only the core is installed."""
    folder = tmp_path_factory.mktemp("core")
    python = lone_core.made(folder / "environment")
    (folder / "here").mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": str(PROBE.parent),
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        [python, PROBE],
        cwd=folder / "here",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_core_is_small() -> None:
    packages = lone_core.core()
    assert len(packages) <= MOST_PACKAGES
    assert lone_core.megabytes(packages) < MOST_MEGABYTES


@pytest.mark.long
def test_every_command_works_or_names_the_extra_that_it_needs(told: dict[str, Any]) -> None:
    said = dict(told["commands"])
    code, words = said.pop("watch --web")
    assert code == 2 and words == f"--web needs packages that are not installed: {pip('serve')}\n"
    assert len(said) > 25
    for name, (code, words) in said.items():
        assert "Traceback" not in words and "is not installed for" not in words, (name, words)
        if name in REFUSED:
            assert code == 2 and REFUSED[name] in words
        elif name in NEEDING:
            needs = f"needs packages that are not installed: {pip(','.join(NEEDING[name]))}"
            assert (code, words) == (2, f"{name} {needs}\n")
            assert not told["example"]
        elif name in WITHOUT_SERVER:
            assert code == WITHOUT_SERVER[name], (name, words)
        else:
            assert code == BY_A_SERVER and pip("embedded") in words, (name, words)


@pytest.mark.long
def test_doctor_names_every_extra_and_what_roles_go_without(told: dict[str, Any]) -> None:
    assert {*told["extras"]} == {*EXTRAS}
    for name, (mark, detail) in told["extras"].items():
        assert mark == "note" and detail == f"{EXTRAS[name].gives}: {pip(name)}"
    words = " ".join(told["commands"]["doctor"][1].split())
    assert all(pip(name) in words for name in EXTRAS)
    assert "role analyst goes on without query_data, run_python" in words
    assert "1 thing in the way" in words, "the server alone"


@pytest.mark.long
def test_a_tool_without_its_packages_is_left_out_and_says_so_when_it_is_called(
    told: dict[str, Any],
) -> None:
    left_out = {"query_data": "data", "run_python": "python"}
    left_out |= dict.fromkeys(("web_fetch", "web_search"), "web")
    lacks = "needs packages that are not installed:"
    assert told["left out"] == {name: f"{lacks} {pip(each)}" for name, each in left_out.items()}
    for name, each in {**left_out, "run_python elsewhere": "web"}.items():
        line = f"{name.split()[0]} {lacks} {pip(each)}; do without it"
        assert told["tools"][name] == line
    assert told["tools"]["calculate"] == "9"
    assert pip("units") in told["tools"]["calculate with units"]


@pytest.mark.long
def test_what_needs_no_library_is_read_and_the_rest_says_what_it_needs(
    told: dict[str, Any],
) -> None:
    read = dict(told["readers"])
    assert "1 | 2" in read.pop("a.csv") and "# Words" in read.pop("a.md")
    assert len(read) == 5
    for name, line in read.items():
        assert line.startswith(f"'{name}' is not read: that needs") and pip("documents") in line


@pytest.mark.long
def test_lenses_without_a_program_look_and_the_others_say_what_they_need(
    told: dict[str, Any],
) -> None:
    said = dict(told["lenses"])
    assert "1 warning" in said.pop("configuration") and "1 commit" in said.pop("history")
    assert pip("dockerfiles") in said.pop("dockerfiles")
    assert len(said) >= 9 and all(pip("review") in line for line in said.values())


@pytest.mark.long
def test_servers_and_spans_say_what_they_need(told: dict[str, Any]) -> None:
    assert told["servers"].endswith(f"it needs packages that are not installed: {pip('mcp')}")
    assert told["spans"].endswith(pip("otel"))


def pip(extra: str) -> str:
    return f"pip install 'holdfast[{extra}]'"


def test_the_command_that_is_told_installs_what_is_declared() -> None:
    assert {how_to_get(name) for name in EXTRAS} == {"make setup"}, "in a checkout"
    assert how_to_get("somebody-elses") == "pip install somebody-elses"
    assert {*EXTRAS} == {*DECLARED} - {"all"}
    [every] = DECLARED["all"]
    named = re.search(r"\[(.*)\]", every)
    assert named and {*named[1].split(",")} == {*EXTRAS} - {"dockerfiles"}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_is_recognised_by_something_of_each_of_its_packages(name: str) -> None:
    shown = (*EXTRAS[name].modules, *EXTRAS[name].programs)
    assert len(shown) == len(DECLARED[name])
    assert lacking(name) == "", "all of them are installed here"
