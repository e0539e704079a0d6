"""What a kill with -9 costs: seconds, and answers that are paid again."""

from bench.survival.calls import COLUMNS as OF_CALLS
from bench.survival.tools import COLUMNS as OF_TOOLS

COLUMNS = OF_TOOLS + OF_CALLS
