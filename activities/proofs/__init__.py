"""Proofs of remarks: what a model is shown for one, and the run of what it wrote."""
