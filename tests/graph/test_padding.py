"""Padded samples: the same model on a sample and on the sample with padding."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backbones import PADDED
from tests.training.mini_batches import make

from legnn.graph import SampledLabelGraph, sample_label_graph
from legnn.graph.padding import MULTIPLE, SampleSizes, pad_sample
from legnn.nn import LEGNN
from legnn.training import Task

USAGES = ["vanilla", "concat", "addition", "enhanced"]


def computed(model: LEGNN, task: Task, sample: SampledLabelGraph, seeds: torch.Tensor) -> dict[str, torch.Tensor]:
    """Logits, gradients, and running statistics of one training step from the same weights."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    model.zero_grad()
    logits = model(model.prepare_rows(task.x[sample.nodes]), sample)
    F.cross_entropy(logits, task.y[seeds]).backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    after = {name: value.clone() for name, value in model.state_dict().items() if "running" in name}
    model.load_state_dict(state)
    return {"logits": logits.detach(), **found, **after}


def padded_and_not(model: LEGNN, task: Task, seeds: torch.Tensor, fanout: int, factor: float, key: int):
    shown = task.train[~torch.isin(task.train, seeds)]
    fanouts = [fanout] * model.num_stages
    sample = sample_label_graph(task.show(shown), seeds, fanouts, (key, 1))
    if model.uses_class_mean:
        mean = torch.randn(3, task.x.size(1), generator=torch.Generator().manual_seed(1))
        sample = replace(sample, class_mean=mean)
    sizes = SampleSizes.padded([SampleSizes.from_sample(sample)], factor)
    return sample, pad_sample(sample, sizes), sizes


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=1e-3, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("options", [{"norm": "batch"}, {"norm": "layer"}, {"norm": "batch", "normalize": "joint"}])
@pytest.mark.parametrize("labels", USAGES)
@pytest.mark.parametrize("backbone", PADDED)
def test_padding_changes_no_logit_no_gradient_and_no_statistic(backbone, labels, options):
    model, task = make(labels, nodes=60, backbone=backbone, **options)
    assert model.supports_padding
    sample, padded, _ = padded_and_not(model, task, task.train[::3], 3, 1.5, 0)
    assert padded.nodes.numel() > 2 * sample.nodes.numel()
    assert_same(computed(model, task, sample, task.train[::3]), computed(model, task, padded, task.train[::3]))


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 1000),
    nodes=st.integers(40, 90),
    layers=st.integers(1, 3),
    fanout=st.integers(1, 6),
    factor=st.floats(1.0, 3.0),
    count=st.integers(1, 9),
    backbone=st.sampled_from(PADDED),
)
def test_padding_changes_nothing_on_any_graph(seed, nodes, layers, fanout, factor, count, backbone):
    # the variance of a few rows is nearly zero: rounding would be all that there is to compare
    norm = "layer" if count < 6 else "batch"
    model, task = make("enhanced", nodes=nodes, backbone=backbone, layers=layers, norm=norm)
    seeds = task.train[:count]
    sample, padded, sizes = padded_and_not(model, task, seeds, fanout, factor, seed)
    assert sizes.fits(SampleSizes.from_sample(sample))
    assert SampleSizes.from_sample(padded) == sizes
    assert_same(computed(model, task, sample, seeds), computed(model, task, padded, seeds))


@pytest.mark.parametrize("options", [{"label_features": "class-mean"}, {"residual": "identity"}, {"residual": "none"}])
def test_padding_changes_nothing_with_other_settings(options):
    model, task = make("enhanced", nodes=60, norm="batch", **options)
    sample, padded, _ = padded_and_not(model, task, task.train[:5], 3, 1.2, 3)
    assert_same(computed(model, task, sample, task.train[:5]), computed(model, task, padded, task.train[:5]))


def test_edge_weights_are_those_of_the_sample():
    model, task = make("enhanced", nodes=60, norm="batch")
    adjacency = task.graph.adjacency
    weight = 0.5 + torch.rand(adjacency.num_edges, generator=torch.Generator().manual_seed(0))
    task = replace(task, graph=replace(task.graph, adjacency=replace(adjacency, weight=weight)))
    sample, padded, _ = padded_and_not(model, task, task.train[:5], 3, 1.2, 3)
    assert padded.blocks[0].adjacency.weight is not None
    assert_same(computed(model, task, sample, task.train[:5]), computed(model, task, padded, task.train[:5]))


def test_what_stands_in_padding_nodes_reaches_nothing():
    model, task = make("enhanced", nodes=60, norm="batch")
    _, padded, _ = padded_and_not(model, task, task.train[:5], 3, 1.5, 0)
    block = padded.blocks[0]
    x = model.prepare_rows(task.x[padded.nodes])
    is_valid = torch.zeros(len(x), dtype=torch.bool)
    # every position that an edge of the sample or a seed uses, and no other
    is_valid[block.adjacency.col[: block.adjacency.rowptr[-1]].long()] = True
    is_valid[: block.num_nodes] |= block.valid_mask
    changed = torch.where(is_valid[:, None], x, 1e3)
    model.train()
    torch.testing.assert_close(model(changed, padded), model(x, padded))
    x.requires_grad_()
    model(x, padded).square().sum().backward()
    assert not x.grad[~is_valid].any()
    assert x.grad[is_valid].any()


def test_a_sample_that_is_too_large_does_not_fit():
    model, task = make("enhanced", nodes=80)
    sample, _, sizes = padded_and_not(model, task, task.train[:5], 3, 1.0, 0)
    size = SampleSizes.from_sample(sample)
    assert sizes.fits(size)
    for name in size._fields:
        grown = (getattr(sizes, name)[0] + 1, *getattr(size, name)[1:])
        assert not sizes.fits(size._replace(**{name: grown})), name
    # one padding node is always in each block
    assert not sizes.fits(size._replace(added=(sizes.added[0], *size.added[1:])))
    assert all(added % MULTIPLE == 0 for added in sizes.added)
