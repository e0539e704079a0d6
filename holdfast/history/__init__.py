"""Reads what Temporal recorded of a run: its events, and by them its state. Pure."""
