"""What a deployment keeps, and how the rest goes away."""
