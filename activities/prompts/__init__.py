"""The system prompts, loaded from `prompts/`, and the excerpts of code that a verifier is shown.

What a call says itself, its user turn, stands with its kind in `holdfast/calls/`.
"""
