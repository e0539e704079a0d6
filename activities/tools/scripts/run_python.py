"""Run a snippet of Python in a sandbox: no file system, no network, no imports of the host. Runs
isolated, in a bounded process of its own, so it imports nothing of this project.

The sandbox is a process, too: a child of this one, with the same bounds, in the same group.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic_monty import (
    CollectString,
    Monty,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
    ResourceLimits,
)

PRINTED_BYTES = 200_000
VALUE_LETTERS = 100_000
ERROR_LETTERS = 4_000
MOST_SAVED, SAVED_LETTERS = 10, 4 * 1024 * 1024
"""Files of one call, and characters of all together."""


def main(request: bytes) -> bytes:
    """Return what `code` printed and the value of its last expression, as `{"printed": …, "value":
    …}`, with `error`, if it failed, and `saved`, the texts that it gave to `save(name, text)`. The
    texts of `inputs` are there as a dictionary of that name.
    """
    asked = json.loads(request)
    limits = ResourceLimits(
        max_feed_duration_secs=asked["seconds"],
        max_memory=asked["memory"],
        max_recursion_depth=200,
        max_total_sleep_secs=1.0,
    )
    printed = CollectString(max_bytes=PRINTED_BYTES)
    answer: dict[str, Any] = {}
    saved: dict[str, str] = {}
    grace = asked["seconds"] + 2.0
    with (
        Monty(min_processes=1, max_processes=1, request_timeout=grace) as pool,
        # So that a call that is run again draws the same numbers.
        pool.checkout(limits=limits, os_policy={"random_start": {"seed": 0}}) as session,
    ):
        try:
            value = session.feed_run(
                asked["code"],
                inputs={"inputs": asked["inputs"]},
                print_callback=printed,
                external_lookup={"save": saving(saved)},
            )
            answer["value"] = "" if value is None else render(value)
        except MontyError as error:
            answer["error"] = explain(error)
    answer["printed"] = printed.output
    answer["saved"] = saved
    return json.dumps(answer).encode()


def saving(saved: dict[str, str]) -> Callable[..., None]:
    """Return what the code calls to hand up a text as a file; a later one of a name takes its
    place.
    """

    def save(name: object, text: object) -> None:
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError("save(name, text) takes two strings")
        others = [each for other, each in saved.items() if other != name]
        if len(others) >= MOST_SAVED:
            raise ValueError(f"one call saves at most {MOST_SAVED} files")
        if sum(map(len, others)) + len(text) > SAVED_LETTERS:
            raise ValueError(f"one call saves at most {SAVED_LETTERS:,} letters")
        saved[name] = text

    return save


def render(value: Any) -> str:
    """Return the value as Python writes it, cut if it is too long."""
    text = repr(value)
    return text if len(text) <= VALUE_LETTERS else f"{text[:VALUE_LETTERS]}… ({len(text)} letters)"


def explain(error: MontyError) -> str:
    """Return why the code failed: the end of its trace, which says most."""
    if isinstance(error, MontyCrashedError):
        return "the sandbox broke down or took too long and was ended"
    said = error.display() if isinstance(error, MontyRuntimeError) else str(error)
    return said[-ERROR_LETTERS:]
