"""What models answered once is answered again from a file, and a changed prompt is a difference."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.cli.commands.care import export
from holdfast.cli.screen.exits import Code, Exit
from holdfast.contracts import Plan
from holdfast.deployment.settings import HOME
from holdfast.replaying.cassette import Cassette
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.testing import CassetteError, deployed

pytestmark = pytest.mark.anyio
LOOKS = {"rules": [{"call": "take_turn", "turn": 1, "tools": [{"name": "calculate"}]}]}
TICKETS = {"tickets": 'text:{"t": "one"}\n{"t": "two"}'}
MAPPED = Plan.model_validate(
    {
        "goal": "Which rates changed?",
        "subtasks": [
            {
                "id": "t1",
                "title": "The kinds",
                "instruction": "Say which kind of ticket {t} is.",
                "role": "writer",
                "map": {"over": "tickets", "by": "records", "lane": "now"},
            },
            {
                "id": "t2",
                "title": "Rates",
                "instruction": "Compare the rates of this month with those before.",
                "role": "analyst",
            },
        ],
    }
)
INPUTS = {"rates": "text:2.0, then 2.5"}


@contextmanager
def served() -> Iterator[str]:
    """Yield the address of a scripted endpoint in a process of its own."""
    command = (sys.executable, "-m", "simulator")
    with subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().partition("=")[2].strip()
        process.terminate()


def asks(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}


def says(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"model": "m-1", "content": content, "stop_reason": "end_turn", "usage": {"a": 1}}


def text_of(answer: dict[str, Any] | None) -> str:
    assert answer is not None
    return str(answer["content"][0]["text"])


async def test_a_test_is_answered_as_the_endpoint_answered_when_it_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rates.yaml"
    async with Simulator(Script(**LOOKS, key="sk-secret-0123456789abcdef")) as endpoint:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", endpoint.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-0123456789abcdef")
        async with deployed(cassette=path, record=True) as deployment:
            run = await deployment.hf.start("Which rates changed?", inputs=INPUTS, dollars=1)
            recorded = await run.report()
        assert endpoint.log.report()["admitted"] == recorded.model_calls > 3
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    kept = path.read_text()
    assert "sk-secret" not in kept and "2.0, then 2.5" not in kept
    async with deployed(cassette=path) as deployment:
        run = await deployment.hf.start("Which rates changed?", inputs=INPUTS, dollars=1)
        played = await run.report()
    assert (played.status, played.answer) == (recorded.status, recorded.answer)
    assert (played.model_calls, played.dollars) == (recorded.model_calls, recorded.dollars)
    with pytest.raises(CassetteError) as missed:
        async with deployed(cassette=path) as deployment:
            run = await deployment.hf.start("Which rates fell?", inputs=INPUTS, dollars=1)
            report = await run.report()
            assert report.status == "complete"
    said = str(missed.value)
    assert "-Which rates changed?\n+Which rates fell?" in said and "record it again" in said
    assert isinstance(missed.value.__context__, AssertionError), "the test's own is not lost"
    assert "-Which rates changed? | +Which rates fell?" in report.model_dump_json()


@pytest.mark.long
async def test_a_run_that_is_over_is_exported_as_a_cassette_that_answers_it_again(
    tmp_path: Path,
) -> None:
    live, exported = tmp_path / "live.yaml", tmp_path / "exported.yaml"
    async with deployed(LOOKS, cassette=live, record=True) as deployment:
        run = await deployment.hf.start(plan=MAPPED, inputs=TICKETS, dollars=1)
        report = await run.report()
        code = await export.play(deployment.hf.connection, run.id, exported, inputs=False)
        for answer in (Path(os.environ["HOLDFAST_STATE_DIR"]) / "journal").glob("*.answer"):
            answer.unlink()
        with pytest.raises(Exit, match="the journal of this machine has no answer of a model"):
            await export.play(deployment.hf.connection, run.id, exported, inputs=False)
    one, other = Cassette.read(live), Cassette.read(exported)
    assert code == Code.COMPLETE and one.settings == other.settings
    assert {each.digest: each for each in one.calls} == {each.digest: each for each in other.calls}
    assert len(one.calls) == len(other.calls) > 5
    assert sum("for one item of many" in each.asked for each in other.calls) == 2
    async with deployed(cassette=exported) as deployment:
        again = await (await deployment.hf.start(plan=MAPPED, inputs=TICKETS, dollars=1)).report()
    assert (again.status, again.answer) == ("complete", report.answer)


async def test_a_cassette_of_an_open_run_says_that_it_is_a_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with deployed(LOOKS) as deployment:
        run = await deployment.hf.start("Which rates fell?", approval="always", dollars=1)
        await anext(each async for each in run.events() if each.kind == "plan_waits")
        await export.play(deployment.hf.connection, run.id, tmp_path / "part.yaml", inputs=False)
        await run.cancel()
    assert f"{run.id} is open: this is what it has asked so far" in capsys.readouterr().err


async def test_recording_needs_an_endpoint_or_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(CassetteError, match="set ANTHROPIC_API_KEY, or give a script"):
        async with deployed(cassette=tmp_path / "none.yaml", record=True):
            pass
    with pytest.raises(CassetteError, match=r"no file '.*none.yaml'; record it"):
        async with deployed(cassette=tmp_path / "none.yaml"):
            pass


def test_date_cap_and_marks_of_the_cache_make_no_other_request() -> None:
    cassette = Cassette()
    cassette.record(asks("Rates?\nToday is 2026-11-26 (UTC)."), says("two"))
    marked = {"type": "text", "text": "Rates?\nToday is 2027-01-01 (UTC).", "cache_control": {}}
    later = asks("") | {"messages": [{"role": "user", "content": [marked]}], "max_tokens": 5}
    assert text_of(cassette.answer(later)) == "two"
    assert cassette.complain() == ""


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (asks("Rates now?"), "-Rates?\n+Rates now?"),
        (asks("Rates?", system="Be brief."), "+Be brief."),
        (asks("Rates?") | {"model": "n"}, "-model: m\n+model: n"),
        (asks("Rates?", output_config={"effort": "low"}), "+effort: low"),
        (asks("Rates?", tools=[{"name": "search", "input_schema": {}}]), "+--- tool search"),
        (
            asks("Rates?", output_config={"format": {"schema": {"title": "T"}}}),
            '+ "title": "T"',
        ),
    ],
)
def test_whatever_changed_in_a_request_is_shown(changed: dict[str, Any], shown: str) -> None:
    cassette = Cassette()
    cassette.record(asks("Something else altogether"), says("one"))
    cassette.record(asks("Rates?"), says("two"))
    assert cassette.answer(changed) is None
    assert shown in cassette.complain()


def test_what_is_asked_again_has_its_answers_in_turn() -> None:
    cassette = Cassette()
    for answer in ("one", "two"):
        cassette.record(asks("Rates?"), says(answer))
    heard = [text_of(cassette.answer(asks("Rates?"))) for _ in range(3)]
    assert heard == ["one", "two", "two"]


def post(url: str, path: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    with httpx2.Client(base_url=url, headers={"x-api-key": "any"}) as client:
        found = client.post(path, json=given)
        return found.status_code, found.json()


async def test_a_cassette_fails_where_a_script_says_so_and_begins_anew_when_it_is_reset() -> None:
    cassette = Cassette()
    asked = asks("Which?", model="claude-haiku-5-5")
    usage = {"input_tokens": 1, "output_tokens": 1}
    for text in ("first", "second"):
        cassette.record(asked, says(text) | {"usage": usage})
    async with Simulator(cassette=cassette) as simulator:

        async def ask(path: str = "/v1/messages", **given: Any) -> tuple[int, dict[str, Any]]:
            return await asyncio.to_thread(post, simulator.url, path, given or asked)

        assert [text_of((await ask())[1]) for _ in range(3)] == ["first", "second", "second"]
        await ask(**asks("What?", model="claude-haiku-5-5"))
        assert len(cassette.unheard) == 1
        await ask("/simulator/reset", rules=[{"first": 1, "status": 503}])
        assert (await ask())[0] == 503
        assert text_of((await ask())[1]) == "first"
        log = simulator.log.report()
        assert (log["admitted"], log["refused"], cassette.unheard) == (1, 1, [])


@pytest.mark.parametrize("inputs", [False, True])
def test_contents_of_inputs_and_results_are_kept_only_as_far_as_asked(
    tmp_path: Path, inputs: bool
) -> None:
    given = '<material source="input rates">\nprivate 1\n</material>'
    found = '<material source="finding of subtask t1">\nfound\n</material>'
    turn = {"role": "assistant", "content": [{"type": "tool_use", "name": "read", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "content": "private 2"}]}
    body = asks(f"{given}\n{found}\nkey-of-ours")
    body["messages"] += [turn, result]
    cassette = Cassette(inputs=inputs)
    cassette.record(body, says("café\nok"), lambda text: text.replace("key-of-ours", "[redacted]"))
    path = tmp_path / "kept.yaml"
    cassette.write(path)
    kept = path.read_text()
    assert ("private 1" in kept, "private 2" in kept) == (inputs, inputs)
    assert "found" in kept and "[redacted]" in kept and "key-of-ours" not in kept
    again = Cassette.read(path)
    assert text_of(again.answer(body)) == "café\nok"
    assert again.inputs is inputs


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("calls: [", "cannot be read"),
        ("[" * 100_000, "nested more than 200 levels deep"),
        ("cassette: &a 1\ncalls: *a", "aliases"),
        ("cassette: 1\nsettings: {ANTHROPIC_BASE_URL: http://other}", "ANTHROPIC_BASE_URL"),
        ("cassette: 1\nsettings: {HOLDFAST_MODEL_X;touch y: z}", "HOLDFAST_MODEL_X;touch y"),
        ("[]", "cassette: Input should be"),
        ("cassette: 9", "less than or equal to 1"),
        ("cassette: 1\ncalls: [{digest: x}]", "calls.0.digest: String should match"),
    ],
)
def test_a_file_that_is_no_cassette_is_refused_in_one_line(
    tmp_path: Path, content: str, why: str
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(content)
    with pytest.raises(CassetteError) as refused:
        Cassette.read(path)
    assert why in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.long
def test_a_marked_test_records_its_cassette_when_told_to_and_then_plays_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["holdfast.testing.fixtures"]')
    (tmp_path / "test_rates.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.anyio\n"
        "@pytest.mark.parametrize('anyio_backend', ['asyncio'])\n"
        "@pytest.mark.cassette('rates.yaml')\n"
        "async def test_rates(deployment):\n"
        "    run = await deployment.hf.start('Which rates changed?')\n"
        "    assert (await run.report()).status == 'complete'\n"
    )

    def tested(*options: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "-x")
        environment = {**os.environ, "PYTHONPATH": str(HOME), **more}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    assert "there is no file" in tested().stdout
    with served() as url:
        recorded = tested("--record-cassettes", ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="k")
    assert recorded.returncode == 0, recorded.stdout
    played = tested()
    assert played.returncode == 0, played.stdout
