"""The pictures of README and docs, made anew: real runs of the copy in which a reader would sit,
seen in a real browser. What models say in them is scripted, and the pages say so.

    python tests/pictures.py [NAME ...]        makes docs/images/NAME.png, or all of them
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# So that this can be run by itself, too.
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from PIL import Image

from browser import Tab, tab
from examples import APPROVED, INPUTS, approve, given
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded.state import Endpoint, StateDir
from holdfast.intake import example
from scratch import SCRIPT, SECONDS, Scratch, scratch
from slack_deployed import standing
from slack_drawn import page
from slack_stand_in import ADA, BOT_USER, NAMES

IMAGES = HOME / "docs" / "images"
MOST_BYTES = 200_000
UI_WIDTH = 1500
"""Pixels; the Web UI keeps 256 of them for its own menu."""
TALL = 2_000
"""Pixels: no picture is of something below."""
AROUND = 24
"""Pixels that are kept beside what a picture is of."""
COLOURS = 64
PORTS = """
  - call: plan
    text: What do these reports disagree about
    plan:
      - {id: north, role: researcher, title: The northern ports, inputs: [north], instruction: "Say what happened in the ports of the north."}
      - {id: south, role: researcher, title: The southern ports, inputs: [south], instruction: "Say what happened in the ports of the south."}
      - {id: west, role: researcher, title: The western ports, inputs: [west], instruction: "Say what happened in the ports of the west."}
      - {id: compare, role: analyst, title: What they disagree about, depends_on: [north, south, west], inputs: [], instruction: "Say where these accounts contradict each other.", acceptance_criteria: "Each contradiction names both places."}
      - {id: figure, role: analyst, title: What it amounts to, depends_on: [compare], inputs: [], instruction: "Put a figure to each contradiction."}
  - {call: work, text: happened in the ports of the south, first: 1, answer: low_confidence}
"""  # noqa: E501
"""A goal whose second subtask is tried again."""
MAPPED: Mapping[str, Any] = {
    "goal": "Which kinds of tickets do we get?",
    "subtasks": [
        {
            "id": "classify",
            "title": "The kind of each ticket",
            "role": "writer",
            "instruction": "Say which kind of ticket this is, by its subject {subject}",
            "map": {"over": "tickets", "by": "records", "id": "id"},
            "why": "Each ticket is judged by itself.",
        },
        {
            "id": "sum",
            "title": "What they have in common",
            "role": "analyst",
            "instruction": "Say what the table of tickets shows, in five sentences.",
            "depends_on": ["classify"],
        },
    ],
}
PACE = "latency: [0.9, 1.8]\n"
GOAL = "What do these reports disagree about?"
COASTS = ("north", "south", "west")
SLACK_FOUND = "Base 2.00 %, then 2.50 % from 4 November; deposit 1.75 %, then 2.10 %."
SLACK_ANSWER = """Two rates changed.

| rate | before | after |
|---|---|---|
| base | 2.00 % | 2.50 % |
| deposit | 1.75 % | 2.10 % |

