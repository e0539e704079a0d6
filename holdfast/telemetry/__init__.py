"""What a deployment tells of itself: logs, metrics, spans."""
