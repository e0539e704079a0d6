"""Workflows and actions of GitHub that hand their rights to strangers, by zizmor."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.activities.review.analysing.lens import (
    Analyser,
    CommandLine,
    Grade,
    parse_items,
    sift_command,
)
from holdfast.deployment.extras import program

GRADES = {
    # By its name, how bad it holds a sighting and how sure it is.
    "template-injection/High/High/of a stranger": Grade("critical", 85),
    "template-injection/High/High": Grade("warning", 31),
    "template-injection/High": Grade("warning", 70),
    "template-injection": Grade("info", 3),
    "hardcoded-container-credentials": Grade("critical", 90),
    "insecure-commands": Grade("warning", 70),
    "github-env/High/High": Grade("warning", 70),
    "github-env": Grade("warning", 47),
    "dangerous-triggers": Grade("warning", 35),
    "unsound-condition": Grade("warning", 70),
    "unsound-contains": Grade("warning", 70),
    "bot-conditions": Grade("warning", 70),
    "overprovisioned-secrets": Grade("warning", 70),
    "unredacted-secrets": Grade("warning", 70),
    "archived-uses": Grade("info", 5),
    "artipacked": Grade("info", 3),
    "cache-poisoning": Grade("info", 3),
    "excessive-permissions": Grade("info", 3),
    "secrets-inherit": Grade("info", 4),
    "self-hosted-runner": Grade("info", 5),
    "unpinned-images": Grade("info", 3),
    "unpinned-uses": Grade("info", 3),
    "use-trusted-publishing": Grade("info", 3),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run zizmor over files, without the network and without a settings file."""
    ignore = () if honour else ("--no-ignores",)
    return sift_command(
        "zizmor",
        program("zizmor"),
        "--offline",
        "--no-config",
        "--no-exit-codes",
        "--no-progress",
        "--quiet",
        "--format=json-v1",
        *ignore,
        "--",
        *files,
    )


ANALYSER = Analyser(
    name="workflows",
    looks_for="workflows or actions of GitHub",
    grades=GRADES,
    languages=("GitHub workflow", "GitHub action"),
    command=command,
    parse=parse_items,
    program="zizmor",
    marker=re.compile(rb"zizmor:"),
)
