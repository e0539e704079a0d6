"""Makes a trace of a history: steps with who did them, how long they took, what they cost. Pure."""
