"""Factors of label edges by node: the kernel equals the factors of labels and of nodes, multiplied."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS, to
from tests.ops.graphs import random_graph, with_labels

from legnn.nn import normalization
from legnn.nn.normalization import Normalization

KERNELS = [form for form in FORMS if form.id.startswith("triton")]


@pytest.mark.parametrize("form", KERNELS)
@settings(max_examples=15, deadline=None)
@given(
    nodes=st.integers(3, 40),
    edges=st.integers(0, 100),
    exponents=st.sampled_from([(-0.5, -0.5), (-1.0, 0.0), (0.5, -0.5)]),
    node_weight=st.sampled_from([1.0, 2.0]),
    absent_label=st.sampled_from(["skip", "zero"]),
)
def test_factors_by_node_are_those_of_its_label_times_its_own(form, nodes, edges, exponents, node_weight, absent_label):
    graph = with_labels(random_graph(nodes, edges, torch.float32, weighted=False))
    norm = Normalization(
        "relation", target=exponents[0], source=exponents[1], node_weight=node_weight, absent_label=absent_label
    )
    expected, labels = norm.scales(graph, torch.zeros(1), enhanced=True)
    fast = to(graph, form[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalization, "has_kernels", lambda device: True)
        found, none = norm.scales(fast, torch.zeros(1), enhanced=True)
    assert none == normalization.LabelScales()
    torch.testing.assert_close(found.target.cpu(), expected.target)
    one = torch.ones(graph.num_classes)
    to_nodes, from_nodes = (one if each is None else each for each in (labels.to_nodes, labels.from_nodes))
    at = graph.shown
    torch.testing.assert_close(found.from_label.cpu()[at], expected.from_label[at] * to_nodes[graph.y])
    torch.testing.assert_close(found.to_label.cpu()[at], from_nodes[graph.y])
