"""Measurements, each a module that prints its figures."""
