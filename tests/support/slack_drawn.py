"""A thread of Slack as a page: messages as they were sent, from the JSON of their blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

Json = dict[str, Any]
STYLE = """
body { margin: 0; background: #fff; color: #1d1c1d; width: 720px;
  font: 15px/1.46 Lato, "Noto Sans", "DejaVu Sans", Arial, sans-serif; }
main { padding: 16px 20px; }
.message { display: flex; gap: 10px; margin: 0 0 14px; }
.face { width: 36px; height: 36px; border-radius: 8px; color: #fff; font-weight: 700;
  display: grid; place-items: center; flex: none; }
.said { min-width: 0; flex: 1; }
.who { font-weight: 700; } .app { background: #ececec; color: #616061; font-size: 10px;
  font-weight: 700; padding: 1px 4px; border-radius: 2px; margin: 0 4px; }
.at { color: #616061; font-size: 12px; font-weight: 400; }
h2 { font-size: 18px; margin: 4px 0 6px; }
.section { margin: 4px 0 8px; white-space: pre-wrap; overflow-wrap: anywhere; }
.context { color: #616061; font-size: 13px; margin: 4px 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
code, pre { background: #f6f6f6; border: 1px solid #ddd; border-radius: 4px; font-size: 12px;
  font-family: "DejaVu Sans Mono", monospace; }
code { color: #c01343; padding: 1px 3px; }
pre { padding: 8px; white-space: pre-wrap; margin: 4px 0; }
hr { border: 0; border-top: 1px solid #ddd; margin: 12px 0; }
.button { display: inline-block; border: 1px solid #bbb; border-radius: 8px; padding: 4px 12px;
  margin: 2px 8px 6px 0; font-weight: 700; font-size: 14px; }
.primary { background: #007a5a; border-color: #007a5a; color: #fff; }
.danger { color: #e01e5a; border-color: #e01e5a; }
.person { background: #e8f5fa; color: #1264a3; border-radius: 3px; padding: 0 2px; }
"""
_PATTERNS = (
    (re.compile(r"\n*```\n?(.*?)\n?```\n*", re.S), r"<pre>\1</pre>"),
    (re.compile(r"`([^`\n]+)`"), r"<code>\1</code>"),
    (re.compile(r"(?<!\w)\*([^*\n]+)\*(?!\w)"), r"<b>\1</b>"),
    (re.compile(r"(?<!\w)_([^_\n]+)_(?!\w)"), r"<i>\1</i>"),
)
_PERSON = re.compile(r"<@(\w+)>")


def page(messages: Sequence[Json], names: dict[str, str]) -> str:
    """Return a thread as HTML. `names`: of people, by their ids."""
    body = "".join(_message(each, names) for each in messages)
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style><main>{body}</main>'


def _message(message: Json, names: dict[str, str]) -> str:
    bot = "bot_id" in message
    who, colour = ("holdfast", "#4a154b") if bot else (names[message["user"]], "#2bac76")
    app = '<span class="app">APP</span>' if bot else ""
    blocks = message.get("blocks") or [_section(message["text"])]
    shown = "".join(part for block in blocks for part in _block(block, names))
    return (
        f'<div class="message"><div class="face" style="background:{colour}">{who[0]}</div>'
        f'<div class="said"><div><span class="who">{escape(who)}</span>{app}'
        f' <span class="at">10:24</span></div>{shown}</div></div>'
    )


def _section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _block(block: Json, names: dict[str, str]) -> Iterator[str]:
    match block["type"]:
        case "header":
            yield f"<h2>{escape(block['text']['text'])}</h2>"
        case "section":
            yield f'<div class="section">{_text(block["text"], names)}</div>'
        case "context":
            shown = " ".join(_text(each, names) for each in block["elements"])
            yield f'<div class="context">{shown}</div>'
        case "divider":
            yield "<hr>"
        case "actions":
            yield "<div>"
            for each in block["elements"]:
                kind = each.get("style", "")
                yield f'<span class="button {kind}">{escape(each["text"]["text"])}</span>'
            yield "</div>"


def _text(text: Json, names: dict[str, str]) -> str:
    if text["type"] == "plain_text":
        return escape(text["text"])
    # What the door escapes is HTML already.
    named = _PERSON.sub(lambda found: f"\0@{names.get(found[1], found[1])}\1", text["text"])
    shown = named.replace("<", "&lt;").replace(">", "&gt;")
    shown = shown.replace("\0", '<span class="person">').replace("\1", "</span>")
    for pattern, by in _PATTERNS:
        shown = pattern.sub(by, shown)
    return shown
