"""Check the form that somebody wants an answer in: what of it can be used, and by whom."""

from __future__ import annotations

from holdfast.activities.catalogue.results import BadSchema, check_schema
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.contracts import AnswerForm, PlaybookCard
from holdfast.contracts.errors import BadGoal
from holdfast.text import says_something, visible

MOST_COLUMNS = 20
COLUMN_LETTERS = 80
DOCUMENTS = ("object", "array")
"""Types of a whole answer."""
DIALECT = "$schema"
"""Names the dialect of a schema, and asks for nothing."""


class BadForm(ValueError):
    """A form that no answer can be asked for in: which part of it, why, and what to do."""


def check_form(form: AnswerForm, schema: str = "result", columns: str = "columns") -> AnswerForm:
    """Return the form with the objects of its schema closed. Raise BadForm, in a line, for what
    cannot be used, by the names that its parts have where it was given.
    """
    if form.result and form.kind != "json":
        raise BadForm(f"{schema}: no effect but for an answer as json; remove it")
    if form.columns and form.kind != "table":
        raise BadForm(f"{columns}: no effect but for an answer as a table; remove it")
    if form.kind == "json":
        return form.model_copy(update={"result": _schema(form, schema)})
    wrong = explain_columns(form.columns)
    if wrong:
        raise BadForm(f"{columns}: {wrong}")
    return form


def _schema(form: AnswerForm, where: str) -> dict[str, object]:
    given = {name: value for name, value in form.result.items() if name != DIALECT}
    if not given:
        raise BadForm(f"{where}: an answer as json needs a JSON schema; give one")
    if given.get("type") not in DOCUMENTS:
        raise BadForm(f"{where}: the whole must be of `type: object` or `type: array`")
    try:
        return {**check_schema(given, "schema")}
    except BadSchema as error:
        raise BadForm(f"{where}: {visible(str(error))}") from None


def explain_columns(columns: tuple[str, ...], most: int = MOST_COLUMNS) -> str:
    """Return why a table cannot have these columns, whoever names them; empty: it can."""
    if len(columns) > most:
        return f"are {len(columns)}, at most {most} may be"
    for name in columns:
        if not says_something(name):
            return "one of them has no name; name each"
        if len(name) > COLUMN_LETTERS or visible(name) != name:
            return f"{visible(name[:COLUMN_LETTERS])!r}: at most {COLUMN_LETTERS} plain letters"
    twice = [name for name in columns if columns.count(name) > 1]
    return f"{twice[0]!r} is given twice" if twice else ""


def check_writer(
    form: AnswerForm, playbook: str, verify: int, *, use_models: bool, notice: str = ""
) -> None:
    """Raise BadForm if no model would write the answer, as code knows no form but its own, or if
    data would have no room for what code is to put above it.
    """
    if not form.is_data:
        return
    if notice:
        raise BadForm(
            f"each answer of playbook {playbook!r} begins with a notice, for which data has no"
            " room; leave --answer out"
        )
    if verify:
        raise BadForm(
            f"playbook {playbook!r} has its answer written by code, in a form of its own; leave"
            " --answer out"
        )
    if not use_models:
        raise BadForm("a model must write such an answer, and this run asks none; add --models")


def playbook_form(where: str, form: AnswerForm, verify: int, notice: str = "") -> AnswerForm:
    """Return the form of answers that a playbook file sets. Raise CatalogueError for what cannot be
    used.
    """
    if form.is_data and verify:
        raise CatalogueError(
            f"{where}: answer: no effect beside `verify`, with which code writes it; remove one"
        )
    if form.is_data and notice:
        raise CatalogueError(f"{where}: answer: data has no room for `notice`; remove one")
    try:
        return check_form(form, "answer.result", "answer.columns")
    except BadForm as error:
        raise CatalogueError(f"{where}: {error}") from None


def refuse_form(form: AnswerForm, playbook: PlaybookCard | None, *, use_models: bool) -> None:
    """Raise BadGoal for a form that came past the starter and cannot be used."""
    try:
        check_form(form)
        card = playbook or PlaybookCard(name="")
        check_writer(form, card.name, card.verify, use_models=use_models, notice=card.notice)
    except BadForm as error:
        raise BadGoal(f"the form of the answer: {error}") from None
