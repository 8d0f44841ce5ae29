"""Labels as columns beside the features: the compiled form equals plain PyTorch to the bit."""

import pytest
import torch
from tests.ops.forms import FORMS, to, using
from tests.ops.graphs import random_graph, with_labels

from legnn.ops import augment
from legnn.ops.augment import reference
from legnn.ops.runtime import padding


@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize(
    ("nodes", "features", "classes", "share"), [(0, 3, 2, 0.5), (1, 1, 1, 1.0), (70, 16, 5, 0.5), (9, 130, 40, 0.0)]
)
def test_features_and_labels_are_written_side_by_side(
    form, nodes, features, classes, share, multiple, dtype, monkeypatch
):
    kernels, device = form
    monkeypatch.setitem(padding.COLUMN_MULTIPLE, device, multiple)
    seed = torch.tensor([3, 2**32 - 5], device=device)
    monkeypatch.setattr(augment, "draw_seed", lambda x: seed)
    edges = to(with_labels(random_graph(nodes, 0, torch.float32, weighted=False), classes, share), device).at_input
    x = torch.randn(nodes, features, device=device).to(dtype)
    with using(kernels):
        found = augment.augment(x, edges, 0.5)
    expected = reference.augment(x.float(), edges, 0.5, seed).to(dtype)
    assert torch.equal(found.cpu(), expected.cpu())


@pytest.mark.parametrize("multiple", [1, 8])
def test_the_weight_of_features_and_labels_has_zeros_where_these_are_padded(multiple, monkeypatch):
    monkeypatch.setitem(padding.COLUMN_MULTIPLE, "cpu", multiple)
    weight, labels = torch.randn(4, 3), torch.randn(2, 4, dtype=torch.bfloat16)
    x, one_hot = torch.randn(6, 3), torch.eye(2)[torch.tensor([0, 1, 1, 0, 1, 0])]
    padded = torch.cat([x, torch.randn(6, 5)], 1)
    found = augment.augmented_weight(weight, labels, padded)
    found = torch.cat([padded, one_hot, torch.randn(6, found.size(1) - 10)], 1) @ found.T
    expected = x @ weight.T + one_hot @ labels.float()
    torch.testing.assert_close(found, padding.pad_columns(expected, max(4, multiple)))
