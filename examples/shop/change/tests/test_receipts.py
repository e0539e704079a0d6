"""What a receipt is told by, and whose account is paid."""

from shop.orders import Line, price
from shop.receipts import mark

KEY = "AKIA-FOR-TESTS"
"""Shorter than a real key: it opens nothing."""


def test_equal_receipts_have_equal_marks() -> None:
    assert mark(b"tea") == mark(b"tea")
    assert KEY not in mark(KEY.encode())


def test_a_tenth_less_is_a_tenth_less() -> None:
    assert price([Line("tea", 2, 350)], 10) == 630
