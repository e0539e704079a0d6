"""Decide what a review covers: kinds of files, what the repository takes out, what is known."""
