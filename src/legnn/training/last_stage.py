"""The last stage of a whole graph for the nodes whose logits are read: no other node needs it."""

from __future__ import annotations

from torch import Tensor

from legnn.graph import LabelBlock, LabelGraph
from legnn.graph.sampling import all_neighbors
from legnn.nn import Model, StagedModel
from legnn.ops.sample.reference import ReferenceSampler

WORTH_BLOCK = 10**8
"""Multiplications that a block saves in a forward pass; with fewer, products are not what takes time. On a GPU they are
not, either."""


def last_block(model: Model, graph: LabelGraph, nodes: Tensor, *, training: bool) -> LabelBlock | None:
    """Returns what the last stage of `model` reads to compute `nodes` `[n]`, each once; None where it saves too little.

    In `training`, a stage with statistics over all nodes has none either.
    """
    if not isinstance(model, StagedModel) or type(model).forward is not StagedModel.forward or model.num_stages < 2:
        return None
    if nodes.is_cuda or (training and not model.has_row_stage):
        return None
    most, squared = graph.num_nodes, model.channels**2
    # every node has a product as a target and one as a source
    if squared * 2 * (most - nodes.numel()) < WORTH_BLOCK:
        return None
    # in plain PyTorch: it is drawn once, and the kernels of samples take a second to compile
    block = all_neighbors(graph, nodes, ReferenceSampler)
    saved = squared * (2 * most - nodes.numel() - block.nodes.numel())
    return block if saved >= WORTH_BLOCK else None
