"""Accuracy, macro-F1 and cross-entropy of a split: those of scikit-learn and PyTorch, by the kernels of a GPU, too."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from tests.ops.forms import FORMS, GPU, using

from legnn.ops import validation
from legnn.ops.select import TRITON
from legnn.ops.validation import reference, validation_metrics


def measure(form, logits, y, nodes=None):
    kernels, device = form
    with using(kernels):
        found = validation_metrics(logits.to(device), y.to(device), None if nodes is None else nodes.to(device))
    assert found.dtype == torch.double
    return found.cpu()


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15 if GPU else 60, deadline=None)
@given(
    rows=st.integers(1, 300),
    classes=st.sampled_from([1, 2, 7, 8, 40]),
    share=st.floats(0.01, 1),
    selected=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
def test_metrics_are_those_of_scikit_learn_and_pytorch(form, rows, classes, share, selected, dtype, seed):
    random = torch.Generator().manual_seed(seed)
    # few different numbers, so that many are equal, and some classes that do not occur
    logits = (torch.randn(rows, classes, generator=random) * 2).round().to(dtype)
    y = torch.randint(classes, (rows,), generator=random)
    nodes = torch.randperm(rows, generator=random)[: max(round(share * rows), 1)] if selected else None
    found = measure(form, logits, y, nodes)
    truth, x = (y, logits) if nodes is None else (y[nodes], logits[nodes])
    predicted = x.argmax(-1)
    expected = [accuracy_score(truth, predicted), f1_score(truth, predicted, average="macro")]
    expected.append(float(F.cross_entropy(x.double(), truth)))
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.double), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_a_wider_matrix_are_read_and_no_nodes_have_no_metrics(form):
    wide, y = torch.randn(30, 8), torch.randint(5, (30,))
    torch.testing.assert_close(measure(form, wide[:, :5], y), measure(form, wide[:, :5].contiguous(), y))
    assert measure(form, wide[:, :5], y, torch.arange(0)).isnan().all()


@pytest.mark.parametrize("form", [form for form in FORMS if form.id.startswith("triton")])
def test_many_nodes_are_counted_by_several_programs_and_many_classes_by_pytorch(form, monkeypatch):
    from legnn.ops.validation import triton_kernels

    logits, y = torch.randn(3000, 20), torch.randint(20, (3000,))
    expected = reference.validation_metrics(logits, y, None)
    for programs in (4, 64):
        monkeypatch.setattr("legnn.ops.cross_entropy.triton_kernels.PROGRAMS", programs)
        monkeypatch.setattr(triton_kernels, "PROGRAMS", programs)
        torch.testing.assert_close(measure(form, logits, y), expected, rtol=1e-6, atol=0)
    monkeypatch.setattr(validation, "MOST_CLASSES", 19)
    monkeypatch.setattr(triton_kernels, "launch", None)
    torch.testing.assert_close(measure(form, logits, y), expected)
    assert form[0] is TRITON
