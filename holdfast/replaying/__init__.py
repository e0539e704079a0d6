"""What a history says about a run beyond its state: whether it replays, and what a reset undoes."""
