"""What is to be reviewed, read from the event that a workflow of GitHub runs for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import Refused
from holdfast.untrusted.folders import Unreadable, read_named

EVENT_BYTES = 25 * 1024 * 1024
"""GitHub cuts what it delivers at 25 MB."""
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")
EVENTS = ("pull_request", "push", "merge_group", "workflow_dispatch", "schedule")


@dataclass(frozen=True)
class Pull:
    """A pull request."""

    number: int
    fork: bool
    """True if its head is in another repository, so that a token of its workflow only reads."""
    intent: str = ""
    """What it is for, in its author's words."""


@dataclass(frozen=True)
class Asked:
    """What is reviewed: a commit, and what it is compared with."""

    repository: str
    """OWNER/NAME."""
    head: str
    """The commit."""
    base: str = ""
    """A commit whose common ancestor with the head is compared with, or the ancestor itself."""
    ref: str = ""
    """The full name of a branch or of a pull request's head."""
    whole: bool = False
    """True to review the whole tree."""
    pull: Pull | None = None


def read_event(environ: Mapping[str, str]) -> Asked:
    """Return what the event of a workflow asks for. Raise Refused."""
    name, place = environ.get("GITHUB_EVENT_NAME", ""), environ.get("GITHUB_EVENT_PATH", "")
    if not name or not place:
        raise Refused(
            "no event of GitHub: in another CI give --pull NUMBER and --repository OWNER/NAME"
        )
    if name not in EVENTS:
        raise Refused(f"event {name!r}: this reviews on {', '.join(EVENTS)}")
    return of_event(name, _load(Path(place)), environ)


def of_event(name: str, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Asked:
    """Return what an event asks for, given its payload."""
    try:
        if name == "pull_request":
            return of_pull(payload["pull_request"], payload["repository"]["full_name"])
        repository = repository_of(payload["repository"]["full_name"])
        if name == "push":
            if not _known(payload["after"]):
                raise Refused(f"event 'push': {payload['ref']} was deleted; nothing is to review")
            return Asked(
                repository, _commit(payload["after"]), _known(payload["before"]), payload["ref"]
            )
        if name == "merge_group":
            group = payload["merge_group"]
            return Asked(
                repository,
                _commit(group["head_sha"]),
                _commit(group["base_sha"]),
                group["head_ref"],
            )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Refused(
            f"event {name!r}: its payload is not as GitHub describes it ({error!s:.200})"
        ) from error
    head, ref = environ.get("GITHUB_SHA", ""), environ.get("GITHUB_REF", "")
    return Asked(repository, _commit(head), "", ref, whole=True)


def of_pull(pull: Mapping[str, Any], repository: str) -> Asked:
    """Return what is to be reviewed of a pull request, as events and the API describe one."""
    number = int(pull["number"])
    # A fork may be gone by now, and ours may have been asked for by an older name.
    whose = (pull["head"].get("repo") or {}).get("full_name")
    ours = (pull["base"].get("repo") or {}).get("full_name", repository)
    return Asked(
        repository_of(repository),
        _commit(pull["head"]["sha"]),
        _commit(pull["base"]["sha"]),
        f"refs/pull/{number}/head",
        pull=Pull(number, whose != ours, f"{pull.get('title')}\n\n{pull.get('body') or ''}"),
    )


def repository_of(name: str) -> str:
    """Return OWNER/NAME. Refused if it is none."""
    if not isinstance(name, str) or not REPOSITORY.fullmatch(name) or ".." in name:
        raise Refused(f"repository {name!r}: give it as OWNER/NAME")
    return name


def _commit(text: object) -> str:
    if not isinstance(text, str) or not COMMIT.fullmatch(text):
        raise Refused(f"{text!r:.80} is no commit of an event")
    return text


def _known(text: object) -> str:
    """Return a commit; empty where a branch is new, of which GitHub writes zeros."""
    commit = _commit(text)
    return commit if commit.strip("0") else ""


def _load(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_named(path, EVENT_BYTES))
    except Unreadable as error:
        raise Refused(f"GITHUB_EVENT_PATH: {error}") from error
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused(f"GITHUB_EVENT_PATH {str(path)!r}: no JSON of an event")
    return found
