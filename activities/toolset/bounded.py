"""Run a script's `main` within bounds that are set before anything of a stranger is read. It
returns its answer, or yields it in parts.

`bounded.py SCRIPT BOUNDS`, with the request on its standard input and the answer on its standard
output. Runs isolated, as a program of its own, so it imports nothing of this project. What
libraries print goes nowhere: only the answer is one.
"""

import json
import os
import resource
import runpy
import sys
import traceback
from contextlib import suppress

NO_MEMORY, FAILED = 3, 4


def bound(kind: int, most: int) -> None:
    """Set a limit, if the system has it."""
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


def main() -> int:
    """Return the exit code: 0, NO_MEMORY, or FAILED with the kind of error and its trace as
    output.
    """
    script, bounds = sys.argv[1], json.loads(sys.argv[2])
    bound(resource.RLIMIT_CORE, 0)
    bound(resource.RLIMIT_FSIZE, bounds["writes"])
    bound(resource.RLIMIT_CPU, bounds["seconds"])
    bound(resource.RLIMIT_AS, bounds["memory"])
    answer = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    code = 0
    try:
        said = runpy.run_path(script)["main"](sys.stdin.buffer.read())
        for part in (said,) if isinstance(said, bytes) else said:
            answer.write(part)
    except MemoryError:
        code = NO_MEMORY
    except Exception as error:
        lines = f"{type(error).__name__}\n{traceback.format_exc()}"
        code = FAILED
        # A NUL ends what it had said by then, which is text.
        answer.write(b"\0" + lines.encode("utf-8", "backslashreplace"))
    answer.flush()
    # Libraries may have left threads, or exit handlers that fail without memory.
    os._exit(code)


if __name__ == "__main__":
    main()
