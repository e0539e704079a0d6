"""How an agent with tools goes from turn to turn. Pure, like the rules of the supervisor."""
