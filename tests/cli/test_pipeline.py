"""A review in a pipeline: exit codes by severity, the files, and the example workflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from pydantic import JsonValue

from holdfast.cli.main import main, program
from holdfast.cli.screen.exits import Code, Exit
from holdfast.cli.shared.options import pipeline_of
from holdfast.cli.shared.pipeline import Pipeline
from holdfast.contracts import Remark, Report
from holdfast.deployment.settings import HOME
from holdfast.rendering.comment import as_comment
from holdfast.rendering.sarif import as_sarif

WORKFLOW = HOME / "examples" / "github" / "code-review.yml"
ACTION = HOME / "action.yml"


def review(*remarks: dict[str, Any], **fields: Any) -> Report:
    given = {"file": "a.py", "line": 1, "message": "m", "confidence": 90}
    listed = [Remark.model_validate({**given, **each}).model_dump(mode="json") for each in remarks]
    data = {"remarks": listed, "looked_at": {"bugs": 1}}
    return Report(run_id="r", goal="g", status="complete", data=data, **fields)


CRITICAL, WARNING = {"severity": "critical"}, {"severity": "warning"}
REFUTED = {"severity": "critical", "verdict": "refuted", "why": "no", "by_agent": True}


@pytest.mark.parametrize(
    ("fail_on", "remarks", "code", "ended"),
    [
        ("critical", [CRITICAL], Code.COMPLETE, Code.REMARKS),
        ("critical", [WARNING], Code.COMPLETE, Code.COMPLETE),
        ("warning", [WARNING], Code.COMPLETE, Code.REMARKS),
        ("warning", [CRITICAL], Code.PARTIAL, Code.REMARKS),
        ("warning", [REFUTED, {"severity": "info"}], Code.COMPLETE, Code.COMPLETE),
        ("warning", [{**REFUTED, "by_agent": False}], Code.COMPLETE, Code.REMARKS),
        ("warning", [{**CRITICAL, "kind": "tests"}], Code.COMPLETE, Code.COMPLETE),
        ("warning", [{**CRITICAL, "hidden": "known"}], Code.COMPLETE, Code.COMPLETE),
        ("critical", [CRITICAL], Code.FAILED, Code.FAILED),
        ("critical", [CRITICAL], Code.CANCELLED, Code.CANCELLED),
        ("critical", [], Code.PARTIAL, Code.PARTIAL),
        ("", [CRITICAL], Code.COMPLETE, Code.COMPLETE),
    ],
)
def test_remarks_as_severe_as_asked_for_make_the_exit_code(
    fail_on: str, remarks: list[dict[str, Any]], code: Code, ended: Code
) -> None:
    assert Pipeline(fail_on).pass_on(review(*remarks), code) is ended


def test_the_gate_says_how_many_of_the_remarks_a_model_refuted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = review(CRITICAL, {**REFUTED, "by_agent": False})
    assert Pipeline("warning").pass_on(told, Code.COMPLETE) is Code.REMARKS
    said = capsys.readouterr().err
    assert "2 critical, 1 of them refuted by a model, exit code 7" in said


@pytest.mark.parametrize(
    ("fail_on", "remarks", "code", "ended"),
    [
        ("critical", [], Code.COMPLETE, Code.PARTIAL),
        ("critical", [WARNING], Code.COMPLETE, Code.PARTIAL),
        ("critical", [CRITICAL], Code.COMPLETE, Code.REMARKS),
        ("critical", [], Code.FAILED, Code.FAILED),
        ("", [CRITICAL], Code.COMPLETE, Code.COMPLETE),
    ],
)
def test_the_gate_does_not_open_where_a_text_was_not_read(
    fail_on: str, remarks: list[dict[str, Any]], code: Code, ended: Code
) -> None:
    told = review(*remarks)
    told.data.update(missed_in_all=1, missed=[{"path": "a.js", "why": "larger than 1 MiB"}])
    assert Pipeline(fail_on, links="x").pass_on(told, code) is ended


def test_the_gate_does_not_open_where_nothing_was_looked_at_unless_nothing_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = review()
    told.data.update(looked_at={}, agents={})
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.PARTIAL
    assert "nothing was looked at, exit code 3" in capsys.readouterr().err
    told.data.update(nothing_differs=True)
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.COMPLETE


def test_the_gate_names_the_first_texts_that_were_not_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = review()
    first: list[JsonValue] = [{"path": f"{n}.js", "why": "larger than 1 MiB"} for n in range(6)]
    told.data.update(missed_in_all=9, missed=first)
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.PARTIAL
    said = " ".join(capsys.readouterr().err.split())
    assert "9 files of text not read: 0.js (larger than 1 MiB), 1.js" in said
    assert "4.js (larger than 1 MiB), …, exit code 3" in said and "5.js" not in said


def test_the_gate_comment_and_sarif_name_a_submodule_and_a_link_that_nobody_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = review()
    missed: list[JsonValue] = [
        {"path": "lib/", "why": "a submodule"},
        {"path": "app/x.py", "why": "a link out of the repository"},
    ]
    told.data.update(missed_in_all=2, missed=missed)
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.PARTIAL
    said = " ".join(capsys.readouterr().err.split())
    assert "1 link and 1 submodule not read: lib/ (a submodule), app/x.py (a link" in said
    comment = as_comment(told)
    assert "⚠️ Not whole: 1 link and 1 submodule could not be read." in comment
    assert "Nobody knows what is in 1 link and 1 submodule: `lib/` (a submodule)" in comment
    assert '"uri": "lib/"' in as_sarif(told) and '"uri": "app/x.py"' in as_sarif(told)


def test_the_gate_does_not_open_where_a_lens_had_no_time_for_a_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = review()
    told.data.update(not_reached=["a.sh"], not_reached_by={"shell": 1})
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.PARTIAL
    assert Pipeline("").pass_on(told, Code.COMPLETE) is Code.COMPLETE
    said = " ".join(capsys.readouterr().err.split())
    assert "1 file not looked at by shell: the time limit was reached, exit code 3" in said
    assert "before the time limit: `a.sh`" in as_comment(told)
    assert '"executionSuccessful": false' in as_sarif(told)


def test_the_gate_does_not_open_where_a_file_of_a_change_could_not_be_parsed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = review()
    told.data.update(not_parsed=["deep.py"], base="")
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.COMPLETE
    told.data.update(base="1" * 40)
    assert Pipeline("critical").pass_on(told, Code.COMPLETE) is Code.PARTIAL
    assert "1 file could not be parsed: deep.py, exit code 3" in capsys.readouterr().err


def test_a_patch_that_is_not_in_the_file_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = review(
        *(
            {
                **WARNING,
                "line": line,
                "fix": {"why": "", "diff": f"{line}\n", "first": line, "last": line},
            }
            for line in (3, 4, 90)
        )
    )
    file = tmp_path / "fix.patch"
    Pipeline(fix=file).pass_on(told, Code.COMPLETE)
    assert file.read_text() == "3\n90\n"
    said = " ".join(capsys.readouterr().err.split())
    assert "Not in it, since another patch is too near: a.py:4; apply it, review again" in said


def test_the_help_names_every_exit_code() -> None:
    told = str(program().info.help)
    assert [each for each in Code if f" {each.value} " not in told] == []


def test_a_run_that_is_no_review_is_refused_and_a_failed_one_keeps_its_code() -> None:
    other = Report(run_id="r", goal="g", status="complete")
    with pytest.raises(Exit, match="is not a review, so it has no remarks"):
        Pipeline("critical").pass_on(other, Code.COMPLETE)
    assert Pipeline("critical").pass_on(other, Code.FAILED) is Code.FAILED
    assert Pipeline().pass_on(other, Code.COMPLETE) is Code.COMPLETE


def test_the_files_are_written_and_a_full_disk_costs_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, gone = tmp_path / "a.sarif", tmp_path / "none" / "b.md"
    Pipeline(sarif=there, comment=gone).pass_on(review(CRITICAL), Code.COMPLETE)
    assert json.loads(there.read_text())["version"] == "2.1.0"
    said = capsys.readouterr().err
    assert f"Written: {there}" in said and f"{gone} could not be written" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("info", None, None, ""), "--fail-on 'info': it takes critical or warning"),
        (("", Path("/nowhere/a.sarif"), None, ""), "--sarif: there is no folder '/nowhere'"),
        (("", None, Path("/"), ""), "--comment '/' is a folder"),
        (("", None, None, "https://a.test/b"), "name its file with --comment"),
        (("", None, Path("c.md"), "javascript:alert(1)"), "an address is wanted"),
        (("", None, Path("c.md"), "https://a.test/b)("), "an address is wanted"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(
    arguments: tuple[str, Path | None, Path | None, str], said: str
) -> None:
    with pytest.raises(Exit) as refused:
        pipeline_of(*arguments)
    assert said in str(refused.value)


@pytest.mark.parametrize("command", ["run goal", "watch a-run", "show a-run"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--fail-on", ""], "--fail-on is empty; name one, or leave the option out"),
        (["--sarif", "a.md", "--comment", "./a.md"], "--sarif and --comment name the same file"),
        (["--sarif", "a.json", "--out", "a.json"], "--sarif and --out name the same file"),
        (["--comment", "b/../a.md", "--out", "a.md"], "--comment and --out name the same file"),
        (["--comment", "link.md", "--out", "a.md"], "--comment and --out name the same file"),
    ],
)
def test_an_empty_variable_and_a_file_named_twice_are_refused_in_a_line(
    command: str,
    given: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "a.md").write_text("")
    (tmp_path / "link.md").symlink_to("a.md")
    assert main([*command.split(), *given]) == Code.REFUSED
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_the_action_types_options_that_there_are_and_trusts_no_event(tmp_path: Path) -> None:
    action = yaml.safe_load(ACTION.read_text("utf-8"))
    checkout, setup, run = action["runs"]["steps"]
    assert checkout["with"]["persist-credentials"] is False
    for step in (setup, run):
        assert "${{" not in step["run"], "what an event says is no script"
    github = typer.main.get_command(program("github")).commands["github"]  # type: ignore[attr-defined]
    options = {each for parameter in github.params for each in parameter.opts}
    typed = {*re.findall("--[a-z-]+", run["run"])}
    assert typed == {"--fail-on", "--models", "--dollars"} <= options
    # A program of the action's own Python, started in the checkout, prints what it was given.
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(shutil.which("echo") or "echo")
    given = {"FAIL_ON": "critical", "MODELS": "true", "DOLLARS": "", "PYTHONPATH": "."}
    environment = {"PATH": os.environ["PATH"], "GITHUB_ACTION_PATH": str(tmp_path), **given}
    done = subprocess.run(
        ["bash", "-e", "-c", run["run"]], env=environment, capture_output=True, check=True
    )
    assert done.stdout.decode() == f"{tmp_path}/starter.py github --fail-on critical --models\n"


def test_a_users_workflow_is_a_step_and_zizmor_has_nothing_against_it_or_the_action(
    tmp_path: Path,
) -> None:
    flow = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    # YAML 1.1 reads `on` as true.
    assert set(flow[True]) == {"pull_request", "push"} and flow["permissions"] == {}
    (job,) = flow["jobs"].values()
    assert job["steps"] == [{"uses": "OWNER/holdfast@COMMIT"}]
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    flow_file = tmp_path / ".github" / "workflows" / "review.yml"
    flow_file.write_text(WORKFLOW.read_text("utf-8").replace("COMMIT", "1" * 40))
    (tmp_path / "action.yml").write_text(ACTION.read_text("utf-8"))
    zizmor = Path(sys.executable).parent / "zizmor"
    given = ("--offline", "--no-progress", "--collect=all", ".")
    done = subprocess.run([zizmor, *given], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "action.yml" in done.stderr and "review.yml" in done.stderr


def test_a_patch_and_the_sarif_file_of_a_review_have_files_of_their_own(tmp_path: Path) -> None:
    one = tmp_path / "a"
    with pytest.raises(Exit, match="--sarif and --fix name the same file"):
        pipeline_of("", one, None, "", None, one)
