"""Adam as a run uses it: what the penalty is on, that fused means the same, and where the learning rate is read."""

import subprocess
import sys

import pytest
import torch
from tests.named import model_settings

from legnn.nn import LEGNN
from legnn.training import make_adam
from legnn.training.optimizer import set_lr

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
    return LEGNN(6, 3, model_settings(hidden=hidden, layers=2))


def gradients(one: LEGNN, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in one.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(parameter.device)


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
    adam = make_adam(ours.parameter_groups(0.5, 0.1), 0.01, capture=device == "cuda")
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
    adam = make_adam(model().to(device).parameter_groups(0.0), 0.01, capture=device == "cuda")
    before = [group["lr"] for group in adam.param_groups]
    set_lr(adam, 0.25)
    assert [float(group["lr"]) for group in adam.param_groups] == [0.25, 0.25]
    if device == "cuda":
        assert all(group["lr"] is one for group, one in zip(adam.param_groups, before, strict=True))


def test_training_does_not_import_the_compiler_of_pytorch():
    code = (
        "import sys, legnn\n"
        "legnn.train('digits', epochs=1, hidden=4, device='cpu')\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
