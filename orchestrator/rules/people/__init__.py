"""What people are asked and may change while a run goes on. Pure."""
