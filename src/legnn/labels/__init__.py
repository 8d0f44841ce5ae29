"""What concerns the given labels themselves: which look wrong, and which would help most."""
