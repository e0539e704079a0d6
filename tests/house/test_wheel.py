"""What is installed as a tool is the whole program: a wheel is built, put into a bare environment,
and its command reviews a repository from an empty folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from building import build
from examples import APPROVED, INPUTS, all_rules, approve, given, rows_of_playbooks
from holdfast import __version__
from holdfast.deployment.settings import HOME, NAME

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": os.devnull}
OTHERS = ("activities", "cli", "deployment", "intake", "orchestrator", "worker", "workflows")
"""Names that users of Temporal have packages of."""


def run(*command: str | Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)} | more
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def place_of(command: Path, folder: Path) -> dict[str, str]:
    """Variables of a user whose state is below this folder."""
    # The packages lie in another environment, and the programs that came with them beside its
    # Python; an installation by pipx or uvx has them in one.
    programs = (str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"])
    return {
        "PATH": os.pathsep.join(programs),
        "XDG_STATE_HOME": str(folder / "state"),
        # On a busy machine minutes pass between two commands: what is idle waits for `down`.
        "HOLDFAST_IDLE_SECONDS": "3600",
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel")).wheel


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


def test_other_peoples_packages_and_ours_do_not_see_each_other(
    command: Path, tmp_path: Path
) -> None:
    for name in OTHERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("MINE = True\n")
    mine = "; ".join(f"import {name}; assert {name}.MINE" for name in OTHERS)
    ours = "import holdfast, holdfast.serving.worker, holdfast.cli.main; holdfast.Goal(text='x')"
    names = f"print([name for name in {OTHERS!r} if name in sys.modules])"
    alone = run(command.parent / "python", "-c", f"import sys; {ours}; {names}", folder=tmp_path)
    assert (alone.stdout, alone.returncode) == ("[]\n", 0), alone.stderr
    both = run(command.parent / "python", "-c", f"{mine}; {ours}; {mine}", folder=tmp_path)
    assert both.returncode == 0, both.stderr


def test_the_promised_names_are_there_and_typed(command: Path, tmp_path: Path) -> None:
    names = "import holdfast; [getattr(holdfast, name) for name in holdfast.__all__]"
    code = f"{names}; print(holdfast.__file__)"
    done = run(command.parent / "python", "-c", code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).with_name("py.typed").is_file()


def test_a_program_of_ones_own_runs_beside_the_wheel(command: Path, tmp_path: Path) -> None:
    # A strict type checker reads such a file in `test_user_types`; `py.typed` is there, see above.
    (tmp_path / "mine.py").write_text(
        "from decimal import Decimal\n"
        "from holdfast import Goal, Here, Limits, Plan, Subtask, tool\n"
        "@tool()\n"
        "async def double(here: Here, number: float) -> str:\n"
        '    """Double a number."""\n'
        "    return str(2 * number)\n"
        'first = Subtask(id="t1", title="One", instruction="Count the words.", role="analyst")\n'
        'plan = Plan(goal="Counted", subtasks=(first,))\n'
        'goal = Goal(text="Count", plan=plan, limits=Limits(dollars=Decimal(1)))\n'
        "print(goal.limits.model_calls)\n"
    )
    python = command.parent / "python"
    ran = run(python, "mine.py", folder=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "60\n", "")


def test_the_command_says_its_version_and_its_help_names_it(command: Path, tmp_path: Path) -> None:
    done = run(command, "--version", folder=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == (f"{NAME} {__version__}\n", "", 0)
    assert f"Usage: {NAME} " in run(command, "--help", folder=tmp_path).stdout


def test_the_command_reviews_from_an_empty_folder_and_names_itself_in_every_hint(
    command: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    place = place_of(command, tmp_path)
    try:
        done = run(NAME, "demo", folder=here, **place)
        assert done.returncode == 0, done.stderr
        assert "`security:B602`" in done.stdout and "`bugs:F821`" in done.stdout
        run_id = next(x for x in done.stderr.splitlines() if x.startswith("Run: "))[5:]
        assert f"Come back with: {NAME} show {run_id} (all runs: {NAME} list)" in done.stderr
        assert "starter.py" not in done.stderr + done.stdout
        assert run_id in run(NAME, "list", folder=here, **place).stdout
    finally:
        down = run(NAME, "down", folder=here, **place)
    assert "Stopped (pids " in down.stderr
    assert not [*here.iterdir()], "nothing is left where it was called"


@contextmanager
def scripted(script: Path) -> Iterator[dict[str, str]]:
    """The variables of an endpoint that answers by this script; it is no part of a wheel."""
    served = subprocess.Popen(
        [sys.executable, "-m", "simulator", "--script", script],
        cwd=HOME,
        text=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert served.stdout
        lines = [served.stdout.readline().strip().removeprefix("export ") for _ in range(2)]
        yield dict(line.split("=", 1) for line in lines)
    finally:
        served.terminate()
        served.communicate()


def test_a_project_beside_an_installed_wheel_runs_with_its_own_role_playbook_and_tool(
    command: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(HOME / "examples" / "project", folder)
    examples = folder / "playbooks" / "style-review" / "examples"
    asked = ("run", "--playbook", "style-review", "--input", f"draft={examples / 'draft.md'}")
    place = place_of(command, tmp_path)
    stranger = run(command, *asked, folder=folder, **place)
    assert stranger.returncode == 2 and f"add --project {folder} once" in stranger.stderr
    with scripted(examples / "script.yaml") as endpoint:
        place |= endpoint
        try:
            dry = run(command, *asked, "--dry-run", "--project", folder, folder=tmp_path, **place)
            assert dry.returncode == 0, dry.stderr
            assert "Playbook style-review, from your project" in dry.stdout
            assert "Role style-editor, from your project" in dry.stdout
            assert "Tool long_sentences, from your project" in dry.stdout
            done = run(command, *asked, "--yes", folder=examples, **place)
            assert done.returncode == 0, done.stderr
            # What the script answers once the tool has said where the sentence is, and how long.
            assert "They were ordered in January." in " ".join(done.stdout.split())
            told = run(command, "doctor", "--all", folder=folder, **place)
            assert "long_sentences" in told.stdout and "from your project" in told.stdout
            assert f"{folder / 'prices.yaml'}: house-model" in " ".join(told.stdout.split())
        finally:
            down = run(command, "down", folder=folder, **place)
    assert "Stopped (pids " in down.stderr
    assert not [*(tmp_path / "state" / NAME).glob("*.db")], "its state is its own"


def test_a_package_beside_an_installed_wheel_brings_a_role_by_its_entry_point(
    command: Path, tmp_path: Path
) -> None:
    [site] = command.parents[1].glob("lib/python*/site-packages")
    roles, facts = site / "pack_of_roles" / "roles", site / "pack_of_roles-1.0.dist-info"
    roles.mkdir(parents=True)
    facts.mkdir()
    (roles / "packer.md").write_text("---\nname: packer\ndescription: Packs.\n---\nYou pack.\n")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pack-of-roles\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[holdfast.roles]\nmine = pack_of_roles.roles\n")
    told = run(command, "doctor", folder=tmp_path, **place_of(command, tmp_path))
    [line] = [each for each in told.stdout.splitlines() if "role packer" in each]
    assert line.endswith("from package pack-of-roles")


def test_an_installed_wheel_makes_a_project_like_one_of_its_playbooks(
    command: Path, tmp_path: Path
) -> None:
    place = place_of(command, tmp_path)
    made = run(command, "init", "mine", "--like", "tech-support", folder=tmp_path, **place)
    assert made.returncode == 0, made.stderr
    told = run(command, "doctor", "--all", folder=tmp_path / "mine", **place)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "playbook tech-support" in told.stdout and "count_words" in told.stdout


@dataclass(frozen=True)
class Made:
    """A project folder that `init --like` has made, and how commands are called in it."""

    folder: Path
    place: Mapping[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(NAME, *arguments, folder=self.folder, **self.place)


@pytest.fixture(scope="module")
def project(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A project like all playbooks with an example, beside an endpoint with their scripts."""
    folder = tmp_path_factory.mktemp("books")
    (folder / "script.yaml").write_text("rules:\n" + all_rules(), encoding="utf-8")
    with scripted(folder / "script.yaml") as endpoint:
        place = place_of(command, folder) | endpoint
        for name in INPUTS:
            made = run(command, "init", "mine", "--like", name, folder=folder, **place)
            assert made.returncode == 0, made.stderr
        project = Made(folder / "mine", place)
        yield project
        assert "Stopped (pids " in project.run("down").stderr


@pytest.mark.parametrize("name", INPUTS)
def test_each_example_runs_from_a_wheel_in_a_project_that_init_made_like_it(
    name: str, project: Made
) -> None:
    inputs = given(name, f"playbooks/{name}/examples")
    asked = ("--yes", "--id", name, "--playbook", name, *inputs)
    if name in APPROVED:
        begun = project.run("start", *asked)
        assert begun.returncode == 0, begun.stderr
        approve(lambda: project.run("approve", name).returncode)
        done = project.run("watch", name, "--json")
    else:
        done = project.run("run", "--json", *asked)
    # The example of research has a question that no source answers.
    assert done.returncode == (3 if name == "research" else 0), done.stderr
    report = json.loads(done.stdout)
    assert "(scripted)" in report["answer"]
    _, _, expected, scripted, _ = rows_of_playbooks()[name]
    assert expected.startswith(f"${float(report['dollars_estimated']):.2f}, ")
    assert scripted.startswith(f"{report['model_calls']} calls, ")
