"""How fast calls may leave, tier by tier: what an endpoint's refusals say about its limits."""
