"""What the live page has besides: what the run waits for, forms for what a person may tell it, and
the small script that brings it up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htpy import (
    Element,
    Node,
    a,
    button,
    code,
    details,
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
    summary,
    textarea,
)
from htpy import input as box
from htpy import section as chapter
from markupsafe import Markup

from holdfast.contracts.view import Question
from holdfast.rendering.amounts import money
from holdfast.rendering.html.pictured import Pictured, begun, cut, section, short
from holdfast.rendering.status import SETTLED, question_text

AGAIN = ("failed", "escalated", "skipped", "cancelled")
SCRIPT = """
const typing = () => { const at = document.activeElement;
  return at && at.matches('form input, textarea') && at.value !== at.defaultValue };
const given = () =>
  [...document.querySelectorAll('form input[id], form select[id], form textarea[id]')];
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
    """True if it was not carried out, or nobody knows."""
    notes: tuple[str, ...] = ()
    """Why the run does not go on as fast as it could."""
    away: str = ""
    """Why what is shown is not how the run stands now; empty: it is."""
    again: str = ""
    """What is typed to serve the page once more."""
    plan: str = ""
    """The plan that waits for approval, as a person edits it; empty: not on this page."""
    edits: str = ""
    """What is typed to edit it elsewhere."""


def steering(run: Pictured, live: Live) -> Node:
    """Return the chapter: what the run asks, and behind one fold whatever else it can be told. Of a
    run that is over only what came of the last order.
    """
    said = _came(live) if live.said else None
    if live.away:
        return section("steering", p(".why")[cut(live.away, 1_000)], said, title="Not up to date")
    if run.over or run.view is None:
        return section("steering", said) if said else None
    first = [
        said,
        [p(".why")[cut(each, 1_000)] for each in live.notes],
        [_question(each, run, live) for each in run.view.waiting],
    ]
    if any(first):
        return section("steering", first, _always(run, live))
    return chapter(".quiet", id="steering", aria_label="Steering")[_always(run, live)]


def _came(live: Live) -> Element:
    """Return what came of the last order; a refusal says so, not by its colour alone."""
    if live.refused:
        return p(".not-done", role="alert")[strong["Not done: "], cut(live.said, 1_000)]
    return p(".do", role="status")[cut(live.said, 1_000)]


def lost(live: Live) -> Element:
    """Return what is said once nobody serves the page: on top, wherever a reader has scrolled."""
    return p("#lost", role="alert", hidden=True)[
        "This page is not brought up to date any more, and takes no orders: it shows what it showed"
        " last. If whoever served it has ended, type: ",
        code(".typed")[live.again],
    ]


def scripted(live: Live) -> Element:
    return script(nonce=live.nonce)[Markup(SCRIPT)]


def _question(question: Question, run: Pictured, live: Live) -> Node:
    assert run.view is not None
    number, own = ("call", str(question.call)), ("subtask", question.subtask_id)
    said: Node = None
    forms: list[Node] = []
    match question.kind:
        case "plan":
            said = p["What it does and what each part costs: ", a(href="#plan")["the plan"], "."]
            forms = [
                _form(live, "approve", "Approve", hint="Carry it out as it is planned."),
                _form(live, "reject", "Reject", "Why"),
                _edit(live),
            ]
        case "call":
            said = pre[question.text]
            forms = [
                _form(live, "approve", "Approve", of=number, hint="Make this very call, once."),
                _form(live, "decline", "Decline", "Why", of=number),
            ]
        case "subtask":
            asked = "Your answer: go on, or stop" if question.rows else "Your answer"
            forms = [_form(live, "answer", "Answer", asked, of=own)]
        case "decision":
            hint = "Go on without it; a case that is handed over is dropped."
            forms = [
                _form(live, "retry", "Try again", of=own, hint="As it was asked before."),
                _form(live, "answer", "Try again so", "Your advice", of=own),
                _form(live, "supply", "Supply", "Its finding, in your words", of=own),
                _form(live, "hand", "Hand over", of=own, choices=question.roles, chosen="role"),
                _form(live, "skip", "Go on without", of=own, hint=hint),
            ]
        case "paused":
            forms = [_form(live, "resume", "Resume", hint="Go on where it stands.")]
    title = question_text(question, run.view, "it waits for your approval")
    return div(".ask")[h3[cut(begun(title), 4_000)], said, forms]


