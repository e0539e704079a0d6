"""The worker processes: which live, what they hold, and that there are enough of them."""
