"""What an order costs."""

from shop.orders import Line, price


def test_an_order_costs_the_sum_of_its_lines() -> None:
    assert price([Line("tea", 2, 350), Line("cup", 1, 900)]) == 1600
