"""The lenses of a review: a module per analyser, found by walking this package.

To add one, add a module that defines `ANALYSER` (see `lens.py`), and a role with it as its tool.
"""
