"""Write the answer of a review, for a person: the counts, what to do first, what matters most with
its code, and the long tail as counts. Everything that the repository may have written is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from holdfast.activities.review.outcome import Outcome
from holdfast.contracts import Remark, ReviewData
from holdfast.contracts.remarks import OF_AN_AGENT, blocks_change, group_same, lens_and_rule
from holdfast.rendering import remarks as shown
from holdfast.rendering.foremost import one_thing
from holdfast.rendering.reach import count_missed, describe_reach
from holdfast.rendering.verdict import headline
from holdfast.rendering.verified import QUESTIONS, count_verdicts, fold_open, list_questions
from holdfast.text import code_span, for_markdown
from holdfast.text import pluralize as many

MOST_CRITICAL = 100
"""Critical defects shown one by one, wherever they are: they may stand in a change's way."""
MOST_SHOWN = 30
"""Defects shown one by one while there are no more critical ones."""
MOST_PER_FILE = 6
"""Most of these from one file of a whole tree; in a change all are for its author."""
MOST_PER_RULE = 10
"""Most of these of one rule in a change: who has seen ten knows the others."""
MOST_LINES = 60
"""Remarks told in a line each, behind those."""
MOST_NAMES = 8
"""Files named in a line of counts."""
MOST_UNCONFIRMED = 10
"""Remarks that only an agent makes, told in a line each."""
WORST = 3
"""Places named of a lens that is told in sum."""
OF_A_LENS, ALL_OF_IT = "starter.py show ID SUBTASK", "starter.py fork ID --limits min_confidence=0"
"""Whoever shows the answer knows the run's id, and how this program is called there."""
Group = tuple[Remark, ...]


def write(outcome: Outcome) -> str:
    """Return the answer as Markdown."""
    data = outcome.data
    parts = [
        headline(data),
        one_thing(outcome.standing),
        describe_reach(data),
        _describe_verified(data, outcome.to_verify),
        *_one_by_one(outcome.standing, whole=not data.base),
        *_in_sum(outcome.summed),
        outcome.outside,
        outcome.taken_out,
        _list_refuted(data.remarks),
        _list(QUESTIONS, [*list_questions(data)]),
        *(_list(each.title, [*each.lines]) for each in fold_open(data, MOST_UNCONFIRMED)),
        _rest(outcome),
    ]
    return "\n\n".join(part for part in parts if part)


def _one_by_one(standing: Iterable[Remark], *, whole: bool) -> Iterable[str]:
    """Yield the first remarks by rank, each defect once, and then the rest in short; `whole`: of a
    whole tree, and not of a change.
    """
    most_per_file = MOST_PER_FILE if whole else MOST_SHOWN
    most_per_rule = MOST_SHOWN if whole else MOST_PER_RULE
    of_file: Counter[str] = Counter()
    of_rule: Counter[str] = Counter()
    told: list[Group] = []
    left: list[Remark] = []
    for group in group_same(standing):
        first = group[0]
        rule = lens_and_rule(first)
        room = (
            len(told) < MOST_SHOWN
            and of_file[first.file] < most_per_file
            and of_rule[rule] < most_per_rule
        )
        if (len(told) < MOST_CRITICAL) if first.severity == "critical" else room:
            of_file[first.file] += first.severity != "critical"
            of_rule[rule] += 1
            told.append(group)
        else:
            left += group
    yield from map(shown.block, told)
    if left:
        yield _left(left)


