"""Whether a plan, or a change of it, can be carried out. Pure; asked where nothing replays."""
