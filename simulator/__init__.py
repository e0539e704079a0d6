"""A local server that speaks the Messages API from a script, with faults: for tests, benchmarks and
crash demonstrations. Nothing starts it but `Simulator` and `python -m simulator`, and every answer
says that it is scripted.
"""

from simulator.script import Rule, Script
from simulator.server import Simulator

__all__ = ["Rule", "Script", "Simulator"]
