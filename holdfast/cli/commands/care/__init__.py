"""Commands that keep a deployment and its histories in order."""
