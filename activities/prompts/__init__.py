"""The system prompts, loaded from `prompts/`, and what a verifier is shown of the code.

The user turn of a call stands with its kind in `holdfast/calls/`.
"""
