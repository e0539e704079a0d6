"""What makes a program a lens: its data, its languages, the reading of its output."""
