"""What every door is a client of: connect, start, look, follow, order, report."""
