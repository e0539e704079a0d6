"""A run as a program asks for it: what Python, HTTP, MCP, hooks and `--goal FILE` have in common.

Its JSON schema is printed by `starter.py schema`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from holdfast.contracts import Approval, Limits
from holdfast.contracts.base import Urgency
from holdfast.contracts.notices import Occasion
from holdfast.contracts.plans import Lane
from holdfast.deployment.settings import Settings
from holdfast.embedded import StateDir
from holdfast.errors import Refused
from holdfast.intake.answers import WantedForm
from holdfast.intake.files import read_text
from holdfast.intake.goals import Wish
from holdfast.intake.inputs import LITERAL
from holdfast.intake.launch import check_id
from holdfast.intake.plans import GivenPlan
from holdfast.storage.files import write_whole
from holdfast.text.mistakes import as_rest
from holdfast.untrusted.reading import NotPlain, from_json, refuse_odd

REQUEST_BYTES = 4 * 1024 * 1024
MOST_ROWS = 100_000


class _Given(BaseModel):
    # A field that nobody reads is a mistake of whoever wrote it.
    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, defer_build=True
    )


class Text(_Given):
    """An input that is text."""

    text: str = Field(min_length=1)


class Rows(_Given):
    """An input that is a table: a row is an object, and all rows have the same keys."""

    rows: tuple[dict[str, JsonValue], ...] = Field(min_length=1, max_length=MOST_ROWS)


class Document(_Given):
    """An input that is the content of a file."""

    base64: str = Field(min_length=1, json_schema_extra={"contentEncoding": "base64"})
    name: str = Field("input.txt", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """Its name, for the kind of file it is."""

    @classmethod
    def of(cls, content: bytes, name: str) -> Document:
        return cls(base64=base64.b64encode(content).decode(), name=name)

    def content(self, name: str) -> bytes:
        """Return the file. Refused, naming the input, if it is not base64."""
        try:
            return base64.b64decode(self.base64, validate=True)
        except ValueError as error:
            raise Refused(f"--input {name}: not base64 ({error})") from error


class Answer(_Given):
    """The form of the answer."""

    kind: Literal["markdown", "json", "table"]
    schema_: dict[str, JsonValue] | None = Field(None, alias="schema")
    """JSON schema of the answer, for `json`."""
    columns: tuple[str, ...] | None = None
    """Names of the columns, for `table`."""

    @property
    def wanted(self) -> WantedForm:
        columns = None if self.columns is None else ",".join(self.columns)
        return WantedForm(self.kind, self.schema_, columns)


Input = Annotated[str | Text | Rows | Document, Field(union_mode="left_to_right")]
"""A path on the machine of the worker, as `PATH`, or literal text, as `text:...`; or an object."""
InputName = Annotated[str, Field(pattern=r"^\w[\w.-]{0,99}$")]
_Dollars = Annotated[Decimal, Field(ge=0, le=10_000, allow_inf_nan=False)]


class RunRequest(_Given):
    """A run that somebody asks for. All but a goal, a playbook or a plan may be left out."""

    goal: str = ""
    playbook: str = ""
    inputs: dict[InputName, Input] = Field(default_factory=dict, max_length=100)
    plan: GivenPlan | None = None
    dollars: _Dollars | None = None
    """The hard cap; the same as `limits.dollars`."""
    limits: dict[str, Decimal | int | None] = Field(default_factory=dict)
    """Other limits, as `holdfast run --limits`."""
    models: bool = False
    """Ask models also where a playbook can do without."""
    unpriced: bool = False
    approval: Literal["auto", "always"] | _Dollars = "auto"
    """When a person must approve the plan: never, always, or above an amount of dollars."""
    ask_people: bool = False
    wait_for_raise: bool = False
    answer: Answer | None = None
    single: bool = False
    """One agent has the whole goal, without a planner."""
    role: str = ""
    """The role of that agent."""
    roles: tuple[str, ...] = ()
    """The only roles that a planner may assign; none named: all."""
    lane: Lane | None = None
    """The lane of all maps: `now`, `batch` at half price within a day, or `auto`."""
    reuse: str = ""
    """A run whose rows are taken over where nothing has changed."""
    urgency: Urgency = "normal"
    """`urgent` goes before the work of other runs, `bulk` behind it."""
    template: bool = True
    """A template of the plan library may give the plan."""
    notify: tuple[str, ...] = ()
    """Addresses that web hooks tell of the run."""
    on: tuple[Occasion, ...] = ()
    """Of what they tell; nothing named: of all."""
    id: str = ""
    """The run's id. The same id and request again is the same run."""

    def wish(self, settings: Settings, below: tuple[Path, ...] | None = None) -> Wish:
        """Return it as intake takes it. What it holds of files is written to the state directory.
        `below`: the only places whose paths it may name. Raise Refused.
        """
        check_id(self.id)
        typed = {name: _as_typed(name, each, settings) for name, each in self.inputs.items()}
        # Its own content alone: what others handed in stands in the same folder.
        kept = [Path(typed[name]) for name, each in self.inputs.items() if _is_kept(each)]
        return Wish(
            text=self.goal,
            playbook=self.playbook,
            inputs=tuple(f"{name}={value}" for name, value in typed.items()),
            plan=self.plan,
            limits=tuple(f"{name}={value}" for name, value in self._all_limits().items()),
            models=self.models,
            unpriced=self.unpriced,
            approval=self._approval(),
            ask_people=self.ask_people,
            wait_for_raise=self.wait_for_raise,
            form=self.answer.wanted if self.answer else WantedForm(),
            single=self.single,
            role=self.role,
            roles=self.roles,
            below=None if below is None else (*below, *kept),
            notify=self.notify,
            on=self.on,
            templates=self.template,
            lane=self.lane,
            urgency=self.urgency,
            reuse=self.reuse,
        )

    def _all_limits(self) -> dict[str, Decimal | int | None]:
        if self.dollars is not None and "dollars" in self.limits:
            raise Refused("dollars and limits.dollars: give one of them")
        given = {"dollars": self.dollars} if self.dollars is not None else {}
        return {**self.limits, **given}

    def _approval(self) -> Approval:
        if isinstance(self.approval, str):
            return Approval(when=self.approval)
        return Approval(when="above", dollars=self.approval)

    @property
    def most_dollars(self) -> Decimal:
        """What it may spend at most; the default where it does not say."""
        given = self._all_limits().get("dollars")
        return Decimal(str(given)) if given is not None else Limits().dollars


