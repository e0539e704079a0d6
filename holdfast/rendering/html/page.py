"""The page as a whole: the answer first, then what is missing, then how it came about."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256

from htpy import (
    Element,
    Node,
    a,
    body,
    details,
    div,
    footer,
    h1,
    head,
    header,
    html,
    li,
    main,
    meta,
    nav,
    p,
    span,
    style,
    summary,
    ul,
)
from htpy import title as heading
from markupsafe import Markup

from holdfast.contracts.remarks import read_review
from holdfast.rendering import orders, prices, sources
from holdfast.rendering import report as chapters_of
from holdfast.rendering.blocks import Block, listed
from holdfast.rendering.html.agents import agents, supervisor
from holdfast.rendering.html.blocks import write
from holdfast.rendering.html.pictured import (
    MOST_TITLE,
    Pictured,
    begun,
    clock,
    command,
    cut,
    section,
    short,
    status_chip,
)
from holdfast.rendering.html.plan import plan
from holdfast.rendering.html.prose import prose
from holdfast.rendering.html.review import pill, review
from holdfast.rendering.html.steering import Live, lost, scripted, steering
from holdfast.rendering.html.style import STYLE
from holdfast.rendering.html.times import times
from holdfast.rendering.report import CHAPTERS, facts
from holdfast.rendering.status import OF_REPORT, phase, question_text, verdict
from holdfast.rendering.verdict import judge
from holdfast.text import sentence, visible
from holdfast.text.marks import LOOK_FIRST, mark_unsupported

_UNSEEN = re.compile(r"[^ -~\n\t]")


def as_html(run: Pictured, live: Live | None = None) -> str:
    """Return the page of a run. Whatever others wrote stands in it as text: every character that is
    not seen as its escape, and no markup but that of Markdown.
    """
    steered = [("steering", steering(run, live))] if live else []
    chapters = {name: each for name, each in (*steered, *_chapters(run)) if each is not None}
    content = [_top(run, live), _jump(chapters), main[chapters.values()], _foot(run)]
    title = f"{_title(run)} · {run.report.run_id}"
    over = run.over and not (live and live.away)
    return _whole(_head(title, live), content, live, over=over)


def as_notice(run_id: str, said: str, live: Live, *, over: bool) -> str:
    """Return the page of a run of which there is nothing to show but why."""
    content = [
        header[
            p(".eyebrow")["holdfast · run ", span(".mono")[short(run_id, 200)]],
            h1["There is nothing to show"],
        ],
        nav(".jump", aria_label="Chapters"),
        main[section("answer", p(role="status")[cut(said, 2_000)], title="Why")],
    ]
    return _whole(_head(run_id, live), content, live, over=over)


def _whole(top: Element, content: Node, live: Live | None, *, over: bool) -> str:
    away = live is not None and bool(live.away)
    told = {"data_over": over and "yes", "data_away": away and "yes"}
    first, last = (lost(live), scripted(live)) if live else (None, None)
    page = html(lang="en")[top, body(**told)[first, content, last]]
    return _UNSEEN.sub(lambda found: visible(found[0]), f"{page}\n")


def policy(scripts: str = "") -> str:
    """Return what the browser may do with the page: show it, in our style. It loads and sends
    nothing.
    """
    digest = b64encode(sha256(STYLE.encode()).digest()).decode()
    rules = ("default-src 'none'", f"style-src 'sha256-{digest}'", "base-uri 'none'")
    return "; ".join((*rules, scripts or "form-action 'none'"))


def _head(title: str, live: Live | None) -> Element:
    return head[
        meta(charset="utf-8"),
        # Of a page that is served its server says so, with more than can be said here.
        None if live else meta(http_equiv="Content-Security-Policy", content=policy()),
        meta(name="viewport", content="width=device-width, initial-scale=1"),
        meta(name="color-scheme", content="light dark"),
        None if live else meta(name="referrer", content="no-referrer"),
        heading[short(title, MOST_TITLE)],
        style[Markup(STYLE)],
    ]


def _title(run: Pictured) -> str:
    return short(run.report.title or run.report.goal or run.report.run_id, MOST_TITLE)


def _top(run: Pictured, live: Live | None) -> Element:
    report, title = run.report, _title(run)
    goal = report.goal.strip()
    more = goal and short(goal, MOST_TITLE) != goal
    return header[
        p(".eyebrow")["holdfast · run ", span(".mono")[short(report.run_id, 200)]],
        h1[title],
        _verdict(run, away=live is not None and bool(live.away)),
        p(".why")[cut(begun(sentence(run.view.outage)), 1_000)]
        if run.view and run.view.outage
        else None,
        _facts(run),
        details[summary["The whole goal"], p[cut(goal)]] if more else None,
    ]


def _facts(run: Pictured) -> Node:
    """Return the run's facts; of a review that is over in one grey line below its verdict."""
    report = run.report
    told = facts(report, over=run.over, whole=run.took, waited=run.waited)
    if run.over and read_review(report):
        return p(".soft.small")[f"{verdict(report)} · {told.line}"]
    return write(run, [told])


