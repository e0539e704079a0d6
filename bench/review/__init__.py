"""How right the code review is: labelled remarks of real repositories, and planted defects."""
