"""Replays histories, finds what stops a run, what a reset undoes, and reads traces."""
