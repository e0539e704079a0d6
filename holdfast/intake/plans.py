"""Plans that a person wrote or changed: read from a file, checked as a whole, and written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from holdfast.activities.catalogue.written_maps import BadMaps, settle_maps
from holdfast.contracts import HARD_SUBTASK_LIMIT, GoalInput, Plan, Subtask
from holdfast.errors import Refused
from holdfast.intake.files import read_text
from holdfast.text.mistakes import as_rest
from holdfast.untrusted.reading import NotPlain, from_json, from_yaml
from holdfast.untrusted.unread import find_unread

MOST_SHOWN = 100
"""Mistakes of a plan that are listed: more than anybody corrects at a time."""
YAML = (".yaml", ".yml")
PLAN_BYTES = 2 * 1024 * 1024
"""The largest plan, of texts as long as a model reads; reading one in YAML takes seconds."""


def _check_fields(given: object, make: ValidatorFunctionWrapHandler) -> Plan:
    """Return the plan; a field that nobody reads is a mistake."""
    given = settle_maps(given, None)
    plan: Plan = make(given)
    if idle := find_unread(Plan, given):
        raise ValueError("; ".join(f"{place}: there is no such field" for place in idle[:20]))
    return plan


GivenPlan = Annotated[Plan, WrapValidator(_check_fields)]
"""A plan in a request of a program, with no field that is not one."""


def read_plan(path: Path, option: str = "--plan") -> Plan:
    """Return the plan in a file, YAML if its name says so, else JSON. Refused lists all its
    mistakes.
    """
    text = read_text(path, option, PLAN_BYTES)
    as_yaml = path.suffix.lower() in YAML
    return parse_plan(text, f"{option} {path}", as_yaml=as_yaml, folder=path.parent)


def parse_plan(text: str, where: str, *, as_yaml: bool, folder: Path | None = None) -> Plan:
    """Return the plan in a text. Refused, naming `where`, lists every mistake of its shape.
    `folder`: where the files begin that it names; None: it may name none.
    """
    try:
        given = from_yaml(text) if as_yaml else from_json(text)
        _check_count(given, where)
        given = settle_maps(given, folder)
        plan = Plan.model_validate(given)
    except NotPlain as error:
        raise Refused(f"{where}: {error}") from error
    except BadMaps as error:
        raise refuse_plan(where, error.mistakes) from error
    except ValidationError as error:
        mistakes = [_mistake(each["loc"], each["msg"]) for each in error.errors()]
        raise refuse_plan(where, mistakes) from error
    idle = find_unread(Plan, given)
    if idle:
        raise refuse_plan(where, [f"{place}: there is no such field; remove it" for place in idle])
    return plan


def mapped_by(plan: Plan | None) -> frozenset[str]:
    """Return the inputs, or their files, whose items a plan maps."""
    return frozenset(each.map.over for each in plan.subtasks if each.map) if plan else frozenset()


def name_inputs(plan: Plan, inputs: Sequence[GoalInput]) -> Plan:
    """Return the plan, with the names of inputs where its maps name their files."""
    names = {each.name for each in inputs}
    by_file: dict[str, list[str]] = {}
    for each in inputs:
        if each.kind != "text":
            by_file.setdefault(Path(each.value).name, []).append(each.name)

    def renamed(subtask: Subtask) -> Subtask:
        spec = subtask.map
        meant = by_file.get(spec.over, []) if spec and spec.over not in names else []
        if spec is None or len(meant) != 1:
            return subtask
        return subtask.model_copy(update={"map": spec.model_copy(update={"over": meant[0]})})

    return plan.model_copy(update={"subtasks": tuple(map(renamed, plan.subtasks))})


def _check_count(given: object, where: str) -> None:
    """Refuse more subtasks than any run can have, before looking at each of them."""
    subtasks = given.get("subtasks") if isinstance(given, Mapping) else None
    if isinstance(subtasks, list) and len(subtasks) > HARD_SUBTASK_LIMIT:
        count = f"{len(subtasks)} are planned, the limit is {HARD_SUBTASK_LIMIT}"
        raise refuse_plan(where, [f"subtasks: {count}"])


def refuse_plan(where: str, mistakes: Sequence[str]) -> Refused:
    """Return the refusal of a plan: as many mistakes as a person corrects at once, and their
    number.
    """
    if len(mistakes) == 1:
        return Refused(f"{where}: {mistakes[0]}")
    lines = [f"{where}: {len(mistakes)} mistakes", *(f"  {each}" for each in mistakes[:MOST_SHOWN])]
    if len(mistakes) > MOST_SHOWN:
        lines.append(f"  … and {len(mistakes) - MOST_SHOWN} more")
    return Refused("\n".join(lines))


def as_yaml(plan: Plan) -> str:
    """Return the plan as a person edits it: every field, long texts as blocks."""
    return yaml.dump(
        plan.model_dump(mode="json"),
        Dumper=_Readable,
        sort_keys=False,
        allow_unicode=True,
        width=96,
    )


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as blocks, without escapes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    node: Any = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    assert isinstance(node, yaml.ScalarNode)
    return node


_Readable.add_representer(str, _text)


def _mistake(place: tuple[int | str, ...], message: str) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{path.lstrip('.') or 'the plan'}: {as_rest(message)}"
