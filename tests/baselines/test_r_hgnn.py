"""R-HGNN equals its equations, node by node and relation by relation."""

import pytest
import torch
import torch.nn.functional as F
from tests.baselines.typed_models import HEADS, WIDTH, attended, double_model, graph_and_inputs, heads, leaky, neighbors
from tests.nn.relation_graphs import EXACT, RELATIONS

from legnn.baselines import RHGNN


def layer(net, h, e, graph):
    """`h[i, r]` of every node and relation to its type, `e[r]`."""
    near, z, out = neighbors(graph), {}, {}
    types = graph.node_type.tolist()
    for i, t in enumerate(types):
        for r, (s, target) in enumerate(RELATIONS):
            if target != t:
                continue
            toward, away = (net.attention[r].weight @ e[r]).view(2, HEADS, WIDTH)
            reverse = RELATIONS.index((t, s))
            values = [net.node[s].weight @ h[j, reverse] for j in near[s, t][i]]
            mine = (heads(net.node[t].weight @ h[i, r]) * toward).sum(1)
            scores = [leaky((heads(value) * away).sum(1) + mine) for value in values]
            gate = net.gate[t].sigmoid()
            root = net.root[t].weight @ h[i, r] + net.root[t].bias
            z[i, r] = gate * attended(scores, values).relu() + (1 - gate) * root
    for i, r in z:
        among = [z[pair] for pair in z if pair[0] == i]
        crossed = among[0]
        if len(among) > 1:
            crossed = attended([leaky((heads(one) * net.crossing[str(r)]).sum(1)) for one in among], among)
        if net.norm is not None:
            norm = net.norm[types[i]]
            crossed = F.layer_norm(crossed, crossed.shape, norm.weight, norm.bias, norm.eps)
        out[i, r] = crossed
    return out, [module.weight @ one + module.bias for one, module in zip(e, net.relation, strict=True)]


def fused(net, h, e, i):
    mine = {r: row for (node, r), row in h.items() if node == i}
    if len(mine) == 1:
        return next(iter(mine.values()))
    values = [torch.einsum("hd,hde->he", heads(row), net.node[str(r)]).flatten() for r, row in mine.items()]
    queries = [torch.einsum("hc,hcd->hd", e[r].view(HEADS, -1), net.relation[str(r)]) for r in mine]
    return attended([leaky((heads(v) * u).sum(1)) for v, u in zip(values, queries, strict=True)], values)


@pytest.mark.parametrize("norm", ["none", "layer"])
def test_the_logits_are_those_of_the_equations(norm):
    model = double_model(RHGNN, norm=norm)
    graph, first, inputs = graph_and_inputs(model)
    types, e = graph.node_type.tolist(), list(model.relation_state)
    h = {(i, r): row for i, row in enumerate(first) for r, (_, t) in enumerate(RELATIONS) if t == types[i]}
    for net in model.layers:
        h, e = layer(net, h, e, graph)
    rows = torch.stack([fused(model.fusion, h, e, i) for i in range(12)])
    expected = rows @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(inputs, graph), expected, **EXACT)
