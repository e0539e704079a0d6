"""Web hooks that start runs: what they prove, what of them gets into a run, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from conftest import Runs, seen
from doors import Door, served
from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts.search import RUNS
from holdfast.deployment.settings import Settings
from holdfast.doors.hook_files import read_hooks
from holdfast.doors.hooks import MOST_BYTES, Hooks
from holdfast.doors.tokens import Scopes
from holdfast.errors import BadSettings
from holdfast.intake.connection import Connection
from holdfast.intake.launch import goal_of_run
from hook_receiver import SECRET
from scripted import ScriptedModel, plans, subtask

pytestmark = pytest.mark.anyio
BODY = {"action": "opened", "pull_request": {"title": "Mend it", "number": 7, "body": None}}
FILE = """
[hooks.review]
secret_env = "REVIEW_SECRET"
goal = "Say what the change is for"
approval = "always"
dollars = 1
when = {action = ["opened", "synchronize"]}
[hooks.review.inputs]
title = "text:{pull_request.title} ({pull_request.number}){pull_request.body}"
[hooks.other]
secret_env = "REVIEW_SECRET"
goal = "Say what the change is for"
approval = "always"
inputs = {title = "text:{pull_request.title}"}
"""


@pytest.fixture
def project(connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "holdfast.toml").write_text(FILE)
    monkeypatch.setenv("REVIEW_SECRET", SECRET)
    monkeypatch.setenv("HOLDFAST_PROJECT", str(folder))
    return folder


@pytest.fixture
async def hooks(connection: Connection, project: Path, runs: Runs) -> AsyncIterator[Door]:
    settings = Settings(project=project, state_dir=connection.settings.state_dir)
    ours = Connection(settings, connection.target, connection.client)
    model = ScriptedModel({"plan": [plans(subtask("t1"))] * 10})
    async with runs.worker(model, projects=(project,)), served(ours) as door:
        with runs.env.with_time_skipping_disabled():
            yield door


def standard(
    body: bytes, id: str = "msg_1", secret: str = SECRET, age: float = 0
) -> Mapping[str, str]:
    at = datetime.now(UTC) - timedelta(seconds=age)
    return {
        "webhook-id": id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(id, at, body.decode()),
    }


def github(body: bytes, delivery: str = "1", **more: str) -> Mapping[str, str]:
    made = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    named = {"X-Hub-Signature-256": f"sha256={made}", "X-GitHub-Delivery": delivery}
    return named | {name.replace("_", "-"): value for name, value in more.items()}


async def post(
    door: Door, content: bytes, headers: Mapping[str, str], name: str = "review"
) -> httpx2.Response:
    client = door.bearing("").client
    return await client.post(f"/hooks/{name}", content=content, headers=headers)


async def started(runs: Runs, settings_of: Door) -> int:
    query = f"{RUNS} AND TaskQueue = '{runs.queue}'"
    return (await runs.client.count_workflows(query)).count


async def test_a_signed_hook_starts_the_run_of_its_template_once(
    hooks: Door, runs: Runs, connection: Connection
) -> None:
    content = json.dumps(BODY).encode()
    first = await post(hooks, content, standard(content))
    assert first.status_code == 201, first.text
    run_id = first.json()["id"]
    runs.handles.append(connection.handle(run_id))
    goal = await goal_of_run(connection, run_id)
    assert goal is not None
    assert goal.text == "Say what the change is for" and goal.requester == "hook review"
    (given,) = goal.inputs
    assert (given.name, given.kind, given.value) == ("title", "text", "Mend it (7)")
    again = await post(hooks, content, standard(content, age=200))
    assert (again.status_code, again.json()) == (200, {"id": run_id, "attached": True})
    signed = standard(content)
    several = f"v1,a,b v1a,x v1,{'A' * 43}= {signed['webhook-signature']}"
    listed = await post(hooks, content, {**signed, "webhook-signature": several})
    assert (listed.status_code, listed.json()["id"]) == (200, run_id)
    other = await post(hooks, content, standard(content, "msg_2"))
    assert other.status_code == 201 and other.json()["id"] != run_id
    changed = json.dumps({**BODY, "pull_request": {"title": "x", "number": 1, "body": ""}}).encode()
    taken = await post(hooks, changed, standard(changed))
    assert (taken.status_code, taken.json()["id"]) == (200, run_id)
    await seen(connection.handle(run_id), lambda view: view.waiting)


async def test_a_hook_of_github_is_known_by_what_is_signed_not_by_its_delivery(
    hooks: Door,
) -> None:
    content = json.dumps(BODY).encode()
    first = await post(hooks, content, github(content))
    replayed = await post(hooks, content, github(content, delivery="another"))
    assert (first.status_code, replayed.status_code) == (201, 200)
    assert first.json()["id"] == replayed.json()["id"]
    elsewhere = await post(hooks, content, github(content), "other")
    assert elsewhere.status_code == 201 and elsewhere.json()["id"] != first.json()["id"]


async def test_who_floods_hooks_and_logins_shuts_out_nobody_who_proves_who_he_is(
    connection: Connection, project: Path
) -> None:
    settings = Settings(project=project, state_dir=connection.settings.state_dir)
    ours = Connection(settings, connection.target, connection.client)
    content = json.dumps({**BODY, "action": "closed"}).encode()
    async with served(ours, rate=0.5) as door:
        secret = door.tokens.add("ada", Scopes())
        unknown = [await post(door, content, {}, "zzz") for _ in range(6)]
        unsigned = await post(door, content, {})
        browser = door.bearing("").client
        guesses = [await browser.post("/login", data={"token": "hf_x"}) for _ in range(6)]
        codes = [each.status_code for each in (*unknown, unsigned, *guesses)]
        assert codes == [404] * 5 + [429] * 2 + [401] * 5 + [429]
        assert (await post(door, content, standard(content))).status_code == 200
        login = await browser.post("/login", data={"token": secret})
        assert login.status_code == 303


async def test_what_a_hook_is_not_for_starts_nothing(hooks: Door, runs: Runs) -> None:
    closed = json.dumps({**BODY, "action": "closed"}).encode()
    zen = json.dumps({"zen": "Design for failure."}).encode()
    for content, headers in (
        (closed, github(closed)),
        (zen, github(zen, X_GitHub_Event="ping")),
    ):
        answer = await post(hooks, content, headers)
        assert answer.status_code == 200 and "skipped" in answer.json()
    assert await started(runs, hooks) == 0


GOOD = json.dumps(BODY).encode()
DEEP = b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
BARE = json.dumps({"action": "opened"}).encode()
LARGE = b'{"a": "' + b"x" * MOST_BYTES + b'"}'
ODD = b'{"action": "opened", "pull_request": {"title": "", "number": 1e400, "body": ""}}'
EMPTY = json.dumps({**BODY, "pull_request": {"title": " "}}).encode()


def refused() -> Mapping[str, tuple[bytes, Any, str, int, str]]:
    """Return requests that are refused; made when they are sent, as some are of a moment."""
    return {
        "no signature": (GOOD, {}, "review", 401, "not_signed"),
        "another secret": (
            GOOD,
            standard(GOOD, secret="whsec_" + "A" * 32),
            "review",
            401,
            "not_signed",
        ),
        "six minutes old": (GOOD, standard(GOOD, age=360), "review", 401, "not_signed"),
        "six minutes early": (GOOD, standard(GOOD, age=-360), "review", 401, "not_signed"),
        "another id": (GOOD, {**standard(GOOD), "webhook-id": "x"}, "review", 401, "not_signed"),
        "another body": (GOOD + b" ", standard(GOOD), "review", 401, "not_signed"),
        "half a signature": (
            GOOD,
            {**standard(GOOD), "webhook-signature": "v1"},
            "review",
            401,
            "not_signed",
        ),
        "no moment": (
            GOOD,
            {**standard(GOOD), "webhook-timestamp": "nan"},
            "review",
            401,
            "not_signed",
        ),
        "GitHub's, of another body": (GOOD + b" ", github(GOOD), "review", 401, "not_signed"),
        "GitHub's, cut": (GOOD, {"X-Hub-Signature-256": "sha256="}, "review", 401, "not_signed"),
        "no text": (b"\xff", github(b"\xff"), "review", 400, "not_json"),
        "no JSON": (b"a=1", github(b"a=1"), "review", 400, "not_json"),
        "no object": (b"[1]", github(b"[1]"), "review", 400, "not_json"),
        "too deep": (DEEP, github(DEEP), "review", 400, "not_json"),
        "no number": (ODD, github(ODD), "review", 400, "not_json"),
        "a value is missing": (BARE, github(BARE), "review", 422, "bad_input"),
        "all is empty": (EMPTY, github(EMPTY), "other", 422, "bad_input"),
        "too large": (LARGE, github(LARGE), "review", 413, "too_large"),
        "no such hook": (GOOD, github(GOOD), "none", 404, "not_found"),
    }


async def test_what_is_wrong_starts_nothing_and_is_told_in_one_line(
    hooks: Door, runs: Runs, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for what, (content, headers, name, status, code) in refused().items():
        answer = await post(hooks, content, headers, name)
        told = answer.json()
        assert (answer.status_code, told["code"]) == (status, code), (what, told)
        assert "\n" not in told["detail"], what
        if code == "not_signed":
            assert told["detail"] == "the signature is missing, wrong or old", what
    assert await started(runs, hooks) == 0
    said = "".join(capfd.readouterr()) + caplog.text
    assert SECRET not in said and "sha256=" not in said and "Mend it" not in said


BAD = {
    'goal = "Look at {pull_request.title}"': "fill inputs alone",
    'goal = "x"\nrole = "{who}"\nsingle = true': "fill inputs alone",
    'goal = "x"\ninputs = {file = "{path}"}': "write it as text:",
    'goal = "x"\ninputs = {file = {base64 = "{x.y}"}}': "write it as text:",
    'playbook = "code-review"\ninputs = {repo = "text:{repository.url}"}': "choose no repository",
    'playbook = "code-review"\ninputs = {repo = ".", scope = "text:{scope}"}': "no option",
    'playbook = "none"': "unknown playbook",
    'goal = "x"\nid = "mine"': "leave it out",
    'goal = "x"\nsurprise = 1': "there is no such field",
    'goal = "x"\ndollars = nan': "dollars",
}


@pytest.mark.parametrize("text", BAD)
def test_a_template_in_which_strangers_would_decide_is_refused(
    text: str, connection: Connection, project: Path
) -> None:
    (project / "holdfast.toml").write_text(f'[hooks.bad]\nsecret_env = "REVIEW_SECRET"\n{text}\n')
    with pytest.raises(BadSettings, match=r"hooks\.bad") as refusal:
        read_hooks(project, Catalogue.of(project))
    assert BAD[text] in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("secret", "why"),
    [("", "not set"), ("brief", "too short"), ("whsec_not base64 at all", "too short")],
)
def test_a_hook_without_a_good_secret_keeps_the_server_from_starting(
    secret: str, why: str, connection: Connection, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVIEW_SECRET", secret)
    settings = Settings(project=project, state_dir=connection.settings.state_dir)
    with pytest.raises(BadSettings, match=why) as refusal:
        Hooks.of(Connection(settings, connection.target, connection.client))
    assert not secret or secret not in str(refusal.value)


def test_content_fills_a_file_of_a_playbook_and_paths_are_the_projects_own(
    connection: Connection, project: Path
) -> None:
    (project / "holdfast.toml").write_text(
        '[hooks.code]\nsecret_env = "REVIEW_SECRET"\nplaybook = "code-review"\nmodels = true\n'
        'inputs = {repo = "code", base = "main", intent = "text:{title}"}\n'
    )
    hook = read_hooks(project, Catalogue.of(project))["code"]
    assert hook.files == ("intent",)
    assert hook.request.inputs["repo"] == str(project / "code")
    assert hook.request.inputs["base"] == "main"


@pytest.mark.long
async def test_a_thousand_equal_hooks_start_one_run(hooks: Door, runs: Runs) -> None:
    content = json.dumps(BODY).encode()
    client = hooks.bearing("").client

    async def send(number: int) -> tuple[int, str]:
        # As a sender signs each of its tries anew.
        headers = standard(content, "msg_thousand", age=number % 250)
        answer = await client.post("/hooks/review", content=content, headers=headers)
        return answer.status_code, answer.json().get("id", "")

    gate = asyncio.Semaphore(20)

    async def retried(number: int) -> tuple[int, str]:
        async with gate:
            for _ in range(20):
                try:
                    found = await send(number)
                except httpx2.HTTPError:
                    continue
                if found[0] in (200, 201):
                    return found
            raise AssertionError("never taken")

    found = await asyncio.gather(*(retried(number) for number in range(1_000)))
    assert len({id for _, id in found}) == 1
    assert sum(code == 201 for code, _ in found) == 1
    assert await started(runs, hooks) == 1
