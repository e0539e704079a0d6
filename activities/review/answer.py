"""The answer of a review, for a person: the counts, what to do first, what matters most with its
code, and the long tail as counts. Everything that the repository may have written is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.activities.review.by_agents import not_confirmed, read_by
from holdfast.activities.review.outcome import Outcome
from holdfast.activities.review.scope import elsewhere
from holdfast.activities.review.scope_words import looked
from holdfast.contracts import Remark
from holdfast.contracts.remarks import OF_AN_AGENT, blocks_change, group_same
from holdfast.rendering import remarks as shown
from holdfast.text import code_span, for_markdown
from holdfast.text import pluralize as many

MOST_CRITICAL = 100
"""Critical defects shown one by one, wherever they are: they may stand in a change's way."""
MOST_SHOWN = 30
"""Defects shown one by one while there are no more critical ones."""
MOST_PER_FILE = 6
"""Of these in a file of a whole tree; what a change brought is for its author, wherever it is."""
MOST_LINES = 60
"""Remarks told in a line each, behind those."""
MOST_NAMES = 8
"""Files named in a line of counts."""
WORST = 3
"""Places of a lens that is told in sum."""
OF_A_LENS, ALL_OF_IT = "starter.py show ID SUBTASK", "starter.py fork ID --limits min_confidence=0"
"""Whoever shows the answer knows the run's id, and how this program is called there."""
Group = tuple[Remark, ...]


def write(outcome: Outcome) -> str:
    """The answer as Markdown."""
    parts = [
        _headline(outcome),
        shown.one_thing(outcome.standing),
        looked(outcome),
        read_by(outcome.agents),
        _verified(outcome),
        *_one_by_one(outcome),
        *_in_sum(outcome),
        elsewhere.told([*outcome.remarks, *outcome.summed]),
        outcome.taken_out,
        _refuted(outcome),
        _list("Said by an agent, and not confirmed", not_confirmed(outcome.unconfirmed)),
        _rest(outcome),
        _missing(outcome),
    ]
    return "\n\n".join(part for part in parts if part)


def _headline(outcome: Outcome) -> str:
    standing = outcome.counted
    if not standing and not (outcome.looked or outcome.agents):
        return "**Nothing was looked at**, so nothing is known."
    if not standing and not outcome.checked:
        return "**No remarks, and nobody looked for defects in the code**: nothing is known of it."
    if not standing:
        where = " in production code" if outcome.remarks else ""
        out = sum(outcome.hidden.values())
        more = f" {many(out, 'remark')} taken out of this review, see below." if out else ""
        count = many(len(outcome.not_parsed), "file")
        lost = f" {count} could not be parsed, see below." if outcome.not_parsed else ""
        sure = f"at a confidence of {outcome.min_confidence} or more"
        return f"**No remarks**{where} {sure}.{lost}{more}"
    counts = Counter(remark.severity for remark in standing)
    files = many(len({remark.file for remark in standing}), "file")
    refuted = shown.refuted_of(standing)
    return f"**{many(len(standing), 'remark')} in {files}**{refuted}: {shown.by_severity(counts)}."


def _one_by_one(outcome: Outcome) -> Iterable[str]:
    """The first remarks by rank, each defect once, and then the rest in short."""
    most_per_file = MOST_SHOWN if outcome.base else MOST_PER_FILE
    of_file: Counter[str] = Counter()
    told: list[Group] = []
    left: list[Remark] = []
    for group in group_same(outcome.standing):
        first = group[0]
        room = len(told) < MOST_SHOWN and of_file[first.file] < most_per_file
        if (len(told) < MOST_CRITICAL) if first.severity == "critical" else room:
            of_file[first.file] += first.severity != "critical"
            told.append(group)
        else:
            left += group
    yield from map(shown.block, told)
    if left:
        yield _left(left)


def _left(remarks: list[Remark]) -> str:
    """The place and the rule of each of the first, counts of the others, and where they all are."""
    lines = [
        f"{each.severity} · {shown.place(each)} {code_span(each.rule or each.lens)}"
        for each in remarks[:MOST_LINES]
    ]
    if others := Counter(each.file for each in remarks[MOST_LINES:]):
        lines.append(f"and {others.total():,} more: {_names(others.most_common())}")
    lenses = [*dict.fromkeys(each.lens for each in remarks if each.lens)]
    which = f", SUBTASK being {' or '.join(map(code_span, lenses))}" if lenses else ""
    return "\n\n".join(
        [
            _list(f"And {many(len(remarks), 'more remark')}", lines),
            f"{code_span(OF_A_LENS)} has all that a lens saw{which}.",
        ]
    )


