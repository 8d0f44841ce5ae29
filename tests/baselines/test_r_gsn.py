"""R-GSN equals its equations, node by node; a prediction does not depend on the batch."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.typed_models import HIDDEN, double_model, graph_and_inputs, neighbors
from tests.nn.relation_graphs import EXACT, RELATIONS

from legnn.baselines import RGSN
from legnn.baselines.r_gsn import MOMENTUM


def unit(row):
    return row / row.norm().clamp(min=1e-12)


def norm(row, module):
    return F.layer_norm(row, row.shape, module.weight, module.bias, module.eps)


def layer(net, h, graph, means):
    types, near = graph.node_type.tolist(), neighbors(graph)
    m = {}
    for r, (s, t) in enumerate(RELATIONS):
        for i, kind in enumerate(types):
            if kind != t:
                continue
            mine = near[s, t][i]
            m[i, r] = torch.zeros(HIDDEN, dtype=torch.float64)
            if mine:
                share = torch.softmax(torch.stack([net.source[r, 0] @ unit(h[j]) for j in mine]), 0)
                m[i, r] = unit(sum(one * (net.relation[r].weight @ h[j]) for one, j in zip(share, mine, strict=True)))
    if means is None:
        means = {r: torch.stack([row for (_, q), row in m.items() if q == r]).mean(0) for r in range(len(RELATIONS))}
    out = []
    for i, t in enumerate(types):
        into = [r for r, (_, target) in enumerate(RELATIONS) if target == t]
        like = torch.stack([unit(means[r]) @ unit(sum(means[q] for q in into)) for r in into])
        together = sum(b * m[i, r] for b, r in zip(torch.softmax(like, 0), into, strict=True))
        root = net.root[t].weight @ h[i] + net.root[t].bias
        out.append(norm(root + net.scale[t] * root.norm() * unit(together), net.norm[t]).relu())
    return torch.stack(out), means


@pytest.mark.parametrize("training", [False, True])
def test_the_logits_are_those_of_the_equations(training):
    model = double_model(RGSN)
    for net in model.layers:
        torch.nn.init.normal_(net.running)
    graph, h, inputs = graph_and_inputs(model)
    h = torch.stack([norm(row, model.norm) for row in h])
    before = [net.running.clone() for net in model.layers]
    found = model.train(training)(inputs, graph)
    for net, running in zip(model.layers, before, strict=True):
        h, means = layer(net, h, graph, None if training else running)
        if training:
            expected = torch.lerp(running, torch.stack(list(means.values())), MOMENTUM)
            torch.testing.assert_close(net.running, expected, **EXACT)
        else:
            assert torch.equal(net.running, running)
    expected = h @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(found, expected, **EXACT)
