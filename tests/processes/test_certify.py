"""Certificates of playbooks with tools that reach outside: real server, real worker, killed for
real. One run left alone, and one for each blow that a test is about.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast.certifying.certify import (
    REFUSED_CONNECTION,
    Certificate,
    NotCertified,
    Wanted,
    certify,
)
from holdfast.certifying.page import render_page
from holdfast.errors import Refused
from holdfast.intake.goals import Wish
from holdfast.testing import deployed

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(900)]

PLAYBOOK = """
name: letters
description: Sends the letter.
inputs:
  letter: {kind: text, required: true}
plan:
  goal: Send the letter
  synthesis_instruction: Say that it was sent.
  subtasks:
    - {id: send, title: Sending, role: sender, instruction: Send the letter, inputs: [letter]}
"""
ROLE = """---
name: sender
description: Sends letters. For letters that are ready.
model: haiku
tools: [send]
---
You send letters.
"""
TOOL = """
import asyncio, os, time
from pathlib import Path
from holdfast import Here, tool

SENT = Path({sent!r})

@tool({options})
async def send(here: Here, to: str) -> str:
    "Send the letter."
    {body}
    return "sent"
"""
UNDECLARED = "with SENT.open('a') as file: file.write(f'{to}\\n')"
TEMPORARY = "import tempfile; tempfile.NamedTemporaryFile('w').close()"
"""What is done in a temporary file is no effect."""
SCRIPT: Mapping[str, Any] = {
    "rules": [
        {"call": "take_turn", "turn": 1, "tools": [{"name": "send", "input": {"to": "Ada"}}]},
        {"call": "take_turn", "result": "It was sent."},
    ]
}


def project(folder: Path, body: str, options: str = "", approval: str = "") -> Path:
    """Return a project with one playbook, one role and its tool."""
    made = folder / "mine"
    files = {
        "holdfast.toml": "",
        "playbooks/letters/playbook.yaml": f"{PLAYBOOK}{approval}",
        "roles/sender.md": ROLE,
        "tools/sending.py": TOOL.format(
            sent=str(folder / "sent"), options=options, body=textwrap.indent(body, "    ").strip()
        ),
    }
    for name, text in files.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return made


async def certified(place: Path, *only: str, **more: Any) -> Certificate:
    wish = Wish(playbook="letters", inputs=("letter=text:Dear Ada",))
    wanted = Wanted(
        wish, "scripted", place, SCRIPT, only=lambda name: name in only, most=None, **more
    )
    return await certify(wanted, lambda _line: None)


async def test_a_tool_that_writes_and_declares_nothing_is_named_and_caught_doing_it_twice(
    tmp_path: Path,
) -> None:
    made = await certified(
        project(tmp_path, UNDECLARED), "worker killed once the tool of send.1 tool-1-1 is done"
    )
    assert (tmp_path / "sent").read_text() == "Ada\n" * 3, "once alone, twice under the blow"
    alone, struck = made.wrong
    assert alone.startswith(f"left alone: send wrote {tmp_path / 'sent'}; it declares no effect")
    assert f"send wrote {tmp_path / 'sent'}, 2 times for one call; it declares no" in struck
    assert "NOT certified" in render_page(made)


async def test_a_declared_effect_is_recorded_never_run_and_told_as_maybe_run(
    tmp_path: Path,
) -> None:
    place = project(tmp_path, UNDECLARED, "effects=True, idempotent=False")
    made = await certified(
        place, "server and worker killed as send.1 tool-1-1 calls its tool", "503", "refusal"
    )
    assert made.wrong == ()
    assert not (tmp_path / "sent").exists()
    [kill] = made.kills
    assert kill.verdict.told == ("send: it may have run, as the report says",)
    assert sum(each.tool == "send" for each in kill.seen.noted) == 1, "begun, and never again"
    assert [each.what for each in made.failures] == ["503", "refusal"]
    page = render_page(made)
    assert "Certified, but for what send would do outside" in page
    assert "Not run, but recorded" in page and "`send`" in page


async def test_effects_run_for_real_only_where_that_is_asked_for(tmp_path: Path) -> None:
    place = project(tmp_path, UNDECLARED, "effects=True, idempotent=False")
    made = await certified(place, effects=True)
    assert made.wrong == ()
    assert (tmp_path / "sent").read_text() == "Ada\n"


async def test_a_playbook_that_waits_for_approval_is_approved_in_the_name_of_certify(
    tmp_path: Path,
) -> None:
    made = await certified(
        project(tmp_path, TEMPORARY, approval="approval: always\n"), REFUSED_CONNECTION
    )
    assert made.wrong == ()
    assert made.approved == 2
    assert made.plain.report is not None
    assert [each.order.by for each in made.plain.report.orders] == ["certify"]
    assert "2 questions of runs to a person answered as `certify`" in render_page(made)


@pytest.mark.parametrize("body", ["time.sleep(60)", "await asyncio.sleep(60)"])
async def test_a_tool_that_hangs_is_named_in_one_line(body: str, tmp_path: Path) -> None:
    with pytest.raises(NotCertified, match=r"the tool send hangs: .* within its 2 s; nothing"):
        await certified(project(tmp_path, body, "seconds=2"))


async def test_a_cassette_answers_in_place_of_a_script_and_one_that_does_not_know_is_refused(
    tmp_path: Path,
) -> None:
    place, tape = project(tmp_path, "pass"), tmp_path / "letters.yaml"
    async with deployed(SCRIPT, project=place, cassette=tape, record=True) as deployment:
        given = {"letter": "text:Dear Ada"}
        run = await deployment.hf.start(playbook="letters", inputs=given)
        assert (await run.report()).status == "complete"
    made = await certified(place, "worker killed as send.1 turn-2 begins", "529", cassette=tape)
    assert made.wrong == ()
    assert made.kills and not made.not_reached
    role = place / "roles" / "sender.md"
    role.write_text(ROLE.replace("You send letters.", "You send cards."))
    with pytest.raises(Refused, match=r"--cassette .*: it does not know .* 'You send cards\.'"):
        await certified(place, cassette=tape)


async def test_a_script_that_the_simulator_cannot_use_is_refused_in_one_line(
    tmp_path: Path,
) -> None:
    wish = Wish(playbook="letters", inputs=("letter=text:Dear Ada",))
    wanted = Wanted(wish, "scripted", project(tmp_path, "pass"), {"nope": 1})
    with pytest.raises(Refused, match=r"^the simulator does not start: script .*nope[^\n]*$"):
        await certify(wanted, lambda _line: None)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_nothing_is_left_of_a_certificate_that_is_ended(
    how: signal.Signals, tmp_path: Path
) -> None:
    place, temporary = project(tmp_path, "pass"), tmp_path / "temporary"
    temporary.mkdir()
    command = ("certify", "letters", "--input", "letter=text:Dear Ada", "--project", str(place))
    certifier = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "holdfast", *command),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert certifier.stderr is not None
    async for line in certifier.stderr:
        if line.startswith(b"left alone"):
            break
    [folder] = temporary.iterdir()
    assert len(_named(folder)) > 2, "simulator, server and worker"
    certifier.send_signal(how)
    await certifier.communicate()
    assert await asyncio.to_thread(_is_cleared, folder)


def _is_cleared(folder: Path) -> bool:
    until = time.monotonic() + 60
    while (_named(folder) or folder.exists()) and time.monotonic() < until:
        time.sleep(0.1)
    return not _named(folder) and not folder.exists()


def _named(folder: Path) -> list[str]:
    """Return the commands in which a folder is named."""
    every = (each.info["cmdline"] or [] for each in psutil.process_iter(["cmdline"]))
    return [" ".join(each) for each in every if str(folder) in " ".join(each)]
