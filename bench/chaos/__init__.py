"""A chaos campaign: what may happen to a deployment at once, and what its bills must be then."""
