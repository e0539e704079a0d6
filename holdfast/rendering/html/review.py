"""A code review as one reads it: its remarks by file, each with the lines that it is about. What is
not wanted is taken away by boxes that need no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from htpy import (
    Element,
    Node,
    br,
    code,
    details,
    div,
    h3,
    label,
    li,
    p,
    pre,
    span,
    summary,
    ul,
)
from htpy import input as box

from holdfast.contracts import Remark, ReviewData
from holdfast.contracts.remarks import SEVERITIES, blocks_change, read_review, stands
from holdfast.rendering.blocks import listed
from holdfast.rendering.foremost import one_thing
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.pictured import Pictured, cut, section, short, status_chip
from holdfast.rendering.html.prose import prose, prose_line
from holdfast.rendering.html.style import LENSES
from holdfast.rendering.proofs import TITLE, text_of
from holdfast.rendering.reach import describe_reach
from holdfast.rendering.remarks import advice, fold_unlisted, place_of, rows_of, said
from holdfast.rendering.report import answer_of
from holdfast.rendering.status import SEVERITY_SIGNS
from holdfast.rendering.verdict import Verdict, counted, uncounted
from holdfast.rendering.verified import QUESTIONS, count_verdicts, fold_open, list_questions

NAME_LETTERS = 300


def review(run: Pictured) -> Element | None:
    """Return the chapter of a review's answer; None if the answer is of no review."""
    data = read_review(run.report)
    if data is None:
        return None
    remarks = data.remarks
    lenses = list(dict.fromkeys(each.lens for each in remarks if each.lens))[:LENSES]
    files: dict[str, list[Remark]] = {}
    for each in remarks:
        files.setdefault(each.file, []).append(each)
    return section(
        "answer",
        *_first(data),
        div(".review")[
            _boxes(remarks, lenses) if remarks else None,
            div(".files")[(_file(name, found, lenses, run) for name, found in files.items())],
        ],
        write(run, [*fold_open(data), *fold_unlisted(data)]),
        details[
            summary["The same as text, with what was looked at and what was not"],
            div(".said")[prose(answer_of(run.report, run.to_type), run.anchors)],
        ],
        title="Review",
    )


def pill(verdict: Verdict) -> Element:
    """Return the verdict with its sign, coloured by the worst that counts; green only where
    everything was looked at.
    """
    if verdict.worst is None:
        whole = verdict.known and not verdict.beside
        return status_chip("complete" if whole else "escalated", verdict.said, "verdict")
    sign = SEVERITY_SIGNS[verdict.worst]
    return span(class_=f"chip s-{verdict.worst} verdict")[f"{sign} {verdict.said}"]


def _first(data: ReviewData) -> list[Node]:
    """Return what to look at first, who looked at what, and what does not count."""
    first = one_thing([each for each in counted(data) if stands(each)])
    apart = uncounted(data)
    return [
        p[prose_line(first, {})] if first else None,
        p(".soft.small")[prose_line(cut(describe_reach(data), 4_000), {})],
        p(".soft.small")[f"Not counted: {', '.join(apart)}."] if apart else None,
        p(".soft.small")[" ".join(told)] if (told := [*count_verdicts(data)]) else None,
        [h3[QUESTIONS], ul[(li[prose_line(each, {})] for each in asked)]]
        if (asked := list_questions(data))
        else None,
    ]


def _boxes(remarks: Sequence[Remark], lenses: Sequence[str]) -> list[Node]:
    """Return the filters: before all that they filter, on the same level, as the style needs it."""
    found: list[Node] = [span(".choice")["Severity"]]
    for kind in SEVERITIES:
        of_kind = [each for each in remarks if each.severity == kind]
        if not of_kind:
            continue
        found += _box(f"k-{kind}", f"{kind} ({_number(of_kind)})")
    if len(lenses) > 1:
        found += [br, span(".choice")["Lens"]]
        for number, lens in enumerate(lenses):
            of_lens = [each for each in remarks if each.lens == lens]
            found += _box(f"l-{number}", f"{short(lens, 40)} ({_number(of_lens)})")
    return found


def _number(remarks: Sequence[Remark]) -> str:
    """Return how many count, and how many more are shown."""
    told = sum(map(blocks_change, remarks))
    more = len(remarks) - told
    return f"{told} and {more} not counted" if more else f"{told}"


def _box(id: str, said: str) -> list[Node]:
    return [box(".filter", type="checkbox", id=id, checked=True), label(for_=id)[said]]


def _file(name: str, remarks: Iterable[Remark], lenses: Sequence[str], run: Pictured) -> Element:
    listed = list(remarks)
    kinds = {each.severity for each in listed}
    bits = sum(1 << place for place, kind in enumerate(SEVERITIES) if kind in kinds)
    return div(class_=f"file only-{bits}")[
        h3[short(name, NAME_LETTERS) or "The repository"],
        ul[(_remark(each, lenses, run) for each in listed)],
    ]


def _remark(remark: Remark, lenses: Sequence[str], run: Pictured) -> Element:
    place = f"l-{lenses.index(remark.lens)}" if remark.lens in lenses else ""
    refuted = " refuted" if remark.verdict == "refuted" else ""
    return li(class_=f"remark {remark.severity} {place}{refuted}".strip())[
        span(class_=f"chip s-{remark.severity}")[
            f"{SEVERITY_SIGNS[remark.severity]} {remark.severity}"
        ],
        " ",
        code(".place")[short(place_of(remark), NAME_LETTERS)] if remark.file else None,
        None if blocks_change(remark) else span(".soft.small")[f" not counted: {_apart(remark)}"],
        p[prose_line(said(remark), {})],
        _lines(remark),
        write(run, listed(advice(remark))),
        details[summary[TITLE], pre[cut(script)]] if (script := text_of(remark)) else None,
        pre[cut(remark.fix.diff)] if remark.fix and remark.fix.diff else None,
        p(".soft.small")[_rule(remark, run)],
    ]


def _apart(remark: Remark) -> str:
    """Return why a remark does not count."""
    return f"in {remark.kind}" if stands(remark) else "refuted by a model"


def _rule(remark: Remark, run: Pictured) -> Node:
    parts: list[Node] = [code[remark.rule or remark.lens], f" · {remark.confidence} % sure"]
    if remark.lens:
        parts += [" · lens ", run.link(remark.lens)]
    if remark.also:
        parts.append(f" · also {', '.join(remark.also)}")
    return parts


def _lines(remark: Remark) -> Node:
    """Return the code around it, where the remark has it; its own lines are marked."""
    rows = rows_of(remark)
    if not rows:
        return None
    return pre(".lines")[
        (
            span(class_="here" if sign.strip() else None)[
                f"{'▸' if sign == '>' else sign}{number:>5}  {cut(line, 400)}"
            ]
            for sign, number, line in rows
        )
    ]