**Why.** Prices rose faster than the board had expected [rates]; two members wanted to wait [votes].
- The base rate counts from 4 November.
- Nothing else was decided."""
SLACK_GOAL = "Which base rates changed in the minutes of November, and why?"
SLACK: Mapping[str, Any] = {
    "latencies": {"work": (1.5, 4.0), "synthesize": (2.0, 2.5)},
    "rules": [
        {
            "call": "plan",
            "plan": [
                {
                    "id": "rates",
                    "role": "researcher",
                    "title": "Find each rate that changed",
                    "instruction": "List each rate in the minutes, before and after, as a table.",
                },
                {
                    "id": "reasons",
                    "role": "analyst",
                    "title": "Say why each one changed",
                    "instruction": "Give the reason that is stated for each change, as a list.",
                    "depends_on": ["rates"],
                },
                {
                    "id": "votes",
                    "role": "researcher",
                    "title": "Count the votes",
                    "instruction": "List who voted for and against each change, as a table.",
                },
            ],
        },
        {
            "text": "List who voted",
            "call": "work",
            "latency": (6.0, 6.0),
            "result": "Two wanted to wait.",
        },
        {"text": "List each rate in", "call": "work", "result": SLACK_FOUND},
        {"call": "synthesize", "result": SLACK_ANSWER},
    ],
}


@dataclass(frozen=True)
class Studio:
    """Where a picture is taken: a copy of the project, and a browser."""

    made: Scratch
    tab: Tab

    def starter(self, *arguments: str, models: bool = False, codes: Sequence[int] = (0,)) -> str:
        """What a command printed on stdout that ended with one of these codes."""
        done = self.call(*arguments, models=models)
        assert done.returncode in codes, done.stderr
        return done.stdout

    def call(self, *arguments: str, models: bool = False) -> subprocess.CompletedProcess[str]:
        """How a command ended."""
        program = str(self.made.project / ".venv" / "bin" / "python")
        given = self.made.endpoint if models else {}
        return subprocess.run(
            [program, "starter.py", *arguments],
            cwd=self.made.project,
            timeout=SECONDS,
            env=self.made.environment | given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def page(self) -> Path:
        """The page of the run that ended last."""
        pages = (self.made.state / "reports").glob("*.html")
        return max(pages, key=lambda path: path.stat().st_mtime_ns)

    @property
    def endpoint(self) -> Endpoint:
        """Where the copy's server is."""
        found = StateDir.of(Settings(_env_file=None, state_dir=self.made.state)).endpoint()
        assert found is not None
        return found

    async def web_ui(self, run_id: str, shown: str) -> None:
        """The run in the Web UI, once this selector is there, and what it is to show has come."""
        run = f"{self.endpoint.target.ui_url}/namespaces/default/workflows/{run_id}"
        await self.tab.open(run, width=UI_WIDTH)
        await self.tab.until("/[0-9a-f-]{36}/.test(location.pathname)")
        execution = (await self.tab.value("location.pathname")).split("/")[5]
        await self.tab.open(f"{run}/{execution}/{shown}", width=UI_WIDTH)
        await self.tab.until("document.querySelector('h1')")
        # It draws as it gets the history, page by page.
        await asyncio.sleep(5)

    async def take(self, name: str, box: str) -> None:
        """What the page shows in a box: JavaScript for [left, top, right, bottom]."""
        width = await self.tab.value("window.innerWidth")
        await self.tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=TALL,
            deviceScaleFactor=1,
            mobile=False,
        )
        # The Web UI draws its graph again.
        await asyncio.sleep(2)
        left, top, right, bottom = await self.tab.value(box)
        clip = {"x": left, "y": top, "width": right - left, "height": bottom - top, "scale": 1}
        shot = await self.tab.call("Page.captureScreenshot", format="png", clip=clip)
        content = small(base64.b64decode(shot["data"]))
        assert len(content) < MOST_BYTES, f"{name}: {len(content):,} bytes; show less"
        (IMAGES / f"{name}.png").write_bytes(content)


