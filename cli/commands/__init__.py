"""One module a command; those that are one Update and no more are rows of `steering`."""
