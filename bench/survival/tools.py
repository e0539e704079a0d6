"""Seconds from kill -9 to the next call and to completion of a run of slow tools.

A run of the code-review playbook with slow tools (tests/support/slow_worker.py) is struck while two
of its six tools are done. "next call" is the first start of a tool after the blow, "completion" the
end of the starter. "nothing" is the same run left alone, counted from the same moment.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.instruments.tables import head, row
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import down, status

COLUMNS = (("killed", "next call", "completion"),)
VICTIMS = {
    "nothing": (),
    "worker": ("worker",),
    "server": ("server",),
    "both": ("server", "worker"),
}
STARTER = """
import runpy, sys
from pathlib import Path
from holdfast.embedded import supervision
supervision.WORKER = (sys.executable, str(Path("tests/support/slow_worker.py").absolute()))
runpy.run_path("starter.py", run_name="__main__")
"""
DONE_AT_THE_BLOW = 2


def lines(calls: Path, word: str) -> int:
    """How many calls were started or ended so far."""
    text = calls.read_text() if calls.exists() else ""
    return sum(line.startswith(word) for line in text.splitlines())


def struck(victims: tuple[str, ...]) -> tuple[float, float]:
    """Seconds to the next call and to completion, in a state directory of its own."""
    with tempfile.TemporaryDirectory() as place:
        state = Path(place) / "state"
        settings = Settings(state_dir=state)
        # Three at a time, so that some subtasks still wait when the blow falls.
        goal = ["--input", f"repo={HOME}", "--limits", "concurrency=3"]
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                STARTER,
                "run",
                "--embedded",
                "--json",
                "--playbook",
                "code-review",
                *goal,
            ],
            cwd=HOME,
            env=os.environ | {"HOLDFAST_STATE_DIR": str(state), "HOLDFAST_WORKERS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        calls = state / "calls"
        try:
            while lines(calls, "end") < DONE_AT_THE_BLOW:
                time.sleep(0.01)
            time.sleep(0.5)
            now = status(settings)
            started = lines(calls, "start")
            blow = time.monotonic()
            for victim in victims:
                pid = now.server_pid if victim == "server" else now.worker_pid
                if pid:
                    os.kill(pid, signal.SIGKILL)
            following = 0.0
            while process.poll() is None:
                if not following and lines(calls, "start") > started:
                    following = time.monotonic() - blow
                time.sleep(0.01)
            if process.returncode:
                raise SystemExit(f"the run did not survive: exit code {process.returncode}")
            return following, time.monotonic() - blow
        finally:
            process.kill()
            process.wait()
            down(settings)


def main(repeats: int) -> None:
    """Print the table."""
    write = sys.stdout.write
    write(f"medians of {repeats}, seconds from kill -9\n\n")
    write(head(COLUMNS[0]))
    for name, victims in VICTIMS.items():
        measured = [struck(victims) for _ in range(repeats)]
        following, completion = (statistics.median(each) for each in zip(*measured, strict=True))
        write(row((name, f"{following:.1f}", f"{completion:.1f}")))
        sys.stdout.flush()
