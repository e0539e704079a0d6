"""Git repositories and working trees of strangers: read as data, copied once, never trusted."""
