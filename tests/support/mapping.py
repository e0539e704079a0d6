"""Rows of a map for tests of the activities that ask them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from holdfast.activities.asking.journal import FileJournal
from holdfast.activities.asking.prices import Prices
from holdfast.activities.mapping.maps import Maps
from holdfast.activities.mapping.scanning import Inputs
from holdfast.activities.prompts.files import system_prompts
from holdfast.activities.repositories.scratch import Snapshots
from holdfast.calls.row import row_prompt
from holdfast.calls.rows import Chunk, Item, Outcome, RowsDone, RowsMaterial
from holdfast.calls.work import WorkMaterial
from holdfast.contracts import Call, Capabilities, RoleCard, Subtask
from holdfast.contracts.plans import MapSpec
from holdfast.deployment.settings import Settings
from holdfast.ledger.rows import RowSizes, worst_rows
from holdfast.ports import ModelAnswer, ModelRequest
from holdfast.storage.directory import DirectoryStore

PRICES = Prices.of(Settings(_env_file=None))
CARD = PRICES.cards()[0]
LABEL: dict[str, Any] = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": ["tea", "coffee"]}},
    "required": ["label"],
    "additionalProperties": False,
}
SHARED = 8_000
"""Bytes reserved for what rows begin with."""


def items(count: int, first: int = 0) -> list[Item]:
    return [
        Item(n=n, id=f"t-{n}", place=f"line {n + 1}", fields={"subject": f"row {n} ", "text": "x"})
        for n in range(first, first + count)
    ]


async def chunk_of(store: DirectoryStore, listed: Sequence[Item]) -> Chunk:
    blob = b"".join(each.model_dump_json().encode() + b"\n" for each in listed)
    sizes = [len(row_prompt(each).encode()) for each in listed]
    return Chunk(
        digest=await store.put(blob),
        first=listed[0].n,
        items=len(listed),
        asked=len(listed),
        bytes=sum(sizes),
        longest=max(sizes),
    )


def material(chunk: Chunk, *, form: dict[str, Any] | None = None, **more: Any) -> RowsMaterial:
    subtask = Subtask(
        id="classify",
        title="Classify",
        instruction="Say what {subject} is about.",
        inputs=("tickets",),
        role="classifier",
        map=MapSpec(over="tickets", by="records", result=LABEL if form is None else form),
        **{name: more.pop(name) for name in ("checks",) if name in more},
    )
    wanted = more.pop("max_output", 200)
    sizes = RowSizes(chunk.items, SHARED, chunk.bytes, chunk.longest, wanted, mending=True)
    amount = worst_rows(CARD, sizes)
    call = Call(
        kind="row",
        purpose="rows-classify",
        tier="haiku",
        model=CARD,
        role="classifier",
        max_output=wanted,
        effort="low",
        ceiling=more.pop("ceiling", amount.dollars),
        token_ceiling=amount.tokens if not CARD.prices else 0,
        capabilities=Capabilities(caching=True, batches=True),
    )
    work = WorkMaterial(subtask=subtask, timeout_seconds=more.pop("timeout_seconds", 60))
    role = RoleCard(name="classifier", description="Classifies.")
    return RowsMaterial(call=call, work=work, role=role, chunks=(chunk,), **more)


def maps_on(folder: Path, model: Any, **more: Any) -> Maps:
    store = DirectoryStore(folder / "store")
    return Maps(
        store=store,
        inputs=Inputs(store, Snapshots(store, folder / "snapshots")),
        journal=FileJournal(folder / "journal"),
        model=model,
        price=PRICES.price,
        system=system_prompts(),
        **{"roles": {"classifier": "You classify tickets."}, **more},
    )


async def run(
    method: Any, told: Any, *, attempt: int = 1, details: tuple[Any, ...] = (), **more: Any
) -> Any:
    """Run an activity as an attempt of a workflow's."""
    environment = more.pop("environment", None) or ActivityEnvironment()
    told_more = {"start_to_close_timeout": timedelta(seconds=300), **more}
    environment.info = replace(
        environment.info, attempt=attempt, heartbeat_details=details, **told_more
    )
    return await environment.run(method, told)


async def outcomes(store: DirectoryStore, done: RowsDone) -> dict[int, Outcome]:
    lines = (await store.get(done.outcomes)).splitlines() if done.outcomes else []
    return {each.n: each for each in map(Outcome.model_validate_json, lines)}


class Saying:
    """A model that answers each request by its text, and counts them."""

    def __init__(self, answer: Callable[[ModelRequest], ModelAnswer | Exception]) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        found = self.answer(request)
        if isinstance(found, Exception):
            raise found
        return found

    async def count_tokens(self, request: ModelRequest) -> int:
        return 100

    async def reach(self) -> str:
        return ""
