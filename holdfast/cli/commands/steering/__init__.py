"""Telling a run what to do; what is one Update and no more is a row of `rows`."""
