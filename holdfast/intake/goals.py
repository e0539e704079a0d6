"""Turn what was asked into a Goal, or list every mistake: nothing starts unchecked.

A mistake is named by the option of the command line that gives the same, whatever way it came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import ValidationError

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import PlaybookFile
from holdfast.activities.catalogue.tools import CatalogueError
from holdfast.activities.prompts.files import system_prompts
from holdfast.activities.toolset.shelf import tools_for
from holdfast.calls.plan import is_offered
from holdfast.contracts import HARD_SUBTASK_LIMIT, Approval, Goal, GoalInput, Limits, Plan, policies
from holdfast.contracts.base import Urgency
from holdfast.contracts.goals import Reuse
from holdfast.contracts.plans import Lane
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake import plans
from holdfast.intake.answers import WantedForm, form_of
from holdfast.intake.inputs import (
    check_documents,
    check_inputs,
    check_maps,
    check_size,
    input_of,
    unread_of,
)
from holdfast.intake.notices import notify_of
from holdfast.intake.repositories import check_repositories
from holdfast.plans import mapping, validity
from holdfast.storage.keys import keyring
from holdfast.text import PLAIN_ID, says_something, visible
from holdfast.text.mistakes import as_rest, suggest

AUTO = Approval()
ANY_FORM = WantedForm()


@dataclass(frozen=True)
class Wish:
    """A goal as it was typed, unchecked."""

    text: str = ""
    playbook: str = ""
    inputs: tuple[str, ...] = ()
    plan: Path | Plan | None = None
    limits: tuple[str, ...] = ()
    models: bool = False
    unpriced: bool = False
    approval: Approval = AUTO
    ask_people: bool = False
    wait_for_raise: bool = False
    form: WantedForm = ANY_FORM
    single: bool = False
    """True if one agent is to have the whole goal, without a planner."""
    role: str = ""
    """The role of that agent; empty: the usual one."""
    roles: tuple[str, ...] = ()
    """The only roles that a planner may assign; empty: all."""
    notify: tuple[str, ...] = ()
    """Addresses that web hooks tell of the run."""
    on: tuple[str, ...] = ()
    """Of what they tell, each perhaps a list with commas; empty: of all."""
    lane: Lane | None = None
    """The lane of all maps; None: as each of them says."""
    urgency: Urgency = "normal"
    reuse: str = ""
    """The run whose rows are taken over; empty: none."""
    templates: bool = True
    """False if a planner is to plan whatever the plan library has."""
    below: tuple[Path, ...] | None = None
    """The only places that inputs may name; None: those that this user can read."""


async def goal_of(wish: Wish, catalogue: Catalogue, settings: Settings, *, embedded: bool) -> Goal:
    """Return the Goal of a wish. Refused says what is wrong, with which thing, and what to do.

    `embedded`: the worker will have these settings and files, so a missing endpoint or an unusable
    prompt is final.
    """
    # The worker imports the tools of all: one that cannot be imported keeps it from starting.
    for each in settings.projects:
        tools_for(each)
    playbook = _playbook(wish.playbook, catalogue)
    given = plans.read_plan(wish.plan) if isinstance(wish.plan, Path) else wish.plan
    text = _text_of(wish, given, playbook)
    notify = notify_of(wish.notify, wish.on, settings, embedded=embedded)
    limits = limits_of(wish.limits)
    mapped = plans.mapped_by(given or (playbook.plan if playbook else None))
    inputs = tuple(input_of(each, playbook, wish.below, mapped) for each in wish.inputs)
    check_inputs(inputs, playbook)
    plan = None
    if given:
        plan = _check(plans.name_inputs(given, inputs), wish, catalogue, inputs, limits)
    if wish.single or wish.role:
        plan = _single(wish, playbook, text, limits, catalogue)
    declared = playbook.inputs if playbook else {}
    await check_repositories(inputs, declared, settings, embedded=embedded)
    ready = plan or (playbook.plan if playbook else None)
    unread = {name: reader for name, reader in map(unread_of, inputs) if reader is not None}
    _check_maps(wish, ready, limits)
    problem = validity.unread_problem(ready, catalogue.roles_for(wish.playbook), unread)
    if problem:
        raise Refused(problem)
    await check_documents(inputs, declared)
    await check_maps(inputs, ready)
    without = _works_without_models(ready, catalogue)
    use_models = wish.models or not without
    for name in [] if use_models else [one.name for one in inputs]:
        if name in declared and declared[name].for_models:
            raise Refused(f"--input {name}: only models read it; add --models")
    form = form_of(wish.form, playbook, use_models=use_models)
    keyring(settings.key_file)
    if use_models:
        check_payable(limits, unpriced=wish.unpriced)
    if use_models and embedded:
        _check_endpoint(settings, wish.playbook if without else "")
    return Goal(
        text=text,
        inputs=inputs,
        playbook=wish.playbook,
        project=settings.name,
        plan=plan,
        limits=with_early(limits),
        use_models=use_models,
        unpriced=wish.unpriced,
        approval=_approval(wish, playbook),
        ask_people=wish.ask_people,
        wait_for_raise=wish.wait_for_raise,
        form=form,
        roles=_check_roles(wish, ready, catalogue),
        notify=notify,
        templates=wish.templates,
        lane=wish.lane,
        urgency=wish.urgency,
        reuse=Reuse(run=check_reuse(wish.reuse)) if wish.reuse else None,
    )


def _approval(wish: Wish, playbook: PlaybookFile | None) -> Approval:
    """Return when the plan is approved: as the playbook says, then as was asked."""
    return Approval(when="always") if playbook and playbook.approval else wish.approval


def _check(
    plan: Plan,
    wish: Wish,
    catalogue: Catalogue,
    inputs: tuple[GoalInput, ...],
    limits: Limits,
) -> Plan:
    # The default bounds what a planner may plan; a plan written by hand is as large as it says.
    most = limits.subtasks if "subtasks" in limits.model_fields_set else HARD_SUBTASK_LIMIT
    names = [each.name for each in inputs]
    unusable = catalogue.unusable_for(wish.playbook)
    wrong = validity.problems(
        plan,
        catalogue.roles_for(wish.playbook),
        names,
        most,
        unusable=unusable,
        longest=limits.subtask_timeout_seconds,
    )
    if wrong:
        raise plans.refuse_plan(_named(wish.plan), wrong)
    return plan


def _check_maps(wish: Wish, ready: Plan | None, limits: Limits) -> None:
    """Refuse what is said of maps where the plan that is ready has none, and batches for which
    there is no time.
    """
    if ready is None:
        return
    for wrong in mapping.time_problems(ready, wish.lane, limits.deadline_seconds):
        raise Refused(wrong)
    if any(each.map for each in ready.subtasks):
        return
    for option, given in (("--lane", wish.lane), ("--reuse", wish.reuse)):
        if given:
            raise Refused(f"{option}: it is for maps, and this plan has none; leave it out")


def check_reuse(run_id: str) -> str:
    """Return the id of a run whose rows are taken over. Refused if it can be none's."""
    if not PLAIN_ID.fullmatch(run_id):
        raise Refused(f"--reuse {visible(run_id)!r:.100}: that is no id of a run")
    return run_id


