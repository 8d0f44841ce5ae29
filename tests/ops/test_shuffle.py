"""Random orders that are computed: they are permutations, the same in both forms, and as random as others."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS

from legnn.ops.shuffle import shuffle
from legnn.ops.shuffle.reference import LEAST, random_order

KERNELS = [form for form in FORMS if form.id.startswith("triton")]
words = st.tuples(*[st.integers(0, 2**32 - 1)] * 2)


@settings(max_examples=60, deadline=None)
@given(number=st.integers(1, 5000), seed=words)
def test_every_number_is_there_once(number, seed):
    assert torch.equal(random_order(number, torch.tensor(seed)).sort()[0], torch.arange(number))


@pytest.mark.parametrize("form", KERNELS)
@settings(max_examples=3, deadline=None)
@given(number=st.one_of(st.integers(1, LEAST - 1), st.integers(LEAST, 600)), seed=words)
def test_the_kernel_gives_the_same_order(form, number, seed):
    from legnn.ops.shuffle.triton_kernels import launch

    values, seed = torch.arange(number) * 7, torch.tensor(seed)
    found = launch(values.to(form[1]), seed.to(form[1]))
    assert torch.equal(found.cpu(), values[random_order(number, seed)])


# with fewer pairs the spread itself varies more: by `torch.randperm` too, up to 1.09 in eight seeds
@pytest.mark.parametrize(("number", "spread"), [(100, 1.12), (300, 1.05)])
def test_each_node_is_at_each_place_and_beside_each_other_as_often_as_by_chance(number, spread):
    draws, generator = 400, torch.Generator().manual_seed(0)
    seeds = torch.randint(2**32, (draws, 2), generator=generator)
    first = torch.stack([random_order(number, seed) < number // 2 for seed in seeds])
    # how often each place, and each pair of places, has one of the first half: binomial
    once, pairs = first.double().mean(0), first.double().T @ first.double() / draws
    assert (once - 0.5).abs().max() < 5 * (0.25 / draws) ** 0.5
    together = (number // 2 - 1) / (number - 1) / 2
    apart = pairs[~torch.eye(number, dtype=torch.bool)]
    assert (apart - together).abs().max() < 5.5 * (together * (1 - together) / draws) ** 0.5
    assert apart.std() < spread * (together * (1 - together) / draws) ** 0.5


def test_few_numbers_and_those_of_a_cpu_are_drawn_by_pytorch():
    values = torch.arange(1000) * 3
    expected = values[torch.randperm(1000, generator=torch.Generator().manual_seed(1))]
    assert torch.equal(shuffle(values, torch.Generator().manual_seed(1)), expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("number", [1, 140, 300])
def test_on_a_gpu_a_key_decides(number):
    values, key = torch.arange(number) * 3, torch.tensor([1, 2**32 - 1])
    assert torch.equal(shuffle(values.cuda(), key.cuda()).cpu(), values[random_order(number, key)])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("number", [1, 255, 256, 1 << 17])
def test_on_a_gpu_the_seed_decides_and_every_value_is_there_once(number):
    values = torch.arange(number, device="cuda") * 3
    one, same, other = (shuffle(values, torch.Generator("cuda").manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert torch.equal(one.sort()[0], values)
    assert number == 1 or not torch.equal(one, other)
