"""HGConv equals its equations, node by node."""

import torch
from tests.baselines.typed_models import attended, double_model, graph_and_inputs, heads, leaky, neighbors
from tests.nn.relation_graphs import EXACT, RELATIONS

from legnn.baselines import HGConv


def layer(net, h, graph):
    types, near, out = graph.node_type.tolist(), neighbors(graph), []
    for i, t in enumerate(types):
        u = []
        for number, (s, target) in enumerate(RELATIONS):
            if target != t:
                continue
            mine = near[s, t][i]
            values = [net.node[s].weight @ h[j] for j in mine]
            toward = (heads(net.node[t].weight @ h[i]) * net.target[s]).sum(1)
            scores = [leaky((heads(value) * net.source[s]).sum(1) + toward) for value in values]
            u.append(net.relation[number].weight @ attended(scores, values).relu())
        together = u[0]
        if len(u) > 1:
            center = (heads(net.center[t].weight @ h[i]) * net.macro[0]).sum(1)
            together = attended([leaky(center + (heads(one) * net.macro[1]).sum(1)) for one in u], u)
        gate = net.gate[t].sigmoid()
        out.append(gate * together + (1 - gate) * (net.root[t].weight @ h[i] + net.root[t].bias))
    return torch.stack(out)


def test_the_logits_are_those_of_the_equations():
    model = double_model(HGConv)
    graph, h, inputs = graph_and_inputs(model)
    for net in model.layers:
        h = layer(net, h, graph)
    expected = h @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(inputs, graph), expected, **EXACT)
