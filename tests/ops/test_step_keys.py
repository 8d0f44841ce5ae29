"""Keys of a step: the same in both forms, another for every seed, step and draw, and counted on the device."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS

from legnn.ops.norm_act_dropout import drop
from legnn.ops.step_keys import KEYS, StepKeys, draw_key
from legnn.ops.step_keys.reference import step_keys

KERNELS = [form for form in FORMS if form.id.startswith("triton")]
words = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("form", KERNELS)
@settings(max_examples=5, deadline=None)
@given(seed=words, high=words, step=st.integers(0, 2**40))
def test_the_kernel_writes_the_keys_of_the_reference_and_counts_the_step(form, seed, high, step):
    from legnn.ops.step_keys.triton_kernels import draw_keys

    state = torch.tensor([seed, high, step])
    there, keys = state.to(form[1], copy=True), torch.empty(KEYS, 2, dtype=torch.long, device=form[1])
    draw_keys(there, keys)
    assert torch.equal(keys.cpu(), step_keys(state, KEYS))
    assert there.tolist() == [seed, high, step + 1]


def test_no_two_draws_of_any_seeds_and_steps_have_the_same_key():
    found = [step_keys(torch.tensor([seed, 0, step]), KEYS) for seed in range(20) for step in range(50)]
    keys = torch.cat(found)
    assert len(keys.unique(dim=0)) == len(keys)


def test_every_bit_is_set_in_half_of_the_keys():
    keys = torch.cat([step_keys(torch.tensor([7, 0, step]), KEYS) for step in range(400)]).flatten()
    share = torch.stack([(keys >> bit & 1).double().mean() for bit in range(32)])
    assert (share - 0.5).abs().max() < 5 * 0.5 / keys.numel() ** 0.5


@pytest.fixture
def counted(monkeypatch):
    """Keys on the CPU, drawn by the reference."""

    def draw(state, keys):
        keys.copy_(step_keys(state, len(keys)))
        state[2] += 1

    monkeypatch.setattr("legnn.ops.step_keys.triton_kernels.draw_keys", draw)
    return StepKeys(2**40 + 3, torch.device("cpu"))


def test_a_step_draws_its_keys_in_order_and_the_first_is_that_of_the_selection(counted):
    expected = step_keys(counted.state, KEYS)
    with counted.step():
        drawn = [draw_key(torch.device("cpu")) for _ in range(KEYS - 1)]
        assert torch.equal(torch.stack([counted.selection, *drawn]), expected)
    with counted.step():
        assert not torch.equal(counted.selection, expected[0])


def test_a_step_that_draws_many_leaves_the_first_as_they_are(counted):
    with counted.step():
        drawn = [draw_key(torch.device("cpu")) for _ in range(3 * KEYS)]
    assert len(torch.stack(drawn).unique(dim=0)) == 3 * KEYS


def test_outside_of_a_step_the_generator_of_the_run_is_drawn_from(counted):
    with counted.step():
        pass
    expected = torch.randint(2**32, (2,), generator=torch.Generator().manual_seed(5))
    torch.manual_seed(5)
    assert torch.equal(draw_key(torch.device("cpu")), expected)


def test_dropout_of_a_step_is_repeated_from_its_state(counted):
    x, before = torch.ones(50, 8), counted.state.clone()
    with counted.step():
        first = drop(x, 0.5, training=True)
    with counted.step():
        other = drop(x, 0.5, training=True)
    counted.state.copy_(before)
    with counted.step():
        again = drop(x, 0.5, training=True)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
