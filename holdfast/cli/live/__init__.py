"""A run's page while it goes on: served on this machine alone, with what a person may tell it."""
