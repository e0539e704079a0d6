"""The vocabulary and the pure rules of a run, and the few places that touch its environment."""

__version__ = "0.1.0"
