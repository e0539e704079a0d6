"""What makes a program a lens: its data, its languages, what it printed."""
