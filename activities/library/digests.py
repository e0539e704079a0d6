"""What a template's plan was made for: roles and a playbook as they were, and the plan's shape."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from holdfast.activities.catalogue.catalogue import Catalogue
from holdfast.activities.catalogue.files import PlaybookFile, Role
from holdfast.activities.library.template import Template
from holdfast.contracts import Plan

LETTERS = 16
OF_ROLE = {
    "name", "description", "cases", "tier", "tools", "effort", "fallback", "team", "repeat",
    "hands_over", "fixed_tier", "turns", "result",
}  # fmt: skip
"""Fields of a role that a plan is made by; its prompt besides."""
OF_PLAYBOOK = {
    "name", "description", "guidance", "template", "min_confidence", "verify", "prove", "inputs",
    "answer",
}  # fmt: skip


def _digest(value: object) -> str:
    said = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(said).hexdigest()[:LETTERS]


def digest_role(role: Role) -> str:
    return _digest([role.card.model_dump(mode="json", include=OF_ROLE), role.prompt])


def digest_playbook(playbook: PlaybookFile) -> str:
    return _digest(playbook.model_dump(mode="json", include=OF_PLAYBOOK))


def digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:LETTERS]


def roles_of(plan: Plan) -> tuple[str, ...]:
    """Return the roles of the deployment that a plan has, those that it composes left out."""
    composed = {each.name for each in plan.roles}
    names = (name for each in plan.subtasks for name in (each.role, each.secondary))
    return tuple(dict.fromkeys(name for name in names if name and name not in composed))


def digest_roles(plan: Plan, catalogue: Catalogue) -> Mapping[str, str]:
    """Return the digest of each role of a plan that there is."""
    known = catalogue.roles
    return {name: digest_role(known[name]) for name in roles_of(plan) if name in known}


def find_stale(template: Template, catalogue: Catalogue) -> str:
    """Return what has changed since a template's plan was made; empty if nothing has."""
    return "; ".join(_changes(template, catalogue))


def _changes(template: Template, catalogue: Catalogue) -> Iterator[str]:
    if template.playbook:
        playbook = catalogue.playbooks.get(template.playbook)
        if playbook is None:
            yield f"there is no playbook {template.playbook} any more"
        elif digest_playbook(playbook) != template.playbook_digest:
            yield f"playbook {template.playbook} changed"
    now = digest_roles(template.plan, catalogue)
    for name in roles_of(template.plan):
        if name not in now:
            yield f"there is no role {name} any more"
        elif template.roles.get(name) != now[name]:
            yield f"role {name} changed"
