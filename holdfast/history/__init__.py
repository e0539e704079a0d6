"""From what Temporal recorded to events, and by them to a run's state. Pure."""
