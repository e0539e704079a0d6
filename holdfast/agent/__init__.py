"""Move an agent with tools from turn to turn. Pure, like the rules of the supervisor."""
