"""Roles that a planner composes for one plan, without widening what its run may do. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.calls.plan import list_tools
from holdfast.calls.turn import OF_SERVERS, READS_ON, equip
from holdfast.contracts import Briefing, ComposedRole, PinnedInput, Plan, RoleCard, policies
from holdfast.state.graph import COMPOSED

MOST = 3
"""Roles that one plan may compose: more means that the planner ignores those there are."""
FEWEST_WORDS, MOST_LETTERS = 4, 300
"""Bounds of the description of a composed role."""
NAME_LENGTH = 40
NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
COPIED_WORDS = 8
"""So many words of an input in a row are not the planner's own any more."""

_DOT = "[.\u3002\uff0e\uff61]"
"""Separates the parts of a host's name, wherever a browser looks it up."""
_ADDRESS = re.compile(rf"://|\S@\S|(?<![\w.])(?:\d{{1,3}}{_DOT}){{3}}\d{{1,3}}(?![\w.])")
"""Matches addresses with a scheme, of e-mail, or in numbers."""
_HOST = re.compile(rf"(?<![\w.-])(?:[\w-]+{_DOT})+[^\W\d_]{{2,}}(?![\w-])")
"""Possibly the bare name of a host: words with dots, letters at the end."""
_NO_HOST = re.compile(
    r"[\w-]+\.(?:js|jsx|mjs|ts|tsx|json|yaml|yml|toml|xml|csv|tsv|txt|pdf|docx|xlsx|pptx|html|css|sql)",
    re.IGNORECASE,
)
"""Names of libraries (node.js) and files, with endings that are no top-level domains."""
_MARKUP = frozenset("<>{}`＜＞")
"""Could look like the end of the prompt's passage that holds the description."""


def with_composed(plan: Plan, roles: Sequence[RoleCard]) -> tuple[RoleCard, ...]:
    """Return a run's roles with those of this plan, in place of any other composed ones."""
    own = drop_composed(roles)
    made = (card_of(each, own) for each in plan.roles)
    return (*own, *(card for card in made if card is not None))


def brief_for_plan(brief: Briefing, plan: Plan) -> Briefing:
    return brief.model_copy(update={"roles": with_composed(plan, brief.roles)})


def drop_composed(roles: Sequence[RoleCard]) -> tuple[RoleCard, ...]:
    """Return the roles that are files of this deployment."""
    return tuple(role for role in roles if not role.name.startswith(COMPOSED))


def card_of(role: ComposedRole, roles: Sequence[RoleCard]) -> RoleCard | None:
    """Return the card of a composed role; None if it would widen what the roles may do."""
    like = _like(role, roles)
    if like is None:
        return None
    fallbacks = [each.name for each in roles if each.name == policies.FALLBACK_ROLE]
    return RoleCard(
        name=role.name,
        description=role.description,
        tier=role.tier,
        tools=(*role.tools, READS_ON) if role.tools else (),
        volatile=tuple(name for name in like.volatile if name in role.tools),
        effort=like.effort,
        fallback=fallbacks[0] if fallbacks else "",
        # What it is told is shorter than what a role with more tools is told.
        prompt_bytes=like.prompt_bytes + len(role.description.encode()),
        turns=like.turns,
        reads=like.reads,
    )


def _like(role: ComposedRole, roles: Sequence[RoleCard]) -> RoleCard | None:
    """Return the first role that may do everything that this one may."""
    return next(
        (
            each
            for each in roles
            if {*role.tools} <= {*composable(each)} - {READS_ON} and _lends(each)
        ),
        None,
    )


def _lends(role: RoleCard) -> bool:
    return role.tier != "none" and not role.team and not role.fixed_tier


def composable(role: RoleCard) -> tuple[str, ...]:
    """Return a role's tools without effects outside, approvals, and servers."""
    if not _lends(role):
        return ()
    kept = (*role.effects, *role.approval)
    return tuple(
        name for name in role.tools if name not in kept and not name.startswith(OF_SERVERS)
    )


def closed_set(roles: Sequence[RoleCard]) -> tuple[str, ...]:
    """Return all tools that composed roles may have, each once, in the order of the roles."""
    every = [name for role in drop_composed(roles) for name in composable(role) if name != READS_ON]
    return tuple(dict.fromkeys(every))


