"""Why a remark matters and what to do about it, by lens and rule: data, in `LENS.yaml` here.

A rule takes the longest row that it begins with, and every rule the empty one. A rule without a row
gets nothing: a sentence that fits every rule helps with none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.contracts import Remark
from holdfast.contracts.remarks import is_credential
from holdfast.untrusted.reading import shipped_yaml

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Advice:
    """The advice of one rule, in whole sentences."""

    why: str
    do: str = ""
    """What makes the code right; empty if the rule is ours and says it itself."""


def advice_on(lens: str, rule: str) -> Advice | None:
    """Return the row of a rule. Hadolint's findings by shellcheck take the shell's."""
    rows = advice_of("shell" if lens == "dockerfiles" and rule.startswith("SC") else lens)
    lengths = range(len(rule), -1, -1)
    return next((rows[rule[:n]] for n in lengths if rule[:n] in rows), None)


@cache
def advice_of(lens: str) -> dict[str, Advice]:
    """Return the rows of one lens; empty if nobody has written any."""
    path = FOLDER / f"{lens}.yaml"
    if path.parent != FOLDER or not path.is_file():
        return {}
    rows = shipped_yaml(path)
    return {str(rule): Advice(**row) for rule, row in rows.items()}


def add_advice(remark: Remark) -> Remark:
    """Return the remark with why it matters and what makes the code right. A tool's own words are
    kept where there are none: many tell how to be rid of the remark, and not of the defect.
    """
    row = advice_on(remark.lens, remark.rule)
    if row is None:
        return remark
    said = (row.do, remark.suggestion)
    # What a credential is advised depends on its file.
    suggestion = next(filter(None, reversed(said) if is_credential(remark) else said), "")
    return remark.model_copy(update={"matters": row.why, "suggestion": suggestion})
