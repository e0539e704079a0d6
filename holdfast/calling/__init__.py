"""How a call is made: its material, its reservation, its timeouts. Pure."""
