"""Evals: what must hold of an answer, how many trials of a case pass, and what that says. Pure."""
