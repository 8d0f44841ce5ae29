"""`GraphData`, the graph that the rest of the library sees, and what makes one valid."""

from legnn.config.facts import Statistics
from legnn.data.graph_data import GraphData, Provenance
from legnn.data.node_types import NodeTypes
from legnn.data.summary import edge_homophily, statistics

__all__ = ["GraphData", "NodeTypes", "Provenance", "Statistics", "edge_homophily", "statistics"]
