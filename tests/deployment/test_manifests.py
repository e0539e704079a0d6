"""What deploys holdfast on more than one machine: by the schemas of Compose, Kubernetes 1.37 and
KEDA (tests/support/schemas, cut to what is used here), and by workers that are started with the
very settings that the manifests give. No container engine and no cluster has run them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from bench.instruments.deployment import part, planned
from conftest import TEMPORAL
from holdfast import __version__
from holdfast.cli.main import main
from holdfast.contracts import Report
from holdfast.contracts.policies import tools_queue
from holdfast.deployment.settings import HOME, PREFIX, Settings
from holdfast.embedded.server import DYNAMIC
from holdfast.serving import worker
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.storage import store_at
from holdfast.temporal.connection import Target, connect
from holdfast.temporal.own_server import configured_target
from holdfast.workers.pollers import find_pollers
from holdfast.workers.versions import deployment_name

SCHEMAS = HOME / "tests" / "support" / "schemas"
KUBERNETES = HOME / "deploy" / "kubernetes"
POSTGRES = "docker-compose.postgres.yml"
COMPOSED: dict[str, Any] = yaml.safe_load((HOME / POSTGRES).read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSED["services"]
WORKERS = ("runs", "tools")
ONCE = ("schema", "namespace", "attributes")


def flaws(document: Any, schema: Mapping[str, Any]) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(document)
    return [f"{'/'.join(map(str, each.path))}: {each.message}" for each in found]


def schema_of(kind: str) -> dict[str, Any]:
    known = json.loads((SCHEMAS / "kubernetes.json").read_text())
    return {**known["kinds"][kind], "$defs": known["$defs"]}


def objects() -> list[dict[str, Any]]:
    paths = [*sorted((KUBERNETES / "base").glob("*.yaml")), KUBERNETES / "cloud" / "auth.yaml"]
    found = [each for path in paths for each in yaml.safe_load_all(path.read_text())]
    return [each for each in found if "apiVersion" in each and each["kind"] != "Kustomization"]


OBJECTS = {(each["kind"], each["metadata"]["name"]): each for each in objects()}
SETTINGS: dict[str, str] = OBJECTS["ConfigMap", "holdfast"]["data"]


def pod_of(kind: str) -> dict[str, Any]:
    spec: dict[str, Any] = OBJECTS["Deployment", f"holdfast-{kind}"]["spec"]["template"]["spec"]
    return spec


# ---------------------------------------------------------------- compose


@pytest.mark.parametrize("name", ["docker-compose.yml", POSTGRES])
def test_a_compose_file_is_one_by_its_schema(name: str) -> None:
    schema = json.loads((SCHEMAS / "compose.json").read_text())
    composed = yaml.safe_load((HOME / name).read_text())
    assert not flaws(composed, schema)
    broken = {**composed, "services": {"worker": {"image": "x", "replicas": 2}}}
    assert flaws(broken, schema), "the schema would tell"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_on_postgres_is_pinned_private_and_keeps_no_secret(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"[a-z/-]+:\d+\.\d+(\.\d+)?(-bookworm)?", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    retries = "on-failure:5" if name == "schema" else "on-failure:10"
    assert service["restart"] == (retries if name in ONCE else "unless-stopped")
    for variable, value in service.get("environment", {}).items():
        if re.search("KEY|SECRET|TOKEN|PASSWORD|PWD", variable):
            assert re.fullmatch(r"\$\{\w+:(-|\?.*|\+/run/secrets/\w+)\}", value)
    for condition in service.get("depends_on", {}).items():
        once = condition[0] in ONCE
        wanted = "service_completed_successfully" if once else "service_healthy"
        assert condition[1]["condition"] == wanted
        assert once or "healthcheck" in SERVICES[condition[0]]


@pytest.mark.usefixtures("bare_environment")
@pytest.mark.parametrize("name", WORKERS)
def test_each_worker_on_postgres_serves_its_queue_and_has_time_to_drain(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = SERVICES[name]
    for variable, value in service["environment"].items():
        # Compose puts nothing in the place of what nobody has set.
        monkeypatch.setenv(variable, "" if value.startswith("${") else value)
    monkeypatch.setenv("STORE_URL", (tmp_path / "store").as_uri())
    read = Settings(_env_file=None)
    assert read.serves == name and configured_target(read).address == "temporal:7233"
    assert read.metrics_port and "9464" not in str(service.get("ports"))
    assert not read.pin_runs and f"http://{read.health}/ready" in str(service["healthcheck"])
    assert service["image"] == f"holdfast-worker:{__version__}"
    grace = timedelta(seconds=int(service["stop_grace_period"].removesuffix("s")))
    assert grace >= worker.GRACE + timedelta(seconds=10)
    assert "temporal" not in service["image"] and "start-dev" not in str(COMPOSED)


def test_the_key_of_payloads_on_postgres_is_a_secret_of_the_workers_alone() -> None:
    ((name, secret),) = COMPOSED["secrets"].items()
    variable = Settings.variable("payload_key_file")
    assert secret == {"file": f"${{{variable}:-/dev/null}}"}, "without one there is nothing in it"
    assert {each for each in SERVICES if "secrets" in SERVICES[each]} == {*WORKERS}
    for each in WORKERS:
        assert SERVICES[each]["secrets"] == [name]
        told = SERVICES[each]["environment"][variable]
        assert told == f"${{{variable}:+/run/secrets/{name}}}"


def test_the_server_on_postgres_is_told_what_the_embedded_one_is() -> None:
    told = yaml.safe_load((HOME / "deploy" / "temporal" / "dynamic.yaml").read_text())
    given = {
        name: json.loads(value) for name, _, value in (each.partition("=") for each in DYNAMIC)
    }
    assert {name: each[0]["value"] for name, each in told.items()} == given


# ---------------------------------------------------------------- kubernetes


@pytest.mark.parametrize("key", OBJECTS, ids=" ".join)
def test_an_object_is_one_by_its_schema(key: tuple[str, str]) -> None:
    schema = schema_of(key[0])
    assert not flaws(OBJECTS[key], schema)
    assert flaws({**OBJECTS[key], "sepc": {}}, schema), "the schema would tell"


@pytest.mark.parametrize("kind", WORKERS)
def test_a_pod_may_do_little_and_drains_for_as_long_as_the_longest_call(kind: str) -> None:
    pod = pod_of(kind)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    grace = timedelta(seconds=pod["terminationGracePeriodSeconds"])
    assert grace >= worker.GRACE + timedelta(seconds=60)
    written = [each["mountPath"] for each in container["volumeMounts"]]
    for name in ("HOLDFAST_STATE_DIR", "HOME", "TMPDIR"):
        assert SETTINGS[name].startswith(tuple(written))
    assert {"secretRef": {"name": "holdfast"}} in container["envFrom"]
    port, metrics = (each["containerPort"] for each in container["ports"])
    assert SETTINGS["HOLDFAST_HEALTH"] == f"0.0.0.0:{port}"
    assert SETTINGS["HOLDFAST_METRICS_ADDRESS"] == "0.0.0.0"
    told = OBJECTS["Deployment", f"holdfast-{kind}"]["spec"]["template"]["metadata"]["annotations"]
    assert str(metrics) == SETTINGS["HOLDFAST_METRICS_PORT"] == told["prometheus.io/port"]
    health, figures = OBJECTS["NetworkPolicy", "holdfast"]["spec"]["ingress"]
    assert health == {"ports": [{"protocol": "TCP", "port": port}]}
    assert figures["ports"] == [{"protocol": "TCP", "port": metrics}] and figures["from"]
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    asked = [container[each]["httpGet"]["path"] for each in probes]
    assert asked == ["/ready", "/ready", "/live"]


def test_no_setting_of_a_manifest_is_unknown_or_secret() -> None:
    ours = {name for name in SETTINGS if name.startswith(PREFIX)}
    assert ours <= {Settings.variable(name) for name in Settings.model_fields}
    assert not [name for name in SETTINGS if re.search("KEY|SECRET|TOKEN|PASSWORD", name)]


@pytest.mark.parametrize(("kind", "queue"), [("runs", ""), ("tools", "-tools")])
def test_each_kind_of_worker_is_scaled_by_what_waits_for_it(kind: str, queue: str) -> None:
    of_runs = SETTINGS["HOLDFAST_TASK_QUEUE"]
    scaled = OBJECTS["ScaledObject", f"holdfast-{kind}"]["spec"]
    (trigger,) = scaled["triggers"]
    assert ("Deployment", scaled["scaleTargetRef"]["name"]) in OBJECTS
    assert trigger["metadata"]["taskQueue"] == {"": of_runs, "-tools": tools_queue(of_runs)}[queue]
    assert trigger["metadata"]["workerDeploymentName"] == deployment_name(of_runs)
    assert scaled["minReplicaCount"] >= 1


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not here to build them")
@pytest.mark.parametrize("folder", ["base", "cloud"])
def test_what_kustomize_makes_of_them_names_itself_and_its_build_throughout(folder: str) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", str(KUBERNETES / folder)], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    found = list(yaml.safe_load_all(built.stdout))
    for each in found:
        assert not flaws(each, schema_of(each["kind"]))
    [config] = [each for each in found if each["kind"] == "ConfigMap"]
    [policy] = [each for each in found if each["kind"] == "NetworkPolicy"]
    deployed = {each["metadata"]["name"]: each for each in found if each["kind"] == "Deployment"}
    for each in [each for each in found if each["kind"] == "ScaledObject"]:
        told = each["spec"]["triggers"][0]["metadata"]
        assert each["spec"]["scaleTargetRef"]["name"] in deployed
        assert told["workerDeploymentBuildId"] == config["data"]["HOLDFAST_BUILD_ID"] == __version__
        assert told["endpoint"] == config["data"]["TEMPORAL_ADDRESS"]
        assert told["namespace"] == config["data"]["TEMPORAL_NAMESPACE"]
    chosen = policy["spec"]["podSelector"]["matchLabels"].items()
    for each in deployed.values():
        template = each["spec"]["template"]
        assert chosen <= template["metadata"]["labels"].items(), "the policy is about it"
        assert template["spec"]["containers"][0]["envFrom"][0] == {
            "configMapRef": {"name": config["metadata"]["name"]}
        }


# ---------------------------------------------------------------- tried


def given(kind: str) -> dict[str, str]:
    """The settings of a pod."""
    (container,) = pod_of(kind)["containers"]
    return SETTINGS | {each["name"]: each["value"] for each in container["env"]}


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def wait_for(port: int, path: str, status: int, seconds: float = 90) -> str:
    deadline = time.monotonic() + seconds
    while (found := ask(port, path))[0] != status:
        assert time.monotonic() < deadline, f"{path} answers {found}"
        time.sleep(0.2)
    return found[1]


@contextmanager
def started(
    environment: Mapping[str, str], folder: Path, kind: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A worker with a manifest's settings; of this machine are only its places and addresses."""
    port, state = free_port(), folder / kind
    state.mkdir(parents=True)
    places = {"HOME": str(state), "TMPDIR": str(state), "HOLDFAST_STATE_DIR": str(state / "s")}
    rest = {
        **environment,
        **places,
        "HOLDFAST_HEALTH": f"127.0.0.1:{port}",
        "HOLDFAST_METRICS_PORT": "0",
        "HOLDFAST_WORKERS": "1",
    }
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith((PREFIX, "TEMPORAL_", "ANTHROPIC_", "STORE_", "AWS_"))
    }
    with (folder / f"{kind}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "worker.py"], cwd=HOME, env=clean | rest, stderr=log
        )
    try:
        yield process, port
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.anyio
async def test_workers_with_a_manifests_settings_share_a_run_are_ready_and_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"call": "take_turn", "turn": 1, "tools": [{"name": "format_data", "input": {}}]}
    script = Script.model_validate({"rules": [tool], "latencies": {"synthesize": 4}})
    server = WorkflowEnvironment.start_local(
        dev_server_existing_path=str(TEMPORAL), dev_server_log_level="never"
    )
    async with await server as environment, Simulator(script) as simulator:
        address = environment.client.service_client.config.target_host
        store = (tmp_path / "store").as_uri()
        here = {
            "TEMPORAL_ADDRESS": address,
            "STORE_URL": store,
            "ANTHROPIC_BASE_URL": simulator.url,
            "ANTHROPIC_API_KEY": "scripted",
        }
        queue = SETTINGS["HOLDFAST_TASK_QUEUE"]
        target = Target(address, task_queue=queue, store_url=store, embedded=False)
        with ExitStack() as stack:
            serving = {
                kind: stack.enter_context(started(given(kind) | here, tmp_path, kind))
                for kind in WORKERS
            }
            for _, port in serving.values():
                assert await asyncio.to_thread(wait_for, port, "/ready", 200) == "ready\n"
                assert ask(port, "/live") == (200, "it lives\n")
            client = await connect(target)
            found = await find_pollers(client, [queue, tools_queue(queue)])
            (runs,), (tools,) = (found[each] for each in (queue, tools_queue(queue)))
            assert runs.identity != tools.identity, "each asks its own queue, under its own name"
            for name in ("TEMPORAL_ADDRESS", "STORE_URL"):
                monkeypatch.setenv(name, here[name])
            assert await asyncio.to_thread(main, ["deploy", SETTINGS["HOLDFAST_BUILD_ID"]]) == 0
            goal = planned((part(1).model_copy(update={"role": "writer"}), part(2)))
            probe = await store_at(store).put(b"manifest")
            handle = await client.start_workflow(
                "SupervisorWorkflow",
                goal.model_copy(update={"probe": probe}),
                id="of-a-manifest",
                task_queue=queue,
                result_type=Report,
            )
            await until_synthesized(handle)
            for process, _ in serving.values():
                process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(wait_for, serving["runs"][1], "/ready", 503) == (
                "it drains\n"
            )
            for process, _ in serving.values():
                assert await asyncio.to_thread(process.wait, 60) == 0
            stack.enter_context(started(given("runs") | here, tmp_path / "again", "runs"))
            async with asyncio.timeout(90):
                report = await handle.result()
        assert report.status == "complete", report.gaps
        assert simulator.log.report()["again"] == 0, "nothing was asked twice"


async def until_synthesized(handle: WorkflowHandle[Any, Report]) -> None:
    """Until its last call but one is under way."""
    async with asyncio.timeout(90):
        while True:
            pending = (await handle.describe()).raw_description.pending_activities
            if any(each.activity_type.name == "synthesize" for each in pending):
                return
            await asyncio.sleep(0.1)
