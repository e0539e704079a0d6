"""The embedded server, held up and stopped."""
