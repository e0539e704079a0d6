"""What a live page of a run shows, and the orders that its forms give."""
