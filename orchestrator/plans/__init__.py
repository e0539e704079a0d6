"""Whether a plan, a check of it or a change of it can be carried out. Pure, and asked where nothing
replays.
"""
