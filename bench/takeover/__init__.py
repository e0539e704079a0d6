"""Takeovers: a worker dies amid a run, and another goes on with it."""
