"""Receipts: what a run came to in one signed file that can be checked without us. Pure."""
