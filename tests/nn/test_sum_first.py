"""Attention that sums before the product gives what it gives after it."""

import pytest
import torch
from tests.graphs import small_data

from legnn.datasets import load
from legnn.graph.sampling import all_neighbors
from legnn.nn import GAT, sum_first
from legnn.training import Task

CLASSES, IN, OUT = 3, 10, 8
OPTIONS = [
    {},
    {"heads": 1},
    {"target_attention": False},
    {"attention_vectors": "shared"},
    {"target_map": True},
    {"symmetric_norm": True, "scaled_scores": True},
    {"node_weight": 2.0, "absent_label": "zero"},
    {"enhanced": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("adds", [True, False])
def test_values_and_gradients_are_those_of_products_first(monkeypatch, options, adds):
    torch.manual_seed(0)
    task = Task.from_graph(load(small_data(60)), torch.device("cpu"))
    block = all_neighbors(task.show(task.train), task.train[:9])
    layer = GAT(IN, OUT, **{"heads": 2, "update_labels": False, **options})
    x, add = torch.randn(block.nodes.numel(), IN, requires_grad=True), torch.randn(9, OUT, requires_grad=True)
    labels = torch.randn(CLASSES, IN, requires_grad=True) if layer.enhanced else None
    inputs = [x, *([add] if adds else []), *([] if labels is None else [labels]), *layer.parameters()]
    assert x.size(0) >= sum_first.SUM_FIRST * 9
    found = []
    for least in (-(10**18), 10**18):
        monkeypatch.setattr(sum_first, "WORTH_SUMS", least)
        nodes, new_labels = layer(x, labels, block, add if adds else None)
        assert new_labels is None
        gradients = torch.autograd.grad(nodes.square().sum(), inputs, allow_unused=True)
        found.append((nodes, gradients))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_a_small_layer_multiplies_first():
    task = Task.from_graph(load(small_data(60)), torch.device("cpu"))
    block = all_neighbors(task.graph, task.train[:9])
    layer, x = GAT(IN, OUT), torch.zeros(block.nodes.numel(), IN)
    assert not sum_first.is_worth_summing_first(block, x, layer.attention, layer.normalization)


def test_products_in_bf16_are_worth_half(monkeypatch):
    task = Task.from_graph(load(small_data(60)), torch.device("cpu"))
    block = all_neighbors(task.graph, task.train[:9])
    layer, x = GAT(IN, OUT), torch.zeros(block.nodes.numel(), IN)
    saved = IN * OUT * (x.size(0) - 9)
    monkeypatch.setattr(sum_first, "GATHER", 0)
    for dtype, worth in ((torch.float32, saved), (torch.bfloat16, saved // 2)):
        for least in (worth, worth + 1):
            monkeypatch.setattr(sum_first, "WORTH_SUMS", least)
            found = sum_first.is_worth_summing_first(block, x.to(dtype), layer.attention, layer.normalization)
            assert found == (least == worth)
