"""The tools of agents: each `@tool()` function in a module here is one, without registration."""
