"""Adam as a run uses it: what the penalty is on, that fused means the same, and where the learning rate is read."""

import pytest
import torch
from tests.ops.forms import FORMS

from legnn.nn import LEGNN, ModelSettings
from legnn.ops import select
from legnn.training import make_adam
from legnn.training.optimizer import EagerAdam, set_lr

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
            pytest.mark.filterwarnings("ignore:.*running without .* graph capture"),
        ],
    ),
]


def model(hidden: int = 8) -> LEGNN:
    torch.manual_seed(0)
    return LEGNN(6, 3, ModelSettings(hidden=hidden, layers=2))


def gradients(one: LEGNN, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in one.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.device)


def test_on_a_cpu_it_is_pytorchs_own_fused_adam_to_the_bit():
    ours, theirs = model(), model()
    adam = make_adam(ours.parameter_groups(0.5), 0.01)
    plain = torch.optim.Adam(theirs.parameter_groups(0.5), lr=0.01, fused=True)
    for seed in range(4):
        for one, optimizer in ((ours, adam), (theirs, plain)):
            optimizer.zero_grad(set_to_none=True)
            gradients(one, seed)
            optimizer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, other)
        assert mine.requires_grad


def test_the_penalty_is_on_the_projection_of_the_features_alone_and_nothing_is_left_out():
    one = model()
    adam = make_adam(one.parameter_groups(0.5), 0.01)
    penalty = {id(p): group["weight_decay"] for group in adam.param_groups for p in group["params"]}
    expected = {name: 0.5 if name == "encoder.project.weight" else 0.0 for name, _ in one.named_parameters()}
    assert {name: penalty[id(p)] for name, p in one.named_parameters()} == expected


@pytest.mark.parametrize("hidden", [8, 700])
@pytest.mark.parametrize("device", DEVICES)
def test_it_is_adam_with_the_learning_rate_of_each_step(device, hidden):
    ours, plain = model(hidden).to(device), model(hidden)
    adam = make_adam(ours.parameter_groups(0.5, 0.1), 0.01)
    reference = torch.optim.Adam(plain.parameter_groups(0.5, 0.1), lr=0.01, foreach=False)
    for epoch, lr in enumerate((0.01, 0.5, 0.002)):
        set_lr(adam, lr)
        set_lr(reference, lr)
        for one in (ours, plain):
            gradients(one, epoch)
        adam.step()
        reference.step()
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.cpu(), theirs)


@pytest.mark.parametrize("device", DEVICES)
def test_on_a_gpu_the_learning_rate_changes_in_place(device):
    adam = make_adam(model().to(device).parameter_groups(0.0), 0.01)
    before = [group["lr"] for group in adam.param_groups]
    set_lr(adam, 0.25)
    assert [float(group["lr"]) for group in adam.param_groups] == [0.25, 0.25]
    if device == "cuda":
        assert all(group["lr"] is one for group, one in zip(adam.param_groups, before, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_with_the_learning_rate_on_the_device_groups_keep_their_settings(monkeypatch, form):
    """Without Triton, the step is PyTorch's; one parameter has no gradient at first."""
    kernels, device = form
    monkeypatch.setattr(select, "kernels_for_device", lambda device: kernels)
    torch.manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(shape).to(device)) for shape in ((100, 20), (7,), ())]
    theirs = [torch.nn.Parameter(one.detach().clone()) for one in ours]
    settings = [{"weight_decay": 0.1}, {"weight_decay": 0.0}, {"betas": (0.5, 0.9), "eps": 1e-3}]
    mine, plain = (
        kind([{"params": one, **chosen} for one, chosen in zip(every, settings, strict=True)], lr=lr, fused=True)
        for kind, every, lr in ((EagerAdam, ours, torch.tensor(0.01, device=device)), (torch.optim.Adam, theirs, 0.01))
    )
    mine.create_state()
    for step in range(3):
        for one, other in zip(ours[step == 0 :], theirs[step == 0 :], strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        mine.step()
        plain.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
        assert mine.state[one]["step"] == plain.state[other]["step"]
