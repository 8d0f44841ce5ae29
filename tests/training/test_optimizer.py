"""Adam as a run uses it: what the penalty is on, that fused means the same, and where the learning rate is read."""

import pytest
import torch

from legnn.nn import LEGNN, ModelSettings
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


@pytest.mark.parametrize("hidden", [8, 100, 700], ids=["whole", "in pieces", "in several launches"])
@pytest.mark.parametrize("device", DEVICES)
def test_it_is_pytorchs_own_fused_adam_to_the_bit(device, hidden):
    ours, theirs = model(hidden).to(device), model(hidden).to(device)
    adam = make_adam(ours.parameter_groups(0.5), 0.01)
    lr = torch.tensor(0.01, device=device) if device == "cuda" else 0.01
    plain = torch.optim.Adam(theirs.parameter_groups(0.5), lr=lr, fused=True, capturable=device == "cuda")
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


@pytest.mark.parametrize("device", DEVICES)
def test_it_is_adam_with_the_learning_rate_of_each_step(device):
    ours, plain = model().to(device), model()
    adam = make_adam(ours.parameter_groups(0.0), 0.01)
    reference = torch.optim.Adam(plain.parameters(), lr=0.01, foreach=False)
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


def test_in_pieces_and_by_kind_parameters_are_updated_as_they_are_whole(monkeypatch):
    torch.manual_seed(0)
    shapes = [((100, 100), torch.float32), ((7,), torch.float32), ((300, 30), torch.float64), ((), torch.float32)]
    ours = [torch.nn.Parameter(torch.randn(shape, dtype=dtype)) for shape, dtype in shapes]
    ours.append(torch.nn.Parameter(torch.randn(60, 100).T))  # not in one piece of memory
    theirs = [torch.nn.Parameter(one.detach().clone()) for one in ours]
    mine = EagerAdam(ours, lr=0.01, weight_decay=0.1, fused=True)
    mine.create_state()
    plain = torch.optim.Adam(theirs, lr=0.01, weight_decay=0.1, fused=True)
    updates, update = [], mine._update

    def note(group, pieces, *, at_once):
        updates.append(len(pieces))
        update(group, pieces, at_once=at_once)

    monkeypatch.setattr(mine, "_update", note)
    for _ in range(3):
        for one, other in zip(ours[1:], theirs[1:], strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        # the first has no gradient in the first step
        ours[0].grad = torch.randn_like(ours[0]) if updates else None
        theirs[0].grad = None if ours[0].grad is None else ours[0].grad.clone()
        with torch.no_grad():
            mine._step_of(mine.param_groups)
        plain.step()
    assert max(updates) > len(ours), "some were cut"
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
