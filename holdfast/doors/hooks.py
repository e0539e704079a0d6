"""Web hooks that start runs: `POST /hooks/NAME` starts what the project's file names for it.

A hook proves who sent it by its signature over the whole body, by Standard Webhooks or as GitHub
signs. What it says stays data: values of its body fill inputs that are text, and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.client.holdfast import Holdfast
from holdfast.deployment.hooks import is_secret
from holdfast.deployment.settings import Settings
from holdfast.doors.hook_files import Hook, Unfilled, fill, matches, read_hooks
from holdfast.doors.http.bodies import read_bytes
from holdfast.doors.http.problems import Problem
from holdfast.errors import BadSettings, IdTaken, Refused
from holdfast.intake.connection import Connection
from holdfast.untrusted.reading import NotPlain, from_json

MOST_BYTES = 1024 * 1024
LONGEST_ID = 255
LEAST_SECRET = 16
"""Characters; GitHub takes any text for one."""
IN_VAIN = "hooks"
"""Under which what proves nothing is counted: it takes nothing from what is signed."""
log = structlog.get_logger("holdfast.hooks")


class NotSigned(Exception):
    """The signature is missing, wrong or old; which of them is not said."""


@dataclass(frozen=True)
class Hooks:
    """The hooks of a project, with their secrets."""

    connection: Connection
    by_name: Mapping[str, Hook]
    secrets: Mapping[str, str]

    @classmethod
    def of(cls, connection: Connection) -> Hooks:
        """Return those of the project's file. BadSettings if one could never start its run, or has
        no secret.
        """
        settings = connection.settings
        if settings.project is None:
            return cls(connection, {}, {})
        found = read_hooks(settings.project, Catalogue.of(settings.project))
        secrets = {name: _secret_of(name, hook, settings) for name, hook in found.items()}
        return cls(connection, found, secrets)

    def routes(self) -> list[Route]:
        return [Route("/hooks/{hook}", self.take, methods=["POST"])]

    async def take(self, request: Request) -> Response:
        """Start the run that a hook asks for, or return the one that it has started."""
        name = request.path_params["hook"]
        hook = self.by_name.get(name)
        if hook is None:
            request.state.count(IN_VAIN)
            raise Problem("not_found", "there is no such hook")
        content = await read_bytes(request, MOST_BYTES)
        try:
            delivery = find_delivery(request.headers, content, self.secrets[name])
        except NotSigned:
            request.state.count(IN_VAIN)
            raise Problem("not_signed", "the signature is missing, wrong or old") from None
        request.state.count(f"hooks.{name}")
        body = await _parse(content)
        if request.headers.get("x-github-event") == "ping" or not matches(hook, body):
            return JSONResponse({"skipped": "this hook starts no run for that"})
        return await self._start(name, hook, body, delivery)

    async def _start(
        self, name: str, hook: Hook, body: Mapping[str, Any], delivery: str
    ) -> Response:
        holdfast = Holdfast.on(self.connection)
        run_id = run_id_of(self.connection.settings.name, name, delivery)
        if await self.connection.has(run_id):
            return _started(run_id, attached=True)
        try:
            wanted = fill(hook, body)
        except Unfilled as error:
            raise Problem("bad_input", str(error)) from None
        try:
            goal = await holdfast.goal_of(wanted)
            goal = goal.model_copy(update={"requester": f"hook {name}"})
            run = await holdfast.start_goal(goal, run_id)
        except IdTaken:
            # Between the look and the start, with another body.
            return _started(run_id, attached=True)
        except Refused as error:
            # Whoever sends hooks need not know what this machine has.
            log.warning("hook refused", hook=name, why=str(error))
            raise Problem(
                "bad_input", "what this hook starts is refused; the log of the server says why"
            ) from None
        return _started(run.id, attached=run.attached)


def _started(run_id: str, *, attached: bool) -> Response:
    return JSONResponse({"id": run_id, "attached": attached}, 200 if attached else 201)


def find_delivery(headers: Mapping[str, str], content: bytes, secret: str) -> str:
    """Return what names a delivery: the same for each time that it is sent. Raise NotSigned.

    GitHub signs the body alone, not the id of its delivery, so there the body names it.
    """
    if "webhook-signature" in headers and is_secret(secret):
        return _find_standard(headers, content, secret)
    made = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
    given = headers.get("x-hub-signature-256", "")
    if not hmac.compare_digest(f"sha256={made}".encode(), given.encode("utf-8", "replace")):
        raise NotSigned
    return f"body {hashlib.sha256(content).hexdigest()}"


def _find_standard(headers: Mapping[str, str], content: bytes, secret: str) -> str:
    from standardwebhooks import Webhook, WebhookVerificationError

    name = headers.get("webhook-id", "")
    if len(name) > LONGEST_ID:
        raise NotSigned
    # The library gives up at the first of a list that it cannot read.
    given = headers.get("webhook-signature", "").split()
    plain = " ".join(each for each in given if each.count(",") == 1)
    try:
        # It also refuses what is more than five minutes old, or to come.
        Webhook(secret).verify(content, {**headers, "webhook-signature": plain}, json_parse=False)
    except (WebhookVerificationError, ValueError):
        raise NotSigned from None
    return f"id {name}"


def run_id_of(project: str, hook: str, delivery: str) -> str:
    """Return the id of the run of a delivery."""
    seed = f"{project} {hook} {delivery}"
    return f"hook-{hashlib.sha256(seed.encode()).hexdigest()[:32]}"


async def _parse(content: bytes) -> Mapping[str, Any]:
    try:
        body = await asyncio.to_thread(from_json, content.decode())
    except UnicodeDecodeError:
        raise Problem("not_json", "the body is not UTF-8 text") from None
    except NotPlain as error:
        raise Problem("not_json", f"the body: {error}") from None
    if not isinstance(body, dict):
        raise Problem("not_json", "the body is not an object")
    return body


def _secret_of(name: str, hook: Hook, settings: Settings) -> str:
    secret = os.environ.get(hook.secret_env, "")
    file = Path(settings.project or "") / "holdfast.toml"
    if not secret:
        raise BadSettings(
            f"settings: {file}: hooks.{name}: the variable {hook.secret_env}, which is to have its"
            " secret, is not set in the environment"
        )
    if len(secret) < LEAST_SECRET or (secret.startswith("whsec_") and not is_secret(secret)):
        raise BadSettings(
            f"settings: {file}: hooks.{name}: the secret in {hook.secret_env} is too short or"
            f" damaged; give whsec_ and 32 random bytes as base64, or {LEAST_SECRET} characters"
        )
    return secret
