"""The pictures of README and docs, made anew: real runs of the copy in which a reader would sit,
seen in a real browser. What models say in them is scripted, and the pages say so.

    python tests/pictures.py [NAME ...]        makes docs/images/NAME.png, or all of them
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# So that this can be run by itself, too.
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from browser import Tab, tab
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
EXAMPLES = {
    "tech-support": {"ticket": "ticket.md"},
    "contract-review": {"contract": "contract.md", "rules": "rules.md"},
    "competitive-intelligence": {"competitors": "competitors.md", "material": "material"},
}


@dataclass(frozen=True)
class Studio:
    """Where a picture is taken: a copy of the project, and a browser."""

    made: Scratch
    tab: Tab

    def starter(self, *arguments: str, models: bool = False) -> str:
        """What a command printed on stdout."""
        program = str(self.made.project / ".venv" / "bin" / "python")
        given = self.made.endpoint if models else {}
        done = subprocess.run(
            [program, "starter.py", *arguments],
            cwd=self.made.project,
            timeout=SECONDS,
            env=self.made.environment | given,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

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
        content = base64.b64decode(shot["data"])
        assert len(content) < MOST_BYTES, f"{name}: {len(content):,} bytes; show less"
        (IMAGES / f"{name}.png").write_bytes(content)


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
    folder = f"playbooks/{name}/examples"
    given = [f"{key}={folder}/{file}" for key, file in EXAMPLES[name].items()]
    inputs = [part for each in given for part in ("--input", each)]
    studio.starter("run", "--yes", "--playbook", name, *inputs, models=True)
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
    "tech-support": partial(playbook, "tech-support", last="#plan"),
    "contract-review": partial(playbook, "contract-review", last="#plan"),
    "competitive-intelligence": partial(playbook, "competitive-intelligence", last="#plan svg"),
    "page": review,
    "board": board,
    "timeline": timeline,
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
