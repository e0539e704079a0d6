"""A repository with every known trigger of git, ruff, bandit, lizard, detect-secrets and Python's
imports: reviewing it runs none of them and changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.activities.review.lenses import analysers
from holdfast.contracts.errors import LensFailed
from repositories import GIT, Bench, Repository, remarks_of

pytestmark = pytest.mark.anyio

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-index-change", "post-merge", "post-rewrite", "pre-applypatch",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive",
    "prepare-commit-msg", "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
COMMANDS = (
    "core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "core.askPass",
    "core.gitProxy", "core.alternateRefsCommand", "diff.external", "diff.evil.command",
    "diff.evil.textconv", "diff.python.textconv", "filter.evil.clean", "filter.evil.smudge",
    "filter.evil.process", "merge.evil.driver", "credential.helper", "gpg.program",
    "gpg.ssh.program", "uploadpack.packObjectsHook", "interactive.diffFilter", "pager.log",
    "pager.diff", "pager.ls-files", "sequence.editor", "trailer.evil.command",
)  # fmt: skip
ALIASES = ("log", "ls-files", "ls-tree", "rev-parse", "diff-tree", "hash-object", "cat-file")
SETTINGS = {
    "log.showSignature": "true",
    "filter.evil.required": "true",
    "diff.evil.cachetextconv": "true",
    "protocol.ext.allow": "always",
    "protocol.allow": "always",
    "extensions.partialClone": "origin",
    "extensions.worktreeConfig": "true",
    "core.repositoryFormatVersion": "1",
    "remote.origin.promisor": "true",
    "submodule.evil.update": "!touch",
    "core.untrackedCache": "true",
    "core.attributesFile": ".gitattributes",
    "core.excludesFile": "everything",
    "log.mailmap": "true",
    "diff.noprefix": "true",
    "diff.renames": "copies",
    "color.ui": "always",
    "status.showUntrackedFiles": "no",
}
SHADOWS = (
    "json.py", "ast.py", "re.py", "os.py", "ruff.py", "bandit.py", "lizard.py", "tempfile.py",
    "secrets.py", "subprocess.py", "random.py", "tokenize.py", "yaml.py", "stevedore.py",
    "detect_secrets/__init__.py", "lizard_ext/__init__.py", "activities/__init__.py",
    "sitecustomize.py", "usercustomize.py", "conftest.py", "setup.py", "noxfile.py", "__main__.py",
)  # fmt: skip
TOOL_FILES = {
    "ruff.toml": 'extend = "missing.toml"\nexclude = ["*"]\n[lint]\nselect = []\n',
    ".ruff.toml": 'exclude = ["*"]\nrequired-version = "0.0.1"\n',
    "pyproject.toml": '[tool.ruff]\nexclude = ["*"]\n[tool.bandit]\nexclude_dirs = ["."]\n'
    'skips = ["B307"]\n[tool.lizard]\nexclude = ["*"]\n',
    ".bandit": "[bandit]\nexclude: /\nskips: B307\nplugin_name_pattern: *.py\n",
    "bandit.yaml": "skips: [B307]\n",
    "setup.cfg": "[bandit]\nskips: B307\n[flake8:local-plugins]\nextension = X = evil:run\n",
    "tox.ini": "[bandit]\nskips: B307\n",
    "whitelizard.txt": "tangled\n",
    ".gitmodules": '[submodule "evil"]\n\tpath = -u./evil\n\turl = -u./evil\n\tupdate = !touch\n',
    ".mailmap": "Nobody <n@example.com> <a@example.com>\n",
    ".env": "ANTHROPIC_BASE_URL=http://127.0.0.1:9/\n",
    ".mcp.json": '{"mcpServers": {"evil": {"command": "touch", "args": ["mcp"]}}}\n',
}
TANGLED = "def tangled(a):\n" + "".join(f"    if a == {n}:\n        a += 1\n" for n in range(30))
TARGET = (
    "import time\n\nx = missing\n\n\nasync def f():\n    time.sleep(1)\n\n\neval(x)\n" + TANGLED
)


class Trap:
    """The repository and the folder in which each trigger would leave its name."""

    def __init__(self, folder: Path) -> None:
        self.canaries = folder / "canaries"
        self.canaries.mkdir()
        self.repository = Repository.at(folder / "repo")
        self._write_files()
        self.base = self.repository.commit({"target.py": "x = 1\n", "lost.py": "lost = 1\n"})
        self.repository.write("target.py", TARGET)
        self.repository.write("lost.py", "lost = also_missing\n")
        self._forget("lost.py")
        self._arm_git()

    @property
    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.canaries.iterdir())

    def command(self, name: str) -> str:
        """A program that leaves its name; as a filter it passes its input on."""
        path = self.canaries.parent / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{self.canaries}/{name}'\ncat 2>/dev/null </dev/null\n")
        path.chmod(0o755)
        return str(path)

    def _write_files(self) -> None:
        for name in SHADOWS:
            mark = self.canaries / name.replace("/", "-")
            self.repository.write(name, f"open({str(mark)!r}, 'w').close()\n")
            self.repository.write(f"inner/{name}", f"open({str(mark)!r} + '-inner', 'w').close()\n")
        mark = self.canaries / "pth"
        self.repository.write("evil.pth", f"import os; open({str(mark)!r}, 'w').close()\n")
        plugin = self.repository.write(
            "evil_plugin.py", f"open({str(self.canaries / 'plugin')!r}, 'w').close()\n"
        )
        baseline = f'{{"plugins_used": [{{"name": "Evil", "path": "file://{plugin}"}}]}}\n'
        for name, content in {**TOOL_FILES, ".secrets.baseline": baseline}.items():
            self.repository.write(name, content)
        self.repository.write(".gitattributes", "* filter=evil diff=evil merge=evil text=auto\n")

    def _forget(self, name: str) -> None:
        """Remove the blob of a file, as in a partial clone: reading it would ask the remote."""
        blob = self.repository.git("rev-parse", f"HEAD:{name}")
        (self.repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    def _arm_git(self) -> None:
        folder = self.repository.path / ".git"
        hooks = self.canaries.parent / "hooks"
        for place in (folder / "hooks", hooks):
            place.mkdir(exist_ok=True)
            for hook in HOOKS:
                shutil.copy(self.command(f"hook-{hook}"), place / hook)
        settings = {name: self.command(name) for name in COMMANDS}
        settings |= {f"alias.{name}": f"!{self.command('alias-' + name)}" for name in ALIASES}
        settings |= SETTINGS
        settings["core.hooksPath"] = str(hooks)
        settings["remote.origin.url"] = f"ext::{self.command('remote')} %S"
        included = self.canaries.parent / "included"
        included.write_text(f"[core]\n\tfsmonitor = {self.command('included')}\n")
        config = folder / "config"
        lines = config.read_text()
        for name, value in settings.items():
            section, _, key = name.rpartition(".")
            first, _, second = section.partition(".")
            head = f'[{first} "{second}"]' if second else f"[{first}]"
            lines += f'{head}\n\t{key} = "{value}"\n'
        lines += f'[includeIf "gitdir:/"]\n\tpath = {included}\n[include]\n\tpath = {included}\n'
        config.write_text(lines)
        (folder / "config.worktree").write_text(
            f"[core]\n\tfsmonitor = {self.command('worktree-config')}\n"
        )
        (folder / "info").mkdir(exist_ok=True)
        (folder / "info" / "attributes").write_text("* filter=evil diff=evil\n")


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def state_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything about every file, the index and its time among them."""
    found: dict[str, tuple[object, ...]] = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            digest = hashlib.sha256(content).hexdigest()
            found[str(path)] = (status.st_mode, status.st_ino, status.st_mtime_ns, digest)
    return found


