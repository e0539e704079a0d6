"""A schedule from what was asked, checked as a run is that starts now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.contracts import Goal
from holdfast.contracts.schedules import Scheduled, Times
from holdfast.deployment.settings import Settings
from holdfast.errors import Refused
from holdfast.intake.goals import goal_of
from holdfast.intake.login import login
from holdfast.intake.requests import RunRequest
from holdfast.rendering.amounts import money

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
MOST_BYTES = 200 * 1024
"""A schedule keeps the request inside of Temporal, where what is larger would not be inline."""


def check_name(name: str) -> str:
    """Return the name of a schedule, of which the ids of its runs are made."""
    if not NAME.fullmatch(name):
        raise Refused(
            f"schedule {name!r:.80}: a name has up to 60 letters, digits, '.', '_' and '-', the"
            " first a letter or digit"
        )
    return name


def budget_of(text: str) -> Decimal | None:
    """Return dollars a month as typed; None: nothing was typed, or `none`."""
    if text in ("", "none"):
        return None
    try:
        amount = Decimal(text.removeprefix("$")) if text.isascii() else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and 0 < amount <= 10_000):
        raise Refused(f"--budget {text!r:.60}: write dollars above 0, at most 10000, or none")
    return amount


async def goal_of_request(
    request: RunRequest,
    settings: Settings,
    *,
    embedded: bool,
    below: tuple[Path, ...] | None = None,
) -> Goal:
    """Return the goal of a request with the catalogue and the files as they are now. `below`: the
    only places whose paths it may name.
    """
    catalogue = Catalogue.of(settings.project)
    return await goal_of(request.wish(settings, below), catalogue, settings, embedded=embedded)


async def scheduled_of(
    name: str,
    request: RunRequest,
    times: Times,
    settings: Settings,
    *,
    budget: Decimal | None = None,
    embedded: bool,
    requester: str = "",
    below: tuple[Path, ...] | None = None,
) -> tuple[Scheduled, Goal]:
    """Return the schedule, and the goal that a run of it would have now. Refused where such a run
    could not start, or would not fit into the budget. `below`: the only places whose paths it may
    name, now and later.
    """
    check_name(name)
    if request.id:
        raise Refused("a schedule names its runs by itself; leave out the id")
    goal = await goal_of_request(request, settings, embedded=embedded, below=below)
    _check_budget(goal, budget)
    asked = _with_whole_paths(request, goal).model_dump(
        mode="json", by_alias=True, exclude_defaults=True
    )
    scheduled = Scheduled(
        name=name,
        times=times,
        request=asked,
        budget=budget,
        project=settings.name,
        requester=requester or login(),
        below=None if below is None else tuple(str(each.resolve()) for each in below),
    )
    if len(scheduled.model_dump_json().encode()) > MOST_BYTES:
        raise Refused(
            f"schedule {name!r}: what it asks for has more than {MOST_BYTES // 1024} KiB; put text"
            " and tables into files, and name those"
        )
    return scheduled, goal


def merged(before: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request in which each input and limit stays that was not named again."""
    kept = {"inputs": {}, "limits": {}, **before}
    limits = asked.get("limits")
    if "dollars" in asked or (isinstance(limits, Mapping) and "dollars" in limits):
        # Either field may have said the cap; it counts no more.
        kept.pop("dollars", None)
        kept["limits"] = {name: each for name, each in kept["limits"].items() if name != "dollars"}
    both = {
        field: {**kept[field], **asked[field]}
        for field in ("inputs", "limits")
        if isinstance(asked.get(field), Mapping)
    }
    return {**kept, **asked, **both}


def _check_budget(goal: Goal, budget: Decimal | None) -> None:
    if budget is None or not goal.use_models:
        return
    if goal.unpriced:
        raise Refused("--budget and --unpriced: what has no price fits no budget; leave one out")
    if goal.limits.dollars > budget:
        raise Refused(
            f"--budget {budget}: one run may cost {money(goal.limits.dollars)}; give more, or a"
            f" lower cap: --limits dollars={budget}"
        )


def _with_whole_paths(request: RunRequest, goal: Goal) -> RunRequest:
    """Return the request with paths that a worker finds from its own folder. A link stays one: it
    may lead elsewhere by then.
    """
    paths = {each.name for each in goal.inputs if each.kind != "text"}
    inputs = {
        name: str(Path(given).expanduser().absolute())
        if name in paths and isinstance(given, str)
        else given
        for name, given in request.inputs.items()
    }
    return request.model_copy(update={"inputs": inputs})
