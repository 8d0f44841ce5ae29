"""How many neighbors a node draws."""

Fanout = int | None
"""So many neighbors; None for all of them."""
