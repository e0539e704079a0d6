"""What the journal of this machine has models answer, made into replies once more.

Each call is prepared by its own activity, with the prompts and roles of today, and given its
recorded answer: nothing is sent, marked or paid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.replies import load_answer
from holdfast.activities.asking.shared_journal import SharedJournal
from holdfast.activities.model_endpoint import ModelEndpoint
from holdfast.activities.wiring import build
from holdfast.calls import KINDS
from holdfast.contracts.errors import CallRefused
from holdfast.embedded import StateDir
from holdfast.intake.connection import Connection
from holdfast.ports import Journal, ModelAnswer, ModelRequest

ROWS = "ask_rows"
"""The activity that asks rows of a map at once: what batches answered is in no journal."""
_KEY: ContextVar[str] = ContextVar("key")
"""The journal's key of the call that is prepared just now."""


@dataclass
class _Journal:
    """Implements `Journal`: says of no call that it was sent, and keeps nothing."""

    place = 0

    async def sent(self, key: str) -> bool:
        _KEY.set(key)
        return False

    async def mark_sent(self, key: str) -> None: ...

    async def withdraw(self, key: str) -> None: ...

    async def answer(self, key: str) -> str | None: ...

    async def record(self, key: str, answer: str) -> None: ...


@dataclass
class _Model:
    """Implements `Model`: answers as the journal has it."""

    kept: Journal
    asked: bool = False
    """True if the last call came as far as to be asked."""
    digest: str = ""
    """SHA-256 of the answer that it was given, as recorded; empty: there is none."""
    missing: list[str] = field(default_factory=list)
    """The activities of whose answers it lacks any."""

    async def ask(self, request: ModelRequest) -> ModelAnswer:  # noqa: ARG002
        self.asked = True
        found, key = await self.kept.answer(_KEY.get()), activity.info().activity_id
        if found is None:
            # A row that was left was never sent, and another activity asked it.
            if activity.info().activity_type != ROWS or await self.kept.sent(_KEY.get()):
                self.missing += [key] if key not in self.missing else []
            raise CallRefused("its answer is not in the journal")
        self.digest = sha256(found.encode("utf-8", "surrogatepass")).hexdigest()
        return load_answer(found)

    async def count_tokens(self, request: ModelRequest) -> int:  # noqa: ARG002
        return 0

    async def reach(self) -> str:
        return ""


def place_in(client: Client, workflow_id: str, execution: str) -> activity.Info:
    """Return what the activities of a workflow are told of it, as the journal's keys need it."""
    return replace(
        ActivityEnvironment.default_info(),
        namespace=client.namespace,
        workflow_namespace=client.namespace,
        workflow_id=workflow_id,
        workflow_run_id=execution,
        start_to_close_timeout=timedelta(minutes=10),
    )


@dataclass(frozen=True)
class Kept:
    """One call as the journal has it."""

    asked: bool
    """False: it could not be prepared, so nobody knows what the journal has."""
    digest: str
    reply: Any = None
    """None: it has no answer, or none that can be read."""


class KeptAnswers:
    """The recorded answers of one deployment."""

    def __init__(
        self,
        connection: Connection,
        through: Callable[[ModelEndpoint], ModelEndpoint] = lambda endpoint: endpoint,
    ) -> None:
        """`through`: what the endpoint that answers from the journal is put into."""
        settings = connection.settings.model_copy(update={"projects": ()})
        folder, keys = StateDir.of(settings).journal, connection.target.keys
        kept: Journal = FileJournal(folder, keys=keys)
        if settings.shared_journal:
            kept = SharedJournal(kept, connection.store, is_new=lambda _: False)
        self._model = _Model(kept)
        served = build(
            settings,
            connection.target,
            make_journal=lambda _: _Journal(),
            endpoint=through(ModelEndpoint(self._model)),
            pays=False,
        )
        self._client = connection.client
        self.asking: Mapping[str, Callable[..., Any]] = {
            each.__name__: each for each in served.asking if each.__name__ in KINDS
        }
        """The activities that ask models for one answer, by their types."""
        self._rows = {each.__name__: each for each in served.asking if each.__name__ == ROWS}

    @property
    def missing(self) -> list[str]:
        """Return the calls so far whose answers are not in the journal."""
        return self._model.missing

    async def again(self, info: activity.Info, payloads: Sequence[Payload]) -> Kept:
        """Have one of these activities answered from the journal. PayloadLost if the store lacks
        what it was given.
        """
        asks = {**self.asking, **self._rows}[info.activity_type]
        types = activity._Definition.must_from_callable(asks).arg_types
        self._model.asked, self._model.digest, reply = False, "", None
        environment = ActivityEnvironment()
        environment.info = info
        arguments = await self._client.data_converter.decode(payloads, types)
        try:
            reply = await environment.run(asks, *arguments)
        except Exception:
            # What became of the answer is the run's; here it counts that it was given.
            reply = None
        return Kept(self._model.asked, self._model.digest, reply)

    def result_type(self, activity_type: str) -> Any:
        """Return the type of what one of these activities returns."""
        return activity._Definition.must_from_callable(self.asking[activity_type]).ret_type
