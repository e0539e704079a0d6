"""Removes what a deployment keeps and nobody needs any more."""
