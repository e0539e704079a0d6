"""Names of the Signals that a run or an agent takes."""

from __future__ import annotations

RESET = "reset"
"""Tells a run what its reset undid. It is sent to the execution that is about to be left: Temporal
hands it to the one that goes on, before anything else happens there.
"""
STANDSTILL = "standstill"
"""Tells the run above that a team of it waits, or that it goes on."""
BEGUN = "begun"
"""Tells a run, by its id, that the answer to a call has begun: others may follow that begin alike.
"""
PLANNED = "planned"
"""Tells a run which subtasks stand of the plan that its planner is writing."""
SIGNALS = (RESET, STANDSTILL, BEGUN, PLANNED)
HOLD = "hold"
"""Tells an agent that the run above is paused. A worker hands it over behind all results of its
workflow task, as it does with Updates, whatever place the SDK gives it among them.
"""
