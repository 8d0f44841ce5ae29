"""The generators of a run."""

import torch

from legnn.ops.runtime.generators import copy_generators, drawing_from, generator_for, seed_generators

CPU = torch.device("cpu")


def test_a_seed_is_that_of_pytorch():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        expected = torch.rand(3)
        seed_generators(7)
        assert torch.equal(torch.rand(3), expected)


def test_generators_of_a_run_are_seeded_alone():
    before = torch.get_rng_state()
    with drawing_from(copy_generators(CPU)):
        seed_generators(7)
        drawn = torch.rand(3, generator=generator_for(CPU))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(7)))