def _named(plan: Path | Plan | None) -> str:
    return f"--plan {plan}" if isinstance(plan, Path) else "the plan"


def _check_roles(wish: Wish, ready: Plan | None, catalogue: Catalogue) -> tuple[str, ...]:
    """Return the roles that a planner is offered. Refused for one that there is not, and where
    nothing is planned.
    """
    if wish.roles and ready is not None:
        raise Refused("--roles: they are what a planner chooses from, and this plan is ready")
    known = sorted(each.name for each in catalogue.roles_for(wish.playbook) if is_offered(each))
    for name in wish.roles:
        if name not in known:
            hint = suggest(name, known)
            raise Refused(f"--roles: unknown role {name!r}{hint}; known: {', '.join(known)}")
    return tuple(dict.fromkeys(wish.roles))


def _single(
    wish: Wish,
    playbook: PlaybookFile | None,
    text: str,
    limits: Limits,
    catalogue: Catalogue,
) -> Plan:
    """Return the plan in which one agent has the whole goal. Refused if the rest of what was asked
    says otherwise.
    """
    if not wish.single:
        raise Refused(
            f"--role {wish.role!r}: it says who has the whole goal; give --single with it"
        )
    if wish.plan:
        named = _named(wish.plan)
        raise Refused(f"--single and {named}: one agent, or that plan; leave one out")
    if playbook and (playbook.plan or playbook.lenses):
        raise Refused(f"--single: playbook {wish.playbook!r} brings a plan; leave one out")
    if "subtasks" in limits.model_fields_set and limits.subtasks > 1:
        raise Refused(f"--single and --limits subtasks={limits.subtasks}: leave one out")
    role = wish.role or policies.FALLBACK_ROLE
    cards = {each.name: each for each in catalogue.roles_for(wish.playbook)}
    if wish.role and role in cards and cards[role].tier == "none":
        raise Refused(f"--role {role}: it asks no model, and cannot have a whole goal")
    if role in cards and cards[role].team:
        raise Refused(f"--role {role}: it is a team, and --single asks one agent; leave it out")
    names = [pair.partition("=")[0] for pair in wish.inputs]
    plan = Plan.single(text, role, names)
    unusable = catalogue.unusable_for(wish.playbook)
    wrong = validity.problems(plan, tuple(cards.values()), names, 1, unusable=unusable)
    if wrong:
        what = f"--role {wish.role!r}" if wish.role else "--single"
        raise Refused(f"{what}: {'; '.join(each.partition(': ')[2] for each in wrong)}")
    return plan


