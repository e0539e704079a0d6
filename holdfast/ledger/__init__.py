"""What calls cost, what of a cap is reserved, kept and spent, and what a plan will cost. Pure."""
