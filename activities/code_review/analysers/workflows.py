"""Workflows and actions of GitHub that hand their rights to strangers, by zizmor."""

from __future__ import annotations

import re
from collections.abc import Sequence

from activities.code_review.lens import Analyser, CommandLine, Grade, program, sifted, told

GRADES = {
    # By its name, how bad it holds a sighting and how sure it is.
    "template-injection/High/High": Grade("critical", 90),
    "template-injection/High": Grade("warning", 75),
    "template-injection": Grade("info", 60),
    "hardcoded-container-credentials": Grade("critical", 90),
    "insecure-commands": Grade("warning", 90),
    "github-env/High/High": Grade("critical", 85),
    "github-env": Grade("warning", 75),
    "dangerous-triggers": Grade("warning", 80),
    "unsound-condition": Grade("warning", 90),
    "unsound-contains": Grade("warning", 85),
    "bot-conditions": Grade("warning", 80),
    "overprovisioned-secrets": Grade("warning", 85),
    "unredacted-secrets": Grade("warning", 85),
    "archived-uses": Grade("info", 60),
    "artipacked": Grade("info", 50),
    "cache-poisoning": Grade("info", 50),
    "excessive-permissions": Grade("info", 50),
    "secrets-inherit": Grade("info", 60),
    "self-hosted-runner": Grade("info", 50),
    "unpinned-images": Grade("info", 50),
    "unpinned-uses": Grade("info", 50),
    "use-trusted-publishing": Grade("info", 40),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Zizmor over files, without the network and without a settings file."""
    ignore = () if honour else ("--no-ignores",)
    return sifted(
        "zizmor", program("zizmor"), "--offline", "--no-config", "--no-exit-codes",
        "--no-progress", "--quiet", "--format=json-v1", *ignore, "--", *files,
    )  # fmt: skip


ANALYSER = Analyser(
    name="workflows",
    looks_for="workflows or actions of GitHub",
    grades=GRADES,
    languages=("GitHub workflow", "GitHub action"),
    command=command,
    parse=told,
    program="zizmor",
    package="zizmor",
    marker=re.compile(rb"zizmor:"),
)
