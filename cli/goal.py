"""From what was typed to a Goal, or to every mistake in it: nothing starts unchecked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import ValidationError

from activities.catalogue import Catalogue, PlaybookFile
from activities.preparation import INPUT_BYTES
from cli import plans
from cli.exits import Stop
from cli.files import read_text
from cli.repositories import check_repositories
from deployment.settings import Settings
from orchestrator.contracts import (
    HARD_SUBTASK_LIMIT,
    Approval,
    Goal,
    GoalInput,
    InputKind,
    Limits,
    Plan,
)
from orchestrator.rules import graph
from orchestrator.text import says_something

LITERAL = "text:"
MOST_LITERAL_BYTES = 200 * 1024
"""Literal text travels inside the Goal, which must stay readable in the Web UI."""


AUTO = Approval()


@dataclass(frozen=True)
class Asked:
    """The options of `run` and `start` that make a Goal."""

    text: str = ""
    playbook: str = ""
    inputs: tuple[str, ...] = ()
    plan: Path | None = None
    limits: tuple[str, ...] = ()
    models: bool = False
    unpriced: bool = False
    approval: Approval = AUTO
    ask_people: bool = False
    wait_for_raise: bool = False


async def goal_of(
    asked: Asked, catalogue: Catalogue, settings: Settings, *, embedded: bool
) -> Goal:
    """The Goal that was asked for. Stop names what is wrong, with which thing, and what to do.

    `embedded` says that the worker will have these settings too, so a missing endpoint is final.
    """
    playbook = _playbook(asked.playbook, catalogue)
    given = plans.read(asked.plan) if asked.plan else None
    typed = asked.text.strip() if says_something(asked.text) else ""
    text = typed or _words_of(given, playbook)
    if not text:
        raise Stop(
            'the goal is empty; say what you want: run "a goal", --playbook NAME, or --plan FILE'
        )
    _check_size("the goal", text)
    limits = limits_of(asked.limits)
    inputs = tuple(_input(each, playbook) for each in asked.inputs)
    _check_inputs(inputs, playbook)
    plan = _checked(given, asked, catalogue, inputs, limits) if given else None
    await check_repositories(inputs, settings, embedded=embedded)
    ready = plan or (playbook.plan if playbook else None)
    folders = [each.name for each in inputs if each.kind == "repository"]
    problem = graph.folder_problem(ready, catalogue.roles_for(asked.playbook), folders)
    if problem:
        raise Stop(f"--input: {problem}")
    use_models = asked.models or not _works_without_models(ready, catalogue)
    if use_models and embedded:
        if not settings.has_endpoint:
            raise no_endpoint(asked.playbook)
        _check_prices(settings)
    return Goal(
        text=text,
        inputs=inputs,
        playbook=asked.playbook,
        plan=plan,
        limits=limits,
        use_models=use_models,
        unpriced=asked.unpriced,
        approval=asked.approval,
        ask_people=asked.ask_people,
        wait_for_raise=asked.wait_for_raise,
    )


def _checked(
    plan: Plan,
    asked: Asked,
    catalogue: Catalogue,
    inputs: tuple[GoalInput, ...],
    limits: Limits,
) -> Plan:
    # The default bounds what a planner may plan; a plan written by hand is as large as it says.
    most = limits.subtasks if "subtasks" in limits.model_fields_set else HARD_SUBTASK_LIMIT
    names = [each.name for each in inputs]
    unusable = catalogue.unusable_for(asked.playbook)
    wrong = plans.problems(
        plan, catalogue.roles_for(asked.playbook), names, most, unusable=unusable
    )
    if wrong:
        raise plans.invalid(f"--plan {asked.plan}", wrong)
    return plan


def _playbook(name: str, catalogue: Catalogue) -> PlaybookFile | None:
    if not name:
        return None
    why = catalogue.unusable_playbook(name)
    if why:
        raise Stop(f"playbook {name!r} cannot be used: {why}")
    if name not in catalogue.playbooks:
        raise Stop(f"unknown playbook {name!r}; known: {', '.join(sorted(catalogue.playbooks))}")
    playbook = catalogue.playbooks[name]
    unusable = catalogue.unusable_for(name)
    for subtask in playbook.plan.subtasks if playbook.plan else ():
        if subtask.role in unusable:
            needs = f"playbook {name!r}: {subtask.id} needs role {subtask.role!r}"
            raise Stop(f"{needs}, which cannot be used: {unusable[subtask.role]}")
    return playbook


def _words_of(plan: Plan | None, playbook: PlaybookFile | None) -> str:
    """The goal where none was typed: the given plan's, else the playbook's."""
    if plan is not None and says_something(plan.goal):
        return plan.goal.strip()
    if playbook is None:
        return ""
    return playbook.words


def _works_without_models(plan: Plan | None, catalogue: Catalogue) -> bool:
    """Whether a ready plan has work for tools alone; a model's part of it is then left out."""
    tools = [name for name, role in catalogue.roles.items() if role.card.tier == "none"]
    return plan is not None and any(subtask.role in tools for subtask in plan.subtasks)


def _check_prices(settings: Settings) -> None:
    """A price file that no worker could start with is refused here."""
    if settings.price_file is None:
        return
    # The library of prices takes a while to load, and few have a file of their own.
    from activities.asking.prices import PriceFileError, read_price_file

    try:
        read_price_file(settings.price_file)
    except PriceFileError as error:
        raise Stop(f"HOLDFAST_PRICE_FILE: {error}") from error


