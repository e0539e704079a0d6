"""Whatever is typed, read or received: one clear line and a code that docs/commands.md names, or a
value that can be used. Never a mistake of ours, never a hang, and nothing is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import embedded
from holdfast.activities.asking.forms import find_mistakes
from holdfast.activities.asking.replies import dump_answer
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.activities.claude.stream import StreamError, Transcript
from holdfast.cli.checks.diagnosis import Checkup
from holdfast.cli.commands.care import doctor
from holdfast.cli.commands.care.init import settings_file
from holdfast.cli.main import explain, main, program
from holdfast.cli.screen.exits import Exit
from holdfast.cli.shared import replayed
from holdfast.client import connecting as connection
from holdfast.deployment.settings import HOME, Settings
from holdfast.embedded import StateDir
from holdfast.errors import EmbeddedError
from holdfast.intake import example, plans
from holdfast.intake.answers import WantedForm, form_of
from holdfast.plans import validity
from holdfast.ports import ModelAnswer
from holdfast.temporal import connection as temporal
from holdfast.untrusted.known_secrets import KnownSecrets

pytestmark = pytest.mark.long

SECONDS = 10
"""For one input; a busy machine is slow, a hang is forever."""
CODES = {
    int(code)
    for code in re.findall(r"(?m)^\| (\d+) \|", (HOME / "docs" / "commands.md").read_text("utf-8"))
}
LOCAL = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
HOSTILE = (
    "", " ", "-", "--", "=", "a=", "=b", "a=b", "..", "../../x", "/", ".", "~", "$(id)", "`id`",
    "\udcff", "a\udc80b", "\ud800", "\x1b[2J", "\x9b31m", "\x00", "\x7f", "\u202egnp.exe", "\r",
    "\n",
    "é" * 300, "x" * 5_000, "9" * 5_000, "-1", "1e999", "nan", "inf", "0x10", "1_0", "\u0661",
    "dollars=1e999", "dollars=-1", "dollars=" + "9" * 5_000, "tokens=1e5", "dollars=nan",
    "a=text:", "a=text:\udcff", "a=/dev/zero", "a=/dev/full", "a=/proc/self/mem", "a=.",
    "repo=.", "base=--all", "base=\udcff", "/dev/null", "/dev/full", "/proc/self/mem", "x.json/y",
    "{}", "[" * 2_000, "always", "auto", "$0", "1e-400", "bash", "haiku", "code-review",
)  # fmt: skip
TOKENS = (
    "{" * 3_000, "[" * 3_000, "- " * 3_000, "9" * 6_000, "1e999", "NaN", "null", "\\ud800",
    "2001-99-99", "!!float abc", "!!python/object:os.system x", "!!binary x", "&a [*a, *a]", "*b",
    "? :", "<<: *a", "---\n", "\t", "\x00", "\x85", "\u2028", '"', "'", "%YAML 9.9\n",
    "!!set {a, b}",
    "!!timestamp x", "0o99", "1:99:99", "yes", "~", "|\n", ">\n", "{}", "[]", "true", "-1", "é",
)  # fmt: skip
texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec=None), max_size=30))


@pytest.fixture(autouse=True)
def nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No server, no process, no key; an empty folder to work in."""
    for name in [*os.environ]:
        if name.startswith(("ANTHROPIC_", "TEMPORAL_", "HOLDFAST_", "STORE_", "_HOLDFAST")):
            monkeypatch.delenv(name)
    monkeypatch.setitem(Settings.model_config, "env_file", None)
    monkeypatch.setenv("HOLDFAST_STATE_DIR", str(tmp_path / "state"))
    # Where `init` remembers what it made.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "remembered"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def unstarted(*_: Any, **__: Any) -> Any:
        raise EmbeddedError("started", "nothing", "this is a test")

    async def unconnected(*_: Any, **__: Any) -> Any:
        unstarted()

    for module, name in ((connection, "ensure_up"), (embedded, "ensure_up"), (embedded, "up")):
        monkeypatch.setattr(module, name, unstarted)
    monkeypatch.setattr(connection, "connect", unconnected)
    monkeypatch.setattr(temporal, "connect", unconnected)
    monkeypatch.setattr(connection, "probe_local", lambda *_: None)
    # Git makes it.
    monkeypatch.setattr(example, "make_repository", lambda folder: folder)
    # It asks each tool for its version.
    monkeypatch.setattr(
        doctor, "check_program", lambda name: Checkup("tools", name, "note", "not asked")
    )
    monkeypatch.setattr(subprocess, "Popen", _NoPopen)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", _no_process)
    return tmp_path


