"""Dockerfiles that do not build, or build something else than they say, by hadolint."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from holdfast.activities.review.analysers import shell
from holdfast.activities.review.analysing.lens import (
    SYNTAX,
    Analyser,
    CommandLine,
    Grade,
    parse_items,
    sift_command,
)
from holdfast.deployment.extras import program

GRADES = {
    SYNTAX: Grade("critical", 85),
    "DL3002": Grade("info", 10),
    "DL3011": Grade("critical", 85),
    "DL3012": Grade("warning", 70),
    "DL3021": Grade("critical", 85),
    "DL3022": Grade("warning", 70),
    "DL3023": Grade("critical", 85),
    "DL3024": Grade("critical", 85),
    "DL3043": Grade("critical", 85),
    "DL3044": Grade("warning", 70),
    "DL3061": Grade("critical", 85),
    "DL4003": Grade("warning", 70),
    "DL4004": Grade("warning", 70),
    # What hadolint hands on of shellcheck.
    **{rule: grade for rule, grade in shell.GRADES.items() if rule != SYNTAX},
    # Matters of taste, and of images that shall never change.
    "DL": Grade("info", 3),
}


def command(files: Sequence[str], honour: bool) -> CommandLine:
    """Run hadolint over files, with an empty settings file in place of any that it would find."""
    ignore = () if honour else ("--disable-ignore-pragma",)
    options = ("--config", os.devnull, "--no-fail", "--no-color", "--format=json")
    return sift_command("hadolint", program("hadolint"), *options, *ignore, "--", *files)


ANALYSER = Analyser(
    name="dockerfiles",
    looks_for="Dockerfiles",
    grades=GRADES,
    languages=("Dockerfile",),
    command=command,
    parse=parse_items,
    program="hadolint",
    extra="dockerfiles",
    marker=re.compile(rb"hadolint"),
)
