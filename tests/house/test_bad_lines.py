"""Whatever can be known without a server is refused without one: a walk over every argument and
option of every command and over every setting, with bad values of its kind.

What is walked is what the program says of itself: an option or a setting that is new and of which
nothing here knows a bad value fails, by its name.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import typer
from test_fuzz import nothing_starts  # noqa: F401 - a fixture

from holdfast.cli.main import main, program
from holdfast.deployment.settings import Settings

pytestmark = pytest.mark.long

SECONDS = 5.0
"""Of CPU, for one line: what it takes without anything being started, and some."""
COMMANDS: Mapping[str, Any] = typer.main.get_command(program()).commands  # type: ignore[attr-defined]
LONG = "n" * 300
READ = ("missing", "folder", "fifo", "dangling", "looping", LONG, "missing/below", "text/below")
WRITTEN = ("folder", "fifo", "dangling", "looping", LONG, "missing/below", "text/below",
           "looping/below")  # fmt: skip
WRONG_IDS = ("", " ", "a b", "a/b", "-", "../a", "é", "x" * 300)
PAIRS = ("", "x", "=", "dollars", "=1", "nope=1", "dollars=", "dollars=x", "dollars=-1",
         "dollars=nan", "dollars=1e999", "model_calls=1.5", "model_calls=-1")  # fmt: skip
INPUTS = ("", "x", "=", "=text:a", "a=", "a=missing", "a=fifo", "a=dangling", "a=looping",
          f"a={LONG}", "a=text/below")  # fmt: skip
OF_METAVAR: Mapping[str, tuple[str, ...]] = {
    "NAME=VALUE": PAIRS,
    "SEVERITY": ("", "nope", "Critical ", "info,error", "0"),
    "URL": ("x", "ftp://a/b", "https://", "https://a b", "javascript:alert(1)", "https://a/?b"),
    "WHEN": ("nope", "-1", "nan", "inf", "1e999", "1,5"),
    "DOLLARS": ("", "x", "0", "-1", "nan", "inf", "1e999", "1,5", "\u0663", "10001"),
    "FORM": ("nope", "TABLE ", "xml"),
    "A,B": (",", "a,a", "a,,b", ",".join("abcdefghij"), "x" * 500),
    "GOAL": ("", " ", "\u200b"),
    "TEXT": (),
    "PLAYBOOK": ("", "nope", "../code-review", "a b"),
    "NAME": ("", "nope", "../code-review", "a b"),
    "ID": WRONG_IDS,
    "A": WRONG_IDS,
    "B": WRONG_IDS,
    "WHAT": ("", "nope", "waits ", "ENDED", "waits;ended"),
    "ADDRESS": ("", "nope..", "300.1.1.1", "a b", "0.0.0.0", "http://127.0.0.1"),
    "HOST": ("", "a b", "http://x", "x/y"),
    "SCOPE": ("", "nope", "start", "start:", "start:-1", "start:nan", "start:1e9", "decide "),
    "HOLDER": ("", "a b", "../x", "x" * 65, "-x"),
    "CRON": ("", "x", "0 6 * *", "61 6 * * *", "0 0 30 2 *", "0 6 * * mo", "@reboot"),
    "ZONE": ("", "Europe", "Europe/Berln", "../x", "a b", "/etc/passwd"),
    "DURATION": ("", "x", "5", "0.5h", "-1h", "1w", "367d", "\u0663h"),
    "AT": ("", "x", "2020-01-01", "2099-02-30T06:00", "25:00"),
    "POLICY": ("", "nope", "Skip ", "skip,allow"),
    "OWNER/NAME": ("", "x", "a/b/c", "../x", "a b/c", "é/x"),
    "SCHEDULE": ("", "a b", "../x", "x" * 65, "-x"),
    "MODEL": ("", " ", "a b"),
    "TEMPLATE": ("", "a b", "../x", "x" * 300, "-x"),
    "NAME=WORDS": ("", "x", "=", "=x", "a=", "a b", "\u00e9=x"),
    "RUN": WRONG_IDS,
    "SUITE": ("", "nope", "../judge", "judge ", "x" * 300),
    "ITEMS": ("", " ", ",", " , "),
    "ITEM": ("", " "),
    "JSON": ("", "{", "nan", "[1,]"),
    "PUBLIC": ("", "x", "0" * 63, "G" * 64, "missing", "folder", "fifo", "looping", LONG),
    "REQUESTER": ("",),
    "SUBTASK": (),
    "ROLE": (),
    "REVISION": (),
    "[BUILD]": ("", "a b", "../x", "x" * 300, "-x", "a:b"),
    "REPOSITORY": ("missing", "fifo", "dangling", "looping", LONG, "text", "folder"),
}
"""Bad values by what the help calls a value; none where nothing can be known of it without a run
or a repository, but that it is text.
"""
NO_TEXT = ("\x1b[2J", "a\x00b", "\ud800", "a\x9bb")
"""No value of any kind."""
PLAIN: Mapping[str, tuple[str, ...]] = {
    "run": ("A goal",), "start": ("A goal",), "watch": ("r1",), "show": ("r1",), "trace": ("r1",),
    "logs": ("r1",), "report": ("r1",), "fork": ("r1", "t1"), "approve": ("r1",),
    "decline": ("r1", "1"), "reject": ("r1",), "answer": ("r1", "t1", "words"),
    "retry": ("r1", "t1"), "skip": ("r1", "t1"), "supply": ("r1", "t1", "words"), "pause": ("r1",),
    "resume": ("r1",), "edit": ("r1",), "raise": ("r1", "--limits", "dollars=5"),
    "cancel": ("r1",), "reset": ("r1",), "export": ("r1",), "replay": ("text",),
    "receipt": ("r1",), "verify": ("text",), "countersign": ("text", "--key-file", "text"),
    "completion": ("bash",), "compare": ("r1", "r2"), "token": ("new", "ci"),
    "schedule": ("add", "nightly", "A goal", "--every", "1h"), "slack": ("--manifest",),
    "template": ("save", "r1"), "certify": ("tech-support",), "eval": ("judge",),
    "what-if": ("--role", "analyst", "--tier", "haiku"), "deploy": ("one",),
    "codec-server": (), "budget": ("--day", "5"),
}  # fmt: skip
"""What makes a line of the command, but for the value that is tried."""


def parameters() -> Iterator[tuple[str, Any]]:
    for name, command in COMMANDS.items():
        for each in command.params:
            if not getattr(each, "is_flag", False):
                yield name, each


def annotation(parameter: Any) -> Any:
    found = parameter.type_descriptor.annotation
    return get_args(found)[0] if get_origin(found) is list else found


def bad_values(command: str, parameter: Any) -> tuple[str, ...]:
    """Values that cannot be meant; KeyError where nothing is known of the kind."""
    kind, option = annotation(parameter), max(parameter.opts, key=len)
    if kind is float:
        return ("", "x", "nan", "inf", "0", "-1")
    if kind is int:
        least = () if parameter.min is None else (str(parameter.min - 1), "-9" * 20)
        return ("", "x", "1.5", "1e3", "½", "0x1", *least)
    if (command, option) == ("init", "named"):
        # What is not there is made.
        return ("", "text", "fifo", "dangling", "looping", LONG, "text/below")
    if kind is Path:
        if (command, option) == ("certify", "--cassette"):
            return READ
        if option in ("--out", "--sarif", "--comment", "--cassette", "--page", "--save"):
            return WRITTEN
        return READ
    if get_origin(kind) is not None:
        return ("", "nope", f"{get_args(kind)[0]} ", get_args(kind)[0].upper() + "S")
    if parameter.metavar == "NAME=VALUE" and option == "--input":
        return INPUTS
    if option == "--role":
        # Which roles a run has is known to the run alone.
        return ("",)
    if (command, option) == ("answer", "text"):
        return ("", " ", "\u200b\n")
    return OF_METAVAR[parameter.metavar]


def bad_lines() -> list[list[str]]:
    lines = []
    for command, each in parameters():
        before = PLAIN.get(command, ())
        option = max(each.opts, key=len)
        for value in (*bad_values(command, each), *NO_TEXT):
            if each.param_type_name == "option":
                lines.append([command, *before, option, value])
                continue
            place = [
                one for one in COMMANDS[command].params if one.param_type_name == "argument"
            ].index(each)
            given = [*before]
            given[place : place + 1] = [value]
            lines.append([command, "--", *given] if "--limits" not in given else [command, *given])
    return lines


@pytest.fixture
def here(nothing_starts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811 - the fixture of that name
    """A folder with one of each thing that a value can name by mistake."""
    # A line that is not refused goes on to a server, which says so by another exit code.
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    work = Path.cwd()
    (work / "folder").mkdir()
    (work / "text").write_text("words, and no plan", "utf-8")
    os.mkfifo(work / "fifo")
    (work / "dangling").symlink_to("nowhere")
    (work / "looping").symlink_to("looping")
    return nothing_starts


def refusal(line: list[str]) -> str:
    """Why a line is not refused as it should be; empty: it is."""
    said, out = io.StringIO(), io.StringIO()
    began = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        code = main(line)
    spent = time.process_time() - began
    told = said.getvalue().strip()
    if code != 2:
        return f"exit code {code}: {told[:200]}"
    if not told or "\n" in told or "Traceback" in told:
        return f"not one line: {told[:300]!r}"
    return f"took {spent:.1f} s" if spent > SECONDS else ""


@pytest.mark.timeout(600)
def test_every_bad_value_of_every_option_is_refused_before_anything_starts(here: Path) -> None:
    lines = bad_lines()
    wrong = {str(line): why for line in lines if (why := refusal(line))}
    assert not wrong, f"{len(wrong)} of {len(lines)}: " + "\n".join(map(str, wrong.items()))
    assert not (here / "state").exists(), "nothing was even written"
    assert len(lines) > 500


BAD_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "project": ("missing", "text", "folder", "looping", "dangling", LONG, "~nobody-of-that-name/x"),
    "projects": ("missing", "text", "folder", "looping", "dangling", LONG, ":missing:"),
    "project_name": ("a b", "é", "../x", "a/b", "x" * 41, ".x"),
    "state_dir": ("looping", "~nobody-of-that-name/x"),
    "store_url": ("nope", "http://x/y", "s3://", "gs://a?x=1", "file://host/x", "file:relative"),
    "shared_journal": ("nope", "2", "tru"),
    "allowed_roots": (),
    "task_queue": (),
    "anthropic_api_key": ("a1x\nb", "k1xé", "a1x b", "k1xy\n", "\tk1xy", "“k1xy”"),
    "anthropic_base_url": ("nope", "file:///etc/passwd", "http://", "ftp://x", "http://a b",
                           "http://a\nb", "http://x:99999", "http://x:y", "//x", "http://[::1"),
    "model_planner": (" ", "a\nb"),
    "model_haiku": (" ", "a\nb"), "model_sonnet": (" ", "a\nb"), "model_opus": (" ", "a\nb"),
    "payload_key_file": ("missing", "text", "folder", "fifo", "looping", "dangling", LONG),
    "price_file": ("missing", "text", "folder", "looping", "dangling", LONG),
    "rate": ("nope", "60/min", "haiku=0/min", "haiku=-1/min", "gold=1/min", "haiku=1e9/s"),
    "in_flight": ("nope", "5", "haiku=0", "haiku=-1", "gold=1", "haiku=1.5"),
    "capabilities": ("nope", "schemas,nope", "schemas;effort"),
    "web_search": ("nope", "brave:", "brave:a b", "brave:é", "searxng:x", "google:KEY"),
    "endpoint_web": ("nope", "2", "tru"),
    "python_sandbox": ("nope", "http://example.com", "ftp://x", "https://a:b@c/d"),
    "python_sandbox_key": ("a\nb", "é", "a b"),
    "test_command": ("pytest", "pytest {tests}", "pytest '{test}"),
    "test_folders": (),
    "mcp_file": ("looping",),
    "webhook_secret": ("nope", "whsec_", "whsec_short", "whsec_" + "é" * 32),
    "webhook_private": ("nope", "2", "tru"),
    "idle_seconds": ("0", "-1", "x", "1.5", "1e999"),
    "keep_megabytes": ("0", "49", "x", "nan"),
    "most_dollars_run": ("-1", "x", "nan", "inf", "1000001"),
    "most_dollars_day": ("-1", "x", "nan", "inf", "1000001"),
    "most_dollars_month": ("-1", "x", "nan", "inf", "1000001"),
    "workers": ("0", "65", "x", "1.5"),
    "serves": ("nope", "tool", "ALL"),
    "pin_runs": ("nope", "2", "tru"),
    "health": ("nope", ":8080", "127.0.0.1", "127.0.0.1:0", "localhost:80", "127.0.0.1:99999"),
    "metrics_port": ("-1", "65001", "x"),
    "metrics_address": ("nope", "localhost", "127.0.0.1:9464", "127.0.0"),
    "log_level": ("nope", "5x", "INFO WARNING"),
    "web_ui": ("nope", "javascript:alert(1)", "http://", "http://a b"),
    "build_id": (),
}  # fmt: skip
"""Bad values of each setting; none where any text is one."""


def test_every_bad_value_of_every_setting_is_refused_before_anything_starts(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong, tried = {}, 0
    for name in Settings.model_fields:
        for value in BAD_SETTINGS[name]:
            with monkeypatch.context() as patched:
                given = str(Path.cwd() / value) if "file" in name or name == "state_dir" else value
                given = value if value.startswith("~") else given
                patched.setenv(Settings.variable(name), given)
                if name == "store_url":
                    patched.setenv("TEMPORAL_ADDRESS", "127.0.0.1:9")
                tried += 1
                why = refusal(["run", "A goal"])
                if not why and name.endswith("key"):
                    with contextlib.redirect_stderr(io.StringIO()) as said:
                        main(["run", "A goal"])
                    why = "it says the key" * (value.strip() in said.getvalue())
            if why:
                wrong[f"{Settings.variable(name)}={value!r}"] = why
    assert not wrong, f"{len(wrong)} of {tried}: " + "\n".join(map(str, wrong.items()))
    assert tried > 80
