"""From findings to the answer: what is asked on the way, and what becomes of it. Pure."""
