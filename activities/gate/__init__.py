"""Decide how fast calls may leave, tier by tier, by what the endpoint refuses and states."""
