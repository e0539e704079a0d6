"""Check that a plan is valid: one function, for plans of models, files and people alike. Pure.

Never called where a history replays: another version of RE2, or of these rules, may judge
differently. A plan is judged where the judgement is recorded, in an activity, or where nothing
replays: in the starter, and when an Update arrives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from holdfast.calls.work import WORK
from holdfast.contracts import LONGEST_CALL_SECONDS, PinnedInput, Plan, RoleCard, Subtask, policies
from holdfast.contracts.plans import ID_LENGTH, SUBTASK_ID
from holdfast.plans import checks, composing, mapping
from holdfast.state import choices, graph
from holdfast.text.mistakes import suggest

Named = TypeVar("Named")
FEWEST_INSTRUCTION_WORDS = 5
"""A shorter instruction cannot be self-contained; "analyse the data" is the classic defect."""

FOLDERS = frozenset(("folder", "repository"))
ABOVE = "repeats a subtask of a run above: same role, same instruction"


def problems(
    plan: Plan,
    roles: Sequence[RoleCard],
    inputs: Collection[str],
    subtask_limit: int,
    asked: Collection[str] = (),
    unusable: Mapping[str, str] = MappingProxyType({}),
    unread: Mapping[str, str] = MappingProxyType({}),
    longest: int = LONGEST_CALL_SECONDS,
    untrusted: Sequence[PinnedInput] = (),
) -> tuple[str, ...]:
    """Return everything that is wrong with a plan, each with its place.

    `asked`: fingerprints of what the runs above have planned. `unusable`: existing roles that
    cannot be used, and why. `unread`: inputs that only tools read, with the tool. `longest`:
    seconds that the run allows one call. `untrusted`: what a planning model has read.
    """
    found = [*composing.problems(plan, roles, untrusted), *_check_size(plan, subtask_limit)]
    roles = composing.with_composed(plan, roles)
    known = {role.name: role for role in roles}
    ids = _first_places([subtask.id for subtask in plan.subtasks])
    signatures = _first_places([graph.signature(subtask) for subtask in plan.subtasks])
    for place, subtask in enumerate(plan.subtasks):
        where = f"subtasks[{place}] {subtask.id!r}"
        if ids[subtask.id] != place:
            found.append(f"{where}: this id is used twice")
        wrong = (*_who_problems(subtask, known, unusable), *_problems_of(subtask, inputs, ids))
        wrong = (*wrong, *_check_range(subtask, longest), *mapping.problems(subtask, known, inputs))
        # Whoever asks in few words is answered; whoever plans must say what is to be done.
        wrong = wrong if plan.is_goal else (*wrong, *_check_instruction(subtask))
        found += [f"{where}: {problem}" for problem in wrong]
        # To choose the best of several attempts, the same instruction may stand more than once.
        attempt = plan.strategy == "select" or any(subtask.id in each for each in plan.choices)
        if not attempt and signatures[graph.signature(subtask)] < place:
            found.append(f"{where}: repeats an earlier subtask: same role, same instruction")
        if graph.fingerprint(subtask) in asked:
            found.append(f"{where}: {ABOVE}")
    cycle = graph.find_cycle(plan.subtasks)
    if cycle:
        found.append(f"depends_on: there is a cycle: {' -> '.join(cycle)}")
    unreadable = unread_problem(plan, roles, unread)
    found += [*([unreadable] if unreadable else []), *choices.problems(plan)]
    return (*found, *checks.plan_problems(plan))


def _check_size(plan: Plan, limit: int) -> Iterator[str]:
    if not plan.subtasks:
        yield "subtasks: the plan is empty; plan at least one subtask"
    if plan.strategy != "merge" and len(plan.subtasks) == 1:
        yield f"strategy: {plan.strategy} needs two subtasks or more; plan them, or say merge"
    if len(plan.subtasks) > limit:
        yield f"subtasks: {len(plan.subtasks)} are planned, the limit is {limit}"


def _first_places(values: Sequence[Named]) -> dict[Named, int]:
    return {value: place for place, value in reversed([*enumerate(values)])}


def only_by_tools(inputs: Iterable[PinnedInput]) -> dict[str, str]:
    """Return the inputs that stand in no prompt, with the tool that reads each document."""
    return {each.name: each.reader for each in inputs if not each.enclosed}


def unread_problem(plan: Plan | None, roles: Sequence[RoleCard], unread: Mapping[str, str]) -> str:
    """Return why a run cannot read these inputs, which only tools read; empty if it can."""
    known = {role.name: role for role in roles}
    if plan is None:
        # A planner is told which of its roles reads what.
        agents = [role for role in roles if role.tier != "none"]
        for name, reader in unread.items():
            if not any(_reads(role, reader) for role in agents):
                tools = reader or "list_files and read_file"
                return f"input {name!r} is {_what(reader)}, and no role reads one; give one {tools}"
        return ""
    for subtask in plan.subtasks:
        for role in filter(None, map(known.get, (subtask.role, subtask.secondary))):
            for name in subtask.inputs:
                if name not in unread or (subtask.map and subtask.map.over == name):
                    # What is mapped is read item by item.
                    continue
                if subtask.map:
                    return _cannot_open(subtask, name, unread[name])
                if not _reads(role, unread[name]):
                    return _cannot_read(subtask, role, name, unread[name])
    return ""


def _cannot_open(subtask: Subtask, name: str, reader: str) -> str:
    return (
        f"{subtask.id}: input {name!r} is {_what(reader)}, and what is asked item by item has no"
        " tool that opens one; give its text as a plain file"
    )


def _cannot_read(subtask: Subtask, role: RoleCard, name: str, reader: str) -> str:
    tool = reader or "list_files and read_file"
    text = ", or its text as a plain file" if reader == "read_document" else ""
    return (
        f"{subtask.id}: input {name!r} is {_what(reader)}, and role {role.name!r} has no tool that"
        f" reads it; give it to one that has {tool}{text}"
    )


def _reads(role: RoleCard, reader: str) -> bool:
    """True if a role can look into what this tool reads; without a name, into a folder, as any lens
    does, and any tool of which nothing else is known. For a team, one of its agents does.
    """
    if role.team:
        return True
    if reader:
        return reader in role.tools
    blind = {each.tool for each in role.reads if FOLDERS.isdisjoint(each.inputs)}
    return not blind.issuperset(role.tools) or role.tier == "none"


def _what(reader: str) -> str:
    return "a document" if reader else "a folder"


def _check_range(subtask: Subtask, longest: int) -> Iterator[str]:
    """Check what a subtask sets for itself against the run's and the usual limits."""
    seconds, room = subtask.timeout_seconds, subtask.max_output
    least = policies.LEAST_OUTPUT if subtask.map is None else policies.LEAST_ROW_OUTPUT
    most = WORK.policy.max_output
    if seconds and not 1 <= seconds <= longest:
        allows = "the run's subtask_timeout_seconds allows"
        yield f"timeout_seconds: {seconds}: must be 1 to {longest}, which {allows}; 0 means that"
    if room and not least <= room <= most:
        yield f"max_output: {room}: must be {least} to {most} tokens; 0 means as many as usual"


