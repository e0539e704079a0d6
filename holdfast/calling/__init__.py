"""Prepare calls: material, reservation, timeouts. Pure."""
