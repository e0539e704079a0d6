"""The remark to act on first, and why it is that one: by the harm that it can do, before how sure
anybody is of it and before where it stands in the list. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.contracts import Remark
from holdfast.contracts.remarks import RUNS, SEVERITIES, group_same, harm, is_credential
from holdfast.rendering.remarks import place, place_of, prose, said
from holdfast.text import one_line, pluralize

OTHER = "nothing that is listed can do more harm"
HARMS = (
    "a key can be used at once, without any attack",
    "a stranger may have code of theirs run",
    "it opens a way in for strangers",
    "it can delete what nobody has twice",
    "it can make an amount of money wrong",
    "the program fails when it gets there",
    OTHER,
)
"""What a remark can do, the worst first, as the reason why it comes first."""
_WORDS = (
    (1, r"inject|run as code|arbitrary code|command of (its|their) own"),
    (2, r"stranger|attacker|anybody|anyone|unauthori[sz]|authori[sz]ation|permission|privilege"
        r"|bypass|password|session|cross-site|forge|impersonat|travers"),
    (3, r"delete|erase|overwrit|data loss|(is|are|gets?) lost|loses|truncat|corrupt|wipe"),
    (4, r"money|price|charge|refund|payment|invoice|currency|\bcents\b|balance|discount|\btax"),
    (5, r"crash|raises|throws|exception|\w+Error\b|panic|null pointer|undefined|deadlock|hangs"),
)  # fmt: skip
WORDS = tuple((worst, re.compile(rf"(?i)\b(?:{words})")) for worst, words in _WORDS)
"""Words for harm, for rules that say nothing of it."""
RULES = (
    (3, re.compile("SC211[45]$")),
    (1, RUNS),
    (1, re.compile("injection$")),
    (2, re.compile("(missing|deleted)-check$|outside-path$|exposed-data$|weak-protection$")),
    (2, re.compile("exhaustion$")),
    (5, re.compile("removed-name$|changed-signature$")),
    (HARMS.index(OTHER), re.compile("(deleted|skipped)-(test|assertion)$")),
)
"""Rules of lenses, and kinds of agents' remarks, of which the harm is known."""
STYLE = frozenset({"style", "conventions", "untested", "complexity", "performance"})
"""Lenses and agents whose remarks come first only where they name a harm."""


def one_thing(standing: Sequence[Remark]) -> str:
    """Return the remark to act on first, and why it is that one; empty where one is all there is,
    or none is urgent. `standing`: the remarks that count and that no model refuted.
    """
    groups = _urgent(standing)
    if not groups or len(group_same(standing)) < 2:
        return ""
    first, *others = groups[0]
    parts = [f"**If you do one thing**, look at {place(first)} ({first.severity}): {said(first)}"]
    if first.matters:
        parts.append(prose(first.matters))
    if others:
        parts.append(f"It stands in {pluralize(len(others), 'more place')}.")
    return " ".join([*parts, _why(first, [each[0] for each in groups[1:]])])


def first_in_line(standing: Sequence[Remark]) -> str:
    """Return the same remark in a line of plain text; empty where none is urgent."""
    groups = _urgent(standing)
    if not groups:
        return ""
    first = groups[0][0]
    return f"{place_of(first) or 'the repository'}: {one_line(first.message)}"


def _urgent(standing: Sequence[Remark]) -> list[tuple[Remark, ...]]:
    """Return the defects that one may act on first, the first of them first."""
    groups = (each for each in group_same(standing) if _is_urgent(each[0]))
    return sorted(groups, key=lambda group: _order(group[0]))


def _is_urgent(remark: Remark) -> bool:
    style = remark.lens in STYLE and harm_of(remark) == HARMS.index(OTHER)
    return remark.severity != "info" and not style


def _order(remark: Remark) -> tuple[bool, int, int, bool, bool, int]:
    """Return by what the first is chosen, the least first. An agent says itself how sure it is, so
    analysers come before it.
    """
    return (*_worth(remark), not _is_proved(remark), remark.by_agent, -remark.confidence)


def _is_proved(remark: Remark) -> bool:
    return remark.proof is not None and remark.proof.verdict in ("proved", "shown")


def _worth(remark: Remark) -> tuple[bool, int, int]:
    severity = SEVERITIES.index(remark.severity)
    return (remark.kind != "production", severity, harm_of(remark))


def harm_of(remark: Remark) -> int:
    """Return the place in HARMS of what a remark can do."""
    if is_credential(remark):
        return 0
    known = (worst for worst, rules in RULES if rules.match(remark.rule))
    if (found := next(known, None)) is not None:
        return found
    if harm(remark):
        return 2
    text = f"{remark.message} {remark.matters}"
    return next((worst for worst, words in WORDS if words.search(text)), HARMS.index(OTHER))


def _why(first: Remark, others: Sequence[Remark]) -> str:
    """Return in a sentence why it comes before the others."""
    alike = [each for each in others if _worth(each) == _worth(first)]
    said = f"It comes first because {HARMS[harm_of(first)]}"
    said += ", and what was run for it fails" if _is_proved(first) else ""
    if not alike:
        return f"{said}."
    surest = all(each.confidence < first.confidence for each in alike)
    as_bad = pluralize(len(alike), "other remark")
    return f"{said}; {as_bad} may do as much{', and this one is the surest' * surest}."
