"""The user turns of calls, and the system texts that stand before them."""
