"""Any PyG convolution as a label-enhanced layer, and our own layers against PyG's."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from tests.named import model_settings
from tests.strategies import label_graphs
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, SAGEConv, TransformerConv

from legnn.config.model import PublishedSettings
from legnn.errors import InputError
from legnn.graph import Adjacency, LabelGraph
from legnn.nn import BACKBONES, GAT, GCN, LEGNN, SAGE, LabelLayer, Lift, lifted, register_backbone
from legnn.nn.published import PublishedGAT

D = 8

CONVOLUTIONS = {
    "GATv2Conv": lambda both, out: GATv2Conv(both, out // 2, heads=2, add_self_loops=False),
    "TransformerConv": lambda both, out: TransformerConv(both, out // 2, heads=2),
    "GINConv": lambda both, out: GINConv(nn.Sequential(nn.Linear(both[0], out), nn.ReLU()), train_eps=True),
    "SAGEConv": lambda both, out: SAGEConv(both, out),
}


def ringed(nodes: int = 12, classes: int = 3, loops: bool = True) -> LabelGraph:
    """A random graph, every node with a self-loop, half of the nodes showing a label of each class."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, nodes, (2, 4 * nodes), generator=generator)
    if loops:
        edges = torch.cat([edges, torch.arange(nodes).repeat(2, 1)], 1)
    shown = torch.arange(0, nodes, 2)
    return LabelGraph(Adjacency.from_edge_index(edges, nodes), shown, shown % classes, classes)


def inputs(graph: LabelGraph) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return (torch.randn(n, D, generator=generator) for n in (graph.num_nodes, graph.num_classes))


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_lifted_convolution_passes_messages_along_all_three_kinds_of_edges(name):
    graph = ringed()
    x, labels = inputs(graph)
    layer = Lift(CONVOLUTIONS[name], D, D)
    nodes, new_labels = layer(x, labels, graph)
    assert nodes.shape == (12, D)
    assert new_labels.shape == (3, D)
    found = torch.autograd.grad(nodes.square().sum() + new_labels.square().sum(), list(layer.parameters()))
    dead = [n for (n, _), g in zip(layer.named_parameters(), found, strict=True) if not g.any()]
    # TransformerConv's key bias moves all scores of a softmax alike, and a label edge alone has attention 1 always
    assert not [n for n in dead if "lin_key" not in n and "label_to_node" not in n]
    changed, _ = layer(x, labels + 1, graph)
    same = (changed - nodes).abs().amax(1) < 1e-6
    assert same.nonzero().flatten().tolist() == list(range(1, 12, 2)), "a label reaches the nodes that show it, alone"


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_lifted_convolution_makes_a_model_that_can_be_trained(name):
    key = f"test {name}"
    register_backbone(key, lifted(lambda settings, both, out: CONVOLUTIONS[name](both, out)))
    try:
        model = LEGNN(5, 3, model_settings(backbone=key, hidden=D, layers=2, label_at_input=True))
        graph = ringed()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        x, y = torch.randn(12, 5), torch.arange(12) % 3
        losses = []
        for _ in range(30):
            loss = nn.functional.cross_entropy(model(x, graph), y)
            optimizer.zero_grad()
            loss.backward()
            assert all(parameter.grad is not None for parameter in model.parameters())
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0]
    finally:
        del BACKBONES[key]


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="already a backbone named 'gcn'"):
        register_backbone("gcn", BACKBONES["sage"])


def test_a_registered_backbone_is_a_choice_of_the_settings():
    with pytest.raises(InputError, match="backbone must be one of gcn, sage, gat, gatv2, transformer, gin"):
        model_settings(backbone="mean")
    register_backbone("mean", lifted(lambda settings, both, out: SAGEConv(both, out)))
    try:
        assert model_settings(backbone="mean").backbone == "mean"
    finally:
        del BACKBONES["mean"]


def test_a_backbone_that_makes_no_label_layer_is_refused(monkeypatch):
    monkeypatch.setitem(BACKBONES, "gin", lambda spec: SAGEConv(spec.channels, spec.channels))
    with pytest.raises(InputError, match="backbone = 'gin' must make a LabelLayer, got SAGEConv"):
        LEGNN(5, 3, model_settings(backbone="gin", hidden=D))


class Doubling(LabelLayer):
    """The least that a layer is."""

    def forward(self, x, labels, graph, residual=None, initial=None):
        nodes = 2 * x[: graph.num_nodes]
        return nodes if residual is None else nodes + residual, labels if self.update_labels else None


def test_a_layer_derives_from_one_class_and_declares_the_rest(monkeypatch):
    monkeypatch.setitem(BACKBONES, "gin", lambda spec: Doubling(spec.channels, spec.channels, **spec.options))
    model, graph = LEGNN(5, 3, model_settings(backbone="gin", hidden=D, residual="identity", layers=2)), ringed()
    x = torch.rand(12, 5)
    expected = model.classifier((9 * model.encoder.project(x)).relu())
    torch.testing.assert_close(model(x, graph), expected)
    assert not model.supports_padding


