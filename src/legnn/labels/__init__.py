"""Label tools: labels that look wrong, nodes to label next, and an audit for leaks."""
