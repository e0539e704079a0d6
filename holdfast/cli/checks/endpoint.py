"""`doctor`, of the model endpoint: whether it answers, takes the key, and is the worker's too."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

from holdfast import embedded
from holdfast.cli.checks.diagnosis import Checkup, Mark
from holdfast.deployment.address import OFFICIAL, address_of
from holdfast.deployment.invocation import STARTER
from holdfast.deployment.settings import Settings
from holdfast.embedded.identity import model_environment
from holdfast.errors import EmbeddedError
from holdfast.text import for_terminal
from holdfast.untrusted.known_secrets import KnownSecrets
from holdfast.workers.served import VARIABLES

PORT_SECONDS = 3.0
"""How long a connection to the endpoint's port may take."""
HEAL = f"set {VARIABLES} here and run: {STARTER} up"
_NOTHING_THERE = (
    "it knows neither /v1/models nor /v1/messages/count_tokens below this address; if calls fail,"
    " the path in ANTHROPIC_BASE_URL is wrong"
)
_BATCHES = {
    True: "taken, at half the price: maps with time enough go by them",
    False: "not taken: maps ask row by row, and `lane: batch` is refused",
}
_KEY_REMEDY = "set ANTHROPIC_API_KEY to a key of this endpoint; workers read it at their start"


def endpoint_of(settings: Settings) -> str:
    """Return the address of the models that an embedded worker asks."""
    return settings.anthropic_base_url or OFFICIAL


async def check_models(settings: Settings) -> list[Checkup]:
    """Check whether a model can be asked from this shell. Shows no key and pays nothing."""
    if not settings.has_endpoint:
        detail = f"none; set {VARIABLES} for goals that need a model"
        return [Checkup("models", "endpoint", "note", detail)]
    secret = settings.anthropic_api_key
    key = secret.get_secret_value() if secret else ""
    shown = f"key {mask(key)}" if key else "no key"
    odd, batches = False, list[Checkup]()
    mark, detail = await asyncio.to_thread(_reachable, endpoint_of(settings), shown)
    if mark == "ok":
        # The SDK takes seconds to import; what needs no endpoint does not wait for it.
        from holdfast.activities.claude.endpoint import check_key, find_capabilities

        seen = await check_key(key, settings.anthropic_base_url, settings.model_haiku)
        said = for_terminal(KnownSecrets(settings.secrets).blot(seen.refused or seen.mistake))
        if seen.mistake:
            mark, detail = "bad", f"{detail}: {said}"
        elif seen.refused:
            mark, detail = "bad", f"{detail}: refused: {said}; {_KEY_REMEDY}"
        elif seen.nothing_there:
            odd, detail = True, f"{detail}: {_NOTHING_THERE}"
        else:
            models = (settings.model_haiku, settings.model_sonnet, settings.model_opus)
            known = await find_capabilities(
                key, settings.anthropic_base_url, settings.capabilities, models
            )
            batches = [Checkup("models", "batches", "ok", _BATCHES[known.batches])]
    named = ", ".join((settings.model_haiku, settings.model_sonnet, settings.model_opus))
    named += f"; plans by {settings.model_planner}" if settings.model_planner else ""
    return [
        Checkup("models", "endpoint", "note" if odd else mark, detail),
        Checkup("models", "models", "ok" if mark == "ok" else "note", named),
        *batches,
    ]


def check_worker(settings: Settings, only_embedded: bool) -> list[Checkup]:
    """Check whether the running worker asks the models that this shell would: calls go out with the
    worker's settings.
    """
    if settings.uses_own_server and not only_embedded:
        detail = "each worker has its own settings, which are not known here"
        return [Checkup("models", "worker's endpoint", "note", detail)]
    try:
        status = embedded.status(settings)
    except EmbeddedError:
        # Said of the server already.
        return []
    if status.endpoint is None or status.worker_pid is None:
        return []
    theirs = status.endpoint.worker_environment
    ours = model_environment(settings, status.endpoint.salt)
    if theirs == ours:
        same = "the same as this shell's" if ours else f"none, as in this shell; {HEAL}"
        return [Checkup("models", "worker's endpoint", "ok" if ours else "note", same)]
    if not ours:
        detail = (
            "the worker has one that this shell has not, and a worker that replaces it from here"
            f" has none; to keep one, {HEAL}"
        )
    elif not theirs:
        detail = f"the worker has none; from this shell, heal it with: {STARTER} up"
    else:
        detail = (
            "another key, address, model, price or MCP server than this shell's; the next command"
            " from this shell replaces the worker"
        )
    return [Checkup("models", "worker's endpoint", "note", detail)]


def _reachable(address: str, shown: str) -> tuple[Mark, str]:
    where = address_of(address)
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection((parts.hostname or "", port), PORT_SECONDS):
            return "ok", f"{where}, {shown}"
    except ValueError:
        # What is wrong with it is not repeated: it may be the password.
        return "bad", f"{where}, {shown}: ANTHROPIC_BASE_URL is not an address"
    except OSError as error:
        return "bad", f"{where}, {shown}: not reachable: {error}"


def mask(secret: str) -> str:
    """Return the length of a secret and, if it is long, its last four characters."""
    return f"…{secret[-4:]} ({len(secret)} characters)" if len(secret) >= 20 else "…"
