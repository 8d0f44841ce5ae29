"""Tools that look at the labels of a graph: whether they leak, look wrong, or should be asked for next."""
