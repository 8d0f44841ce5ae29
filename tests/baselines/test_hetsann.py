"""HetSANN equals its equations, node by node."""

import torch
import torch.nn.functional as F
from tests.baselines.typed_models import attended, double_model, graph_and_inputs, heads, leaky, neighbors
from tests.nn.relation_graphs import EXACT, RELATIONS

from legnn.baselines import HetSANN


def layer(net, h, graph):
    near, out = neighbors(graph), []
    for i, t in enumerate(graph.node_type.tolist()):
        scores, values = [], []
        for number, (s, target) in enumerate(RELATIONS):
            toward = (heads(net.target_map(t).weight @ h[i]) * net.target[number]).sum(1)
            for j in near[s, t][i] if target == t else []:
                values.append(net.relation[number].weight @ h[j])
                scores.append(leaky((heads(values[-1]) * net.source[number]).sum(1) + toward))
        out.append(F.elu(attended(scores, values) + net.bias[t] + h[i]))
    return torch.stack(out)


def test_the_logits_are_those_of_the_equations():
    model = double_model(HetSANN)
    graph, h, inputs = graph_and_inputs(model)
    for net in model.layers:
        h = layer(net, h, graph)
    expected = h @ model.classifier.weight.T + model.classifier.bias
    torch.testing.assert_close(model(inputs, graph), expected, **EXACT)


def test_a_type_with_edges_to_itself_has_one_matrix_for_both():
    net = double_model(HetSANN).layers[0]
    assert net.target_map(0) is net.relation[RELATIONS.index((0, 0))]
    assert not any(net.target_map(1) is other for other in net.relation)