def endpoint_of(settings: Settings) -> str:
    """The address of the models that an embedded worker asks."""
    return settings.anthropic_base_url or "https://api.anthropic.com"


def no_endpoint(playbook: str) -> Stop:
    """The refusal, in three lines, of a goal that needs a model where none can be asked."""
    free = (
        f"Without a model: --playbook {playbook} alone, if you leave out --models."
        if playbook
        else "Without a model: make demo, or run --playbook code-review --input repo=PATH."
    )
    return Stop(
        "This goal needs a language model, and no endpoint is configured.\n"
        "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for another server with the Messages API.\n"
        + free
    )


# ---------------------------------------------------------------- limits and approval


def approval_of(text: str, otherwise: Approval) -> Approval:
    """When the plan must be approved, from `auto`, `always` or an amount of dollars; `otherwise`
    when nothing was said.
    """
    match text:
        case "":
            return otherwise
        case "auto":
            return Approval(when="auto")
        case "always":
            return Approval(when="always")
    why = f"--approval {text!r}: say auto, always, or the dollars above which you are asked"
    try:
        approval = Approval(when="above", dollars=Decimal(text.removeprefix("$")))
    except (InvalidOperation, ValidationError) as error:
        raise Stop(why) from error
    if approval.dollars < 0:
        raise Stop(f"{why}, 0 or more")
    return approval


def limits_of(pairs: tuple[str, ...]) -> Limits:
    """Limits from `name=value` pairs; Stop lists every unknown name and absurd value at once."""
    given: dict[str, str] = {}
    wrong: list[str] = []
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found:
            wrong.append(f"{pair!r} is not name=value")
        elif name not in Limits.model_fields:
            wrong.append(f"unknown limit {name!r}; known: {', '.join(Limits.model_fields)}")
        elif name in given:
            wrong.append(f"{name} is given twice")
        else:
            given[name] = value
    try:
        limits = Limits.model_validate(given)
    except ValidationError as error:
        wrong += [
            f"{mistake['loc'][0]}={given[str(mistake['loc'][0])]}: {plans.lower(mistake['msg'])}"
            for mistake in error.errors()
        ]
    if wrong:
        raise Stop(f"--limits: {'; '.join(wrong)}")
    return limits


# ---------------------------------------------------------------- inputs


def _input(pair: str, playbook: PlaybookFile | None) -> GoalInput:
    name, found, value = pair.partition("=")
    if not found or not name or not value:
        raise Stop(f"--input {pair!r}: write name=PATH, or name={LITERAL}... for literal text")
    declared = playbook.inputs.get(name) if playbook else None
    if playbook and declared is None:
        known = ", ".join(sorted(playbook.inputs)) or "none"
        raise Stop(f"--input {name}: playbook {playbook.name!r} has no such input; it has: {known}")
    if declared and declared.kind == "text":
        text = value.removeprefix(LITERAL)
        return GoalInput(name=name, kind="text", value=_check_size(f"--input {name}", text))
    if value.startswith(LITERAL) and declared is None:
        text = value.removeprefix(LITERAL)
        return GoalInput(name=name, kind="text", value=_check_size(f"--input {name}", text))
    return _path_input(name, value, declared.kind if declared else None)


def _path_input(name: str, value: str, kind: InputKind | None) -> GoalInput:
    try:
        path = Path(value).expanduser().resolve(strict=True)
    except (OSError, ValueError, RuntimeError) as error:
        # ValueError: a NUL in it; RuntimeError: a link that leads to itself, a user there is not.
        hint = "" if kind else f"; for literal text write {name}={LITERAL}..."
        raise Stop(f"--input {name}: there is no file or folder {value!r}{hint}") from error
    found: InputKind = "repository" if path.is_dir() else "file"
    if kind and kind != found:
        raise Stop(f"--input {name}: {value!r} is a {_KINDS[found]}, a {_KINDS[kind]} is needed")
    if found == "file" and not path.is_file():
        raise Stop(f"--input {name}: {value!r} is no regular file; give one")
    if not os.access(path, os.R_OK):
        raise Stop(f"--input {name}: {value!r} is not readable; change its permissions")
    if found == "file":
        _check_file(name, path)
    return GoalInput(name=name, kind=found, value=str(path))


def _check_file(name: str, path: Path) -> None:
    """What `prepare` would refuse later is refused now."""
    read_text(path, f"--input {name}", INPUT_BYTES)


_KINDS: dict[InputKind, str] = {"text": "text", "file": "file", "repository": "folder"}


def _check_size(what: str, text: str) -> str:
    if len(text.encode("utf-8", "surrogateescape")) > MOST_LITERAL_BYTES:
        limit = MOST_LITERAL_BYTES // 1024
        raise Stop(f"{what}: more than {limit} KiB of text; put it into a file: --input name=FILE")
    return text


def _check_inputs(inputs: tuple[GoalInput, ...], playbook: PlaybookFile | None) -> None:
    names = [each.name for each in inputs]
    for name in names:
        if names.count(name) > 1:
            raise Stop(f"--input {name}: given twice; give each input once")
    for name, declared in playbook.inputs.items() if playbook else ():
        if declared.required and name not in names:
            sample = "PATH" if declared.kind != "text" else "TEXT"
            about = f" ({declared.description})" if declared.description else ""
            raise Stop(f"input {name!r} is missing{about}: give --input {name}={sample}")
