"""What keeps a deployment and its histories in order."""
