"""The vocabulary of a run, and in its rooms the rules, the money, what was recorded, and the views.
All of it is pure: nothing here imports what touches the world.
"""

__version__ = "0.1.0"