class _NoPopen(subprocess.Popen[Any]):
    """Still a type, which libraries name in their annotations."""

    def __init__(self, *command: object, **_: Any) -> None:
        _no_process(*command)


def _no_process(*command: object, **_: Any) -> Any:
    raise AssertionError(f"a process was started: {command}")


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Ends what takes too long by an error, also where it waits in a system call."""

    def late(*_: object) -> None:
        raise AssertionError(f"took longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@functools.cache
def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(program())
    found: dict[str, Any] = group.commands
    # It starts a process for each file, and is tried below.
    return {name: command for name, command in found.items() if name != "replay"}


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with values for its arguments and for some of its options."""
    name = draw(st.sampled_from(sorted(commands())))
    line = [name]
    for parameter in commands()[name].params:
        if parameter.param_type_name == "argument":
            if draw(st.integers(0, 4)):
                line.append(draw(texts))
        elif parameter.param_type_name == "option" and not draw(st.integers(0, 2)):
            line.append(max(parameter.opts, key=len))
            if not parameter.is_flag:
                line.append(draw(texts))
    if not draw(st.integers(0, 9)):
        line.insert(draw(st.integers(0, len(line))), draw(texts))
    return line


def checked(line: list[str]) -> int:
    """The exit code of a command; what it says is fit for a screen and no mistake of ours."""
    said, out = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said), no_hang():
        code = main(line)
    shown = said.getvalue() + out.getvalue()
    assert code in CODES, (line, code)
    assert "mistake of ours" not in shown and "Traceback" not in shown, (line, shown)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown), (line, shown)
    return code


@hypothesis.example(["demo"])
@hypothesis.example(["mcp", "--embedded"])
@given(command_lines())
@settings(LOCAL, max_examples=100)
def test_whatever_is_typed_is_done_or_refused_in_a_clear_line(line: list[str]) -> None:
    checked(line)


@pytest.mark.parametrize("value", ["\udcff", "\ud800", "\x1b]0;x\x07", "a\x9b31m", "\x7f"])
@pytest.mark.parametrize("name", sorted(commands()))
def test_what_is_no_text_is_refused_wherever_it_is_typed(
    name: str, value: str, nothing_starts: Path
) -> None:
    assert checked([name, value]) == 2
    for parameter in commands()[name].params:
        if parameter.param_type_name == "option" and not parameter.is_flag:
            assert checked([name, "x", max(parameter.opts, key=len), value]) == 2
    assert not (nothing_starts / "state").exists()


@given(st.sampled_from(sorted(Settings.model_fields)), texts)
@settings(LOCAL)
def test_whatever_a_setting_holds_is_taken_or_named(field: str, value: str) -> None:
    name = Settings.variable(field)
    # A zero, and the halves of characters that stand for no byte, are in no environment.
    if any(
        each == "\x00" or "\ud800" <= each < "\udc80" or "\udcff" < each <= "\udfff"
        for each in value
    ):
        return
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        checked(["list"])
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


