"""What the presets decide by."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """Numbers of a graph that decide which settings suit it."""

    num_train: int
    """Training nodes."""
    num_classes: int
    """Classes."""
    counts_features: bool
    """Whether features are like word counts: none negative, most of them zero."""
    has_label_edges: bool
    """Whether the data come with label–label edges."""
