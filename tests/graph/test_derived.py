"""What a step derives of one sample is computed of the next before its step, and is the same."""

import pytest
import torch
import torch.nn.functional as F
from tests.training.mini_batches import make

from legnn.graph import SampledLabelGraph, sample_label_graph
from legnn.graph.derived import copy_with_cache, fill_cache_like
from legnn.graph.padding import SampleSizes, pad_sample
from legnn.ops.csr.adjacency import map_tensors
from legnn.training.batches import tensors_of

BACKBONES = ["gcn", "sage", "gat"]


def prepared(backbone: str):
    """A step, and two padded samples of the same sizes."""
    model, task = make("enhanced", nodes=60, backbone=backbone, norm="batch")
    shown, seeds = task.train[20:], [task.train[:5], task.train[5:10]]
    samples = [sample_label_graph(task.show(shown), own, [3, 3], (1, 2)) for own in seeds]
    sizes = SampleSizes.above([SampleSizes.of(sample) for sample in samples], 1.2)
    padded = [pad_sample(sample, sizes) for sample in samples]

    def step(sample: SampledLabelGraph) -> list[torch.Tensor]:
        model.zero_grad()
        logits = model(model.batch_inputs(task.x[sample.nodes]), sample)
        F.cross_entropy(logits, task.y[sample.nodes[:5]]).backward()
        return [logits.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]

    return step, padded


def names(item: object, of: str = "") -> set[str]:
    """The paths of all that an object holds, cached or not."""
    if isinstance(item, list):
        return {name for k, part in enumerate(item) for name in names(part, f"{of}/{k}")}
    held = vars(item) if hasattr(item, "__dict__") and not isinstance(item, torch.Tensor) else {}
    return {of} | {name for key, value in held.items() if key != "_cache" for name in names(value, f"{of}/{key}")}


@pytest.mark.parametrize("backbone", BACKBONES)
def test_all_that_a_step_caches_is_computed_of_the_next_sample(backbone):
    step, (first, second) = prepared(backbone)
    bare = names(second)
    step(first)
    assert names(first) > bare, "a step derives something"
    fill_cache_like(first, second)
    assert names(second) == names(first)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_step_is_the_same_to_the_bit_whether_it_derives_or_finds_what_was_derived(backbone):
    step, (first, second) = prepared(backbone)
    expected = step(map_tensors(second, torch.clone))
    step(first)
    fill_cache_like(first, second)
    for _ in range(2):
        assert all(map(torch.equal, step(copy_with_cache(second)), expected))


def test_what_is_cached_of_a_copy_is_not_in_the_original():
    step, (first, second) = prepared("sage")
    before = names(first)
    copied = copy_with_cache(first)
    assert all(one is other for one, other in zip(tensors_of(first), tensors_of(copied), strict=True))
    step(copied)
    assert names(first) == before
    fill_cache_like(copied, second)
    derived = names(second)
    copied = copy_with_cache(second)
    assert names(copied) == derived
    copied.blocks[0].adjacency.__dict__["more"] = 1
    copied.blocks[0].senders.classes.__dict__["more"] = 1
    copied.blocks[0].cached("key", lambda: 1)
    assert names(second) == derived
    assert "_cache" not in vars(second.blocks[0])