# ---------------------------------------------------------------- files


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """A file with a few places cut out, doubled, or replaced by something nasty."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        middle = draw(st.one_of(st.sampled_from(TOKENS), st.just(text[start:end] * 2), texts))
        text = text[:start] + middle + text[end:]
    content = text.encode("utf-8", "surrogatepass")
    return draw(st.sampled_from((content, b"\xef\xbb\xbf" + content, content[::-1], content)))


PLAN = json.dumps(
    {
        "goal": "g",
        "strategy": "merge",
        "synthesis_instruction": "s",
        "roles": [],
        "subtasks": [
            {
                "id": "t1",
                "title": "T",
                "instruction": "Do it",
                "role": "analyst",
                "tier": "haiku",
                "depends_on": [],
                "checks": [{"kind": "regex", "argument": "a+"}],
            },
        ],
    },
    indent=1,
)
ROLE = (HOME / "roles" / "analyst.md").read_text("utf-8")
PLAYBOOK = (HOME / "playbooks" / "code-review" / "playbook.yaml").read_text("utf-8")
PROJECT = re.sub(r"(?m)^# (?=\w+ = )", "", settings_file("mine"))
HISTORY = (HOME / "tests" / "histories" / "a-cancelled-run.json").read_text("utf-8")[:6_000]
ENDPOINT = json.dumps(
    {
        "port": 1,
        "ui_port": 2,
        "http_port": 3,
        "metrics_port": 4,
        "task_queue": "q",
        "store_url": "file:///x",
        "salt": "s",
        "draining": [1],
        "server_pid": 1,
        "worker_pid": 2,
    }
)


def read(path: Path, content: bytes, reader: Callable[[Path], object]) -> None:
    """Read a file; what is raised is told to a person in words of our own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    try:
        with no_hang():
            reader(path)
    except AssertionError:
        raise
    except Exception as error:
        message, code = explain(error)
        assert "mistake of ours" not in message, (content, message)
        assert code in CODES


@given(damaged(PLAN), st.sampled_from([".json", ".yaml"]))
@settings(LOCAL)
def test_whatever_a_plan_file_holds_it_is_a_plan_or_refused(
    nothing_starts: Path, content: bytes, ending: str
) -> None:
    def checked_plan(path: Path) -> None:
        plan = plans.read_plan(path)
        validity.problems(plan, Catalogue.load().roles_for(""), (), 30)
        plan.model_dump_json()

    read(nothing_starts / f"plan{ending}", content, checked_plan)


@given(damaged(ROLE))
@settings(LOCAL, max_examples=40)
def test_whatever_a_role_file_holds_it_is_a_role_or_refused(
    nothing_starts: Path, content: bytes
) -> None:
    read(nothing_starts / "home" / "roles" / "analyst.md", content, _catalogue)


@given(damaged(PLAYBOOK))
@settings(LOCAL, max_examples=40)
def test_whatever_a_playbook_holds_it_is_one_or_refused(
    nothing_starts: Path, content: bytes
) -> None:
    read(nothing_starts / "home2" / "playbooks" / "p" / "playbook.yaml", content, _catalogue2)


KEYWORDS = (
    "type", "properties", "items", "required", "enum", "const", "anyOf", "$ref", "$defs", "format",
    "description", "minItems", "additionalProperties", "allOf", "a", "\ud800", "\n",
)  # fmt: skip
WORDS = ("object", "array", "string", "null", "date", "#/$defs/a", "#/$defs/", "#", "a", "\ud800")
SCHEMAS = st.recursive(
    st.one_of(st.sampled_from(WORDS), st.booleans(), st.integers(0, 2), st.none(), st.floats()),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
        st.lists(inner, max_size=3),
        st.fixed_dictionaries({"type": st.just("object"), "properties": inner}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
    ),
    max_leaves=12,
)


@given(SCHEMAS, SCHEMAS)
@settings(LOCAL)
def test_whatever_a_schema_holds_answers_are_held_against_it_or_it_is_refused(
    nothing_starts: Path, schema: object, answer: Any
) -> None:
    def checked_form(path: Path) -> None:
        form = form_of(WantedForm("json", path), None, use_models=True)
        form.model_dump_json()
        [*find_mistakes(form.result, answer, "answer")]

    read(nothing_starts / "schema.json", json.dumps(schema).encode(), checked_form)


def _catalogue(path: Path) -> None:
    with contextlib.suppress(CatalogueError):
        Catalogue.load(path.parents[1])


