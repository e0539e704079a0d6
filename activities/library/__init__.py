"""The plan library: plans that worked, kept as files with parameters, and found again by a goal."""
