"""The code review: lenses over a snapshot, and the answer that code writes from what they saw."""
