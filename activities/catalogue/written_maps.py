"""Maps as people write them in a plan: what stands beside `map` moves into it, percents and the
files of schemas are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from holdfast.activities.catalogue.answer_forms import DIALECT
from holdfast.activities.catalogue.results import BadSchema, check_schema
from holdfast.contracts.plans import MapUnit
from holdfast.text import visible
from holdfast.untrusted.folders import Unreadable, read_named
from holdfast.untrusted.reading import NotPlain, from_json, from_yaml

BESIDE = ("lane", "tolerate", "result")
"""Fields of a map that may stand beside it, in its subtask."""
SCHEMA_BYTES = 256 * 1024
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%")
_UNITS: Mapping[str, MapUnit] = {
    ".jsonl": "records",
    ".ndjson": "records",
    ".json": "records",
    ".csv": "rows",
    ".tsv": "rows",
    ".xlsx": "rows",
    ".parquet": "rows",
    ".txt": "lines",
    ".log": "lines",
    ".pdf": "pages",
}
"""What the items of an input are that is named like a file."""


class BadMaps(ValueError):
    """What is wrong with the maps of a plan: `mistakes`, each with its place."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


def settle_maps(plan: object, folder: Path | None) -> Any:
    """Return the fields of a plan, each `map` as its contract wants it. Raise BadMaps, with all
    mistakes.

    `folder`: where the paths of schemas begin; None: a plan of a program, which names no files.
    """
    subtasks = plan.get("subtasks") if isinstance(plan, Mapping) else None
    if not isinstance(plan, Mapping) or not isinstance(subtasks, list | tuple):
        return plan
    mistakes: list[str] = []
    settled = []
    for number, subtask in enumerate(subtasks):
        fields, wrong = _settle(subtask, folder)
        settled.append(fields)
        mistakes += [f"subtasks[{number}].{each}" for each in wrong]
    if mistakes:
        raise BadMaps(mistakes)
    return {**plan, "subtasks": settled}


def _settle(subtask: object, folder: Path | None) -> tuple[object, list[str]]:
    if not isinstance(subtask, Mapping):
        return subtask, []
    beside = [name for name in BESIDE if name in subtask]
    spec = subtask.get("map")
    if spec is None:
        return subtask, [f"{name}: no effect without `map` beside it" for name in beside]
    if not isinstance(spec, Mapping):
        # A MapSpec is as it should be; anything else is the contract's to refuse.
        return subtask, [f"{name}: belongs into `map`" for name in beside]
    twice = [name for name in beside if name in spec]
    wrong = [f"{name}: stands in `map` as well; leave one out" for name in twice]
    fields = {**spec, **{name: subtask[name] for name in beside}}
    if "by" not in fields and (unit := _UNITS.get(PurePath(str(spec.get("over"))).suffix.lower())):
        fields["by"] = unit
    for name, read in (("tolerate", _percent), ("result", lambda each: _schema(each, folder))):
        place = name if name in beside else f"map.{name}"
        wrong += _read(fields, name, place, read)
    kept = {name: value for name, value in subtask.items() if name not in beside}
    return {**kept, "map": fields}, wrong


def _read(
    fields: dict[str, Any], name: str, place: str, read: Callable[[Any], Any]
) -> Iterator[str]:
    """Read a field in its place; yield why it cannot be."""
    if name in fields:
        try:
            fields[name] = read(fields[name])
        except ValueError as error:
            yield f"{place}: {error}"


def _percent(given: object) -> object:
    if not isinstance(given, str):
        return given
    amount = _PERCENT.fullmatch(given.strip())
    if amount is None:
        raise ValueError(f"{visible(given)!r:.40} is no share of the items; write one as 2%")
    return float(amount[1])


def _schema(given: object, folder: Path | None) -> dict[str, Any]:
    """Return the schema of a result, given itself or by its file."""
    where, schema = "", given
    if isinstance(given, str):
        where = f"{visible(given)!r:.200}: "
        schema = _read_file(given, folder)
    if not isinstance(schema, Mapping) or (schema and schema.get("type") != "object"):
        raise ValueError(f"{where}must be a JSON schema with `type: object` and `properties`")
    plain = {name: value for name, value in schema.items() if name != DIALECT}
    try:
        return {**check_schema(plain, "result")} if plain else {}
    except BadSchema as error:
        raise ValueError(f"{where}{visible(str(error))}") from None


def _read_file(name: str, folder: Path | None) -> object:
    if folder is None:
        raise ValueError("give the schema itself; a path is read in a plan's own file alone")
    path = folder / name
    try:
        text = read_named(path, SCHEMA_BYTES)
        return from_json(text) if path.suffix.lower() == ".json" else from_yaml(text)
    except Unreadable as error:
        raise ValueError(str(error)) from None
    except NotPlain as error:
        raise ValueError(f"{visible(name)!r:.200}: {error}") from None
