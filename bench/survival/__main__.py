"""What a kill with -9 costs. Prints Markdown.

    python -m bench.survival [REPEATS] [tools] [calls]

`tools`: seconds to the next call and to completion of a run of slow tools, by what was killed.
`calls`: the worker of model calls, beside bare Temporal and a floor that keeps nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from bench.instruments.clients import silence
from bench.survival import calls, tools

REPEATS = 3


def main(given: Sequence[str]) -> None:
    """The tables of these parts, or of all."""
    numbers = [int(each) for each in given if each.isdigit()]
    repeats = numbers[0] if numbers else REPEATS
    parts = [each for each in given if not each.isdigit()] or ["tools", "calls"]
    if "tools" in parts:
        tools.main(repeats)
        sys.stdout.write("\n")
    if "calls" in parts:
        asyncio.run(calls.main(repeats))


if __name__ == "__main__":
    silence()
    main(sys.argv[1:])
