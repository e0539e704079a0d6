"""What is installed as a tool is the whole program: a wheel is built, put into a bare environment,
and its command reviews a repository from an empty folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from deployment.settings import HOME, NAME
from orchestrator import __version__

pytestmark = [pytest.mark.xdist_group("wheel"), pytest.mark.timeout(300)]
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": os.devnull}
SHIPPED = (
    "activities", "cli", "deployment", "examples", "intake", "orchestrator", "playbooks", "prompts",
    "roles", "workflows",
)  # fmt: skip


def run(*command: str | Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)} | more
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built offline, by what is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation")
    done = run(*pip, "--wheel-dir", folder, HOME, folder=folder, **OFFLINE)
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment of its own, which has our packages, and ours alone of us."""
    folder = tmp_path_factory.mktemp("tool")
    assert run(sys.executable, "-m", "venv", "--without-pip", folder, folder=folder).returncode == 0
    [site] = folder.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps")
    done = run(*pip, wheel, folder=folder, **OFFLINE)
    assert done.returncode == 0, done.stderr
    return folder / "bin" / NAME


def test_a_wheel_carries_every_file_of_the_program_and_no_other(wheel: Path) -> None:
    listed = ["git", "ls-files", "-z", "--", *SHIPPED, "starter.py", "worker.py"]
    known = subprocess.run(listed, cwd=HOME, capture_output=True, text=True, check=True).stdout
    names = {each for each in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in each}
    wanted = {f"{NAME}/{each}" for each in known.split("\0") if each}
    assert names >= wanted and len(wanted) > 300
    # What is being written, and Git does not know yet, may be there, too.
    assert all((HOME / each.removeprefix(f"{NAME}/")).is_file() for each in names)
    assert {each.split("/")[1] for each in names} == {*SHIPPED, "starter.py", "worker.py"}
    assert not [each for each in names if "__pycache__" in each or "/.env" in each]


def test_the_command_says_its_version_and_its_help_names_it(command: Path, tmp_path: Path) -> None:
    done = run(command, "--version", folder=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == (f"{NAME} {__version__}\n", "", 0)
    assert f"Usage: {NAME} " in run(command, "--help", folder=tmp_path).stdout


def test_the_command_reviews_from_an_empty_folder_and_names_itself_in_every_hint(
    command: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    # The packages lie in another environment, and the programs that came with them beside its
    # Python; an installation by pipx or uvx has them in one.
    programs = os.pathsep.join(map(str, (command.parent, Path(sys.executable).parent)))
    place = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    try:
        done = run(NAME, "demo", folder=here, **place)
        assert done.returncode == 0, done.stderr
        assert "`B602`" in done.stdout and "`F821`" in done.stdout
        run_id = next(x for x in done.stderr.splitlines() if x.startswith("Run: "))[5:]
        assert f"Come back with: {NAME} show {run_id} (all runs: {NAME} list)" in done.stderr
        assert "starter.py" not in done.stderr + done.stdout
        assert run_id in run(NAME, "list", folder=here, **place).stdout
    finally:
        down = run(NAME, "down", folder=here, **place)
    assert "Stopped (pids " in down.stderr
    assert not [*here.iterdir()], "nothing is left where it was called"
