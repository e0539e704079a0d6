"""The command line as a process: `python starter.py`, `holdfast`, `python -m holdfast`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from holdfast import __version__


def start() -> int:
    """Run a command and return its exit code. Imports here, so that neither Ctrl-C nor a missing
    package is a traceback.
    """
    if sys.argv[1:] in (["--version"], ["-V"]):
        # As the program answers it, without loading any of it.
        sys.stdout.write(f"holdfast {__version__}\n")
        return 0
    # What is imported stays: to look for garbage in it is a tenth of what a command's start costs.
    gc.disable()
    try:
        from temporalio.runtime import Runtime, TelemetryConfig

        from holdfast.cli.main import main

        gc.freeze()
        gc.enable()
        # The SDK's native part prints its warnings to standard output, in the middle of --json.
        Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))
        return main()
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"{error.name} is not installed for {sys.executable};"
            " run make setup, then .venv/bin/python starter.py, or install holdfast anew\n"
        )
        return 1


def main() -> None:
    """Run a command, and end this process with its exit code."""
    code = start()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    # Short-lived clients of the Temporal SDK crash in up to one of five interpreter shutdowns.
    os._exit(code)


if __name__ == "__main__":
    main()
