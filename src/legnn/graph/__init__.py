"""The adjacency, the label graph and its blocks, and the selection of training nodes."""

from typing import TYPE_CHECKING

from legnn.graph.blocks import LabelBlock, SampledLabelGraph
from legnn.graph.label_graph import LabelGraph
from legnn.graph.selection import TrainingNodeSelection, select_training_nodes
from legnn.lazy import lazy_names
from legnn.ops.csr.adjacency import Adjacency
from legnn.ops.csr.label_edges import LabelEdges
from legnn.ops.sample import SamplingOptions

if TYPE_CHECKING:
    from legnn.graph.sampling import sample_label_graph

__getattr__ = lazy_names(__name__, {"sampling": "sample_label_graph"})

__all__ = [
    "Adjacency",
    "LabelBlock",
    "LabelEdges",
    "LabelGraph",
    "SampledLabelGraph",
    "SamplingOptions",
    "TrainingNodeSelection",
    "sample_label_graph",
    "select_training_nodes",
]
