"""What is shipped beside the code: the lock, the compose file, the image, the examples."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import packages_distributions
from typing import Any

import pytest
import yaml

from holdfast import __version__
from holdfast.contracts.search import SEARCH_ATTRIBUTES
from holdfast.deployment.example import example
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded.server import DYNAMIC, PRAGMAS
from holdfast.serving import worker

COMPOSE: dict[str, Any] = yaml.safe_load((HOME / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
LOCK = (HOME / "requirements.lock").read_text()
PROJECT: dict[str, Any] = tomllib.loads((HOME / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
DEPENDENCIES = [
    *PROJECT["project"]["dependencies"],
    *(each for name, extra in EXTRAS.items() if name != "all" for each in extra),
]
DEMO = (HOME / "demo.lock").read_text()
MARKER = r" (; .*)?\\"
"""For whom a package is: one that all of them need may be for some alone in the smaller lock."""
OURS = ("activities", "holdfast", "simulator", "workflows")
DIGEST = "(?:@sha256:[0-9a-f]{64})?"
"""An operator may pin an image by it; it cannot be known offline."""
DOCKERFILE = (HOME / "Dockerfile").read_text()


def named(requirement: str) -> str:
    return re.split(r"[\[<>=;! ]", requirement)[0]


def seconds(written: str) -> timedelta:
    assert written.endswith("s")
    return timedelta(seconds=int(written[:-1]))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_reachable_from_this_machine_alone(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))
    assert "network_mode" not in SERVICES[name]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_watched_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(rf"[a-z/-]+:\d+\.\d+\.\d+{DIGEST}", service["image"])
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_keeps_is_in_named_volumes(name: str) -> None:
    for volume in SERVICES[name]["volumes"]:
        source = volume.split(":")[0]
        assert source in COMPOSE["volumes"] or volume.endswith("/repositories:ro")


def test_the_compose_file_holds_no_secret() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("KEY|SECRET|TOKEN|PASSWORD", name):
                assert value == f"${{{name}:-}}"


def test_the_search_attributes_are_those_of_the_composed_server_and_of_the_pages() -> None:
    flag, flags = "--search-attribute=", SERVICES["temporal"]["command"]
    given = [each.removeprefix(flag).split("=") for each in flags if each.startswith(flag)]
    assert dict(given) == SEARCH_ATTRIBUTES
    page = (HOME / "docs" / "running.md").read_text()
    [told] = re.findall(r"The search attributes are optional.*?\n\*", page, re.DOTALL)
    names = re.split(r"Keyword|Double|Bool", told)
    kinds = re.findall(r"Keyword|Double|Bool", told)
    said = {
        name: kind
        for before, kind in zip(names, kinds, strict=False)
        for name in re.findall(r"Holdfast\w+", before)
    }
    assert said == SEARCH_ATTRIBUTES


def test_the_composed_server_runs_with_the_flags_of_the_embedded_one() -> None:
    flags = SERVICES["temporal"]["command"]
    for pragma in PRAGMAS:
        assert f"--sqlite-pragma={pragma}" in flags
    for value in DYNAMIC:
        assert f"--dynamic-config-value={value}" in flags


def test_a_composed_worker_has_time_to_drain() -> None:
    assert seconds(SERVICES["worker"]["stop_grace_period"]) >= worker.GRACE + timedelta(seconds=10)
    assert SERVICES["worker"]["depends_on"]["temporal"]["condition"] == "service_healthy"
    assert SERVICES["worker"]["image"] == f"holdfast-worker:{__version__}"


def test_the_image_is_pinned_hashed_and_not_run_by_root() -> None:
    assert re.search(rf"^FROM python:3\.\d+\.\d+-slim-\w+{DIGEST}$", DOCKERFILE, re.M)
    assert "--require-hashes -r requirements.lock" in DOCKERFILE
    assert re.search(r"^USER (?!root)\w+$", DOCKERFILE, re.M)
    command = re.search(r"^CMD (.+)$", DOCKERFILE, re.M)
    assert command and json.loads(command[1]) == ["python", "worker.py"]


def test_the_image_holds_every_package_of_the_project_that_the_worker_imports() -> None:
    copied = set(re.findall(r"^COPY (\w+)/ \1/$", DOCKERFILE, re.M))
    tested_alone = {"tests", "simulator", "bench"}
    packages = {path.parent.name for path in HOME.glob("*/__init__.py")} - tested_alone
    assert packages | {"roles", "prompts", "playbooks", "evals"} == copied


def test_every_locked_package_has_hashes_and_no_index_is_named() -> None:
    packages = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCK, flags=re.M).strip())
    assert len(packages) > 40
    assert [each for each in packages if "--hash=sha256:" not in each] == []
    assert not re.search(r"://|--index|--extra|--find-links|@ ", LOCK)


def test_what_the_demonstration_shows_is_a_part_of_what_is_locked() -> None:
    parts = [re.split(r"\n(?=\S)", lock) for lock in (LOCK, DEMO)]
    (every, shown) = ({each for each in part if each[0] != "#"} for part in parts)
    assert {re.sub(MARKER, "", each) for each in shown} < {re.sub(MARKER, "", e) for e in every}
    wanted = [*PROJECT["project"]["dependencies"], *EXTRAS["embedded"], *EXTRAS["review"]]
    assert {*map(named, wanted)} <= {each.partition("==")[0] for each in shown}


def test_every_dependency_is_locked() -> None:
    wanted = [*DEPENDENCIES, *PROJECT["dependency-groups"]["dev"]]
    locked = set(re.findall(r"^([a-z0-9-]+)==", LOCK, re.M))
    assert {*map(named, wanted)} - locked == set()


PARTS = {"pydantic-monty-client": "pydantic-monty", "mcp-types": "mcp"}
"""Of packages that come in parts, the whole that is depended on."""


@pytest.mark.long
def test_every_package_that_is_imported_is_a_dependency_of_our_own() -> None:
    files = [*map(HOME.joinpath, ("worker.py", "starter.py"))]
    files += [each for folder in OURS for each in (HOME / folder).rglob("*.py")]
    whose, asked = packages_distributions(), {*map(named, DEPENDENCIES)}
    for file in files:
        for name in imported(ast.parse(file.read_bytes())):
            top = name.partition(".")[0]
            if top in OURS or top in sys.stdlib_module_names:
                continue
            # Of a namespace that several packages share, the one that has this module.
            owners = {"protobuf"} if name.startswith("google.protobuf") else set(whose[top])
            owners = {PARTS.get(owner, owner) for owner in owners}
            assert {each.lower().replace("_", "-") for each in owners} & asked, (
                f"{file} imports {name}, of {owners}"
            )


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_the_example_environment_is_what_the_settings_print_and_sets_none() -> None:
    text = (HOME / ".env.example").read_text("utf-8")
    assert text == example(), "run python -m holdfast.deployment.example >.env.example"
    assert all(line.startswith("#") or not line for line in text.splitlines())
    named = re.findall(r"^# ([A-Z_]+)=", text, re.M)
    ours = [name for name in named if not name.startswith(("TEMPORAL_", "SLACK_"))]
    assert ours == [Settings.variable(name) for name in Settings.model_fields]
    assert all(field.description for field in Settings.model_fields.values())
