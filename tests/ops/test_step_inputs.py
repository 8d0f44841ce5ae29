"""Inputs of a step: keys that differ by seed, step and draw, the same in both forms, and the numbers of its row."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ops.forms import FORMS

from legnn.ops.norm_act_dropout import drop
from legnn.ops.step_inputs import KEYS, ROWS, StepInputs, draw_key
from legnn.ops.step_inputs.reference import step_keys

KERNELS = [form for form in FORMS if form.id.startswith("triton")]
words = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("form", KERNELS)
@settings(max_examples=5, deadline=None)
@given(seed=words, high=words, step=st.integers(0, 2**40))
def test_a_step_begins_with_its_keys_and_numbers_and_is_counted(form, seed, high, step):
    from legnn.ops.step_inputs.triton_kernels import begin_step, draw_keys

    state, rows = torch.tensor([seed, high, step]), torch.arange(16.0).view(8, 2)
    there, keys = state.to(form[1], copy=True), torch.empty(KEYS, 2, dtype=torch.long, device=form[1])
    numbers = [torch.zeros((), device=form[1]) for _ in range(2)]
    begin_step(there, keys, rows.to(form[1]), numbers)
    assert torch.equal(keys.cpu(), step_keys(state, KEYS))
    assert [float(number) for number in numbers] == rows[step % 8].tolist()
    assert there.tolist() == [seed, high, step + 1]
    draw_keys(there, keys, 5)
    assert torch.equal(keys.cpu(), step_keys(state, KEYS, 5))
    assert there.tolist() == [seed, high, step + 1], "further keys are of the same step"


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
    """Inputs on the CPU, by the reference."""

    def begin(state, keys, rows, numbers):
        keys.copy_(step_keys(state, len(keys)))
        for number, value in zip(numbers, rows[int(state[2]) % len(rows)], strict=True):
            number.copy_(value)
        state[2] += 1

    def draw(state, keys, first):
        keys.copy_(step_keys(state - torch.tensor([0, 0, 1]), len(keys), first))

    monkeypatch.setattr("legnn.ops.step_inputs.triton_kernels.begin_step", begin)
    monkeypatch.setattr("legnn.ops.step_inputs.triton_kernels.draw_keys", draw)
    return StepInputs(2**40 + 3, torch.zeros(()), torch.zeros(()))


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
    counted.load(before)
    with counted.step():
        again = drop(x, 0.5, training=True)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_each_step_has_the_numbers_that_were_written_for_it_however_many_follow(counted):
    for step in range(2 * ROWS + 5):
        counted.prepare(step, -step)
        with counted.step():
            assert [float(number) for number in counted._numbers] == [step, -step]


def test_numbers_are_those_of_the_steps_after_a_state_that_was_loaded(counted):
    counted.load(torch.tensor([3, 256, 7]))
    counted.prepare(0.5, 0.25)
    with counted.step():
        assert [float(number) for number in counted._numbers] == [0.5, 0.25]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_steps_launched_ahead_have_each_its_own_numbers():
    numbers = [torch.zeros((), device="cuda") for _ in range(2)]
    inputs, seen = StepInputs(1, *numbers), torch.zeros(3 * ROWS, 2, device="cuda")
    for step in range(len(seen)):
        inputs.prepare(step, 2 * step)
        if step == 0:
            # the others are launched while this is computed
            torch.cuda._sleep(10_000_000)
        with inputs.step():
            seen[step] = torch.stack(numbers)
    assert torch.equal(seen[:, 0].cpu(), torch.arange(3.0 * ROWS))
    assert torch.equal(seen[:, 1].cpu(), 2 * torch.arange(3.0 * ROWS))
