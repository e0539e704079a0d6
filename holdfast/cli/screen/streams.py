"""The two streams: what a program reads goes to stdout, what a person reads meanwhile to stderr.

Everything that a model, a repository or a tool wrote passes through here before a terminal sees it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from holdfast.cli.screen.looks import console
from holdfast.deployment.invocation import as_called
from holdfast.text import for_json, for_terminal

OUT = console()
ERR = console(stderr=True)


_BEYOND = re.compile(r"[^\x00-\x7f]")


class Safe:
    """A renderable whose text is made harmless after rendering.

    Needed where the renderer itself decodes: Markdown turns `&#x202e;` into a live control
    character, which escaping its source cannot see.
    """

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            if segment.control:
                yield segment
            else:
                yield Segment(for_terminal(segment.text, lines=True), segment.style)


def say(message: str, style: str = "") -> None:
    """Print a line, or several, on stderr; never wrapped, so that paths and links can be copied."""
    ERR.print(Text(for_terminal(as_called(message), lines=True), style=style), soft_wrap=True)


def say_all(messages: Iterable[str], style: str = "") -> None:
    for message in messages:
        say(message, style)


def draw(shown: RenderableType, onto: Console = OUT) -> None:
    """Show a table or a board; where no terminal is, in lines without anything at their end."""
    if onto.is_terminal:
        onto.print(Safe(shown))
        return
    with onto.capture() as drawn:
        onto.print(Safe(shown))
    onto.out("\n".join(map(str.rstrip, drawn.get().splitlines())), highlight=False)


def at_terminal() -> bool:
    """Return True if somebody can be asked: there is a terminal to read from and one to ask on."""
    return sys.stdin.isatty() and ERR.is_terminal


async def read_line() -> str:
    """Return the next line that a person types, without its end. Raises EOFError at the end of the
    input.
    """
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = os.read(sys.stdin.fileno(), 4096)
    if not line:
        raise EOFError
    return line.decode(errors="replace").strip()


def ask(question: str) -> None:
    """Print a question on stderr, with the cursor behind it."""
    ERR.print(Text(for_terminal(question), style="bold"), end=" ", soft_wrap=True)


async def agrees(question: str) -> bool:
    """Ask a person, and return True for a yes."""
    ask(f"{question} [y/N]")
    try:
        return (await read_line()).lower() in ("y", "yes")
    except EOFError:
        return False


def put(text: str) -> None:
    """Print text on stdout exactly as it is: what we wrote, or what is harmless already."""
    OUT.out(text, highlight=False)


def put_json(document: str) -> None:
    """Print JSON on stdout. Its own escaping leaves C1 controls, DEL and what turns the reading
    direction around; here they are escaped, too, and all beyond ASCII where that cannot be written.
    """
    shown = for_json(document)
    put(shown if OUT.encoding.startswith("utf") else _BEYOND.sub(_escape, shown))


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
