"""Spans for an OpenTelemetry backend: of runs that have closed, and of commands that start them."""
