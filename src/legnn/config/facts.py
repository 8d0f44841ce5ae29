"""Facts of a graph before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FEW_LABELS = 50
"""Fewer training nodes per class are few labels."""


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """Facts of a graph that decide which settings suit it."""

    num_train: int
    num_classes: int
    counts_features: bool
    """Features are like word counts: none negative, most of them zero."""
    has_label_edges: bool
    """The data come with label–label edges."""
    num_types: int = 1
    """Node types."""

    @property
    def has_few_labels(self) -> bool:
        """Whether a small model with strong regularization does better than the paper's."""
        return self.num_train / max(self.num_classes, 1) < FEW_LABELS


class Statistics(NamedTuple):
    """Size, split and homophily of a graph before reverse edges and self-loops were added.

    Of several node types, splits are parts of the labeled one, and homophily is over the edges among its nodes.
    """

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    labeled: int
    train_percent: float
    val_percent: float
    test_percent: float
    homophily: float
