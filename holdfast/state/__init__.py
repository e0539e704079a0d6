"""What the supervisor knows of a run: its state, its events, its moves."""