def _catalogue2(path: Path) -> None:
    with contextlib.suppress(CatalogueError):
        Catalogue.load(path.parents[2])


@given(damaged(PROJECT))
@settings(LOCAL)
def test_whatever_the_settings_of_a_project_hold_they_are_taken_or_refused(
    nothing_starts: Path, content: bytes
) -> None:
    folder = nothing_starts / "mine"
    read(folder / "holdfast.toml", content, lambda path: Settings(project=path.parent))


@given(damaged(HISTORY))
@settings(LOCAL, max_examples=40)
def test_whatever_a_history_holds_it_is_one_or_refused(
    nothing_starts: Path, content: bytes
) -> None:
    read(nothing_starts / "history.json", content, replayed.read_history)


@given(damaged(ENDPOINT))
@settings(LOCAL)
def test_whatever_the_endpoint_s_file_holds_commands_go_on(
    nothing_starts: Path, content: bytes
) -> None:
    state = nothing_starts / "state"

    def endpoint(_: Path) -> None:
        found = StateDir(state).endpoint()
        assert found is None or found.target

    read(state / "endpoint.json", content, endpoint)


@given(st.binary(max_size=200))
@settings(LOCAL, max_examples=30)
def test_whatever_is_given_as_a_finding_s_file_is_text_or_refused(
    nothing_starts: Path, content: bytes
) -> None:
    path = nothing_starts / "finding"
    path.write_bytes(content)
    assert checked(["supply", "r1", "t1", "--file", str(path)]) in (2, 5)


# ---------------------------------------------------------------- the wire

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
     "model": "claude-haiku-5-5", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "{\"a\":"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "u",
     "name": "n", "input": {}}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta",
     "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]  # fmt: skip
junk = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(),
        texts,
        st.sampled_from(("text", "thinking", "tool_use", "end_turn", "error", "message")),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(("type", "text", "index", "usage", "content")), inner),
    ),
    max_leaves=5,
)


@st.composite
def streams(draw: st.DrawFn) -> list[str]:
    """The events of an answer, some lost, repeated, out of order, or with other values in them."""
    events = [json.loads(json.dumps(event)) for event in EVENTS]
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(events) - 1))
        spot = events[index]
        while isinstance(spot, dict) and spot:
            key = draw(st.sampled_from(sorted(spot)))
            if not isinstance(spot[key], dict) or draw(st.booleans()):
                spot[key] = draw(junk)
                break
            spot = spot[key]
        if draw(st.booleans()):
            events.insert(draw(st.integers(0, len(events))), events[index])
    lines = [json.dumps(event) for event in events]
    if draw(st.booleans()):
        lines[draw(st.integers(0, len(lines) - 1))] = draw(
            st.one_of(texts, st.sampled_from(TOKENS), st.just('{"a":' * 3_000))
        )
    return lines


@given(streams(), st.booleans())
@settings(LOCAL, max_examples=200)
def test_whatever_an_endpoint_sends_is_an_answer_or_an_error(lines: list[str], whole: bool) -> None:
    transcript = Transcript()
    with contextlib.suppress(StreamError), no_hang():
        if whole:
            transcript.load(lines[0])
        for line in lines:
            transcript.feed("", line)
    known = KnownSecrets(["sk-ant-api03-0123456789abcdef"])
    answer = ModelAnswer(
        text=known.blot(transcript.text),
        stop_reason=transcript.stop_reason,
        model=transcript.model,
        usage=transcript.usage(100, 1_000),
        detail=transcript.detail,
        raw=known.blot_all(transcript.raw),
    )
    assert answer.usage.input_tokens >= 0 and answer.usage.output_tokens >= 0
    kept = json.loads(dump_answer(answer))
    kept["text"].encode()
    assert isinstance(transcript.complete, bool) and isinstance(transcript.counted, bool)


def test_a_refusal_of_ours_is_told_as_it_is() -> None:
    assert explain(Exit("no")) == ("no", 2)
