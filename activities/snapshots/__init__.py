"""Snapshots of repositories and folders: copied once, read only."""