def _always(run: Pictured, live: Live) -> Element:
    """Return the fold of what can be told to a run at any time."""
    assert run.view is not None
    # Before there is a plan no order about a subtask is taken.
    rows = () if run.view.phase in ("preparing", "planning") else run.view.rows
    open_ones = [row.id for row in rows if row.status not in SETTLED]
    lost = [row.id for row in rows if row.status in AGAIN]
    forms: list[tuple[str, Element]] = []
    if not any(each.kind == "paused" for each in run.view.waiting):
        hint = "What is under way ends, and nothing new begins."
        forms.append(("pause", _form(live, "pause", "Pause", hint=hint)))
    if lost:
        retry = _form(live, "retry", "Retry", "In other words", choices=lost)
        forms.append(("try a subtask again", retry))
    if maps := _maps(run):
        forms.append(("decide about rows", div[_of_rows(live, maps)]))
    if open_ones:
        forms.append(("skip a subtask", _form(live, "skip", "Skip", "Why", choices=open_ones)))
    now = f"New cap in dollars (now {money(run.view.dollars_cap)})"
    forms.append(("raise the cap", _form(live, "raise_cap", "Raise the cap", now)))
    names = ", ".join(name for name, _ in forms)
    return details(".tell")[summary[f"Tell the run: {names}"], [each for _, each in forms]]


def _maps(run: Pictured) -> list[str]:
    """Return the maps whose rows are known."""
    unknown = ("waiting", "skipped", "cancelled")
    mapped = (id for id, subtask in run.subtasks.items() if subtask.map is not None)
    return [id for id in mapped if run.status(id) not in unknown]


def _of_rows(live: Live, maps: Sequence[str]) -> list[Element]:
    """Return the orders about rows of maps."""
    some, one = ("rows", "Rows: failed, or ids with commas"), ("rows", "Row, by its id")
    result = ("value", "Its result, as JSON")
    return [
        _form(live, "retry", "Retry rows", choices=maps, typed=(some,), own="retry-rows"),
        _form(live, "skip", "Skip rows", choices=maps, typed=(some,), own="skip-rows"),
        _form(live, "supply", "Supply a row", choices=maps, typed=(one, result), own="supply-row"),
    ]


def _edit(live: Live) -> Element:
    """Return the fold in which the plan is edited, or how to where it is too long for a form."""
    elsewhere = p(".soft.small")["In a terminal, with your editor: ", code(".typed")[live.edits]]
    if not live.plan:
        return elsewhere
    return details(".tell", open=live.refused)[
        summary["Edit the plan"],
        form(".edit", method="post", action="order", enctype="multipart/form-data")[
            box(type="hidden", name="token", value=live.token),
            label(".field", for_="in-edit")["The plan, as YAML or JSON"],
            textarea(id="in-edit", name="plan", rows="18", spellcheck="false")["\n", live.plan],
            div(".fields")[
                button(type="submit", name="command", value="price")["Check it, and its price"],
                button(type="submit", name="command", value="edit")["Run it so"],
            ],
        ],
        elsewhere,
    ]


FIRST = ("approve", "answer", "resume")
"""What a question is waiting for."""


def _form(
    live: Live,
    command: str,
    said: str,
    text: str = "",
    *,
    of: tuple[str, str] | None = None,
    choices: Sequence[str] = (),
    chosen: str = "subtask",
    hint: str = "",
    typed: Sequence[tuple[str, str]] = (),
    own: str = "",
) -> Element:
    """Return one order: a button, with what is to be chosen and typed. `of`: what it is about;
    `chosen`: the name of what `choices` are; `typed`: names and labels of fields, in place of the
    one that is labelled `text`; `own`: what its fields are called by on the page.
    """
    given = {"token": live.token, "command": command, **dict([of] if of else [])}
    own = own or (f"{command}-{of[1]}" if of else command)
    if text:
        typed = (("dollars" if command == "raise_cap" else "text", text),)
    selected = label(".field.few")[
        chosen.capitalize(),
        select(name=chosen, id=f"of-{own}")[
            (option(value=each)[short(each, 60)] for each in choices)
        ],
    ]
    boxes = [
        label(".field")[about, box(id=f"{place}-{own}", name=name, type="text", autocomplete="off")]
        for place, (name, about) in zip(("in", "as"), typed, strict=False)
    ]
    return form(".order", method="post", action="order")[
        (box(type="hidden", name=key, value=value) for key, value in given.items()),
        div(".fields")[
            span(".soft.small")[hint] if hint else None,
            selected if choices else None,
            boxes,
        ],
        button(type="submit", class_="first" if command in FIRST else None)[said],
    ]
