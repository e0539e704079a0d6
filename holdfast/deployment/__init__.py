"""What a deployment is told: its settings and where they come from."""
