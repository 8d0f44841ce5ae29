"""What presets need to know about a graph."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """Numbers of a graph that presets decide by."""

    num_train: int
    """Training nodes."""
    num_classes: int
    counts_features: bool
    """Whether features look like counts: none is negative, and more than half of them are zero."""
    has_label_edges: bool
    """Whether the graph comes with label–label edges."""
