"""What a worker tells Prometheus, and that dashboard and alerts ask for nothing that it does not
tell. The figures are scraped as Prometheus does it.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml
from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.testing import WorkflowEnvironment

from conftest import Runs
from holdfast.activities.gate.rate_gate import RateGate
from holdfast.contracts import Bill, Goal
from holdfast.contracts.errors import PossiblyBilled
from holdfast.deployment.settings import HOME, Settings
from holdfast.serving import worker
from holdfast.telemetry.logs import measured_runtime, runtime
from holdfast.telemetry.metrics import CountCalls, Gauges, prometheus
from holdfast.temporal.connection import plugin
from scripted import ScriptedModel, ready, subtask, works

pytestmark = pytest.mark.anyio

PROMTOOL = shutil.which("promtool")
PLACE = HOME / "docs" / "metrics"
NAME = re.compile(r"\b(?:temporal|holdfast)_[a-z_]+")
FREE = {"namespace", "task_queue", "workflow_type", "activity_type", "service_name"}
"""Labels of the SDK; what their values are, the code decides."""
OURS = {"kind", "tier", "verdict", "direction", "queue"}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def scrape(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return str(answer.read().decode())


@pytest.fixture
async def scraped(runs: Runs) -> AsyncIterator[str]:
    """What one run and one look leave behind, as Prometheus reads it."""
    port = free_port()
    own = runtime(prometheus(f"127.0.0.1:{port}"))
    address = runs.client.service_client.config.target_host
    runs.client = await Client.connect(
        address, namespace=runs.client.namespace, runtime=own, plugins=[plugin(runs.store)]
    )
    await runs.register(["HoldfastWaiting"])
    model = ScriptedModel(
        {"t1": [PossiblyBilled("dropped", Bill(calls=1)), works("?", confidence=5), works("1")]}
    )
    goal = Goal(text="Compare", use_models=True, plan=ready(subtask("t1")))
    gate = RateGate()
    await gate.turn("sonnet")
    await runs.run(goal, model, interceptors=[CountCalls(own.metric_meter)])
    look = Gauges(own.metric_meter, gate)
    await look.look(runs.client, runs.queue)
    look.show_gate()
    yield await asyncio.to_thread(scrape, port)


def figures(text: str) -> dict[tuple[str, str], float]:
    """The value of each series, by its name and its labels as they stand."""
    series = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
    return {(name, labels): float(value) for name, labels, value in series.findall(text)}


def total(text: str, name: str, *labels: str) -> float:
    return sum(
        value
        for (each, told), value in figures(text).items()
        if each == name and all(label in told for label in labels)
    )


async def test_calls_money_and_tokens_are_counted_by_tier_and_verdict(scraped: str) -> None:
    work = 'kind="work"'
    assert total(scraped, "holdfast_calls_total", work, 'verdict="PossiblyBilled"') == 1
    assert total(scraped, "holdfast_calls_total", work, 'verdict="answered"', 'tier="opus"') == 1
    assert total(scraped, "holdfast_microdollars_total") > 0
    assert total(scraped, "holdfast_tokens_total", 'direction="output"') == 200
    gate = [labels for name, labels in figures(scraped) if name == "holdfast_gate_limited"]
    assert len(gate) == 1 and 'tier="sonnet"' in gate[0]
    assert "holdfast_runs_waiting" in {name for name, _ in figures(scraped)}
    assert total(scraped, "holdfast_looked_at_seconds") > 1e9


async def test_no_label_holds_what_somebody_chose(scraped: str) -> None:
    assert "run-" not in scraped and "t1" not in scraped
    ours = [line for line in scraped.splitlines() if line.startswith("holdfast_")]
    names = {name for line in ours for name in re.findall(r'(\w+)="', line)}
    assert names <= OURS | FREE


async def test_calls_that_take_minutes_are_measured_not_merely_counted(scraped: str) -> None:
    name = "temporal_activity_execution_latency_bucket"
    assert any(each == name and 'le="600"' in labels for each, labels in figures(scraped))


async def test_dashboard_and_alerts_ask_for_nothing_that_is_not_told(scraped: str) -> None:
    known = {name for name, _ in figures(scraped)}
    dashboard = json.loads((PLACE / "dashboard.json").read_text())
    rules = yaml.safe_load((PLACE / "alerts.yaml").read_text())
    asked = expressions(dashboard) + expressions(rules)
    assert len(asked) > 12
    unknown = {name for each in asked for name in NAME.findall(each)} - known
    assert not unknown, f"nobody tells {', '.join(sorted(unknown))}"


async def test_money_and_tokens_of_each_tier_are_told_before_the_first_call(
    env: WorkflowEnvironment,
) -> None:
    port = free_port()
    own = runtime(prometheus(f"127.0.0.1:{port}"))
    address = env.client.service_client.config.target_host
    # Kept: with its last client a runtime ends.
    client = await Client.connect(address, runtime=own)
    CountCalls(own.metric_meter)
    told = figures(await asyncio.to_thread(scrape, port))
    paid = [labels for name, labels in told if name == "holdfast_microdollars_total"]
    assert len(paid) == 3 and any('tier="opus"' in labels for labels in paid)
    assert len([name for name, _ in told if name == "holdfast_tokens_total"]) == 12
    assert {value for (name, _), value in told.items() if name.startswith("holdfast")} == {0.0}
    del client


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool on PATH: alerts are not tried")
async def test_each_alert_rings_when_it_should_and_what_is_usual_rings_nothing(
    tmp_path: Path,
) -> None:
    assert PROMTOOL is not None
    rules = yaml.safe_load((PLACE / "alerts.yaml").read_text())
    tried = (HOME / "tests" / "support" / "alerts.yaml").read_text()
    for rule in rules["groups"][0]["rules"]:
        assert tried.count(f"alertname: {rule['alert']}\n") == 1, "each is seen to ring"
        del rule["annotations"]["description"]  # promtool compares every annotation
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(rules))
    (tmp_path / "tried.yaml").write_text(tried.replace("ALERTS", str(tmp_path / "alerts.yaml")))
    given = (PROMTOOL, "test", "rules", str(tmp_path / "tried.yaml"))
    done = await asyncio.to_thread(subprocess.run, given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def expressions(value: Any) -> list[str]:
    """Every `expr` in a document."""
    if isinstance(value, dict):
        own = [value["expr"]] if "expr" in value else []
        return own + [found for each in value.values() for found in expressions(each)]
    return (
        [found for each in value for found in expressions(each)] if isinstance(value, list) else []
    )


def test_each_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((PLACE / "alerts.yaml").read_text())
    said = [rule["annotations"] for group in rules["groups"] for rule in group["rules"]]
    assert said
    assert all(each["summary"] and each["description"] for each in said)


async def test_a_taken_port_is_said_and_no_reason_not_to_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        place = f"127.0.0.1:{port}"
        assert isinstance(measured_runtime(place), Runtime)
    assert f"no metrics at {place}" in caplog.text


@pytest.mark.parametrize(
    ("told", "second"),
    [
        ({}, ""),
        ({"metrics_port": 9464}, "127.0.0.1:9465"),
        ({"metrics_port": 9464, "metrics_address": "0.0.0.0"}, "0.0.0.0:9465"),
        ({"metrics_port": 9464, "metrics_address": "::"}, "[::]:9465"),
    ],
)
def test_each_process_answers_at_its_port_and_on_this_machine_alone_unless_told(
    told: dict[str, Any], second: str
) -> None:
    assert worker.metrics_place(Settings(_env_file=None, **told), 2) == second
