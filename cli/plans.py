"""Plans that a person wrote or changed: read from a file, checked as a whole, and written out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from pydantic import ValidationError

from activities.asking.checks import plan_problems
from cli.exits import Stop
from cli.files import read_text
from deployment.reading import NotPlain, from_json, from_yaml
from deployment.unread import unread
from orchestrator.contracts import HARD_SUBTASK_LIMIT, Plan, RoleCard
from orchestrator.rules import graph

MOST_SHOWN = 100
"""Mistakes of a plan that are listed: more than anybody corrects at a time."""
YAML = (".yaml", ".yml")
PLAN_BYTES = 512 * 1024
"""The largest plan, of texts as long as a model reads; reading one in YAML takes seconds."""


def read(path: Path, option: str = "--plan") -> Plan:
    """The plan in a file: YAML if its name says so, else JSON. Stop lists its shape's mistakes."""
    text = read_text(path, option, PLAN_BYTES)
    return parse(text, f"{option} {path}", as_yaml=path.suffix.lower() in YAML)


def parse(text: str, where: str, *, as_yaml: bool) -> Plan:
    """The plan in a text; Stop, naming `where`, lists every mistake of its shape."""
    try:
        given = from_yaml(text) if as_yaml else from_json(text)
        _check_count(given, where)
        plan = Plan.model_validate(given)
    except NotPlain as error:
        raise Stop(f"{where}: {error}") from error
    except ValidationError as error:
        mistakes = [_mistake(each["loc"], each["msg"]) for each in error.errors()]
        raise invalid(where, mistakes) from error
    idle = unread(Plan, given)
    if idle:
        raise invalid(where, [f"{place}: there is no such field; remove it" for place in idle])
    return plan


def _check_count(given: object, where: str) -> None:
    """Stop for more subtasks than any run can have, before each of them is looked at."""
    subtasks = given.get("subtasks") if isinstance(given, Mapping) else None
    if isinstance(subtasks, list) and len(subtasks) > HARD_SUBTASK_LIMIT:
        count = f"{len(subtasks)} are planned, the limit is {HARD_SUBTASK_LIMIT}"
        raise invalid(where, [f"subtasks: {count}"])


def problems(
    plan: Plan,
    roles: Sequence[RoleCard],
    inputs: Collection[str],
    most: int,
    unusable: Mapping[str, str] = MappingProxyType({}),
) -> tuple[str, ...]:
    """Everything that is wrong with a plan, its checks included; empty: it can run."""
    return (*graph.problems(plan, roles, inputs, most, unusable=unusable), *plan_problems(plan))


def invalid(where: str, mistakes: Sequence[str]) -> Stop:
    """The refusal of a plan with its mistakes: as many as one corrects at a time, of how many."""
    if len(mistakes) == 1:
        return Stop(f"{where}: {mistakes[0]}")
    lines = [f"{where}: {len(mistakes)} mistakes", *(f"  {each}" for each in mistakes[:MOST_SHOWN])]
    if len(mistakes) > MOST_SHOWN:
        lines.append(f"  … and {len(mistakes) - MOST_SHOWN} more")
    return Stop("\n".join(lines))


def as_yaml(plan: Plan) -> str:
    """The plan as a person edits it: every field, long texts as blocks."""
    return yaml.dump(
        plan.model_dump(mode="json"), Dumper=_Readable, sort_keys=False, allow_unicode=True,
        width=96,
    )  # fmt: skip


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as blocks instead of one line with escapes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    node: Any = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    assert isinstance(node, yaml.ScalarNode)
    return node


_Readable.add_representer(str, _text)


def _mistake(place: tuple[int | str, ...], message: str) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{path.lstrip('.') or 'the plan'}: {lower(message)}"


def lower(message: str) -> str:
    """A message of pydantic's as the rest of a sentence."""
    return message[:1].lower() + message[1:]
