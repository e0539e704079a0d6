"""How every process of a deployment speaks to Temporal: one plugin, one way to connect.

Worker, starter, replayer and tests take the same plugin, so that converter, storage, sandbox and
failure types cannot differ between them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import WorkflowExecutionStatus as RawStatus
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    DefaultPayloadConverter,
    ExternalStorage,
    JSONPlainPayloadConverter,
    PayloadConverter,
    SerializationContext,
    StorageDriverStoreContext,
)
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.exceptions import ApplicationError
from temporalio.plugin import SimplePlugin
from temporalio.worker import Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from holdfast.contracts import Goal, Report
from holdfast.contracts.search import MEMO_SCHEDULE
from holdfast.contracts.view import RunView
from holdfast.deployment.settings import FILE_BYTES
from holdfast.errors import Undecipherable, Unreachable
from holdfast.storage import Store, StoreAway, store_at
from holdfast.storage.codec import EncryptingCodec
from holdfast.storage.keys import Keyring, keyring
from holdfast.storage.payloads import READABLE, PayloadLost, external_storage
from holdfast.temporal.activations import OneAtATime
from holdfast.temporal.boards import ShowBoards
from holdfast.temporal.faults import EndFaults
from holdfast.temporal.spans import NoteSpans
from holdfast.untrusted.folders import Unreadable, read_named

PURE_MODULES = ("holdfast",)
"""Passed through the sandbox: re-importing the contracts for each run costs 30 ms of CPU. A test
keeps them pure.
"""


CONFIG_FILE = "TEMPORAL_CONFIG_FILE"
ENCRYPTING = "holdfast, encrypting"
"""The name of the plugin of a worker that encrypts."""
PAUSED = "paused in Temporal"
AGAIN = timedelta(seconds=30)
"""Until an activity is tried again that could not reach the store, or lacked a key."""
TASK_SECONDS = 10
"""Time limit of a workflow task, here as at the server. The SDK has no option."""


@dataclass(frozen=True)
class Target:
    """A server and what a deployment keeps beside it."""

    address: str
    namespace: str = "default"
    task_queue: str = "holdfast"
    store_url: str = ""
    ui_url: str = ""
    """Empty: not known."""
    embedded: bool = True
    """False: Temporal's own variables or profile say how to connect."""
    key_file: str = ""
    """File of the keys that encrypt; empty: nothing is encrypted."""

    @property
    def keys(self) -> Keyring:
        """The keys that encrypt and decrypt. BadSettings if their file cannot be used."""
        return keyring(self.key_file)

    @property
    def store(self) -> Store:
        """The store of this deployment's blobs. BadSettings as `keys`, BadStore as `store_at`."""
        return store_at(self.store_url, self.keys)


# A newer server knows more than the SDK, which could then read neither the run nor a list with it:
# what is not known to be closed is open.
WorkflowExecutionStatus._missing_ = classmethod(  # type: ignore[method-assign, assignment]
    lambda cls, _value: cls.RUNNING
)


def is_paused(run: WorkflowExecution) -> bool:
    """True if an operator has paused the whole workflow by Temporal's own means."""
    return run.raw_info.status == RawStatus.WORKFLOW_EXECUTION_STATUS_PAUSED


def is_part(run: WorkflowExecution) -> bool:
    """True for what a run has started itself. The run of a schedule is nobody's part, although
    Temporal has a parent of it.
    """
    return run.parent_id is not None and MEMO_SCHEDULE not in run.raw_info.memo.fields


class _Converter(PydanticJSONPlainPayloadConverter):
    """Converts by pydantic's JSON and marks what a person should be able to read in the Web UI."""

    def to_payload(self, value: Any) -> Payload | None:
        payload = super().to_payload(value)
        if payload is not None and isinstance(value, Goal | Report | RunView):
            payload.metadata[READABLE] = b"1"
        return payload


_JSON = _Converter()
"""One for all runs of a process: it keeps what it has learned of a type, which takes 2 ms each."""


class _PayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(
            *(
                _JSON if isinstance(each, JSONPlainPayloadConverter) else each
                for each in DefaultPayloadConverter.default_encoding_payload_converters
            )
        )


