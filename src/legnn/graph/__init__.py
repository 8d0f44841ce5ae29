"""What messages travel on: the adjacency, the label graph, and the choice of who shows a label."""

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelEdges, LabelGraph
from legnn.graph.sampling import sample_label_graph
from legnn.graph.selection import TrainingNodeSelection, select_training_nodes
from legnn.ops.csr.adjacency import Adjacency

__all__ = [
    "Adjacency",
    "LabelBlock",
    "LabelEdges",
    "LabelGraph",
    "SampledLabelGraph",
    "TrainingNodeSelection",
    "sample_label_graph",
    "select_training_nodes",
]