def _left(remarks: list[Remark]) -> str:
    """Return place and rule of each of the first, counts of the others, and where they all are."""
    lines = [
        f"{each.severity} · {shown.place(each)} {code_span(lens_and_rule(each))}"
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


def _in_sum(summed: Mapping[str, Sequence[Remark]]) -> Iterable[str]:
    """Yield a paragraph for each lens whose sightings are no defects by themselves, with the worst
    of them.
    """
    if summed:
        yield "### In sum"
    for lens, remarks in sorted(summed.items()):
        worst = [f"{shown.place(each)} ({_bare(each.message)})" for each in remarks[:WORST]]
        count = many(len(remarks), "place") + ", the worst" * (len(remarks) > WORST)
        yield f"**{for_markdown(lens)}**, {count}: {'; '.join(worst)}."


def _bare(text: str) -> str:
    """Return what others wrote, within a sentence of ours."""
    return shown.prose(text).rstrip(".")


def _describe_verified(data: ReviewData, to_verify: int) -> str:
    """Return how far agents have verified the remarks; empty in a run without models."""
    if not to_verify:
        return ""
    looked_at = sum(bool(each.verdict) for each in (*data.remarks, *data.unconfirmed))
    said = [*count_verdicts(data)]
    if left := max(to_verify - looked_at, 0):
        said.append(f"{left} of the first {to_verify} could not be verified.")
    return " ".join(said)


def _list_refuted(remarks: Iterable[Remark]) -> str:
    """Return what a model refuted, with its reason: nothing is lost by its word."""
    lines = []
    for remark in remarks:
        if remark.verdict == "refuted":
            by = " Counted: an analyser found it." if blocks_change(remark) else ""
            by = " Not counted: only an agent says it." if remark.by_agent else by
            lines.append(_line(remark, lens_and_rule(remark), remark.why) + by)
    return _list("Refuted by a model", lines)


def _line(remark: Remark, by: str, why: str) -> str:
    text, reason = (for_markdown(each.strip().rstrip(".")) for each in (remark.message, why))
    return f"{shown.place(remark)}: {text} ({code_span(by)}). {reason}."


def _rest(outcome: Outcome) -> str:
    """Return what was counted and is not shown."""
    data, lines = outcome.data, []
    if data.below_confidence:
        lines.append(
            f"{many(data.below_confidence, 'remark')} below confidence {data.min_confidence}:"
            f" {code_span(ALL_OF_IT)} shows them, too, and {code_span(OF_A_LENS)} those of one lens"
        )
    if data.suppressed:
        lines.append(f"{many(data.suppressed, 'remark')} suppressed by comments in the code")
    if data.old:
        lines.append(
            f"{many(data.old, 'remark')} in changed lines that {code_span(data.base[:12])} has, too"
        )
    if data.cut:
        lines.append(f"{many(data.cut, 'remark')} beyond what one lens hands on")
    lines += [
        f"{many(count, 'remark')} of the agent {for_markdown(name)}, which told more than the"
        f" {OF_AN_AGENT} that one agent hands on"
        for name, count in data.cut_of_agents.items()
    ]
    if data.not_parsed:
        names = ", ".join(code_span(name) for name in data.not_parsed[:MOST_NAMES])
        more = ", …" if len(data.not_parsed) > MOST_NAMES else ""
        count = many(len(data.not_parsed), "file")
        lines.append(f"{count} that some lens could not parse: {names}{more}")
    if data.not_reached:
        names = ", ".join(code_span(name) for name in data.not_reached[:MOST_NAMES])
        more = ", …" if len(data.not_reached) > MOST_NAMES else ""
        lines.append(f"Not looked at by every lens before the time limit: {names}{more}")
    if data.unread_in_all:
        whys = sorted(outcome.unread_why.items(), key=lambda item: (-item[1], item[0]))
        listed = ", ".join(f"{for_markdown(why)} ({n})" for why, n in whys)
        lines.append(f"{many(data.unread_in_all, 'file')} not read: {listed}")
    if data.missed_in_all:
        lines.append(_missed(data))
    lines += [for_markdown(note) for note in data.notes]
    return _list("Not shown, not read", lines)


def _missed(data: ReviewData) -> str:
    named = data.missed[:MOST_NAMES]
    listed = ", ".join(f"{code_span(each.path)} ({for_markdown(each.why)})" for each in named)
    more = ", …" if data.missed_in_all > len(named) else ""
    what = count_missed(data)
    return f"**Nobody knows what is in {what}**, which could not be read: {listed}{more}"


def _list(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return "\n".join([f"### {title}", "", *(f"- {line}" for line in lines)])