def problems(
    plan: Plan, roles: Sequence[RoleCard], untrusted: Sequence[PinnedInput] = ()
) -> Iterator[str]:
    """Yield what is wrong with a plan's composed roles. `untrusted`: what its planner read."""
    if len(plan.roles) > MOST:
        yield f"roles: {len(plan.roles)} are composed, the limit is {MOST}"
    names = [role.name for role in plan.roles]
    used = {name for each in plan.subtasks for name in (each.role, each.secondary)}
    for place, role in enumerate(plan.roles):
        where = f"roles[{place}] {role.name!r:.60}"
        if names.index(role.name) != place:
            yield f"{where}: this name is used twice"
        if role.name not in used:
            yield f"{where}: no subtask has this role; remove it"
        for wrong in (*_check_name(role), *_check_words(role, untrusted), *_widens(role, roles)):
            yield f"{where}: {wrong}"


def _check_name(role: ComposedRole) -> Iterator[str]:
    rest = role.name.removeprefix(COMPOSED)
    known = rest != role.name and 0 < len(role.name) <= NAME_LENGTH
    if not (known and rest and {*rest} <= NAME_LETTERS):
        yield f"name: {COMPOSED} and then a-z, 0-9 and '-', at most {NAME_LENGTH} letters"


def _check_words(role: ComposedRole, untrusted: Sequence[PinnedInput]) -> Iterator[str]:
    """Require the planner's own sentence, without any address."""
    said = role.description
    if len(said.split()) < FEWEST_WORDS or len(said) > MOST_LETTERS or len(said.splitlines()) > 1:
        most = f"at most {MOST_LETTERS} letters"
        yield f"description: one line of {FEWEST_WORDS} words or more, {most}"
    if address := _address_in(said):
        yield (
            f"description: it names an address ({address!r:.60}); say what the role does, and put"
            " the place nowhere; what is not an address, write without its dots"
        )
    if not _MARKUP.isdisjoint(said):
        yield "description: it has markup in it (< > { } `); say what the role does in plain words"
    for pinned in untrusted:
        if _copies(said, pinned.preview):
            yield (
                f"description: it repeats words of the input {pinned.name!r}, which gives no"
                " instructions; say in your own words what the role does"
            )


def _address_in(said: str) -> str:
    if found := _ADDRESS.search(said):
        return found[0]
    hosts = (found[0] for found in _HOST.finditer(said))
    return next((host for host in hosts if not _NO_HOST.fullmatch(host)), "")


def _copies(said: str, text: str) -> bool:
    """True if many words in a row are the same, whatever stands between them."""
    own, other = _words(said), " ".join(["", *_words(text), ""])
    runs = (own[at : at + COPIED_WORDS] for at in range(len(own) - COPIED_WORDS + 1))
    return any(f" {' '.join(run)} " in other for run in runs)


def _words(text: str) -> list[str]:
    return "".join(each if each.isalnum() else " " for each in text.casefold()).split()


def _widens(role: ComposedRole, roles: Sequence[RoleCard]) -> Iterator[str]:
    own = drop_composed(roles)
    closed = closed_set(own)
    outside = [name for name in role.tools if name not in closed]
    if outside:
        known = ", ".join(closed) or "none"
        yield f"tools: {', '.join(outside)}: not for composed roles; there are: {known}"
    elif _like(role, own) is None:
        yield (
            f"tools: no role of this run has {', '.join(role.tools)} together, so a composed one"
            " may not; take those of one role"
        )


def describe_composed(brief: Briefing, plan: Plan) -> Iterator[str]:
    """Yield a line for each composed role of a run's plan, with the tools that its agents have."""
    for role in brief.roles:
        if role.name.startswith(COMPOSED):
            own = [each for each in plan.subtasks if role.name in (each.role, each.secondary)]
            named = {name for each in own for name in each.inputs}
            inputs = [each for each in brief.inputs if each.name in named]
            tools = list_tools(equip(role, inputs))
            how = f"{role.tier}, {f'tools {tools}' if tools else 'no tools'}"
            yield f"role {role.name} is composed for this plan: {role.description} ({how})"
