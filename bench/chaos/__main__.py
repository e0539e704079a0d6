"""`python -m bench.chaos`: see `campaign`."""

import sys

from bench.chaos.campaign import main

sys.exit(main())
