"""How right the code review is: labelled remarks of real repositories, and planted defects."""

COLUMNS = (
    ("language", "planted", "found", "look-alikes", "remarked"),
    ("lens", "row", "family", "labelled", "useful", "true", "false", "believed"),
)
"""Of what is found of the planted defects, and of what was measured."""
