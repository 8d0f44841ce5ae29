"""HGT equals its equation with loops over nodes, and PyG's `HGTConv` where labels are no nodes."""

import math

import pytest
import torch
import torch.nn.functional as F
from tests.nn.relation_graphs import CLASSES, EXACT, RELATIONS, compare, dense_relations, one_hot, typed_graph
from torch import nn
from torch_geometric.nn import HGTConv

from legnn.errors import InputError
from legnn.nn.hgt import HGT

D, HEADS = 6, 2
WIDTH = D // HEADS


def layer(**options) -> HGT:
    made = HGT(D, D, heads=HEADS, **{"num_types": 3, "relations": RELATIONS, **options}).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def mixed(net: HGT, query, neighbors):
    """`Σ_j α_j v_j M_r` `[D]` for neighbors `(keys and values, relation, weight)`."""
    if not neighbors:
        return torch.zeros(D, dtype=torch.float64)
    out = []
    for head in range(HEADS):
        mine = slice(head * WIDTH, (head + 1) * WIDTH)
        scores, values = [], []
        for sent, edges, weight in neighbors:
            key, value = sent[:D][mine], sent[D:][mine]
            score = edges.prior[head] * (key @ edges.weight[0, head] @ query[mine]) / math.sqrt(WIDTH)
            scores.append(weight * score.exp())
            values.append(value @ edges.weight[1, head])
        scores = torch.stack(scores)
        out.append((scores / scores.sum()) @ torch.stack(values))
    return torch.cat(out)


def update(out: nn.Module, gate, sum_of_messages, old):
    share = gate.sigmoid()
    return share * out(F.gelu(sum_of_messages)[None])[0] + (1 - share) * old


def plain(net: HGT, x, labels, graph):
    types, Y = graph.node_type.tolist(), one_hot(graph)
    sent = [net.key_value[kind](row[None])[0] for kind, row in zip(types, x, strict=True)]
    label_sent = [] if labels is None else net.label_key_value(labels)
    nodes = []
    for i, kind in enumerate(types):
        neighbors = [
            (sent[j], net.edges[number], A[i, j])
            for number, A in enumerate(dense_relations(graph).values())
            for j in A[i].nonzero().flatten().tolist()
        ]
        if labels is not None:
            neighbors += [(label_sent[c], net.label_to_node, 1.0) for c in Y[i].nonzero().flatten().tolist()]
        query = net.query[kind](x[i][None])[0]
        nodes.append(update(net.out[kind], net.gate[kind], mixed(net, query, neighbors), x[i]))
    if labels is None:
        return torch.stack(nodes), None
    new = []
    for c in range(CLASSES):
        neighbors = [(sent[j], net.node_to_label, 1.0) for j in Y[:, c].nonzero().flatten().tolist()]
        query = net.label_query(labels[c][None])[0]
        new.append(update(net.label_out, net.label_gate, mixed(net, query, neighbors), labels[c]))
    return torch.stack(nodes), torch.stack(new)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("enhanced", [False, True])
def test_a_layer_equals_its_equation(enhanced, weighted):
    graph, net = typed_graph(weighted=weighted), layer(enhanced=enhanced)
    x = torch.randn(12, D, dtype=torch.float64, requires_grad=True)
    labels = torch.randn(CLASSES, D, dtype=torch.float64, requires_grad=True) if enhanced else None
    wrt = [x, *([labels] if enhanced else []), *net.parameters()]
    compare(net(x, labels, graph), plain(net, x, labels, graph), wrt)


def test_a_vanilla_layer_is_pygs():
    graph, net = typed_graph(), layer(enhanced=False)
    names = ["0", "1", "2"]
    relations = [(str(s), "to", str(t)) for s, t in RELATIONS]
    theirs = HGTConv(D, D, (names, relations), heads=HEADS).double()
    for kind in range(3):
        linear = theirs.kqv_lin.lins[str(kind)]
        both, query = net.key_value[kind], net.query[kind]
        # PyG has keys, queries and values one below the other
        linear.weight.data = torch.cat([both.weight[:D], query.weight, both.weight[D:]])
        linear.bias.data = torch.cat([both.bias[:D], query.bias, both.bias[D:]])
        theirs.out_lin.lins[str(kind)].load_state_dict(net.out[kind].state_dict())
        theirs.skip[str(kind)].data = net.gate[kind][None]
    for number, relation in enumerate(relations):
        for head in range(HEADS):
            # its rows are heads, and within a head relations, of `x @ weight`
            row = head * len(relations) + number
            theirs.k_rel.weight.data[row] = net.edges[number].weight[0, head]
            theirs.v_rel.weight.data[row] = net.edges[number].weight[1, head]
        theirs.p_rel["__".join(relation)].data = net.edges[number].prior[None]
    x = torch.randn(12, D, dtype=torch.float64)
    of_type = [(graph.node_type == kind).nonzero().flatten() for kind in range(3)]
    edge_index = graph.adjacency.edge_index
    edges = {}
    for (s, t), relation in zip(RELATIONS, relations, strict=True):
        mine = (graph.node_type[edge_index[0]] == s) & (graph.node_type[edge_index[1]] == t)
        source, target = edge_index[:, mine]
        edges[relation] = torch.stack([torch.searchsorted(of_type[s], source), torch.searchsorted(of_type[t], target)])
    expected = theirs({str(kind): x[nodes] for kind, nodes in enumerate(of_type)}, edges)
    found = net(x, None, graph)[0]
    for kind, nodes in enumerate(of_type):
        torch.testing.assert_close(found[nodes], expected[str(kind)], **EXACT)


def test_label_edges_are_refused():
    with pytest.raises(InputError, match="hgt takes no label–label edges"):
        layer(label_edges=True)