@pytest.mark.parametrize("update_labels", [True, False])
def test_a_lifted_mean_equals_our_sage_without_its_root(update_labels):
    graph = ringed()
    x, labels = inputs(graph)
    ours = SAGE(D, D, normalize="relation", update_labels=update_labels)
    for root in (ours.root, *([ours.label_root] if update_labels else [])):
        nn.init.zeros_(root.weight)
        nn.init.zeros_(root.bias)
    theirs = Lift(
        lambda both, out: SAGEConv(both, out, root_weight=False, bias=False), D, D, update_labels=update_labels
    )
    with torch.no_grad():
        theirs.node_to_node.lin_l.weight.copy_(ours.node.weight)
        theirs.label_to_node.lin_l.weight.copy_(ours.label.weight)
        if update_labels:
            theirs.node_to_label.lin_l.weight.copy_(ours.node.weight)
    torch.testing.assert_close(ours(x, labels, graph), theirs(x, labels, graph))


def test_a_lifted_vanilla_layer_is_the_convolution_itself():
    graph = ringed()
    x, _ = inputs(graph)
    layer = Lift(CONVOLUTIONS["GATv2Conv"], D, D, enhanced=False)
    nodes, labels = layer(x, None, graph)
    assert labels is None
    assert layer.label_to_node is None
    torch.testing.assert_close(nodes, layer.node_to_node(x, graph.adjacency.edge_index))


def test_a_lifted_convolution_refuses_what_it_cannot_do():
    make = partial(Lift, CONVOLUTIONS["SAGEConv"])
    with pytest.raises(InputError, match="normalize = 'joint' needs gcn, sage or gat"):
        make(D, D, normalize="joint")
    graph = ringed()
    x, labels = inputs(graph)
    adjacency = graph.adjacency
    weighted = Adjacency(adjacency.rowptr, adjacency.col, torch.ones(adjacency.num_edges), adjacency.num_cols)
    with pytest.raises(InputError, match="takes no edge weights"):
        make(D, D)(x, labels, LabelGraph(weighted, graph.shown, graph.y, 3))
    with pytest.raises(InputError, match="takes no label–label edges"):
        make(D, D)(x, labels, LabelGraph(adjacency, graph.shown, graph.y, 3, torch.eye(3)))


@pytest.mark.parametrize("backbone", ["gat", "gatv2", "transformer"])
def test_heads_must_divide_the_hidden_channels_of_every_attention(backbone):
    with pytest.raises(InputError, match="hidden = 30 does not divide by heads = 4"):
        LEGNN(5, 3, model_settings(backbone=backbone, hidden=30, layers=2))


@pytest.mark.parametrize("weighted", [False, True])
@given(graph=label_graphs(label_edges=False, weighted=False))
@settings(max_examples=12, deadline=None)
def test_our_vanilla_gcn_equals_that_of_pyg(weighted, graph):
    ours, theirs = GCN(D, D, enhanced=False).double(), GCNConv(D, D, add_self_loops=False).double()
    weight = torch.rand(graph.adjacency.num_edges, dtype=torch.float64) + 0.1 if weighted else None
    adjacency = Adjacency.from_edge_index(graph.adjacency.edge_index, graph.num_nodes, weight)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.node.weight)
        theirs.bias.copy_(nn.init.normal_(ours.bias))
    x = torch.randn(graph.num_nodes, D, dtype=torch.float64)
    expected = theirs(x, adjacency.edge_index, adjacency.weight)
    torch.testing.assert_close(ours(x, None, LabelGraph.without_labels(adjacency, 2))[0], expected)


@given(graph=label_graphs(label_edges=False, weighted=False))
@settings(max_examples=12, deadline=None)
def test_our_vanilla_sage_equals_that_of_pyg(graph):
    ours, theirs = SAGE(D, D, enhanced=False).double(), SAGEConv(D, D, bias=True).double()
    with torch.no_grad():
        theirs.lin_l.weight.copy_(ours.node.weight)
        theirs.lin_l.bias.copy_(ours.root.bias)
        theirs.lin_r.weight.copy_(ours.root.weight)
    x = torch.randn(graph.num_nodes, D, dtype=torch.float64)
    torch.testing.assert_close(ours(x, None, graph)[0], theirs(x, graph.adjacency.edge_index))


@given(graph=label_graphs(label_edges=False, weighted=False))
@settings(max_examples=12, deadline=None)
def test_our_vanilla_gat_equals_that_of_pyg(graph):
    ours = GAT(D, D, heads=2, enhanced=False).double()
    theirs = GATConv(D, D // 2, heads=2, add_self_loops=False).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.node.weight)
        theirs.att_src.copy_(ours.source[None])
        theirs.att_dst.copy_(ours.target[None])
        theirs.bias.copy_(nn.init.normal_(ours.bias))
    x = torch.randn(graph.num_nodes, D, dtype=torch.float64)
    torch.testing.assert_close(ours(x, None, graph)[0], theirs(x, graph.adjacency.edge_index))


def test_uniform_attention_with_symmetric_norm_equals_gcn():
    graph = ringed()
    x, _ = inputs(graph)
    gcn = GCN(D, D, enhanced=False)
    gat = PublishedGAT(D, D, PublishedSettings(symmetric_norm=True), heads=2, enhanced=False)
    gcn.load_state_dict({name: value for name, value in gat.state_dict().items() if name in gcn.state_dict()})
    nn.init.zeros_(gat.source)
    nn.init.zeros_(gat.target)
    torch.testing.assert_close(gat(x, None, graph), gcn(x, None, graph))