def _playbook(name: str, catalogue: Catalogue) -> PlaybookFile | None:
    if not name:
        return None
    why = catalogue.unusable_playbook(name)
    if why:
        raise Refused(f"playbook {name!r} cannot be used: {why}")
    if name not in catalogue.playbooks:
        known = sorted(catalogue.playbooks)
        raise Refused(f"unknown playbook {name!r}{suggest(name, known)}; known: {', '.join(known)}")
    playbook = catalogue.playbooks[name]
    unusable = catalogue.unusable_for(name)
    for subtask in playbook.plan.subtasks if playbook.plan else ():
        if subtask.role in unusable:
            needs = f"playbook {name!r}: {subtask.id} needs role {subtask.role!r}"
            raise Refused(f"{needs}, which cannot be used: {unusable[subtask.role]}")
    return playbook


def _text_of(wish: Wish, plan: Plan | None, playbook: PlaybookFile | None) -> str:
    """Return the goal in words. Refused if there are none, or too many."""
    typed = wish.text.strip() if says_something(wish.text) else ""
    text = typed or _words_of(plan, playbook)
    if not text:
        raise Refused(
            'the goal is empty; say what you want: run "a goal", --playbook NAME, or --plan FILE'
        )
    return check_size("the goal", text)


def _words_of(plan: Plan | None, playbook: PlaybookFile | None) -> str:
    """Return the goal of the given plan, else of the playbook, for when none was typed."""
    if plan is not None and says_something(plan.goal):
        return plan.goal.strip()
    if playbook is None:
        return ""
    return playbook.words


def _works_without_models(plan: Plan | None, catalogue: Catalogue) -> bool:
    """True if a ready plan has work for tools alone; the model's part is left out."""
    tools = [name for name, role in catalogue.roles.items() if role.card.tier == "none"]
    return plan is not None and any(subtask.role in tools for subtask in plan.subtasks)


def check_startable(settings: Settings) -> None:
    """Raise Refused or BadSettings for files with which no worker of these settings could start:
    tools, lenses of packages, prices.
    """
    for each in settings.by_project.values():
        Catalogue.of(each.project)
        _check_prices(each)


def _check_endpoint(settings: Settings, playbook: str) -> None:
    """Refuse unless a model can be asked from here."""
    if not settings.has_endpoint:
        raise _no_endpoint(playbook)
    try:
        system_prompts()
    except CatalogueError as error:
        raise Refused(str(error)) from error
    _check_prices(settings)