def small(content: bytes) -> bytes:
    """The same picture in as many colours as its text and lines need: a third of the bytes."""
    smaller = io.BytesIO()
    few = Image.open(io.BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()


def around(first: str, last: str) -> str:
    """The box from the top of an element to the bottom of another, as wide as the wider of the last
    and the page's text.
    """
    return f"""(() => {{
        const box = selector => document.querySelector(selector).getBoundingClientRect();
        const [text, low] = [box('main'), box({last!r})];
        const top = Math.max(box({first!r}).top - {AROUND}, 0);
        return [Math.min(text.left, low.left) - {AROUND}, top,
                Math.max(text.right, low.right) + {AROUND}, low.bottom + {AROUND / 2}];
    }})()"""


async def playbook(name: str, studio: Studio, last: str) -> None:
    """The page of a playbook's example, from its title to its plan."""
    run = ("start", "--yes", "--id", name, "--playbook", name)
    studio.starter(*run, *given(name, f"playbooks/{name}/examples"), models=True)
    if name in APPROVED:
        approve(lambda: studio.call("approve", name, models=True).returncode)
    studio.starter("watch", name, models=True, codes=(0, 3))
    await studio.tab.open(f"file://{studio.page}")
    await studio.take(name, around("header", last))


async def review(studio: Studio) -> None:
    """The page of the demo's review, down to its first remarks."""
    _demo(studio)
    await studio.tab.open(f"file://{studio.page}")
    await studio.take("page", "[0, 0, 1280, 1150]")


def _demo(studio: Studio) -> None:
    """The review of `make demo`, of a folder with a shorter path."""
    studio.starter("demo", str(example.make_repository(studio.made.folder)), "--base", example.MAIN)


async def board(studio: Studio) -> None:
    """The demo's review in the Web UI, with its board."""
    studio.starter("up")
    _demo(studio)
    await studio.web_ui(studio.page.stem, "user-metadata")
    await studio.take("board", "[264, 60, 1492, 1075]")


async def timeline(studio: Studio) -> None:
    """A planned run in the Web UI: side by side, one tried again, a review, a critique."""
    studio.starter("up", models=True)
    inputs = [f"--input={name}=text:What the ports of the {name} told." for name in COASTS]
    # The worker is loaded when the run that is shown begins.
    for goal in ("Say something", GOAL):
        studio.starter("run", "--yes", goal, *inputs, models=True)
    await studio.web_ui(studio.page.stem, "timeline")
    heading = "[...document.querySelectorAll('h2')].find(each => each.innerText === 'Timeline')"
    await studio.take(
        "timeline",
        f"""(() => {{
            const box = {heading}.closest('div:has(> div + div.relative)').getBoundingClientRect();
            return [box.left - {AROUND}, box.top, box.right + {AROUND}, box.bottom - 60];
        }})()""",
    )


async def mapped(studio: Studio) -> None:
    """The page of a map at work: how far it is, and both lanes before."""
    folder = studio.made.folder
    tickets = (f'{{"id": "t{n}", "subject": "Page {n} stays white"}}\n' for n in range(200))
    (folder / "tickets.jsonl").write_text("".join(tickets), "utf-8")
    (folder / "map.json").write_text(json.dumps(MAPPED), "utf-8")
    run = ("--yes", "--id", "tickets", "--plan", str(folder / "map.json"))
    studio.starter("start", *run, "--input", f"tickets={folder / 'tickets.jsonl'}", models=True)
    page = folder / "map.html"
    while " of 200, " not in (page.read_text("utf-8") if page.exists() else ""):
        await asyncio.sleep(5)
        # Before its first step there is nothing to show.
        studio.call("report", "tickets", "--out", str(page), models=True)
    await studio.tab.open(f"file://{page}")
    await studio.take("map", around("#plan", "#plan"))


async def slack(name: str, studio: Studio, moment: str) -> None:
    """A thread of Slack at a moment, drawn from the blocks that the door had sent."""
    async with standing(SLACK) as stand:
        said = stand.slack.write(f"<@{BOT_USER}> {SLACK_GOAL}")
        await stand.slack.event(said)
        ts = said["event"]["ts"]

        def board(has: str) -> dict[str, Any] | None:
            found = stand.slack.part(ts, "board")
            return found[0] if found and has in json.dumps(found[0], ensure_ascii=False) else None

        waiting = await stand.slack.until(lambda: board("holdfast_approve"))
        await stand.slack.until(lambda: len(stand.slack.thread(ts)) == 2)
        if moment != "plan":
            await stand.slack.interact(stand.slack.press(waiting, "approve"))
            await stand.slack.until(lambda: board("✓") and board("▸"))
        if moment == "report":
            await stand.slack.until(lambda: stand.slack.part(ts, "report"))
        thread = [dict(each) for each in stand.slack.thread(ts)]
    first = {"user": ADA, "text": f"<@{BOT_USER}> {SLACK_GOAL}"}
    shown = (
        [first, *thread] if moment == "plan" else thread[:1] if moment == "works" else thread[2:]
    )
    drawn = studio.made.folder / "thread.html"
    drawn.write_text(page(shown, {**NAMES, BOT_USER: "holdfast"}), encoding="utf-8")
    await studio.tab.open(f"file://{drawn}", width=760)
    await studio.take(name, "[0, 0, 760, document.querySelector('main').offsetHeight]")


PICTURES: Mapping[str, Callable[[Studio], Awaitable[None]]] = {
    **{name: partial(playbook, name, last="#plan svg") for name in INPUTS},
    "page": review,
    "board": board,
    "timeline": timeline,
    "map": mapped,
    "slack-plan": partial(slack, "slack-plan", moment="plan"),
    "slack-works": partial(slack, "slack-works", moment="works"),
    "slack-report": partial(slack, "slack-report", moment="report"),
}


async def taken(names: list[str]) -> None:
    """Take these pictures, each run in the same copy."""
    forgiving = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with scratch(PACE + SCRIPT + PORTS) as made, forgiving as profile:
        async with tab(Path(profile)) as opened:
            await opened.call("Emulation.setScrollbarsHidden", hidden=True)
            for name in names:
                await PICTURES[name](Studio(made, opened))
                size = (IMAGES / f"{name}.png").stat().st_size
                sys.stdout.write(f"docs/images/{name}.png: {size:,} bytes\n")


if __name__ == "__main__":
    asyncio.run(taken(sys.argv[1:] or [*PICTURES]))
