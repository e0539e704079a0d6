"""The system prompts, loaded from `prompts/`, and the excerpts of code that a verifier is shown.

The user turn of a call stands with its kind in `holdfast/calls/`.
"""
