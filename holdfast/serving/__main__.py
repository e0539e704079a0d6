"""The worker as a process: `python worker.py`, `python -m holdfast.serving`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback


def main() -> None:
    """Serve until told to end, then exit with the worker's code."""
    # What is imported stays: to look for garbage in it is a tenth of what a start costs.
    gc.disable()
    # Until the event loop listens there is nothing to drain: told to end, it ends well.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        # Above all that takes long to import, because the first process may end meanwhile.
        from holdfast.deployment.siblings import OPTION, watch_parent

        if OPTION in sys.argv:
            watch_parent()
        from holdfast.serving import worker
    except ModuleNotFoundError as error:
        remedy = "run make setup, then .venv/bin/python worker.py, or install holdfast anew"
        sys.exit(f"{error.name} is not installed for {sys.executable}; {remedy}")

    try:
        code = worker.main()
    except Exception:
        # Threads that wait would keep a process that serves nothing, and nobody would replace it.
        traceback.print_exc()
        code = 1
    # The SDK can crash while the interpreter shuts down.
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
