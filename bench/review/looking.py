"""One keyless review in this process: every lens over a Git working tree, and what the synthesis
makes of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from holdfast.activities.repositories.scratch import Snapshots
from holdfast.activities.repositories.wanted import Wanted
from holdfast.activities.review.lenses import lenses_of
from holdfast.activities.review.synthesis import review
from holdfast.activities.snapshots.snapshot import take
from holdfast.calls.synthesize import SynthesisMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Finding, PinnedInput, Remark, Subtask
from holdfast.ports import Lens
from holdfast.storage import store_at
from holdfast.untrusted.roots import Root

GIT = shutil.which("git") or "git"
SECONDS = 600


async def remarks_of(tree: Path, base: str = "", lenses: Sequence[str] = ()) -> list[Remark]:
    """Every remark of a review of a working tree by all lenses, or by these, however little it is
    believed.
    """
    with tempfile.TemporaryDirectory(prefix="bench-review-") as scratch:
        store = store_at((Path(scratch) / "store").as_uri())
        snapshots = Snapshots(store, Path(scratch) / "snapshots")
        pinned = await take("repo", tree, (Root.of(tree),), Wanted(base), store)
        findings = [
            await _finding(name, lens, pinned)
            for name, lens in lenses_of(snapshots).items()
            if not lenses or name in lenses
        ]
        answered = review(SynthesisMaterial(goal="Review it", findings=tuple(findings)))
    found = answered.data["remarks"]
    assert isinstance(found, list)
    return [Remark.model_validate(each) for each in found]


async def _finding(name: str, lens: Lens, pinned: PinnedInput) -> Finding:
    subtask = Subtask(id=name, title=name, instruction="", role=name, inputs=("repo",))
    material = WorkMaterial(subtask=subtask, inputs=(pinned,), lens=name, timeout_seconds=SECONDS)
    draft = await lens(material)
    return Finding(subtask_id=name, status="complete", content=draft.content, data=draft.data)


def committed(tree: Path) -> None:
    """Make a folder a repository with one commit of all that it holds."""
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", "-A", "-f")
    git(tree, "commit", "-q", "-m", "As it was published")


def git(tree: Path, *arguments: str) -> None:
    """Run git in a folder, by nobody's settings."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tree),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Bench",
        "GIT_AUTHOR_EMAIL": "bench@example.com",
        "GIT_COMMITTER_NAME": "Bench",
        "GIT_COMMITTER_EMAIL": "bench@example.com",
        "GIT_TEMPLATE_DIR": "",
    }
    subprocess.run([GIT, *arguments], cwd=tree, env=environment, check=True, capture_output=True)
