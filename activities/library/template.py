"""A template: a plan with parameters, as its file holds it, and what makes such a file unusable."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.activities.library.words import Token, tokens_of, values_of
from holdfast.contracts import AnswerKind, InputKind, Plan
from holdfast.text.mistakes import mistakes, suggest
from holdfast.untrusted.reading import NotPlain, from_yaml

FORM = 1
"""The form of template files that is read and written here."""
FILE_BYTES = 256 * 1024
NAME = r"[a-z0-9][a-z0-9-]{0,59}"
VALUE_LETTERS = 200
_SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
ParameterKind = Literal["text", "number", "date", "input"]
Short = Annotated[str, Field(max_length=64)]


class BadTemplate(ValueError):
    """A template that cannot be used: the message says why, as the rest of a sentence."""


class Parameter(BaseModel):
    """What may differ from goal to goal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: ParameterKind
    example: str = Field(min_length=1, max_length=VALUE_LETTERS)
    """Its value in the goal that the plan was made for: others must be of the same sort."""


class Template(BaseModel):
    """The whole of a template file but its name, which is the file's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    form: int
    goal: str = Field(min_length=1)
    """The goal that it is for, with `{name}` where a parameter stands."""
    parameters: dict[str, Parameter] = {}
    playbook: str = ""
    playbook_digest: Short = ""
    roles: dict[str, Short]
    """Digest of each role of its plan, as it was."""
    inputs: dict[str, InputKind] = {}
    answer: AnswerKind = ""
    """The form of the answer that its goal asked for; empty: text, or the playbook's."""
    shape: Short = ""
    """Digest of what plans of one kind of goal have in common."""
    runs: tuple[str, ...] = ()
    """The runs that it was made of."""
    plan: Plan

    @property
    def first_goal(self) -> str:
        """The goal that its plan was made for."""
        return _SLOT.sub(lambda slot: self.parameters[slot[1]].example, self.goal)

    def fill(self, values: Mapping[str, str]) -> Plan:
        """Return the plan with these values of its parameters."""

        def put(text: str) -> str:
            # In one pass: what a value has in braces stays as it is.
            return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)

        return map_plan(self.plan, put)


def map_plan(
    plan: Plan, change: Callable[[str], str], rename: Callable[[str], str] | None = None
) -> Plan:
    """Return the plan with every text in it changed that a parameter may stand in. `rename` is for
    the names of inputs; None: the same as for texts.
    """
    subtasks = tuple(
        each.model_copy(
            update={
                "title": change(each.title),
                "instruction": change(each.instruction),
                "acceptance_criteria": change(each.acceptance_criteria),
                "why": change(each.why),
                "inputs": tuple(map(rename or change, each.inputs)),
                "checks": tuple(
                    check.model_copy(update={"argument": change(check.argument)})
                    for check in each.checks
                ),
            }
        )
        for each in plan.subtasks
    )
    told = {"goal": change(plan.goal), "subtasks": subtasks}
    told |= {"synthesis_instruction": change(plan.synthesis_instruction)}
    return plan.model_copy(update=told)


def texts_of(plan: Plan) -> Iterator[str]:
    """Yield every text of a plan that a parameter may stand in."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    map_plan(plan, keep)
    yield from found


def words_of(plan: Plan) -> Iterator[str]:
    """Yield what agents are told in words."""
    for each in plan.subtasks:
        yield from (each.title, each.instruction, each.acceptance_criteria)
    yield plan.synthesis_instruction


def told_of(plan: Plan) -> Iterator[str]:
    """Yield the texts by which agents learn of a parameter."""
    for each in plan.subtasks:
        yield from (each.instruction, *each.inputs)


def read_template(text: str) -> Template:
    """Return the template in the text of a file. Raise BadTemplate for one that cannot be used."""
    try:
        fields = from_yaml(text)
        if isinstance(fields, dict) and (form := fields.get("form")) != FORM:
            raise BadTemplate(_other_form(form))
        template = Template.model_validate(fields)
    except NotPlain as error:
        raise BadTemplate(str(error)) from None
    except ValidationError as error:
        raise BadTemplate("; ".join(mistakes(error, "the whole"))) from None
    if wrong := "; ".join(_wrong_parameters(template)):
        raise BadTemplate(wrong)
    return template


def _other_form(form: object) -> str:
    if isinstance(form, int) and form > FORM:
        return f"form {form} is of a newer holdfast; this one reads form {FORM}"
    return f"form {form!r:.20} is of an older holdfast; save it again from its run"


def write_template(template: Template) -> str:
    """Return the file of a template, for people to read and change."""
    fields = template.model_dump(mode="json", exclude_defaults=True)
    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return text


def _wrong_parameters(template: Template) -> Iterator[str]:
    known = template.parameters
    in_goal = set(_SLOT.findall(template.goal))
    told = {name for text in told_of(template.plan) for name in _SLOT.findall(text)}
    named = {name for text in texts_of(template.plan) for name in _SLOT.findall(text)}
    for name in sorted((in_goal | named) - known.keys()):
        said = ", ".join(sorted(known)) or "none"
        yield f"{{{name}}} is no parameter of it{suggest(name, known)}; it has: {said}"
    for name, parameter in known.items():
        if not _SLOT.fullmatch(f"{{{name}}}"):
            yield f"parameter {name!r:.60}: a name is a to z, 0 to 9 and _, a letter first"
        elif name not in in_goal:
            yield f"parameter {name}: not in the goal, so that nothing gives it a value"
        elif name not in told:
            yield f"parameter {name}: in no instruction, so that no agent would be told its value"
        elif wrong := wrong_kind(parameter, template.inputs):
            yield f"parameter {name}: {wrong}"
    slots = [each.kind == "slot" for each in tokens_of(template.goal)]
    if any(one and other for one, other in itertools.pairwise(slots)):
        yield "goal: two parameters stand side by side; nothing tells where one ends"


def wrong_kind(parameter: Parameter, inputs: Mapping[str, InputKind]) -> str:
    """Return why the example is not of the parameter's kind; empty if it is."""
    kind, example = parameter.kind, parameter.example
    if "\n" in example or not example.strip():
        return "its example is no value in a line"
    if kind == "input":
        return "" if example in inputs else f"there is no input {example!r:.60}"
    if kind in ("number", "date") and single_value(example, kind) is None:
        return f"its example {example!r:.60} is no {kind}"
    return ""


def single_value(text: str, kind: str) -> Token | None:
    """Return the value that a text consists of, if it is one of this kind; else None."""
    found = values_of(text) if kind != "number" else tokens_of(text)
    whole = len(found) == 1 and (found[0].start, found[0].end) == (0, len(text))
    return found[0] if whole and found[0].kind == kind else None
