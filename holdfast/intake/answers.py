"""The form that somebody wants the answer in, from the options that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from holdfast.activities.catalogue.answer_forms import BadForm, check_form, check_writer
from holdfast.activities.catalogue.files import PlaybookFile
from holdfast.contracts import AnswerForm, AnswerKind
from holdfast.errors import Refused
from holdfast.intake.files import read_text
from holdfast.untrusted.reading import NotPlain, from_json

KINDS: tuple[AnswerKind, ...] = tuple(filter(None, get_args(AnswerKind)))
SCHEMA_BYTES = 256 * 1024
"""Largest file of a schema, before its meaning is measured."""


@dataclass(frozen=True)
class WantedForm:
    """The wanted form of an answer, unchecked."""

    kind: str = ""
    schema: Path | Mapping[str, object] | None = None
    """A file, or the schema itself."""
    columns: str | None = None
    """Names of the columns, separated by commas; None: nobody named any."""


def form_of(wanted: WantedForm, playbook: PlaybookFile | None, *, use_models: bool) -> AnswerForm:
    """Return the form of the answer. Refused names the option that does not fit, and why."""
    kind = next((each for each in KINDS if each == wanted.kind), "")
    if wanted.kind and not kind:
        raise Refused(f"--answer {wanted.kind!r}: it is {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    if wanted.schema is not None and kind != "json":
        raise Refused("--schema is for --answer json; add that, or leave the schema out")
    if wanted.columns is not None and kind != "table":
        raise Refused("--columns is for --answer table; add that, or leave the columns out")
    if kind == "json" and wanted.schema is None:
        raise Refused("--answer json needs the JSON schema of the answer: give --schema FILE")
    columns = () if wanted.columns is None else _names(wanted.columns)
    given = read_schema(wanted.schema) if isinstance(wanted.schema, Path) else wanted.schema or {}
    try:
        where = f"--schema {wanted.schema}" if isinstance(wanted.schema, Path) else "--schema"
        form = check_form(
            AnswerForm(kind=kind, result={**given}, columns=columns), where, "--columns"
        )
        name, verify = (playbook.name, playbook.verify) if playbook else ("", 0)
        notice = playbook.notice if playbook else ""
        check_writer(form, name, verify, use_models=use_models, notice=notice)
    except BadForm as error:
        own = str(error).startswith(("--schema", "--columns"))
        raise Refused(str(error) if own else f"--answer {kind}: {error}") from error
    return form


def _names(columns: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in columns.split(","))


def read_schema(path: Path) -> dict[str, object]:
    """Return the object in a schema file."""
    where = f"--schema {path}"
    try:
        given = from_json(read_text(path, where, SCHEMA_BYTES))
    except NotPlain as error:
        raise Refused(f"{where}: {error}") from error
    if not isinstance(given, dict):
        raise Refused(f"{where}: not a JSON schema: it must be an object")
    return given