def _check_prices(settings: Settings) -> None:
    """Refuse a price file with which no worker could start."""
    if settings.price_file is None:
        return
    # The library of prices takes a while to load, and few have a file of their own.
    from holdfast.activities.asking.prices import PriceFileError, read_price_file

    try:
        read_price_file(settings.price_file)
    except PriceFileError as error:
        raise Refused(str(error)) from error


def _no_endpoint(playbook: str) -> Refused:
    """Return the three-line refusal of a goal that needs a model where none can be asked.
    `playbook` is the named one if it can do without.
    """
    free = (
        f"Without a model: --playbook {playbook} alone, if you leave out --models."
        if playbook
        else "Without a model: starter.py demo, or run --playbook code-review --input repo=PATH."
    )
    return Refused(
        "This goal needs a language model, and no endpoint is configured.\n"
        "Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for another server with the Messages API.\n"
        + free
    )


# ---------------------------------------------------------------- limits and approval


def approval_of(text: str, otherwise: Approval) -> Approval:
    """Return when the plan must be approved, from `auto`, `always` or an amount of dollars;
    `otherwise` if nothing was typed.
    """
    match text:
        case "":
            return otherwise
        case "auto":
            return Approval(when="auto")
        case "always":
            return Approval(when="always")
    why = f"--approval {text!r}: say auto, always, or the dollars above which you are asked"
    if not text.isascii():
        raise Refused(f"{why}, with the digits 0 to 9")
    try:
        approval = Approval(when="above", dollars=Decimal(text.removeprefix("$")))
    except (InvalidOperation, ValidationError) as error:
        raise Refused(why) from error
    if approval.dollars < 0:
        raise Refused(f"{why}, 0 or more")
    return approval


LEAST = {"dollars": "0.50", "model_calls": "10", "tokens": "100000"}
"""What to write instead of nothing."""
LEAST_DOLLARS = Decimal("0.0001")
"""Less than any call of a model costs."""


def check_payable(limits: Limits, *, unpriced: bool) -> None:
    """Refuse limits under which no single call fits; with `unpriced`, dollars need not pay for
    one.
    """
    for name, least in LEAST.items():
        given = getattr(limits, name)
        payable = given >= LEAST_DOLLARS if name == "dollars" else given
        if not payable and not (unpriced and name == "dollars"):
            raise Refused(
                f"--limits {name}={given}: no call of a model fits, and this run asks models;"
                f" write {name}={least}, or more"
            )


EARLY = 5
"""Subtasks that may start before their plan is whole, where a run does not say otherwise."""


def with_early(limits: Limits) -> Limits:
    """Return limits with the usual number of early subtasks, which older runs do without."""
    given = "early" in limits.model_fields_set
    return limits if given else limits.model_copy(update={"early": EARLY})


SEVERAL = re.compile(r",(?=[a-z_]+=)")
"""Between two limits in one option."""


def limits_of(pairs: tuple[str, ...]) -> Limits:
    """Return Limits from `name=value` pairs. Refused lists every unknown name and impossible
    value.
    """
    given: dict[str, str] = {}
    wrong: list[str] = []
    # Several in one, as `a=1,b=2`, are as good as several options.
    for pair in (each for given_once in pairs for each in SEVERAL.split(given_once)):
        name, found, value = pair.partition("=")
        if not found:
            wrong.append(f"{pair!r} is not name=value")
        elif name not in Limits.model_fields:
            known = [*Limits.model_fields]
            wrong.append(f"unknown limit {name!r}{suggest(name, known)}; known: {', '.join(known)}")
        elif name in given:
            wrong.append(f"{name} is given twice")
        elif not value.isascii():
            wrong.append(f"{name}={value}: write the number with the digits 0 to 9")
        else:
            given[name] = value
    try:
        limits = Limits.model_validate(given)
    except ValidationError as error:
        wrong += [
            f"{mistake['loc'][0]}={given[str(mistake['loc'][0])]}: {as_rest(mistake['msg'])}"
            for mistake in error.errors()
        ]
    if wrong:
        raise Refused(f"--limits: {'; '.join(wrong)}")
    return limits
