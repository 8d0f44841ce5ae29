"""What messages travel on: the adjacency, the label graph, and the choice of who shows a label."""

from legnn.graph.adjacency import Adjacency
from legnn.graph.label_graph import LabelGraph
from legnn.graph.selection import TrainingNodeSelection, select_training_nodes

__all__ = ["Adjacency", "LabelGraph", "TrainingNodeSelection", "select_training_nodes"]
