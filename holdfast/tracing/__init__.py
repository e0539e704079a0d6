"""A run as steps: what its history says was done, by whom, for how long and for what. Pure."""
