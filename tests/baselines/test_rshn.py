"""RSHN equals its equations, node by node."""

import math

import torch
from tests.baselines.typed_models import double_model, graph_and_inputs, neighbors
from tests.nn.relation_graphs import EXACT, RELATIONS

from legnn.baselines import RSHN


def embeddings(net):
    """`e_r` of every relation, by sums over the relations that follow or precede it."""
    out = []
    for a, (start, end) in enumerate(RELATIONS):
        joined = [b for b, (s, t) in enumerate(RELATIONS) if b != a and (end == s or t == start)]
        share = {b: net.beta / math.sqrt(len(joined)) for b in joined} | {a: net.beta}
        share = dict(zip(share, torch.softmax(torch.stack(list(share.values())), 0), strict=True))
        row = torch.zeros(len(RELATIONS), dtype=torch.float64)
        for b, p in share.items():
            row[b] = p
        row[a] += 1
        out.append(net.project.weight @ row.relu() + net.project.bias)
    return out


def test_the_logits_are_those_of_the_equations():
    model = double_model(RSHN)
    graph, h, inputs = graph_and_inputs(model)
    types, near, e = graph.node_type.tolist(), neighbors(graph), embeddings(model.embedding)
    for layer in model.layers:
        new = []
        for i, t in enumerate(types):
            messages = [
                e[r] * h[j] for r, (s, target) in enumerate(RELATIONS) if target == t for j in near[s, target][i]
            ]
            mean = sum(messages) / len(messages) if messages else 0
            new.append(torch.tanh(layer.weight @ (h[i] + mean)))
        h = torch.stack(new)
    expected = h @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(inputs, graph), expected, **EXACT)
