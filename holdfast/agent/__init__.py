"""How an agent with tools goes from turn to turn: pure, as the rules of the supervisor."""
