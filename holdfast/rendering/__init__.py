"""What people are shown of a run: pure functions of its state, which decide nothing."""
