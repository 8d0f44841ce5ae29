"""The edges messages travel on: undirected, without duplicates, with self-loops."""

from copy import copy

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import add_remaining_self_loops, coalesce, to_undirected


def prepare(data: Data, *, undirected: bool = True, remove_duplicates: bool = True, self_loops: bool = True) -> Data:
    """A shallow copy of `data` whose edges are prepared; preparing twice changes nothing more.

    Weights of merged edges are averaged, so that a graph keeps the scale of its weights when both directions were
    listed. A self-loop that is there keeps its weight; an added one weighs 1.

    Args:
        data: `edge_index` [2, E] and, if weighted, `edge_weight` [E].
        undirected: add the reverse of every edge, which merges parallel edges too.
        remove_duplicates: merge parallel edges.
        self_loops: give every node an edge to itself, unless it has one.
    """
    prepared = copy(data)
    edge_index: Tensor = data.edge_index
    weight: Tensor | None = data.get("edge_weight")
    nodes = data.num_nodes
    if undirected:
        edge_index, weight = to_undirected(edge_index, weight, num_nodes=nodes, reduce="mean")
    elif remove_duplicates:
        edge_index, weight = coalesce(edge_index, weight, num_nodes=nodes, reduce="mean")
    if self_loops:
        edge_index, weight = add_remaining_self_loops(edge_index, weight, fill_value=1.0, num_nodes=nodes)
    prepared.edge_index = edge_index.contiguous()
    if weight is not None:
        prepared.edge_weight = weight
    return prepared