class _FailureConverter(DefaultFailureConverter):
    """Makes an activity fail for good when a blob of its arguments is lost, which the SDK would
    retry, and lets it wait where a store is away or a key is missing: by then another worker may
    have it.
    """

    def to_failure(
        self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure
    ) -> None:
        cause = exception.__cause__
        if isinstance(cause, PayloadLost):
            exception = cause.lost
        waits = [
            each for each in (exception, cause) if isinstance(each, StoreAway | Undecipherable)
        ]
        if waits:
            # What has only few attempts should not have used them up meanwhile.
            kind = type(waits[0]).__name__
            exception = ApplicationError(str(waits[0]), type=kind, next_retry_delay=AGAIN)
        super().to_failure(exception, payload_converter, failure)


class _SecretFailures(_FailureConverter):
    """Lets the codec encrypt what failures say."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


def _runner(existing: WorkflowRunner | None) -> WorkflowRunner:
    if isinstance(existing, SandboxedWorkflowRunner):
        pure = existing.restrictions.with_passthrough_modules(*PURE_MODULES)
        existing = replace(existing, restrictions=pure)
    assert existing is not None, "the SDK has a runner of its own"
    return OneAtATime(existing)


class _SameForAll(DataConverter):
    """Shares one converter and one storage between all payloads. The SDK would make new ones for
    each, which is a tenth of a worker's CPU time.
    """

    def _with_store_context(self, store_ctx: StorageDriverStoreContext) -> DataConverter:  # noqa: ARG002
        return self

    def _with_contexts(
        self,
        serialization_ctx: SerializationContext,  # noqa: ARG002
        store_ctx: StorageDriverStoreContext,  # noqa: ARG002
    ) -> DataConverter:
        return self


def data_converter(storage: ExternalStorage | None, keys: Keyring | None = None) -> DataConverter:
    """Return the converter of contracts to JSON, encrypted by the keys if there are any."""
    keys = keys or keyring("")
    return _SameForAll(
        payload_converter_class=_PayloadConverter,
        failure_converter_class=_SecretFailures if keys.writes else _FailureConverter,
        payload_codec=EncryptingCodec(keys),
        external_storage=storage,
    )


class _Plugin(SimplePlugin):
    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        # Hundreds of results that arrive at once take longer than the SDK's two seconds where calls
        # keep the same processor busy; a task that failed for that would only be done again.
        workflows = worker._workflow_worker
        if workflows is not None:
            workflows._deadlock_timeout_seconds = TASK_SECONDS
        await super().run_worker(worker, next)


def plugin(store: Store | None, keys: Keyring | None = None) -> SimplePlugin:
    """Return the plugin that client, worker, replayer and tests share. Without a store everything
    stays inline, without keys in plain.
    """
    storage = external_storage(store) if store else None
    return _Plugin(
        # Workers' beats name it: so whoever starts runs knows that they encrypt.
        ENCRYPTING if keys and keys.writes else "holdfast",
        data_converter=data_converter(storage, keys),
        workflow_runner=_runner,
        workflow_failure_exception_types=[ValidationError],
        interceptors=[EndFaults(), NoteSpans(), ShowBoards()],
    )


def read_configuration() -> ClientConnectConfig:
    """Return what Temporal's own variables and profile say. RuntimeError, ValueError or OSError if
    they cannot be read.
    """
    file = os.environ.get(CONFIG_FILE)
    if file and os.path.exists(file):
        # Its library would wait for a FIFO, and read a device forever.
        try:
            read_named(Path(file), FILE_BYTES)
        except Unreadable as error:
            raise Unreadable(f"{CONFIG_FILE}: {error}; name the TOML file that is meant") from error
    return ClientConfig.load_client_connect_config()


async def connect(target: Target, seconds: float = 5.0, identity: str = "") -> Client:
    """Return a client of the target's server, trying for up to `seconds`. `identity`: its name at
    the server, by default the SDK's. Raises Unreachable.
    """
    # Without a store nothing is kept outside: a starter that only lists runs needs none.
    store = target.store if target.store_url else None
    options: dict[str, Any] = {}
    if not target.embedded:
        options |= read_configuration()
    options |= {"target_host": target.address, "namespace": target.namespace}
    if identity:
        options["identity"] = identity
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        left = deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(max(left, 0.1)):
                return await Client.connect(**options, plugins=[plugin(store, target.keys)])
        except (RuntimeError, TimeoutError) as error:
            if left <= 0.3:
                raise Unreachable(
                    f"Temporal server at {target.address} is not reachable; "
                    "start it or check the address"
                ) from error
        await asyncio.sleep(0.25)
