"""How right the code review is: labelled remarks of real repositories, and planted defects."""

COLUMNS = (("language", "planted", "found", "look-alikes", "remarked"),)
"""What is found of the planted defects. What was measured of each row is printed, on no page."""
