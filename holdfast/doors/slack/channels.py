"""The channels of a project's `holdfast.toml`: which run each starts, and who may.

[slack.C0123ABCD]
people = ["U0123ABCD"]
dollars = 2
raise_to = 5
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.deployment import project
from holdfast.doors.hook_files import within
from holdfast.errors import BadSettings
from holdfast.intake.requests import RunRequest, explain
from holdfast.text.mistakes import suggest

CHANNEL = re.compile(r"[CGD][A-Z0-9]{2,20}")
OWN = ("people", "raise_to")
NOT_HERE = {"id": "each message has a run of its own", "goal": "it is what people write"}
LETTERS = 60
BROKEN = "holdfast.toml cannot be used at the moment, so nothing is started or decided here."
log = structlog.get_logger("holdfast.slack")
Person = Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{2,20}$")]


class Channel(BaseModel):
    """What a channel may start, and who may start and decide there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    people: tuple[Person, ...] = Field(min_length=1)
    """Slack's ids of those who may start runs and decide."""
    raise_to: Decimal | None = Field(None, gt=0, le=10_000, allow_inf_nan=False)
    """The highest cap that a run may be raised to."""
    request: RunRequest

    @property
    def dollars(self) -> Decimal:
        """The cap that a run starts with."""
        return self.request.most_dollars

    @property
    def highest(self) -> Decimal:
        """The highest cap that a run of this channel can have."""
        return self.raise_to or self.dollars


class Channels:
    """The channels as the project's file names them: who is taken out of it decides nothing from
    then on. While it cannot be used nobody does.
    """

    broken = ""
    """What is told while the file cannot be used."""

    def __init__(self, folder: Path, catalogue: Callable[[], Catalogue]) -> None:
        """Raise BadSettings if the file cannot be used."""
        self._folder = folder
        self._catalogue = catalogue
        self._as_of = self._stamp()
        self._channels = read_channels(folder, catalogue())

    def now(self) -> Mapping[str, Channel]:
        """Return the channels by their ids."""
        stamp = self._stamp()
        if stamp != self._as_of:
            self._as_of = stamp
            try:
                self._channels = read_channels(self._folder, self._catalogue())
                self.broken = ""
            except BadSettings as error:
                log.error("nobody may start or decide until this is put right", why=str(error))
                self._channels, self.broken = {}, BROKEN
        return self._channels

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = (self._folder / project.FILE).stat()
        except OSError:
            return (0, 0, 0)
        return (found.st_ino, found.st_size, found.st_mtime_ns)


def read_channels(folder: Path, catalogue: Catalogue) -> Mapping[str, Channel]:
    """Return the channels of a project by their ids. BadSettings names what cannot be used."""
    found = project.read_tables(folder, project.SLACK)
    if not found:
        raise BadSettings(
            f"settings: {folder / project.FILE}: no channel may start runs yet; name one as"
            f" [{project.SLACK}.C0123ABCD], with `people` and `dollars`"
        )
    return {name: _read(folder, name, given, catalogue) for name, given in found.items()}


def _read(folder: Path, name: str, given: Any, catalogue: Catalogue) -> Channel:
    where = f"settings: {folder / project.FILE}: {project.SLACK}.{name:.{LETTERS}}"
    if not CHANNEL.fullmatch(name):
        raise BadSettings(
            f"{where}: a channel is named by its id, as C0123ABCD, which its details in Slack show"
        )
    if not isinstance(given, dict):
        raise BadSettings(f"{where}: write it as a table, [{project.SLACK}.{name}]")
    for key, why in NOT_HERE.items():
        if key in given:
            raise BadSettings(f"{where}: {key}: {why}; leave it out")
    if "dollars" not in given:
        raise BadSettings(f"{where}: dollars: say what a run of this channel may cost at most")
    own = {key: value for key, value in given.items() if key in OWN}
    rest = {key: value for key, value in given.items() if key not in OWN}
    raised = "raise_to" in own
    usual = {"approval": "always", "ask_people": True, "wait_for_raise": raised}
    try:
        request = RunRequest.model_validate({**usual, **rest})
        channel = Channel(request=request, **own)
    except ValidationError as error:
        raise BadSettings(f"{where}: {explain(error)}") from error
    if channel.highest < channel.dollars:
        raise BadSettings(f"{where}: raise_to: less than dollars; give more, or leave it out")
    known = catalogue.playbooks
    if request.playbook and request.playbook not in known:
        near = suggest(request.playbook, known)
        raise BadSettings(f"{where}: unknown playbook {request.playbook!r:.{LETTERS}}{near}")
    declared = known[request.playbook].inputs if request.playbook else {}
    inputs = {key: within(folder, each, declared.get(key)) for key, each in request.inputs.items()}
    request = request.model_copy(update={"inputs": inputs})
    return channel.model_copy(update={"request": request})