def _names(files: list[tuple[str, int]]) -> str:
    named = [
        f"{code_span(file) if file else 'the repository'} {n}" for file, n in files[:MOST_NAMES]
    ]
    rest = len(files) - len(named)
    return ", ".join(named) + (f" and {many(rest, 'more file')}" if rest else "")


def _in_sum(outcome: Outcome) -> Iterable[str]:
    """A paragraph for each lens whose sightings are no defects by themselves, with the worst."""
    by_lens: dict[str, list[Remark]] = {}
    for remark in elsewhere.in_production(outcome.summed):
        by_lens.setdefault(remark.lens, []).append(remark)
    if by_lens:
        yield "### In sum"
    for lens, remarks in sorted(by_lens.items()):
        worst = [f"{shown.place(each)} ({_bare(each.message)})" for each in remarks[:WORST]]
        count = many(len(remarks), "place") + ", the worst" * (len(remarks) > WORST)
        yield f"**{for_markdown(lens)}**, {count}: {'; '.join(worst)}."


def _bare(text: str) -> str:
    """What others wrote, within a sentence of ours."""
    return shown.prose(text).rstrip(".")


def _verified(outcome: Outcome) -> str:
    """How far a model has verified the remarks; nothing in a run without models."""
    if not outcome.to_verify:
        return ""
    counts = Counter(remark.verdict for remark in outcome.remarks if remark.verdict)
    said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
    left = outcome.to_verify - counts.total()
    more = len(outcome.remarks) - outcome.to_verify
    parts = [
        f"A model looked at the code around {many(counts.total(), 'remark')}: {said or 'none'}"
    ]
    if left:
        parts.append(f"{left} of the first {outcome.to_verify} could not be verified")
    if more > 0:
        parts.append(f"the other {more} were not to be verified")
    return "; ".join(parts) + "."


def _refuted(outcome: Outcome) -> str:
    """What a model refuted, with its reason: nothing is lost by its word."""
    refuted = [remark for remark in outcome.remarks if remark.verdict == "refuted"]
    lines = []
    for remark in refuted:
        text = for_markdown(remark.message.strip().rstrip("."))
        why = for_markdown(remark.why.strip().rstrip("."))
        by = " Counted: an analyser found it." if blocks_change(remark) else ""
        by = by if remark.rule else " Not counted: only an agent says it."
        lines.append(
            f"{shown.place(remark)}: {text} ({code_span(remark.rule or remark.lens)}). {why}.{by}"
        )
    return _list("Refuted by a model", lines)


def _rest(outcome: Outcome) -> str:
    """What was counted and is not shown."""
    lines = []
    if outcome.below:
        lines.append(
            f"{many(outcome.below, 'remark')} below confidence {outcome.min_confidence}:"
            f" {code_span(ALL_OF_IT)} shows them, too, and {code_span(OF_A_LENS)} those of one lens"
        )
    if outcome.suppressed:
        lines.append(f"{many(outcome.suppressed, 'remark')} suppressed by comments in the code")
    if outcome.cut:
        lines.append(f"{many(outcome.cut, 'remark')} beyond what one lens hands on")
    lines += [
        f"{many(count, 'remark')} of the agent {for_markdown(name)}, which told more than the"
        f" {OF_AN_AGENT} that one agent hands on"
        for name, count in outcome.cut_of_agents.items()
    ]
    if outcome.not_parsed:
        names = ", ".join(code_span(name) for name in outcome.not_parsed[:MOST_NAMES])
        more = ", …" if len(outcome.not_parsed) > MOST_NAMES else ""
        count = many(len(outcome.not_parsed), "file")
        lines.append(f"{count} that some lens could not parse: {names}{more}")
    if outcome.unread:
        whys = sorted(outcome.unread_why.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{for_markdown(why)} ({n})" for why, n in whys)
        lines.append(f"{many(outcome.unread, 'file')} not read: {listed}")
    if outcome.missed:
        lines.append(_missed(outcome))
    lines += [for_markdown(note) for note in outcome.notes]
    return _list("Not shown, not read", lines)


def _missed(outcome: Outcome) -> str:
    named = outcome.missed_files[:MOST_NAMES]
    listed = ", ".join(f"{code_span(each.path)} ({for_markdown(each.why)})" for each in named)
    more = ", …" if outcome.missed > len(named) else ""
    count = many(outcome.missed, "file")
    return f"**Nobody knows what is in {count} of text**, which could not be read: {listed}{more}"


def _missing(outcome: Outcome) -> str:
    if not outcome.missing:
        return ""
    return f"**Not part of this review**: {', '.join(map(for_markdown, outcome.missing))}."


def _list(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return "\n".join([f"### {title}", "", *(f"- {line}" for line in lines)])
