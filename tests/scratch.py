"""A copy of the project in which a reader of the pages would sit, and what becomes of a page there.

    python tests/scratch.py [PAGE ...]        prints what each snippet prints now

The copy has a home of its own, so the embedded server and its worker are its own; models are a
`python -m simulator` of its own. Processes are ended by the ids under which they were started.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# So that this can be run by itself, too.
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples import all_rules
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import down
from pages import Snippet, difference, snippets
from zygote import CLIENT

SECONDS = 300.0
"""The most that a snippet may take, on the busiest machine."""
REVIEWED = (
    "holdfast/rendering/amounts.py",
    "holdfast/rules/next_moves.py",
    "starter.py",
    "README.md",
)
"""What Git knows in the copy, so that its review takes a second and not ten."""
ASKS_BACK = """
  - call: take_turn
    text: "part 1 of 3 of this goal and state the result in at most 200 words: {goal}"
    first: 1
    answer: escalation
"""
SCRIPT = "rules:" + "".join(
    ASKS_BACK.format(goal=goal) for goal in ("How did the year go?", "How did May go?")
)
SCRIPT += all_rules()
"""The endpoint's: everything succeeds at once, but two agents ask back, and the examples of
playbooks get the answers that come with them.
"""
OWN = {
    "one.md": "# Harbour\n\nThe harbour handled 1,200 ships in 2024; the quay was renewed.\n",
    "two.md": "# Harbour\n\nThe harbour handled 1,050 ships in 2024; the quay was not renewed.\n",
    "suppliers.md": "Acme delivers from one plant. Borealis delivers from four.\n",
}
"""Files that a reader would bring."""
PRIVATE = re.compile(
    r"ANTHROPIC_|TEMPORAL_|MAKE|MFLAGS|HOLDFAST_|STORE_URL|XDG_|COLUMNS|VIRTUAL_ENV|DEBUG"
)


@dataclass
class Scratch:
    """The copy, with its processes."""

    folder: Path
    script: str = SCRIPT
    """What its endpoint answers."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    endpoint: dict[str, str] = field(default_factory=dict)
    """The variables that lead to the simulator."""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.folder / "holdfast"

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "holdfast"

    @property
    def environment(self) -> dict[str, str]:
        """What a newcomer's shell has, with an endpoint to ask."""
        bare = {name: value for name, value in os.environ.items() if not PRIVATE.match(name)}
        path = f"{self.project / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        # Whatever a page says, nothing is installed.
        return bare | {"HOME": str(self.home), "PATH": path, "PIP_NO_INDEX": "1"}

    def make(self) -> None:
        """Copy the files, let Git know some of them, put the fast interpreter in its place."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=HOME,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (HOME / name).is_file() or (HOME / name).is_symlink():
                (self.project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(HOME / name, self.project / name, follow_symlinks=False)
        for name, text in OWN.items():
            (self.project / name).write_text(text, encoding="utf-8")
        self.home.mkdir()
        self._commit()
        self._put_interpreter()

    def _commit(self) -> None:
        def git(*arguments: str) -> None:
            identity = ("-c", "user.name=Reader", "-c", "user.email=reader@example.com")
            subprocess.run(
                ["git", *identity, *arguments], cwd=self.project, check=True, env=self.environment
            )

        git("init", "--quiet", "--initial-branch=main")
        rest = (each.name for each in self.project.iterdir() if each.name not in REVIEWED)
        excluded = "".join(f"/{name}\n" for name in rest)
        (self.project / ".git" / "info" / "exclude").write_text(excluded, encoding="utf-8")
        git("add", "--force", *REVIEWED)
        git("commit", "--quiet", "--message=As it is")

    def _put_interpreter(self) -> None:
        real = Path(sys.executable)
        programs = self.project / ".venv" / "bin"
        programs.mkdir(parents=True)
        for each in real.parent.iterdir():
            if not each.name.startswith("python"):
                (programs / each.name).symlink_to(each)
        client = CLIENT.format(python=str(real), socket=str(self.folder / "starter"))
        for name in ("python", "python3"):
            (programs / name).write_text(client, encoding="utf-8")
            (programs / name).chmod(0o700)
        # `make` finds everything installed.
        (self.project / ".venv" / "locked.stamp").touch()

    def start(self) -> None:
        """The endpoint, and the starter that is loaded."""
        script = self.folder / "script.yaml"
        script.write_text(self.script, encoding="utf-8")
        simulator = self._process("-m", "simulator", "--script", str(script))
        assert simulator.stdout
        exports = [simulator.stdout.readline() for _ in range(2)]
        address = exports[0].removeprefix("export ANTHROPIC_BASE_URL=").strip()
        # The key is the one that README exports: another one would have the worker replaced.
        self.endpoint = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "sk-ant-..."}
        zygote = Path(__file__).parent / "support" / "zygote.py"
        python = self.project / ".venv" / "bin" / "python"
        self._process(str(zygote), str(self.folder / "starter"), str(python))
        until = time.monotonic() + 60
        while not (self.folder / "starter").exists():
            assert time.monotonic() < until, "the starter was not loaded"
            time.sleep(0.05)

    def _process(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def stop(self) -> None:
        """End what was started, the embedded server and its worker first."""
        down(Settings(_env_file=None, state_dir=self.state))
        for process in self.started:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


@dataclass(frozen=True)
class Ran:
    """What became of a snippet."""

    snippet: Snippet
    printed: str = ""
    wrong: str = ""
    """With the place in the page; empty if it did what the page says."""
    kind: str = "ran"
    """Or `compared`, `written`, `not run`."""


class Shell:
    """A reader's shell: what a snippet exports and defines is there in the next."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.said, told = os.pipe()
        self.bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            cwd=scratch.project,
            text=True,
            pass_fds=(told,),
            env=scratch.environment | scratch.endpoint,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(told)
        self.answers = os.fdopen(self.said, encoding="utf-8")
        self._type(f'trap \'printf "%s %s\\n" "$?" "$LINENO" >&{told}\' ERR')
        self.told = told

    def _type(self, line: str) -> None:
        assert self.bash.stdin
        self.bash.stdin.write(f"{line}\n")
        self.bash.stdin.flush()

    def run(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """What was printed, both streams; the exit code and the line of each failed command."""
        script, output = self.scratch.folder / "snippet", self.scratch.folder / "printed"
        # The last command's failure would otherwise be the snippet's, and told twice.
        script.write_text(f"{text}\n:\n", encoding="utf-8")
        output.write_text("")
        self._type(f". {script} >>{output} 2>&1 </dev/null; echo done >&{self.told}")
        timer = _Timer(self.bash.pid)
        failed: list[tuple[int, int]] = []
        with timer:
            for line in self.answers:
                if line == "done\n":
                    break
                code, number = line.split()
                failed.append((int(code), int(number)))
            else:
                failed.append((-1, 0))
        printed = output.read_text(encoding="utf-8", errors="replace")
        return printed.replace(str(self.scratch.home), "~"), failed

    def close(self) -> None:
        assert self.bash.stdin
        with contextlib.suppress(BrokenPipeError):
            self.bash.stdin.close()
        self.bash.wait(10)
        self.answers.close()


class _Timer:
    """Ends a shell and what it started when a snippet takes too long."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __enter__(self) -> None:
        self.timer = threading.Timer(SECONDS, os.killpg, (self.pid, signal.SIGKILL))
        self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()


def followed(scratch: Scratch, page: Path) -> Iterator[Ran]:
    """Do what a page says, snippet by snippet."""
    shell, printed = Shell(scratch), ""
    try:
        for each in snippets(page):
            if each.note("not run:") is not None:
                yield Ran(each, kind="not run")
            elif each.language == "sh":
                ran = _commands(shell, each)
                printed = ran.printed
                yield ran
                if shell.bash.poll() is not None:
                    # It took too long and was ended.
                    shell.close()
                    shell = Shell(scratch)
            elif each.language == "text":
                yield _text(scratch, each, printed)
            else:
                yield _file(scratch, each)
    finally:
        shell.close()


def _commands(shell: Shell, snippet: Snippet) -> Ran:
    for once in (each for each in snippet.notes if each.startswith("once: ")):
        command, _, text = once.removeprefix("once: ").partition(" prints ")
        until = time.monotonic() + SECONDS
        while text not in (printed := shell.run(command)[0]):
            if time.monotonic() > until:
                wrong = f"{snippet.place}: {command} never printed {text!r}, but:\n{printed}"
                return Ran(snippet, printed, wrong)
            time.sleep(0.1)
    printed, failed = shell.run(snippet.text)
    wrong = "".join(
        f"{snippet.page.relative_to(HOME)} line {snippet.line + max(line, 1) - 1}: exit code"
        f" {code}; printed was:\n{printed}"
        for code, line in failed
    )
    return Ran(snippet, printed, wrong)


def _text(scratch: Scratch, snippet: Snippet, printed: str) -> Ran:
    for note, folder in (
        ("paths of the repository", scratch.project),
        ("paths of the state directory", scratch.state),
    ):
        if snippet.note(note) is not None:
            missing = [each for each in _paths(snippet.text) if not (folder / each).exists()]
            wrong = f"{snippet.place}: {', '.join(missing)}: no such path" if missing else ""
            return Ran(snippet, wrong=wrong, kind="compared")
    return Ran(snippet, wrong=difference(snippet, printed), kind="compared")


def _paths(text: str) -> Iterator[str]:
    """The first word of each line, and those right after it that look like paths, too."""
    for line in text.splitlines():
        first, *others = line.split()
        if not first.startswith(("~", "$")):
            yield first
            for other in others:
                if not re.fullmatch(r"[\w.]+/|\w+\.(?:log|py)", other):
                    break
                yield other


def _file(scratch: Scratch, snippet: Snippet) -> Ran:
    if not snippet.name:
        return Ran(snippet, wrong=f"{snippet.place}: which file is this? name it above: `NAME`:")
    file = scratch.project / snippet.name
    if (HOME / snippet.name).exists():
        return Ran(snippet, wrong=f"{snippet.place}: {snippet.name} exists; show something new")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(snippet.text, encoding="utf-8")
    return Ran(snippet, kind="written")


@contextlib.contextmanager
def scratch(script: str = SCRIPT) -> Iterator[Scratch]:
    """A copy for as long as it is needed; nothing of it is left behind."""
    # A short path, because it holds a socket.
    with tempfile.TemporaryDirectory(prefix="pages-") as folder:
        made = Scratch(Path(folder).resolve(), script)
        made.make()
        try:
            made.start()
            yield made
        finally:
            made.stop()


def main(names: list[str]) -> int:
    """1 if something is not as a page says."""
    wrong = 0
    with scratch() as made:
        for name in names or ["README.md"]:
            for ran in followed(made, HOME / name):
                sys.stdout.write(f"\n===== {ran.snippet.place}: {ran.kind}\n{ran.printed}")
                if ran.wrong:
                    wrong = 1
                    sys.stdout.write(f"!!!!! {ran.wrong}\n")
                sys.stdout.flush()
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
