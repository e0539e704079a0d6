"""A run as one page of HTML that stands by itself: no script, no network, no other file. Pure."""
