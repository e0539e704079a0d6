"""The command line: `python starter.py --help`."""

from __future__ import annotations

import os
import sys

from cli.main import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Short-lived clients of the Temporal SDK crash in up to one of five interpreter shutdowns.
    os._exit(code)
