"""Find roles and playbooks by walking the folders: one file each to add. What is nearer comes
before what ships, by name. A file that cannot be used stops nobody who does not need it; the reason
is kept for whoever asks for it by name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.activities.catalogue.files import (
    OF_LENSES,
    PlaybookFile,
    Role,
    name_of,
    read_playbook,
    read_role,
)
from holdfast.activities.catalogue.results import remarked
from holdfast.activities.catalogue.sources import Origin, sources_for
from holdfast.activities.catalogue.tools import CatalogueError, Shelf, load_shipped
from holdfast.calls.turn import READS_ON
from holdfast.calls.verify import VERIFIED
from holdfast.contracts import RoleCard, policies
from holdfast.contracts.policies import VERIFIER
from holdfast.contracts.remarks import REVIEW
from holdfast.deployment.settings import HOME
from holdfast.plans.validity import FEWEST_INSTRUCTION_WORDS

if TYPE_CHECKING:
    from holdfast.activities.toolset.tool import Tool


@dataclass(frozen=True)
class Unusable:
    """A role or playbook file that cannot be used, and why, with the file's name."""

    name: str
    """The name that a plan or a goal would use: the front matter's, else the file's."""
    why: str
    playbook: str = ""
    """The playbook whose role it is; empty for a playbook, and for a common role."""
    source: str = ""
    """Source of the file; empty: it ships."""


@dataclass(frozen=True)
class Catalogue:
    """Everything the deployment can do, by name, and what it cannot."""

    roles: dict[str, Role] = field(default_factory=dict)
    playbooks: dict[str, PlaybookFile] = field(default_factory=dict)
    unusable_roles: tuple[Unusable, ...] = ()
    unusable_playbooks: tuple[Unusable, ...] = ()

    sources: Mapping[str, str] = field(default_factory=dict)
    """Source of each playbook that does not ship, by name; a role's is in its card."""

    @classmethod
    def load(cls, home: Path = HOME) -> Catalogue:
        """Return all roles and playbooks below one folder; the shipped ones if none is given."""
        return cls.read((Origin.of(home),))

    @classmethod
    def of(cls, project: Path | None) -> Catalogue:
        """Return everything that a deployment has: of its project, of packages, and what ships.
        Raise BadSettings for a tool that cannot be used.
        """
        shelf = _shelf_of(project)
        if project and (project / "tools").is_dir():
            # A tool that cannot be imported is said now, and not by a worker that does not start.
            shelf()
        return cls.read(sources_for(project), shelf)

    @classmethod
    def read(cls, sources: Sequence[Origin], shelf: Shelf = load_shipped) -> Catalogue:
        """Return what these sources hold, the nearest first."""
        playbooks: dict[str, PlaybookFile] = {}
        bad_playbooks: list[Unusable] = []
        whose: dict[str, int] = {}
        for place, source in enumerate(sources):
            bad_playbooks += [
                Unusable(flaw.split(": ")[2], f"{flaw}: there is no such folder", "", source.name)
                for flaw in source.flaws
            ]
            for path in source.playbook_files():
                name = path.parent.name
                if whose.setdefault(name, place) != place:
                    continue
                try:
                    playbooks[name] = read_playbook(path)
                except (CatalogueError, OSError) as error:
                    bad_playbooks.append(Unusable(name, str(error), "", source.name))
        roles, bad = _read_roles(sources, playbooks, whose, shelf)
        bad_playbooks += _find_idle(roles, bad, playbooks)
        for each in bad_playbooks:
            playbooks.pop(each.name, None)
        bad += [*_find_unexplained(roles, playbooks), *_find_claimed_twice(roles)]
        lost = {(each.name, each.playbook) for each in bad}
        roles = [role for role in roles if (role.card.name, role.playbook) not in lost]
        usable, more = _select_consistent(roles, bad)
        unusable = (*bad, *more)
        planned = {name: _add_plan(each, usable, unusable) for name, each in playbooks.items()}
        origins = {name: sources[place].name for name, place in whose.items()}
        origins = {name: source for name, source in origins.items() if source}
        return cls(usable, planned, unusable, tuple(bad_playbooks), origins)

    def roles_for(self, playbook: str) -> tuple[RoleCard, ...]:
        """Return the roles that a goal may use: the common ones and those of its playbook."""
        return tuple(role.card for role in self.roles.values() if role.playbook in ("", playbook))

    def unusable_for(self, playbook: str) -> dict[str, str]:
        """Return the roles within reach of a goal that cannot be used: name -> why."""
        found = [each for each in self.unusable_roles if each.playbook in ("", playbook)]
        return {each.name: each.why for each in found if each.name not in self.roles}

    def own_roles(self, playbook: str) -> frozenset[str]:
        """Return the names of a playbook's own roles, usable or not; empty without a playbook."""
        usable = {name for name, role in self.roles.items() if role.playbook == playbook}
        unusable = {each.name for each in self.unusable_roles if each.playbook == playbook}
        return frozenset(usable | unusable) if playbook else frozenset()

    def idle(self, lenses: Iterable[str]) -> tuple[str, ...]:
        """Return those of these lenses that no role uses, so that no plan can have them."""
        used = {name for role in self.roles.values() for name in role.card.tools}
        return tuple(name for name in lenses if name not in used)

    def unusable_playbook(self, name: str) -> str:
        """Return why a playbook that exists cannot be used; empty: it can, or there is none."""
        why = next((each.why for each in self.unusable_playbooks if each.name == name), "")
        return why or self._roleless(name)

    def _roleless(self, name: str) -> str:
        """Return why none of its own roles could do what a playbook has planned; empty if one can,
        or if its plan is there and says by itself which role it lacks.
        """
        playbook = self.playbooks.get(name)
        lost = [each.why for each in self.unusable_roles if each.playbook == name]
        own = any(role.playbook == name for role in self.roles.values())
        if playbook is None or playbook.plan is not None or own or not lost:
            return ""
        return f"none of its roles can be used: {'; '.join(lost)}"


