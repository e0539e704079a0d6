"""Who uses what a change has changed, across the whole tree. A program of its own: the text under
review is read and parsed there, within a time limit, and not in the process that serves all runs.
"""
