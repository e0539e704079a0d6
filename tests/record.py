"""`make record`: run what is worth replaying, with an embedded server of its own, and write each
history to tests/histories. One that is there already stays: it is what an earlier version left in
somebody's server. Delete it to have it written anew.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from orchestrator import __version__
from orchestrator.embedded import down
from orchestrator.settings import HOME, Settings
from simulator.script import Script
from simulator.server import Simulator

HISTORIES = HOME / "tests" / "histories"
RUNS = {
    "code-review": ["--playbook", "code-review", "--input", "repo=repository"],
    "free-form": ["Compare two ways to store sessions, and recommend one", "--yes", "--unpriced"],
}


def a_repository(place: Path) -> None:
    """A small one with something to say about it."""
    place.mkdir()
    (place / "code.py").write_text(
        "import os\n\n\ndef run(x, y=[]):\n    os.system(x)\n    eval(x)\n"
    )
    for command in (
        ["init", "-q"],
        ["add", "code.py"],
        ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "One file"],
    ):
        subprocess.run(["git", *command], cwd=place, check=True)


async def record(place: Path, simulator: str) -> None:
    """Run and export in a folder of our own."""
    settings = Settings(state_dir=place / "state")
    environment = os.environ | {
        "HOLDFAST_STATE_DIR": str(settings.state_dir),
        "ANTHROPIC_BASE_URL": simulator,
        "ANTHROPIC_API_KEY": "scripted",
    }

    async def starter(*arguments: str) -> None:
        command = (sys.executable, str(HOME / "starter.py"), *arguments, "--embedded")
        process = await asyncio.create_subprocess_exec(*command, cwd=place, env=environment)
        if await process.wait():
            raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}")

    try:
        for name, arguments in RUNS.items():
            file = HISTORIES / f"{name}-{__version__}.json"
            if not file.exists():
                await starter("run", *arguments, "--id", name)
                await starter("export", name, "--out", str(file))
                file.chmod(0o644)
    finally:
        await asyncio.to_thread(down, settings)


async def main() -> None:
    HISTORIES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        a_repository(Path(folder) / "repository")
        async with Simulator(Script()) as simulator:
            await record(Path(folder), simulator.url)


if __name__ == "__main__":
    asyncio.run(main())
