"""`python -m bench.takeover`: see `handing_over`."""

import sys

from bench.takeover.handing_over import main

sys.exit(main())
