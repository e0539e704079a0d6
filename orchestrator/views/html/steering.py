"""What the live page has besides: what the run waits for, forms for what a person may tell it, and
the small script that brings it up to date.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from htpy import (
    Element,
    Node,
    button,
    code,
    div,
    form,
    h3,
    label,
    option,
    p,
    pre,
    script,
    select,
    span,
    strong,
)
from htpy import input as box
from markupsafe import Markup

from orchestrator.view import Question
from orchestrator.views.amounts import money
from orchestrator.views.html.pictured import Pictured, cut, section, short

SETTLED = ("complete", "failed", "escalated", "skipped", "cancelled")
AGAIN = ("failed", "escalated", "skipped", "cancelled")
SCRIPT = """
const typing = () => { const at = document.activeElement;
  return at && at.matches('form input') && at.value !== at.defaultValue };
const given = () => [...document.querySelectorAll('form input[id], form select[id]')];
const place = each => { const home = each.closest('[id]');
  return home.id + ' ' + [...home.querySelectorAll('details')].indexOf(each) };
const lost = is => { document.getElementById('lost').hidden = !is;
  for (const each of document.querySelectorAll('form button')) each.disabled = is };
let seen = '';
const update = async () => {
  try {
    const answer = await fetch(location.pathname, {cache: 'no-store'});
    const text = await answer.text();
    const page = new DOMParser().parseFromString(text, 'text/html');
    const whole = page.body.innerHTML.replace(/nonce="[^"]*"/g, '');
    const told = page.querySelector('main');
    const stale = page.body.dataset.away || document.body.dataset.away;
    if (told && whole !== seen && (stale || !typing())) {
      const opened = new Set([...document.querySelectorAll('details[open]')].map(place));
      const focused = document.activeElement && document.activeElement.id;
      const before = new Map(given().map(each => [each.id, each.value]));
      for (const part of ['header', 'nav.jump', 'main'])
        document.querySelector(part).replaceWith(page.querySelector(part));
      for (const each of document.querySelectorAll('details'))
        if (opened.has(place(each))) each.open = true;
      for (const each of given()) {
        const value = before.get(each.id);
        if (value && (!each.options || [...each.options].some(one => one.value === value)))
          each.value = value;
      }
      if (focused) document.getElementById(focused)?.focus();
      document.body.dataset.away = page.body.dataset.away || '';
      document.title = page.title;
      seen = whole;
    }
    lost(!told);
    if (told && page.body.dataset.over) return;
  } catch { lost(true) }
  setTimeout(update, 1000);
};
setTimeout(update, 1000);
"""


@dataclass(frozen=True)
class Live:
    """What only a page that is served has."""

    token: str
    nonce: str
    said: str = ""
    """What came of the last order."""
    refused: bool = False
    """Whether it was not carried out, or nobody knows."""
    notes: tuple[str, ...] = ()
    """Why the run does not go on as fast as it could."""
    away: str = ""
    """Why what is shown is not how the run stands now; empty: it is."""
    again: str = ""
    """What is typed to serve the page once more."""


def steering(run: Pictured, live: Live) -> Node:
    """The chapter; of a run that is over only what came of the last order."""
    said = _came(live) if live.said else None
    if live.away:
        return section("steering", "Not up to date", p(".why")[cut(live.away, 1_000)], said)
    if run.over or run.view is None:
        return section("steering", "Steering", said) if said else None
    return section(
        "steering",
        "Steering",
        said,
        [p(".why")[cut(each, 1_000)] for each in live.notes],
        [_question(each, run, live) for each in run.view.waiting],
        _always(run, live),
    )


def _came(live: Live) -> Element:
    """What came of the last order; a refusal says that it is one, not by its colour alone."""
    if live.refused:
        return p(".not-done", role="alert")[strong["Not done: "], cut(live.said, 1_000)]
    return p(".do", role="status")[cut(live.said, 1_000)]


def lost(live: Live) -> Element:
    """What is said when nobody serves the page any more: on top, wherever a reader has scrolled."""
    return p("#lost", role="alert", hidden=True)[
        "This page is not brought up to date any more, and takes no orders: it shows what it showed"
        " last. If whoever served it has ended, type: ",
        code(".typed")[live.again],
    ]


def scripted(live: Live) -> Element:
    """The script."""
    return script(nonce=live.nonce)[Markup(SCRIPT)]


def _question(question: Question, run: Pictured, live: Live) -> Node:
    about = f"{question.subtask_id}: " if question.subtask_id else ""
    said: Node = p[f"{about}{cut(question.text, 4_000)}"] if question.text else None
    match question.kind:
        case "plan":
            title, forms = "The plan waits for your approval", [
                _form(live, "approve", "Approve", hint="Carry it out as it is planned."),
                _form(live, "reject", "Reject", "Why"),
            ]  # fmt: skip
            said = [said, _price(run)]
        case "call":
            title = f"Call {question.call} of a tool waits for your approval"
            number = ("call", str(question.call))
            said = pre[f"{about}{cut(question.text, 4_000)}"]
            forms = [
                _form(live, "approve", "Approve", of=number, hint="Make this very call, once."),
                _form(live, "decline", "Decline", "Why", of=number),
            ]
        case "subtask":
            title = "A subtask asks you"
            own = ("subtask", question.subtask_id)
            forms = [_form(live, "answer", "Answer", "Your answer", of=own)]
        case "budget":
            title, forms = "The run waits for more money", []
        case "paused":
            title = "The run is paused"
            forms = [_form(live, "resume", "Resume", hint="Go on where it stands.")]
    return div(".ask")[h3[title], said, forms]


def _price(run: Pictured) -> Node:
    """What a plan that waits would cost, and what would leave this machine."""
    preview = run.view.preview if run.view else None
    if preview is None or run.view is None:
        return None
    spent = [row.expected or Decimal(0) for row in preview.rows if row.paid]
    paid = sum(spent, Decimal(0))
    cap = min(filter(None, (preview.high, run.view.dollars_cap)), default=None)
    return [
        p[
            f"It is expected to cost {money(preview.expected)}",
            f", of which planning has cost {money(paid)} already" if paid else "",
            f", and costs at most {money(cap)}; what each subtask is to do stands below.",
        ],
        p(".soft.small")[
            f"Sent to {preview.endpoint or 'the endpoint'}: {cut('; '.join(preview.leaves), 2_000)}"
        ]
        if preview.leaves
        else None,
    ]


def _always(run: Pictured, live: Live) -> Iterator[Node]:
    """What can be told to a run at any time."""
    assert run.view is not None
    open_ones = [row.id for row in run.view.rows if row.status not in SETTLED]
    lost = [row.id for row in run.view.rows if row.status in AGAIN]
    yield h3["At any time"]
    if not any(each.kind == "paused" for each in run.view.waiting):
        yield _form(live, "pause", "Pause", hint="What is under way ends, and nothing new begins.")
    if lost:
        yield _form(live, "retry", "Retry", "In other words", choices=lost)
    if open_ones:
        yield _form(live, "skip", "Skip", "Why", choices=open_ones)
    now = f"New cap in dollars (now {money(run.view.dollars_cap)})"
    yield _form(live, "raise_cap", "Raise the cap", now)


FIRST = ("approve", "answer", "resume")
"""What a question is waiting for."""


def _form(
    live: Live,
    command: str,
    said: str,
    text: str = "",
    *,
    of: tuple[str, str] | None = None,
    choices: list[str] | None = None,
    hint: str = "",
) -> Element:
    """One order: a button, with what is to be chosen and typed. `of`: what it is about."""
    given = {"token": live.token, "command": command, **dict([of] if of else [])}
    own = f"{command}-{of[1]}" if of else command
    name = "dollars" if command == "raise_cap" else "text"
    chosen = label(".field.few")[
        "Subtask",
        select(name="subtask", id=f"of-{own}")[
            (option(value=each)[short(each, 60)] for each in choices or ())
        ],
    ]
    typed = label(".field")[text, box(id=f"in-{own}", name=name, type="text", autocomplete="off")]
    return form(".order", method="post", action="order")[
        (box(type="hidden", name=key, value=value) for key, value in given.items()),
        div(".fields")[
            span(".soft.small")[hint] if hint else None,
            chosen if choices else None,
            typed if text else None,
        ],
        button(type="submit", class_="first" if command in FIRST else None)[said],
    ]
