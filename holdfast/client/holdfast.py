"""The Python door: connect, start runs, find those that there are."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack, overload

from pydantic import BaseModel

from holdfast.client.connecting import opened
from holdfast.client.listing import Listed, list_runs
from holdfast.client.reading import Reader
from holdfast.client.runs import DataRun, Run
from holdfast.client.schedules import Schedules
from holdfast.contracts import Goal, Plan
from holdfast.contracts.base import Urgency
from holdfast.contracts.notices import Occasion
from holdfast.contracts.plans import Lane
from holdfast.contracts.view import Preview
from holdfast.deployment.settings import Settings
from holdfast.errors import HoldfastError, IdTaken, Refused
from holdfast.intake.connection import Connection
from holdfast.intake.fields import naming_fields
from holdfast.intake.launch import launch
from holdfast.intake.requests import RunRequest, read_request
from holdfast.intake.scheduled import goal_of_request

Data = TypeVar("Data", bound=BaseModel)
Given = Any
"""An input: a path, `text:` with literal text, the bytes of a file, or rows: an iterable of
mappings, or a frame of pandas or polars.
"""
AnswerForm = Literal["markdown", "table"] | Mapping[str, object] | None


class StartOptions(TypedDict, total=False):
    """What a run may be started with: the options of `holdfast run`, by the same names."""

    playbook: str
    inputs: Mapping[str, Given]
    plan: Plan
    dollars: float | Decimal
    """The hard cap."""
    limits: Mapping[str, float | Decimal]
    """The other limits."""
    models: bool
    """Ask models also where a playbook can do without."""
    unpriced: bool
    approval: Literal["auto", "always"] | float | Decimal
    """When a person must approve the plan; a number: above so many dollars."""
    ask_people: bool
    wait_for_raise: bool
    columns: Sequence[str]
    """Names of the columns of a table."""
    lane: Lane
    """The lane of all maps."""
    urgency: Urgency
    """`urgent` goes before the work of other runs, `bulk` behind it."""
    reuse: str
    """A run whose rows are taken over where nothing has changed."""
    template: bool
    """False: plan anew, whatever the plan library has."""
    single: bool
    """One agent has the whole goal, without a planner."""
    role: str
    """The role of that agent."""
    roles: Sequence[str]
    """The only roles that a planner may assign."""
    notify: Sequence[str]
    """Addresses that web hooks tell of the run."""
    on: Sequence[Occasion]
    """Of what they tell; left out: of all."""
    id: str


class Holdfast:
    """A connection to the server where runs live: of your own, by Temporal's variables, else the
    embedded one, which it starts.

        async with Holdfast() as hf:
            run = await hf.start("Which rates changed?", inputs={"reports": "reports/"}, dollars=2)
            report = await run.report()

    `project`: a project's folder, as `--project`. `embedded`: True for the embedded server also
    where Temporal's variables are set. Raise Unreachable or Refused on entering.
    """

    def __init__(self, *, project: str | Path | None = None, embedded: bool = False) -> None:
        self._project = project
        self._embedded = embedded
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        opening = opened(Settings.of(self._project), embedded=self._embedded)
        self._connection = await self._stack.enter_async_context(opening)
        return self

    async def __aexit__(self, *raised: object) -> bool | None:
        self._connection = None
        return await self._stack.__aexit__(*raised)  # type: ignore[arg-type]

    @classmethod
    def on(cls, connection: Connection) -> Holdfast:
        """Return one over a connection that is open, for doors that keep one themselves."""
        made = cls()
        made._connection = connection
        return made

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            raise HoldfastError(
                "this Holdfast is not open; use it in `async with Holdfast() as hf`"
            )
        return self._connection

    # ------------------------------------------------------------ starting

    @overload
    async def start(
        self, goal: str = "", *, answer: type[Data], **options: Unpack[StartOptions]
    ) -> DataRun[Data]: ...

    @overload
    async def start(
        self, goal: str = "", *, answer: AnswerForm = None, **options: Unpack[StartOptions]
    ) -> Run: ...

    async def start(
        self,
        goal: str = "",
        *,
        answer: AnswerForm | type[Data] = None,
        **options: Unpack[StartOptions],
    ) -> Run:
        """Start a run and return it at once; with an `id` that a run of the same request has, that
        run. Raise Refused, IdTaken or NoWorker; then nothing was started.

        `answer`: the form of the answer: `markdown`, `table`, a JSON schema, or a pydantic model,
        of which `(await run.report()).data` is an instance.
        """
        inputs = options.get("inputs", {})
        if not isinstance(inputs, Mapping):
            raise Refused("start: inputs: give a mapping of names to inputs")
        request = read_request(
            {
                **{name: _plain(value) for name, value in options.items() if name != "columns"},
                "goal": goal,
                "inputs": {name: as_input(each) for name, each in inputs.items()},
                "answer": _answer(answer, options.get("columns")),
            },
            "start",
        )
        run = await self.start_request(request)
        if isinstance(answer, type):
            return DataRun(self.connection, run.id, answer, attached=run.attached)
        return run

    async def start_request(
        self, request: RunRequest, *, requester: str = "", plan_only: bool = False
    ) -> Run:
        """Start the run that a request asks for. `requester`: who asks, your login unless given."""
        goal = await self.goal_of(request)
        goal = goal.model_copy(update={"requester": requester, "plan_only": plan_only})
        return await self.start_goal(goal, request.id)

    async def start_goal(
        self, goal: Goal, id: str = "", *, below: tuple[Path, ...] | None = None
    ) -> Run:
        """Start the run of a goal, for doors that look at it first. `below`: as `goal_of` got."""
        with naming_fields():
            started = await launch(self.connection, goal, id, below=below)
        # Where people start runs it may differ, by whether their terminal is there.
        if not started.same_approval:
            raise IdTaken(
                f"run {started.run_id} has another approval; choose another id", started.run_id
            )
        return Run(self.connection, started.run_id, attached=started.attached)

    async def goal_of(self, request: RunRequest, *, below: tuple[Path, ...] | None = None) -> Goal:
        """Return the goal of a request. Refused lists what is wrong with it. `below`: the only
        places whose paths it may name, for doors that strangers stand at.
        """
        settings, embedded = self.connection.settings, self.connection.target.embedded
        with naming_fields():
            return await goal_of_request(request, settings, embedded=embedded, below=below)

    async def preview(self, request: RunRequest, *, requester: str = "") -> Preview:
        """Return the plan of a request and its expected price. Nothing of it is run; planning is
        paid.
        """
        run = await self.start_request(as_preview(request), requester=requester, plan_only=True)
        return await run.preview()

    @property
    def schedules(self) -> Schedules:
        """Runs that start by the clock."""
        return Schedules(self.connection)

    # ------------------------------------------------------------ finding

    @overload
    async def run_of(self, id: str, *, answer: type[Data]) -> DataRun[Data]: ...

    @overload
    async def run_of(self, id: str, *, answer: None = None) -> Run: ...

    async def run_of(self, id: str, *, answer: type[Data] | None = None) -> Run:
        """Return the run of this id; `answer`: the class of its answer, as it was started with.
        NoSuchRun if there is none.
        """
        run = DataRun(self.connection, id, answer) if answer else Run(self.connection, id)
        await Reader(self.connection, id).look()
        return run

    async def runs(self, most: int = 100) -> AsyncIterator[Listed]:
        """Yield the runs that people started, newest first."""
        if most <= 0:
            return
        async for each in list_runs(self.connection, min(most, 1_000)):
            yield each
            most -= 1
            if most <= 0:
                return


def as_preview(request: RunRequest) -> RunRequest:
    """Return the request of a run that ends with its plan. Raise Refused if it has an id."""
    if request.id:
        raise Refused("a preview starts and closes a run of its own; leave out its id")
    return request.model_copy(update={"approval": "always", "notify": (), "on": ()})


def as_input(given: Given) -> object:
    """Return an input as plain data of a request."""
    if isinstance(given, str):
        return given
    if isinstance(given, Path):
        return str(given)
    if isinstance(given, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(given)).decode()}
    # A frame of pandas, then one of polars, of which neither need be installed.
    if callable(getattr(given, "to_json", None)) and hasattr(given, "iloc"):
        return {"rows": json.loads(given.to_json(orient="records", date_format="iso"))}
    if callable(getattr(given, "to_dicts", None)):
        given = given.to_dicts()
    wanted = "give a path, text:..., bytes, or rows of mappings"
    if isinstance(given, Iterable) and not isinstance(given, Mapping):
        rows = [*given]
        if not all(isinstance(each, Mapping) for each in rows):
            raise Refused(f"an input is a {type(given).__name__} of other things; {wanted}")
        try:
            text = json.dumps([dict(each) for each in rows], default=str, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise Refused(f"an input has a row that is not plain data: {error}") from error
        return {"rows": json.loads(text)}
    raise Refused(f"an input is a {type(given).__name__}; {wanted}")


def _answer(
    answer: AnswerForm | type[BaseModel], columns: Sequence[str] | None
) -> dict[str, object] | None:
    if answer is None:
        return {"kind": "table", "columns": columns} if columns is not None else None
    if isinstance(answer, str):
        return {"kind": answer, "columns": columns}
    if isinstance(answer, Mapping):
        return {"kind": "json", "schema": dict(answer)}
    if isinstance(answer, type) and issubclass(answer, BaseModel):
        return {"kind": "json", "schema": _closed(answer.model_json_schema())}
    raise Refused("start: answer: give markdown, table, a JSON schema, or a pydantic class")


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose objects have no other fields than those named, all of them given: what
    an answer can be held to.
    """
    made = {
        key: [_closed(each) if isinstance(each, dict) else each for each in value]
        if isinstance(value, list)
        else _closed(value)
        if isinstance(value, dict)
        else value
        for key, value in schema.items()
    }
    if made.get("type") == "object" and "properties" in made:
        made |= {"additionalProperties": False, "required": list(made["properties"])}
    return made


def _plain(value: object) -> object:
    """Return an option as plain data of a request."""
    if isinstance(value, Plan):
        return value.model_dump(mode="json")
    if isinstance(value, float):
        return str(value) if value == value and abs(value) != float("inf") else value
    return value
