"""How right the code review is: the labelled remarks, and a review that is held against them."""

PLANTED = ("language", "planted", "found", "look-alikes", "remarked")
SEEDED = (
    "language", "removed import", "renamed name", "changed signature", "deleted check",
    "weakened test", "clean changes", "false alarms",
)  # fmt: skip
UNDONE = (
    "language", "fixes undone", "remark at the place", "of these shown", "shown elsewhere",
    "seconds each",
)  # fmt: skip
IN_SIGHT = (
    "language", "fixes undone", "diff", "a caller", "its test", "message of the fix",
    "dollars each",
)  # fmt: skip
ANSWERED = (
    "language", "fixes undone", "found", "of these confirmed", "other remarks", "dollars each",
)  # fmt: skip
COLUMNS = (PLANTED, SEEDED, UNDONE, IN_SIGHT, ANSWERED)