def _role_problems(
    subtask: Subtask, roles: Mapping[str, RoleCard], unusable: Mapping[str, str]
) -> list[str]:
    role = roles.get(subtask.role)
    if role is None and subtask.role in unusable:
        return [f"role {subtask.role!r} cannot be used: {unusable[subtask.role]}"]
    if role is None:
        meant = suggest(subtask.role, roles)
        return [f"unknown role {subtask.role!r}{meant}; known: {', '.join(sorted(roles))}"]
    kind, idle = "", ["tier", "checks"]
    if role.tier == "none":
        kind, idle = "has no model", [*idle, "acceptance_criteria", "max_output"]
    elif role.team:
        kind, idle = "is a team", [*idle, "timeout_seconds", "max_output"]
    elif role.fixed_tier and subtask.tier != role.tier:
        kind, idle = f"is always of the tier {role.tier}", ["tier"]
    named = ", ".join(name for name in idle if getattr(subtask, name))
    return [f"{named}: no effect, because role {role.name!r} {kind}"] if kind and named else []


def _who_problems(
    subtask: Subtask, roles: Mapping[str, RoleCard], unusable: Mapping[str, str]
) -> list[str]:
    wrong = _role_problems(subtask, roles, unusable)
    role = roles.get(subtask.role)
    if role and (foreign := checks.foreign_keys(subtask.checks, role.result)):
        wrong.append(foreign)
    return wrong + (_second_problems(subtask, roles, unusable) if subtask.secondary else [])


def _second_problems(
    subtask: Subtask, roles: Mapping[str, RoleCard], unusable: Mapping[str, str]
) -> list[str]:
    name = subtask.secondary
    first, card = roles.get(subtask.role), roles.get(name)
    if name == subtask.role:
        return [f"secondary: {name!r} is its role already; name another one, or none"]
    if first is not None and first.tier == "none":
        return [f"secondary: no effect, because role {subtask.role!r} has no model"]
    if card is not None and card.tier == "none":
        return [f"secondary: role {name!r} has no model, and cannot stand in for one that has"]
    instead = subtask.model_copy(update={"role": name, "tier": None})
    return [f"secondary: {wrong}" for wrong in _role_problems(instead, roles, unusable)]


def _check_instruction(subtask: Subtask) -> Iterator[str]:
    if len(subtask.instruction.split()) < FEWEST_INSTRUCTION_WORDS:
        yield "instruction: not concrete; say what to do, on what, and what to return"


def _problems_of(subtask: Subtask, inputs: Collection[str], ids: Collection[str]) -> list[str]:
    found: list[str] = []
    if not SUBTASK_ID.fullmatch(subtask.id):
        found.append(f"an id is 1 to {ID_LENGTH} of a-z, 0-9, '-' and '_'")
    for name in subtask.inputs:
        if name not in inputs:
            named = ", ".join(sorted(inputs)) or "none"
            found.append(
                f"unknown input {name!r}{suggest(name, inputs)}; the goal's inputs: {named}"
            )
    unknown = [edge for edge in subtask.depends_on if edge not in ids]
    return found + [f"depends_on: unknown subtask {edge!r}" for edge in unknown]