def read_request(given: object, where: str) -> RunRequest:
    """Return the request in plain data. Refused, naming `where`, lists all that is wrong."""
    try:
        refuse_odd(given)
        return RunRequest.model_validate(given)
    except NotPlain as error:
        raise Refused(f"{where}: {error}") from error
    except ValidationError as error:
        raise Refused(f"{where}: {explain(error)}") from error


def parse_request(text: str | bytes, where: str) -> RunRequest:
    """Return the request in a JSON text. Refused, naming `where`, lists all that is wrong."""
    try:
        given = from_json(text.decode() if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        raise Refused(f"{where}: not UTF-8 text") from error
    except NotPlain as error:
        raise Refused(f"{where}: {error}") from error
    return read_request(given, where)


def read_request_file(path: Path) -> RunRequest:
    """Return the request in a file, as `--goal FILE` names it."""
    where = f"--goal {path}"
    return parse_request(read_text(path, where, REQUEST_BYTES), where)


def explain(error: ValidationError) -> str:
    """Return what is wrong with given data, each place once, in one line."""
    wrong: dict[str, str] = {}
    for each in error.errors(include_input=False, include_url=False):
        # Deeper than an input's name there are only the shapes that it could have.
        deep = len(each["loc"]) if each["loc"][:1] == ("plan",) else 2
        place = ".".join(map(str, each["loc"][:deep])) or "all of it"
        said = "there is no such field" if each["type"] == "extra_forbidden" else each["msg"]
        wrong.setdefault(place, as_rest(said))
    return "; ".join(f"{place}: {why}" for place, why in [*wrong.items()][:20])


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a request."""
    return RunRequest.model_json_schema(by_alias=True)


def _is_kept(given: Input) -> bool:
    """True for what is written to a file, so that a worker can read it."""
    return isinstance(given, Rows | Document)


def _as_typed(name: str, given: Input, settings: Settings) -> str:
    """Return an input as the command line would name it."""
    match given:
        case str():
            return given
        case Text(text=text):
            return LITERAL + text
        case Rows(rows=rows):
            if any(each.keys() != rows[0].keys() for each in rows):
                raise Refused(f"--input {name}: not all rows have the same keys")
            return str(_keep(json.dumps(rows).encode(), f"{name}.json", settings))
        case Document():
            return str(_keep(given.content(name), given.name, settings))


def _keep(content: bytes, name: str, settings: Settings) -> Path:
    """Write content where a worker of this machine reads it, under a name by its content."""
    folder = StateDir.of(settings).inputs / hashlib.sha256(content).hexdigest()[:32]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / name
    if path.exists():
        # What is used again is not old.
        os.utime(path)
    else:
        write_whole(path, content)
    return path