def _shelf_of(project: Path | None) -> Shelf:
    @functools.cache
    def shelf() -> Mapping[str, Tool]:
        from holdfast.activities.review.lenses import check_brought
        from holdfast.activities.toolset.shelf import tools_for

        check_brought()
        return tools_for(project)

    return shelf


def _read_roles(
    sources: Sequence[Origin],
    playbooks: Mapping[str, PlaybookFile],
    whose: Mapping[str, int],
    shelf: Shelf,
) -> tuple[list[Role], list[Unusable]]:
    """Return the roles of all sources, and what cannot be used. A nearer role replaces others of
    its name; a playbook that is nearer comes with its own roles alone.
    """
    roles: list[Role] = []
    bad: list[Unusable] = []
    nearer: set[tuple[str, str]] = set()
    for place, source in enumerate(sources):
        here: set[tuple[str, str]] = set()
        own = [each for each in source.of_playbooks() if whose.get(each[1], place) >= place]
        for path, playbook in [*((path, "") for path in source.common()), *own]:
            if nearer and (name_of(path), playbook) in nearer:
                continue
            try:
                role = read_role(path, playbook, shelf, source.name)
                roles.append(_complete(role, path, playbooks.get(playbook)))
                here.add((role.card.name, playbook))
            except (CatalogueError, OSError) as error:
                bad.append(Unusable(name_of(path), str(error), playbook, source.name))
                here.add((bad[-1].name, playbook))
        nearer |= here
    return roles, bad


