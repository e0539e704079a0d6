"""A whole deployment in the process of a test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from holdfast.activities.asking.prices import Prices
from holdfast.activities.model_endpoint import ModelEndpoint, model_endpoint
from holdfast.activities.recording import recorded
from holdfast.client.holdfast import Holdfast
from holdfast.deployment.settings import Settings
from holdfast.embedded.server import binary
from holdfast.intake.connection import Connection
from holdfast.replaying.cassette import MODEL_SETTINGS, Cassette, CassetteError
from holdfast.serving.own_tools import Given
from holdfast.serving.plugin import HoldfastPlugin
from holdfast.simulator.script import Script
from holdfast.simulator.server import Simulator
from holdfast.telemetry.logs import offer_runtime
from holdfast.temporal.connection import Target
from holdfast.untrusted.known_secrets import KnownSecrets

QUEUE = "holdfast-test"
STARTS = timedelta(seconds=60)


@dataclass(frozen=True)
class Deployment:
    """A server, a worker, a scripted endpoint, and a client of them."""

    hf: Holdfast
    client: Client
    """For workflows of your own beside runs: its workers have `HoldfastPlugin`."""
    simulator: Simulator
    """`simulator.log` says what models were asked; `simulator.script` may be replaced."""


class _Recording(HoldfastPlugin):
    """Keeps what its workers ask models, and what these answer."""

    def __init__(self, cassette: Cassette, **given: Any) -> None:
        self._cassette = cassette
        super().__init__(**given)

    def _endpoint(self) -> ModelEndpoint:
        settings = self._settings
        made = model_endpoint(settings, Prices.of(settings))
        return recorded(made, self._cassette, KnownSecrets(settings.secrets))


@asynccontextmanager
async def deployed(
    script: Mapping[str, Any] | Script | None = None,
    *,
    tools: Iterable[Given] = (),
    roles: str | Path | None = None,
    project: str | Path | None = None,
    cassette: str | Path | None = None,
    record: bool = False,
    inputs: bool = False,
) -> AsyncIterator[Deployment]:
    """Yield a deployment of its own in a temporary folder, until the block ends. It takes about two
    seconds, and reads no setting of yours but the environment's PATH. Not for two at once in one
    process.

    `cassette`: a file that answers in place of a script. A request that is not on it is refused,
    and CassetteError at the end of the block shows what differs. `record` writes the file instead,
    from what the endpoint of ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY answers or, if there is a
    script, from that; with `inputs` it also keeps what inputs and results of tools say.
    """
    scripted = script if isinstance(script, Script) else Script.model_validate(script or {})
    path = None if cassette is None else Path(cassette).absolute()
    tape = None if path is None else Cassette(inputs=inputs) if record else Cassette.read(path)
    outside = _outside() if record and script is None else {}
    given = _Given(tools, roles, project)
    try:
        async with Simulator(scripted, cassette=None if record else tape) as simulator:
            endpoint = outside or {
                "ANTHROPIC_BASE_URL": simulator.url,
                "ANTHROPIC_API_KEY": "scripted",
                **(tape.settings if tape else {}),
            }
            async with _running(given, endpoint, tape if record else None) as connection:
                yield Deployment(Holdfast.on(connection), connection.client, simulator)
    finally:
        if record and tape and path and tape.calls:
            named = {name: outside[name] for name in outside if MODEL_SETTINGS.fullmatch(name)}
            tape.settings |= named
            tape.write(path)
        elif tape and (said := tape.complain()):
            raise CassetteError(f"{cassette}: {said}")


@dataclass(frozen=True)
class _Given:
    """What a worker is given."""

    tools: Iterable[Given]
    roles: str | Path | None
    project: str | Path | None


@asynccontextmanager
async def _running(
    given: _Given, endpoint: Mapping[str, str], tape: Cassette | None
) -> AsyncIterator[Connection]:
    """Yield the connection to a server and a worker of its own; `tape` gets what models say."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder,
        _environment(Path(folder), endpoint),
    ):
        plugin = _Recording(tape, **vars(given)) if tape else HoldfastPlugin(**vars(given))
        async with _server() as server:
            connection = await _connect(server, plugin, given.project)
            async with Worker(connection.client, task_queue=QUEUE):
                yield connection


def _outside() -> Mapping[str, str]:
    """Return the endpoint that the environment names, with the models that are asked there.
    CassetteError if it names none.
    """
    named = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("ANTHROPIC_") or MODEL_SETTINGS.fullmatch(name)
    }
    if not named.get("ANTHROPIC_API_KEY"):
        raise CassetteError(
            "to record a cassette set ANTHROPIC_API_KEY, or give a script that answers"
        )
    return named


@contextmanager
def _environment(folder: Path, endpoint: Mapping[str, str]) -> Iterator[None]:
    """Let settings be those of the test alone."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("HOLDFAST_", "ANTHROPIC_", "TEMPORAL_", "STORE_")):
            del os.environ[name]
    os.environ |= {
        **endpoint,
        "HOLDFAST_STATE_DIR": str(folder),
        "HOLDFAST_ALLOWED_ROOTS": "/",
        "STORE_URL": (folder / "store").as_uri(),
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@asynccontextmanager
async def _server() -> AsyncIterator[WorkflowEnvironment]:
    offer_runtime()
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(binary()),
        dev_server_log_level="never",
        dev_server_startup_timeout=STARTS,
    )
    async with environment:
        yield environment


async def _connect(
    server: WorkflowEnvironment, plugin: HoldfastPlugin, project: str | Path | None
) -> Connection:
    address = server.client.service_client.config.target_host
    client = await Client.connect(address, plugins=[plugin])
    settings = Settings.of(project)
    target = Target(
        address,
        task_queue=QUEUE,
        store_url=settings.store_url,
        embedded=False,
        key_file=settings.key_file,
    )
    return Connection(settings, target, client)