def _verdict(run: Pictured, *, away: bool) -> Node:
    """Return what the run came to: of a review the counts, with what it lacks; else its status."""
    data = read_review(run.report) if run.over else None
    if data is None:
        return p[_status(run, away=away)]
    told = judge(data, run.report.status)
    return [p[pill(told)], p(".why")[cut(told.beside, 1_000)] if told.beside else None]


def _status(run: Pictured, *, away: bool) -> Element:
    report, view = run.report, run.view
    if run.over:
        status = OF_REPORT[report.status]
        # Green would say that there is nothing to look at.
        look = "escalated" if status == "complete" and report.flags else status
        return status_chip(look, verdict(report), "verdict")
    said = phase(view) if view else ""
    if away:
        return status_chip("cancelled", f"cannot be seen; it was {said}", "verdict")
    if view and view.waiting:
        asked = dict.fromkeys(question_text(each, view) for each in view.waiting)
        return status_chip("escalated", short("; ".join(asked), MOST_TITLE), "verdict")
    if view and view.outage:
        waits = f"waits for the endpoint of the models: {said}"
        return status_chip("escalated", waits, "verdict")
    return status_chip("running", f"under way: {said}", "verdict")


def _jump(chapters: Iterable[str]) -> Element:
    links = [li[a(href=f"#{each}")[CHAPTERS[each]]] for each in chapters]
    return nav(".jump", aria_label="Chapters")[ul[links]]


def _chapters(run: Pictured) -> Iterator[tuple[str, Node]]:
    """Yield each by its anchor; None where it has nothing to say."""
    report = run.report
    chapters = {
        "answer": review(run) or _answer(run),
        "files": _chapter(run, "files", listed(chapters_of.files(report, run.where))),
        "missing": _missing(run),
        "notes": _chapter(run, "notes", listed(report.notes)),
        "plan": plan(run),
        "times": times(run),
        "money": _chapter(run, "money", prices.blocks(report, over=run.over)),
        "orders": _chapter(run, "orders", listed(orders.lines(report.orders))),
        "inputs": _chapter(run, "inputs", listed(chapters_of.inputs(report))),
        "sources": _chapter(run, "sources", listed(sources.items(report))),
        "findings": agents(run),
        "supervisor": supervisor(run),
    }
    # Of a run that goes on one wants to see first how far it is.
    late = () if run.over else ("files", "missing", "notes")
    order = [each for each in chapters if each not in late]
    behind = order.index("money") + 1
    for name in (*order[:behind], *late, *order[behind:]):
        yield name, chapters[name]


def _chapter(run: Pictured, name: str, blocks: list[Block]) -> Node:
    return section(name, write(run, blocks)) if blocks else None


def _answer(run: Pictured) -> Element | None:
    """Return the chapter; nothing of a run that has not come so far."""
    text = mark_unsupported(run.report.answer, run.report.doubtful).strip()
    if text:
        doubts = listed(run.report.flags, LOOK_FIRST)
        first = div(".doubt")[write(run, doubts)] if doubts else None
        return section("answer", first, div(".said")[prose(text, run.cited_at)])
    return section("answer", p(".soft")["There is no answer."]) if run.over else None


def _missing(run: Pictured) -> Element | None:
    """Return what the answer lacks, and what to do about it."""
    report = run.report
    blocks = chapters_of.missing(report)
    said, typed = chapters_of.to_go_on(report, run.to_type) if run.over else ("", "")
    if not (blocks or said):
        return None
    kind = "broken" if report.status == "failed" and run.over else "warnings"
    to_do = command(said, typed) if typed else p[said] if said else None
    return section("missing", write(run, blocks), to_do, kind=kind)


def _foot(run: Pictured) -> Element:
    report = run.report
    ends = (("began", report.started), ("ended", report.finished))
    moments = [f"{word} {clock(at)}" for word, at in ends if at]
    project = f"project {report.project}" if report.project else ""
    own = f"version {report.version}" if report.version else ""
    return footer[
        p[" · ".join(filter(None, (f"Run {report.run_id}", project, *moments, own)))],
        p[
            "Made from the run's recorded history alone. One finding with all it says: ",
            span(".mono")[f"{run.to_type('show', report.run_id)} SUBTASK"],
        ],
    ]
