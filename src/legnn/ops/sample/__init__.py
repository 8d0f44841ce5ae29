"""Neighbor sampling: drawing edges of some rows."""