@pytest.mark.parametrize("with_base", [False, True])
@pytest.mark.long
async def test_a_review_springs_no_trap_and_changes_nothing(
    trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_base: bool
) -> None:
    bench = Bench(tmp_path)
    # As somebody who stands in the repository, with an environment that points at it.
    monkeypatch.chdir(trap.repository.path)
    monkeypatch.setenv("PYTHONPATH", str(trap.repository.path))
    monkeypatch.setenv("PYTHONSTARTUP", str(trap.repository.path / "setup.py"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", trap.command("variable"))
    monkeypatch.setenv("GIT_DIR", str(trap.repository.path / ".git"))
    before = state_of(trap.repository.path)
    pinned = await bench.pin(trap.repository, trap.base if with_base else "")
    # A blob of an old commit is to be fetched from elsewhere, which nobody does.
    with pytest.raises(LensFailed, match="the history was not looked at"):
        await bench.look_at("history", pinned)
    drafts = {lens: await bench.look_at(lens, pinned) for lens in analysers() if lens != "history"}
    assert trap.sprung == []
    assert state_of(trap.repository.path) == before
    # Nor did its settings hide anything.
    rules = {
        lens: {each.rule for each in remarks_of(draft) if each.file == "target.py"}
        for lens, draft in drafts.items()
    }
    seen = {
        "bugs": {"F821"},
        "complexity": {"complex-function"},
        "performance": {"ASYNC251"},
        "secrets": set(),
        "security": {"B307"},
    }
    assert {lens: rules[lens] for lens in seen} == seen
    assert "lost.py" in {each.file for each in remarks_of(drafts["bugs"])}


def test_the_traps_are_real(trap: Trap) -> None:
    """The control: plain git and plain Python do step into them."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(trap.canaries.parent)}
    for arguments in (["status"], ["cat-file", "blob", f"{trap.base}:lost.py"], ["add", "-A"]):
        subprocess.run(
            [GIT, *arguments],
            cwd=trap.repository.path,
            env=environment,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
    subprocess.run(
        [shutil.which("python3") or "python3", "-m", "lizard"],
        cwd=trap.repository.path,
        env=environment,
        check=False,
        capture_output=True,
    )
    sprung = set(trap.sprung)
    assert {"filter.evil.process", "lizard.py", "remote"} <= sprung
    assert sprung & {"core.fsmonitor", "included", "worktree-config"}