def _complete(role: Role, path: Path, playbook: PlaybookFile | None) -> Role:
    """Return the role, in a review with the form of remarks. Raise CatalogueError for a field that
    has an effect in other playbooks only, or if its subtask would make the plan of its playbook
    invalid.
    """
    if playbook is None or playbook.lenses is None:
        if idle := [name for name in OF_LENSES if getattr(role, name)]:
            named = ", ".join(idle)
            raise CatalogueError(
                f"{path.name}: front matter: {named}: no effect without a playbook's lenses;"
                " remove it"
            )
        return role
    if len(role.told.split()) < FEWEST_INSTRUCTION_WORDS:
        told = role.told == role.prompt
        where = "the text below the front matter" if told else "front matter: description"
        raise CatalogueError(
            f"{path.name}: {where}: {role.told!r:.80} is not concrete; say in"
            f" {FEWEST_INSTRUCTION_WORDS} words or more what it looks for"
        )
    if role.card.tier == "none":
        return role
    if playbook.template != REVIEW:
        if role.kinds:
            raise CatalogueError(
                f"{path.name}: front matter: kinds: no effect but with `template: {REVIEW}`;"
                " remove it"
            )
        return role
    verifies = role.card.name == VERIFIER
    if role.card.team or role.card.result:
        what = "team" if role.card.team else "result"
        handed = "verdicts" if verifies else "remarks"
        raise CatalogueError(
            f"{path.name}: front matter: {what}: an agent of a review hands up {handed}; remove it"
        )
    form = {"result": VERIFIED} if verifies else {"result": remarked(role.kinds), "told_last": True}
    return replace(role, card=role.card.model_copy(update=form))


def _find_unexplained(
    roles: Iterable[Role], playbooks: Mapping[str, PlaybookFile]
) -> list[Unusable]:
    """Return the roles of one playbook that share a tool without a reason: then nothing tells apart
    who may do what. The common roles are of no playbook.
    """
    found: dict[str, Unusable] = {}
    for playbook, tool, names in _find_shared(roles):
        if playbook in playbooks and not playbooks[playbook].shared_tools.get(tool, "").strip():
            why = (
                f"roles {' and '.join(map(repr, names))} share the tool {tool}: say why below"
                f" `shared_tools:` in {playbook}/playbook.yaml, or give it to one of them"
            )
            found |= {name: Unusable(name, why, playbook) for name in names if name not in found}
    return [*found.values()]


def _find_claimed_twice(roles: Iterable[Role]) -> Iterator[Unusable]:
    """Yield the roles within reach of each other that claim the same case: a planner could not tell
    which of them is meant.
    """
    claims = [(role, {_said(each) for each in role.card.cases}) for role in roles]
    for role, cases in claims:
        for other, others in claims:
            near = role.playbook in ("", other.playbook) or not other.playbook
            same = cases & others
            added = bool(role.card.source) or not other.card.source
            if other is not role and near and same and added:
                name, case = other.card.name, min(same)
                why = f"cases: role {name!r} claims {case!r}, too; give it to one of them"
                file = f"{role.card.name}.md"
                yield Unusable(role.card.name, f"{file}: {why}", role.playbook, role.card.source)
                break


def _said(case: str) -> str:
    return " ".join(case.casefold().split())


def _find_idle(
    roles: Sequence[Role], bad: Iterable[Unusable], playbooks: Mapping[str, PlaybookFile]
) -> list[Unusable]:
    """Return the playbooks that give a reason for tools that nobody shares, or that have remarks
    verified by nobody. One with a role that cannot be read is left out: it may be that one.
    """
    shared = {(playbook, tool) for playbook, tool, _ in _find_shared(roles)}
    unread = {each.playbook for each in bad}
    found = []
    for name, playbook in playbooks.items():
        idle = [tool for tool in playbook.shared_tools if (name, tool) not in shared]
        if idle and name not in unread:
            why = f"{name}/playbook.yaml: shared_tools.{', '.join(idle)}: no effect; remove it"
            found.append(Unusable(name, why))
        verifies = any((each.playbook, each.card.name) == (name, VERIFIER) for each in roles)
        if playbook.verify and not verifies and name not in unread:
            why = (
                f"{name}/playbook.yaml: verify: no effect without a role {VERIFIER!r} in its"
                " roles/; add one, or remove it"
            )
            found.append(Unusable(name, why))
    return found


