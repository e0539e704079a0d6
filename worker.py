"""The worker process: `python worker.py --help`, or `python -m holdfast.serving` where it is
installed.
"""

from holdfast.serving.__main__ import main

if __name__ == "__main__":
    main()
