"""The channels of a project's `holdfast.toml`: which run each starts, and who may.

[slack.C0123ABCD]
people = ["U0123ABCD"]
dollars = 2
raise_to = 5
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

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
