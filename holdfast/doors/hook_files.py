"""The hooks of a project's `holdfast.toml`: the run that each starts, and what of a delivery's body
may fill it.

    [hooks.review]
    secret_env = "REVIEW_HOOK_SECRET"
    playbook = "code-review"
    dollars = 1
    inputs = {repo = "shop", intent = "text:{pull_request.title}"}
    when = {action = ["opened", "synchronize"]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import PlaybookInput
from holdfast.deployment import project
from holdfast.errors import BadSettings
from holdfast.intake.inputs import LITERAL, MOST_LITERAL_BYTES
from holdfast.intake.requests import Document, RunRequest, Text, explain
from holdfast.text import says_something

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PATH = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
PLACE = re.compile(rf"\{{({_PATH})\}}")
"""A value of the body, as `{pull_request.title}` or `{commits.0.id}`."""
SPECIAL = ("secret_env", "when")
LETTERS = 100


class Unfilled(Exception):
    """A delivery lacks what a hook needs. The message is for its sender."""


class Hook(BaseModel):
    """What one hook starts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret_env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """The variable that has its secret."""
    when: dict[str, str | list[str]] = {}
    """Values that the body must have, by their path; of a list one of them."""
    request: RunRequest
    files: tuple[str, ...] = ()
    """Inputs that are files, whose content is what the template says."""


def read_hooks(folder: Path, catalogue: Catalogue) -> Mapping[str, Hook]:
    """Return the hooks of a project by name. BadSettings names what cannot be used."""
    return {
        name: _read(folder, name, given, catalogue)
        for name, given in project.read_tables(folder, project.HOOKS).items()
    }


def matches(hook: Hook, body: Mapping[str, Any]) -> bool:
    """True if a delivery is one that the hook starts a run for."""
    for path, wanted in hook.when.items():
        try:
            found = _value(body, path)
        except Unfilled:
            return False
        if found not in ([wanted] if isinstance(wanted, str) else wanted):
            return False
    return True


def fill(hook: Hook, body: Mapping[str, Any]) -> RunRequest:
    """Return the request with the values of a delivery. Raise Unfilled."""
    inputs = dict(hook.request.inputs)
    for name, template in inputs.items():
        text = _template_of(template)
        if not PLACE.search(text):
            continue
        made = PLACE.sub(lambda found: _value(body, found.group(1)), text)
        if not says_something(made):
            raise Unfilled(f"what fills {name} is empty")
        if len(made.encode()) > MOST_LITERAL_BYTES:
            raise Unfilled(f"what fills {name} has more than {MOST_LITERAL_BYTES >> 10} KiB")
        inputs[name] = (
            Document.of(made.encode(), f"{name}.txt") if name in hook.files else Text(text=made)
        )
    return hook.request.model_copy(update={"inputs": inputs})


def _value(body: object, path: str) -> str:
    """Return a value of the body as text: of a list or an object its JSON, of null nothing."""
    found = body
    for part in path.split("."):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part[:9]) < len(found):
            found = found[int(part[:9])]
        else:
            raise Unfilled(f"the body has no {path}")
    if found is None:
        return ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


# ---------------------------------------------------------------- reading the file


def _read(folder: Path, name: str, given: Any, catalogue: Catalogue) -> Hook:
    where = f"settings: {folder / project.FILE}: hooks.{name:.{LETTERS}}"
    if not NAME.fullmatch(name):
        raise BadSettings(f"{where}: a hook's name is letters, digits, '-' and '_'")
    if not isinstance(given, dict):
        raise BadSettings(f"{where}: write it as a table, [hooks.{name}]")
    if "id" in given:
        raise BadSettings(f"{where}: id: each delivery has a run of its own; leave it out")
    rest = {key: value for key, value in given.items() if key not in SPECIAL}
    own = {key: value for key, value in given.items() if key in SPECIAL}
    try:
        request = RunRequest.model_validate(rest)
        hook = Hook(request=request, **own)
    except ValidationError as error:
        raise BadSettings(f"{where}: {explain(error)}") from error
    if request.playbook and request.playbook not in catalogue.playbooks:
        raise BadSettings(f"{where}: unknown playbook {request.playbook!r:.{LETTERS}}")
    playbook = catalogue.playbooks.get(request.playbook)
    declared = playbook.inputs if playbook else {}
    for why in _wrong(request, declared):
        raise BadSettings(f"{where}: {why}")
    inputs = {
        key: within(folder, value, declared.get(key)) for key, value in request.inputs.items()
    }
    files = tuple(key for key in inputs if key in declared and declared[key].kind == "file")
    placed = request.model_copy(update={"inputs": inputs})
    return hook.model_copy(update={"request": placed, "files": files})


def _wrong(request: RunRequest, declared: Mapping[str, PlaybookInput]) -> Iterator[str]:
    """Yield where values of a body may not stand: they are strangers' words."""
    whole = request.model_dump(mode="json", by_alias=True, exclude={"inputs"})
    if PLACE.search(json.dumps(whole, ensure_ascii=False)):
        yield "values of a delivery fill inputs alone; take {…} out of all else"
    for name, given in request.inputs.items():
        if PLACE.search(name) or not PLACE.search(json.dumps(_dumped(given), ensure_ascii=False)):
            continue
        kind = declared[name].kind if name in declared else "text"
        if not _template_of(given):
            yield f"inputs.{name}: values of a delivery are text; write it as {LITERAL}..."
        elif kind not in ("text", "file") or (name in declared and declared[name].one_of):
            yield f"inputs.{name}: values of a delivery choose no {kind} and no option"


def _dumped(given: object) -> object:
    return given.model_dump(mode="json") if isinstance(given, BaseModel) else given


def _template_of(given: object) -> str:
    """Return the text of an input that is text; empty for any other."""
    if isinstance(given, Text):
        return given.text
    if isinstance(given, str) and given.startswith(LITERAL):
        return given.removeprefix(LITERAL)
    return ""


def within(folder: Path, given: Any, declared: PlaybookInput | None) -> Any:
    """Return an input with its path, if it is one, below the project's folder."""
    is_text = declared is not None and declared.kind == "text"
    if not isinstance(given, str) or given.startswith(LITERAL) or is_text:
        return given
    return str(folder / Path(given).expanduser())
