"""`eval` from the command line: priced first, run, told with intervals, held to a baseline."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from temporalio.service import RPCError, RPCStatusCode

from conftest import Runs
from holdfast.cli.commands.runs import eval as eval_command
from holdfast.cli.commands.runs.eval import EvalOptions
from holdfast.cli.main import main
from holdfast.cli.screen.exits import Code, Exit
from holdfast.client import evaluating
from holdfast.client.evaluating import trials_of
from holdfast.contracts.evals import EvalReport, Mark
from holdfast.errors import Refused
from holdfast.evals.tally import Baseline, tally_suites
from holdfast.intake.connection import Connection
from holdfast.intake.suites import read_suite
from scripted import ScriptedModel

pytestmark = pytest.mark.anyio

CASES = """
- {name: searched, tool: calculate, needs: nowhere, must: [{says: "42"}]}
- name: winner
  call: judge
  material:
    question: Which?
    findings: [{subtask_id: t1, status: complete, content: "9"}]
  must: [{has: {winner: t1}}]
"""
T1, NONE = ({"why": "it is", "winner": each} for each in ("t1", "none"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "evals" / "sums"
    made.mkdir(parents=True)
    (made / "suite.yaml").write_text("passing: 70")
    (made / "cases.yaml").write_text(CASES)
    return made


@pytest.mark.long
async def test_an_eval_is_priced_run_told_and_compared(
    runs: Runs, connection: Connection, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suites = (read_suite(folder),)
    saved, page = folder / "base.json", folder / "page.md"
    before = tally_suites([mark(number) for number in range(4)], suites)
    async with runs.worker(ScriptedModel({"judge": [T1, NONE, NONE, NONE, NONE]})):
        dry = EvalOptions(dry=True)
        assert await eval_command.run(connection, suites, dry) == Code.COMPLETE
        said = capsys.readouterr()
        assert "searched is left out: there is no tool nowhere" in said.err
        assert "sums" in said.out and "expected, at most $5.00 is spent." in said.out
        assert await eval_command.run(connection, suites, EvalOptions(save=saved)) == Code.COMPLETE
        told = " ".join(capsys.readouterr().out.split())
        assert "sums: held" in told and "1 of 1" in told and "21–100 %" in told
        options = EvalOptions(eval_id="e1", runs=4, before=before, page=page)
        assert await eval_command.run(connection, suites, options) == Code.FAILED
        assert "e1 goes on" not in capsys.readouterr().err
        assert await eval_command.run(connection, suites, options) == Code.FAILED
        assert "e1 goes on: its trials that have run are paid" in capsys.readouterr().err
    assert Baseline.model_validate_json(saved.read_text()).suites[0].whole.passed == 1
    shown = page.read_text()
    assert shown.startswith("# Eval sums\n\n## sums: did not hold\n")
    assert "- regression: sums/winner: 4 of 4 before, 0 of 4 now" in shown
    assert 'winner is "", not "t1" |' in shown


def mark(number: int) -> Mark:
    return Mark(run=f"r{number}", suite="sums", case="winner", passed=True)


async def test_an_eval_that_is_expected_to_cost_more_than_its_cap_is_not_begun(
    runs: Runs, connection: Connection, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ScriptedModel({})
    async with runs.worker(model):
        options = EvalOptions(runs=50, dollars=Decimal("0.01"))
        with pytest.raises(Exit, match=r"is expected, and \$0.01 is the cap: give more with"):
            await eval_command.run(connection, (read_suite(folder),), options)
    assert model.heard == []
    assert "Prepared and priced first, unpaid: 2 cases." in capsys.readouterr().err


async def test_who_follows_an_eval_goes_on_when_the_server_dies_under_a_request(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [RPCStatusCode.UNKNOWN, RPCStatusCode.UNAVAILABLE]

    async def follow(*_: object) -> EvalReport:
        if states:
            raise RPCError("transport error", states.pop(), b"")
        return EvalReport(name="sums")

    monkeypatch.setattr(evaluating, "LOOK_SECONDS", 0)
    monkeypatch.setattr(evaluating, "_follow", follow)
    assert await evaluating.follow_eval(connection, "e1") == EvalReport(name="sums")
    states.append(RPCStatusCode.PERMISSION_DENIED)
    with pytest.raises(RPCError):
        await evaluating.follow_eval(connection, "e1")


async def test_cases_of_tools_are_free_and_priced_without_a_worker(
    connection: Connection, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    free = "tool: calculate, arguments: {expression: '1'}, must: [{says: '1'}]"
    lines = [f"- {{name: c{number}, {free}}}" for number in range(40)]
    (folder / "cases.yaml").write_text("\n".join(lines))
    suites = (read_suite(folder),)
    assert await eval_command.run(connection, suites, EvalOptions(dry=True)) == Code.COMPLETE
    assert "40 trials: $0.00 expected" in " ".join(capsys.readouterr().out.split())


NAMES = """
- {name: a, tool: calculat, must: [{says: x}]}
- {name: b, tool: calculate, arguments: {expresion: 1 + 1}, must: [{says: x}]}
- {name: c, goal: G, must: [{route: [analyst, nobody]}]}
- {name: d, goal: G, stop: plan, must: [{plan: {second: [none, analist]}}]}
- {name: e, goal: G, must: [{route: [made-poet, analyst]}]}
"""


async def test_a_tool_argument_or_role_that_there_is_not_is_refused_a_line_each(
    connection: Connection, folder: Path
) -> None:
    (folder / "cases.yaml").write_text(NAMES)
    with pytest.raises(Refused) as refusal:
        await trials_of(connection, [read_suite(folder)], "e1")
    assert str(refusal.value).splitlines() == [
        "sums/a: tool 'calculat': there is no such tool (did you mean 'calculate'?)",
        "sums/b: tool calculate: 'expresion': it has no such argument; it has: expression, unit"
        " (did you mean 'expression'?)",
        "sums/c: role 'nobody': there is no such role",
        "sums/d: role 'analist': there is no such role (did you mean 'analyst'?)",
    ]


def test_wrong_input_is_refused_before_anything_starts(
    bare_environment: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for line, why in {
        ("eval", "jugde"): "there is no suite 'jugde' (did you mean 'judge'?); there are: ",
        ("eval", "judge", "--baseline", "base.json"): "--baseline base.json: not what --save",
        ("eval",): "name a suite; there are: ",
        ("eval", "judge", "--all"): "--all and judge: leave one out",
        ("eval", "judge", "--dry-run", "--save", "b"): "--dry-run has no result for --save",
    }.items():
        Path("base.json").write_text("{}")
        assert main([*line]) == Code.REFUSED
        assert why in " ".join(capsys.readouterr().err.split())
    assert not bare_environment.exists()
