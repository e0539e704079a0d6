"""The doors for programs: each is a client of `holdfast.client`, and knows no more of runs."""
