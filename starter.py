"""The command line: `python starter.py --help`, or `holdfast --help` where it is installed."""

from holdfast.__main__ import main

if __name__ == "__main__":
    main()
