"""Runs over HTTP: `holdfast serve`."""
