"""A label graph in PyG's own loader."""

import pytest
import torch
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import HeteroConv, SAGEConv
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.utils import trim_to_layer

from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.graph.pyg import LABELS, SHOWS, TO, LabelGraphSampler, hetero_data

NODES, CLASSES = 60, 3


def example() -> tuple[LabelGraph, torch.Tensor, torch.Tensor]:
    edge_index = torch.randint(0, NODES, (2, 400))
    y = torch.randint(0, CLASSES, (NODES,))
    shown = torch.randperm(NODES)[:30]
    adjacency = Adjacency.from_edge_index(edge_index, NODES, torch.rand(400) + 0.5)
    return LabelGraph(adjacency, shown, y[shown], CLASSES), torch.randn(NODES, 4), y


def edges_of(data, kind) -> set[tuple[int, int]]:
    """By the ids of the whole graph."""
    source, target = data[kind].edge_index
    return set(zip(data[kind[0]].n_id[source].tolist(), data[kind[2]].n_id[target].tolist(), strict=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_every_batch_is_a_part_of_the_label_graph_in_which_no_seed_shows_its_label(workers):
    graph, x, y = example()
    data = hetero_data(graph, x, y)
    whole = {kind: set(zip(*data[kind].edge_index.tolist(), strict=True)) for kind in (TO, LABELS, SHOWS)}
    loader = NodeLoader(
        data, LabelGraphSampler(graph, (4, 3)), ("node", graph.shown), batch_size=8, shuffle=True, num_workers=workers
    )
    seen = []
    for batch in loader:
        ids, size = batch["node"].n_id, batch["node"].batch_size
        seeds = ids[:size].tolist()
        seen += seeds
        assert torch.equal(batch["node"].x, x[ids])
        assert torch.equal(batch["node"].y, y[ids])
        assert torch.equal(batch["label"].x, torch.eye(CLASSES))
        assert ids.unique().numel() == ids.numel()
        for kind in (TO, LABELS, SHOWS):
            assert edges_of(batch, kind) <= whole[kind]
        assert not {target for _, target in edges_of(batch, LABELS)} & set(seeds)
        assert not {source for source, _ in edges_of(batch, SHOWS)} & set(seeds)
        assert batch[TO].e_id.unique().numel() == batch[TO].e_id.numel(), "each edge once"
        assert torch.equal(batch[TO].edge_weight, graph.adjacency.weight[batch[TO].e_id])
        assert torch.equal(ids[batch[TO].edge_index], graph.adjacency.edge_index[:, batch[TO].e_id])
    assert sorted(seen) == sorted(graph.shown.tolist())


def test_a_batch_can_be_trimmed_layer_by_layer_as_pyg_does():
    graph, x, y = example()
    loader = NodeLoader(hetero_data(graph, x, y), LabelGraphSampler(graph, (4, 3)), ("node", graph.shown), batch_size=8)
    batch = next(iter(loader))
    layers = [HeteroConv({kind: SAGEConv((-1, -1), 4) for kind in (TO, LABELS, SHOWS)}) for _ in range(2)]
    features, edges = batch.x_dict, batch.edge_index_dict
    features = {kind: torch.randn(values.size(0), 4) for kind, values in features.items()}
    plain = trimmed = features
    trimmed_edges = edges
    for k, layer in enumerate(layers):
        plain = layer(plain, edges)
        trimmed, trimmed_edges, _ = trim_to_layer(
            k, batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict, trimmed, trimmed_edges
        )
        trimmed = layer(trimmed, trimmed_edges)
    assert sum(batch["node"].num_sampled_nodes) == batch["node"].num_nodes
    for kind in (TO, LABELS, SHOWS):
        assert sum(batch[kind].num_sampled_edges) == batch[kind].edge_index.size(1)
    assert trimmed["node"].size(0) < plain["node"].size(0)


def test_with_every_neighbor_asked_for_a_batch_has_them_all():
    graph, x, _ = example()
    seeds = torch.arange(5)
    out = LabelGraphSampler(graph, (None,)).sample_from_nodes(NodeSamplerInput(None, seeds, input_type="node"))
    wanted = sum(int(graph.adjacency.rowptr[i + 1] - graph.adjacency.rowptr[i]) for i in range(5))
    assert out.row[TO].numel() == wanted
    assert "y" not in hetero_data(graph, x)["node"]
    assert torch.equal(hetero_data(graph, x, label_features=torch.ones(CLASSES, 2))["label"].x, torch.ones(CLASSES, 2))


def test_the_same_seed_of_pytorch_gives_the_same_batches():
    graph, *_ = example()
    sampler = LabelGraphSampler(graph, (2, 2))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(9), input_type="node")).edge[TO])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_what_pyg_cannot_hold_is_refused():
    graph, *_ = example()
    with pytest.raises(InputError, match="label–label edges"):
        LabelGraphSampler(LabelGraph(graph.adjacency, graph.shown, graph.y, CLASSES, torch.ones(3, 3)), (2,))
    with pytest.raises(InputError, match="seeds are nodes"):
        LabelGraphSampler(graph, (2,)).sample_from_nodes(NodeSamplerInput(None, torch.arange(2), input_type="label"))
    with pytest.raises(NotImplementedError):
        LabelGraphSampler(graph, (2,)).sample_from_edges(None)