def _find_shared(roles: Iterable[Role]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (playbook, tool, roles) for each tool that several roles of a playbook have."""
    owners: dict[tuple[str, str], list[str]] = {}
    for role in roles:
        for tool in role.card.tools if role.playbook else ():
            # A result that is read on is the agent's own.
            if tool != READS_ON:
                owners.setdefault((role.playbook, tool), []).append(role.card.name)
    for (playbook, tool), names in owners.items():
        if len({*names}) > 1:
            yield playbook, tool, names


def _add_plan(
    playbook: PlaybookFile, usable: Mapping[str, Role], unusable: Iterable[Unusable]
) -> PlaybookFile:
    """Return the playbook with the plan of its lenses, if it has any. A role that cannot be used
    may be one: it is planned, so that whoever starts a run is told why it cannot.
    """
    if playbook.lenses is None or playbook.plan is not None:
        return playbook
    own = [role for role in usable.values() if role.playbook == playbook.name]
    lenses = [role for role in own if role.card.tier == "none"]
    lost = [
        Role(RoleCard(name=each.name, description=each.why, tier="none"), "", playbook.name)
        for each in unusable
        if each.playbook == playbook.name
    ]
    # Whether there are remarks to verify is known at the end.
    agents = [role for role in own if role.card.tier != "none" and role.card.name != VERIFIER]
    return playbook.model_copy(update={"plan": playbook.lenses.plan([*lenses, *lost], agents)})


def _select_consistent(
    roles: list[Role], bad: list[Unusable]
) -> tuple[dict[str, Role], list[Unusable]]:
    """Return the roles that can be used beside each other, and what is wrong with the others: one
    name twice, or a fallback that is out of reach.
    """
    found: dict[str, list[str]] = {}
    for name, source in (
        *((role.card.name, role.card.source) for role in roles),
        *((each.name, each.source) for each in bad),
    ):
        found.setdefault(name, []).append(source)
    # What somebody adds stops nothing that ships.
    twice = [role for role in roles if _is_claimed(role.card.source, found[role.card.name])]
    wrong = [_twice(role, found[role.card.name]) for role in twice]
    usable = {role.card.name: role for role in roles if role not in twice}
    while lost := {name: why for name in usable if (why := _misled(name, usable))}:
        for name, why in lost.items():
            role = usable.pop(name)
            why = f"role {name!r}: fallback {role.card.fallback!r} {why}"
            wrong.append(Unusable(name, why, role.playbook, role.card.source))
    return {name: _with_fallback(role, usable) for name, role in usable.items()}, wrong


def _is_claimed(source: str, all_sources: list[str]) -> bool:
    """True if a role shares its name with another that is not merely added to it."""
    return len(all_sources) > 1 and (bool(source) or all_sources.count("") > 1)


def _twice(role: Role, all_sources: list[str]) -> Unusable:
    name, source = role.card.name, role.card.source
    why = f"role {f'{name!r} {source}'.rstrip()} is defined twice; rename one"
    if source and all_sources.count(source) == 1:
        why = f"role {name!r} {source}: another playbook or package has one of that name; rename it"
    return Unusable(name, why, role.playbook, source)


def _misled(name: str, usable: Mapping[str, Role]) -> str:
    """Return what is wrong with the fallback of a role; empty if nothing is, or it names none."""
    role = usable[name]
    if role.card.fallback == name:
        return "is the role itself; name another"
    chain = _chain_from(name, usable)
    if chain[-1] == name and len(chain) > 1:
        return f"leads back to it: {' → '.join(chain)}; leave one out"
    other = usable.get(role.card.fallback)
    if not role.card.fallback:
        return ""
    near = other and other.card.tier != "none" and other.playbook in ("", role.playbook)
    return "" if near else "is not a usable role"


def _chain_from(name: str, usable: Mapping[str, Role]) -> list[str]:
    """Return a role and its fallbacks in turn, up to one without, or the first that comes again."""
    chain = [name]
    while chain[-1] in usable and (after := usable[chain[-1]].card.fallback):
        chain.append(after)
        if after in chain[:-1]:
            break
    return chain


def _with_fallback(role: Role, usable: Mapping[str, Role]) -> Role:
    """Return the role; without a fallback of its own, with the one that any goal has."""
    common = policies.FALLBACK_ROLE
    card, last = role.card, usable.get(common)
    if card.fallback or card.tier == "none" or last is None or last.card.tier == "none":
        return role
    if last.playbook not in ("", role.playbook) or card.name in _chain_from(common, usable):
        return role
    return replace(role, card=card.model_copy(update={"fallback": common}))
