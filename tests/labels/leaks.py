"""Clean graphs and ways to spoil them: each kind of leak that an audit has to find."""

from dataclasses import replace

import torch
from tests.graphs import small_data
from torch_geometric.data import Data

from legnn.data import GraphData

CLASSES = 3


def clean_data(nodes: int = 600, seed: int = 0, **fields) -> Data:
    """A graph whose features and edges tell the classes a little, as in real ones, and the order does not."""
    data = small_data(nodes, CLASSES, channels=6, seed=seed)
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(seed))
    place = torch.empty_like(order).index_copy(0, order, torch.arange(nodes))
    given = {name: value[order] for name, value in data.items() if torch.is_tensor(value) and len(value) == nodes}
    return Data(**{**data.to_dict(), **given, "edge_index": place[data.edge_index], **fields})


def truth(data: Data) -> torch.Tensor:
    """The class of every node, a drawn one for those without a label."""
    drawn = torch.randint(0, CLASSES, data.y.shape, generator=torch.Generator().manual_seed(5))
    return torch.where(data.y < 0, drawn, data.y)


def add_columns(data: Data, columns: torch.Tensor) -> Data:
    columns = columns.float().reshape(data.num_nodes, -1)
    return Data(**{**data.to_dict(), "x": torch.cat([data.x, columns], 1)})


def add_edges(data: Data, edges: torch.Tensor) -> Data:
    return Data(**{**data.to_dict(), "edge_index": torch.cat([data.edge_index, edges], 1)})


def label_column(data: Data) -> Data:
    """The class as a number, scaled and with a little noise."""
    return add_columns(data, 0.1 * truth(data) + 0.001 * torch.randn(data.num_nodes))


def one_hot_columns(data: Data) -> Data:
    """A column that marks each class."""
    return add_columns(data, torch.nn.functional.one_hot(truth(data), CLASSES))


def column_of_test_nodes(data: Data) -> Data:
    """A column with the class of test nodes, mostly, and noise elsewhere."""
    noise = torch.randint(0, CLASSES, data.y.shape)
    keeps = data.test_mask & (torch.rand(data.num_nodes) < 0.85)
    return add_columns(data, torch.where(keeps, truth(data), noise))


def missing_cells(data: Data) -> Data:
    """A column of noise that is zero for one class: as if its cells were missing there."""
    return add_columns(data, torch.rand(data.num_nodes) * (data.y != 1) + 0.0)


def alike_test_edges(data: Data) -> Data:
    """Edges among test nodes of the same class."""
    parts = []
    for c in range(CLASSES):
        nodes = (data.test_mask & (data.y == c)).nonzero().flatten()
        parts += [torch.stack([nodes, nodes.roll(shift)]) for shift in (1, 2, 3, 4)]
    return add_edges(data, torch.cat(parts, 1))


def class_hubs(data: Data) -> Data:
    """A node more for each class, to which all of its nodes are connected."""
    labeled = (data.y >= 0).nonzero().flatten()
    nodes, spare = data.num_nodes, torch.zeros(CLASSES, dtype=torch.bool)
    fields = {name: torch.cat([data[name], spare]) for name in ("train_mask", "val_mask", "test_mask")}
    fields |= {"x": torch.cat([data.x, torch.randn(CLASSES, data.x.size(1))])}
    fields |= {"y": torch.cat([data.y, torch.full((CLASSES,), -1)])}
    return add_edges(Data(**{**data.to_dict(), **fields}), torch.stack([labeled, nodes + data.y[labeled]]))


def copied_nodes(data: Data) -> Data:
    """Every fourth test node again as a training node, with its features, edges and label."""
    copied = data.test_mask.nonzero().flatten()[::4]
    number = torch.full((data.num_nodes,), -1).index_copy(0, copied, data.num_nodes + torch.arange(len(copied)))
    edges = torch.cat([data.edge_index, data.edge_index.flip(0)], 1)
    # among the copied there are none: each would have the other's copy for a neighbor
    edges = edges[:, (number[edges] < 0).any(0)]
    new = edges[:, number[edges[0]] >= 0]
    yes, no = torch.ones(len(copied), dtype=torch.bool), torch.zeros(len(copied), dtype=torch.bool)
    fields = {"x": torch.cat([data.x, data.x[copied]]), "y": torch.cat([data.y, data.y[copied]])}
    for name, more in (("train_mask", yes), ("val_mask", no), ("test_mask", no)):
        fields[name] = torch.cat([data[name], more])
    return add_edges(Data(**{**data.to_dict(), **fields}), torch.stack([number[new[0]], new[1]]))


def degree(data: Data) -> Data:
    """Edges to spare nodes, as many as the number of the class says."""
    spare = (data.y < 0).nonzero().flatten()
    nodes = (data.y >= 0).nonzero().flatten()
    # far more than the graph has
    count = 40 * data.y[nodes]
    source = nodes.repeat_interleave(count)
    return add_edges(data, torch.stack([source, spare[torch.arange(len(source)) % len(spare)]]))


DATA_LEAKS = {
    "features that tell the class": (label_column, one_hot_columns, column_of_test_nodes, missing_cells),
    "edges made of test labels": (alike_test_edges,),
    "neighbors that tell the class": (class_hubs,),
    "degrees that tell the class": (degree,),
    "copies across splits": (copied_nodes,),
}
"""The checks, and what spoils a graph so that they must fail."""


def repeated_ids(graph: GraphData) -> GraphData:
    """The graph with the id of a training node for a test node."""
    ids = graph.node_id.copy()
    ids[int(graph.test_mask.nonzero()[0])] = ids[int(graph.train_mask.nonzero()[0])]
    return replace(graph, node_id=ids)
