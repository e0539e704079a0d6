"""docs/from-python.md lists what a program meets: all events, orders, errors and options."""

from __future__ import annotations

import inspect
import re
from typing import get_args

from pydantic import BaseModel

import holdfast
from holdfast import Run, RunRequest, errors
from holdfast.client.holdfast import StartOptions
from holdfast.contracts.events import AnyEvent, RunEvent
from holdfast.deployment.settings import HOME
from holdfast.doors.http.bodies import ORDERS, Fork

PAGE = (HOME / "docs" / "from-python.md").read_text(encoding="utf-8")
OF_ALL_ORDERS = {"self", "by", "check"}
"""`check` is for doors."""


def listed(title: str) -> list[str]:
    """The lines of the block of text below a heading."""
    section = PAGE.partition(f"### {title}\n")[2].partition("\n## ")[0]
    return section.partition("```text\n")[2].partition("```")[0].splitlines()


def orders() -> dict[str, list[inspect.Parameter]]:
    """The methods of a run that take who decides, with what each takes of its own."""
    made = {}
    for name, method in inspect.getmembers(Run, inspect.iscoroutinefunction):
        parameters = inspect.signature(method).parameters
        if "by" in parameters:
            made[name] = [each for each in parameters.values() if each.name not in OF_ALL_ORDERS]
    return made


def test_each_event_is_listed_with_its_own_fields() -> None:
    shown = [tuple(re.split(r" {2,}", line)[:2]) for line in listed("Events")]
    common = {*RunEvent.model_fields, "kind"}
    events = get_args(get_args(AnyEvent)[0])
    own = [(e.__name__, [n for n in e.model_fields if n not in common]) for e in events]
    # What no field of its own has is followed by its explanation, or by nothing.
    assert [name for name, *_ in shown] == [name for name, _ in own]
    for (name, *fields), (_, real) in zip(shown, own, strict=True):
        assert not real or fields == [", ".join(real)], name
    said = PAGE.partition("### Events\n")[2].partition("\n\n<!--")[0]
    assert common <= set(re.findall(r"`(\w+)`", said))


def test_each_order_is_listed_with_its_arguments_and_defaults() -> None:
    shown = [re.split(r" {2,}", line)[0].replace('"', "'") for line in listed("Orders")]
    real = [
        f"{name}{inspect.Signature([p.replace(annotation=p.empty) for p in parameters])}"
        for name, parameters in orders().items()
    ]
    assert sorted(shown) == sorted(real)


def test_over_http_an_order_has_the_same_arguments() -> None:
    shapes: dict[str, type[BaseModel]] = {**ORDERS, "fork": Fork}
    bodies = {name: list(body.model_fields) for name, body in shapes.items()}
    assert bodies == {name: [each.name for each in own] for name, own in orders().items()}


def test_each_error_is_drawn_below_the_one_that_it_is_a_kind_of() -> None:
    drawn: dict[str, str] = {}
    above = {2: "Exception"}
    # The page has the reader print it.
    tree = [line for line in str(errors.__doc__).splitlines() if line.startswith("    ")]
    for line in tree:
        depth, name = len(line) - len(line.lstrip()), line.split()[0]
        above[depth] = name
        drawn[name] = above[depth - 2]
    kinds = [each for _, each in inspect.getmembers(errors, inspect.isclass)]
    real = {
        each.__name__: each.__bases__[0].__name__ for each in kinds if issubclass(each, Exception)
    }
    assert drawn == real
    elsewhere = {name for name in drawn if name not in holdfast.__all__}
    named = PAGE.partition("### Errors\n")[2].partition(" are in `holdfast.errors`")[0]
    assert elsewhere == set(re.findall(r"`(\w+)`", named.rpartition("```")[2]))


def test_each_option_of_a_start_is_named() -> None:
    row = PAGE.partition("| `await hf.start(goal, …)` |")[2].partition("\n")[0]
    options = {*StartOptions.__annotations__, "answer"}
    assert options <= set(re.findall(r"`(\w+)`", row))
    assert {*options, "goal"} - {"columns"} == {*RunRequest.model_fields}
