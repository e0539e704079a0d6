"""Check that a plan or a change of it can be carried out. Pure; never called in a replay."""
