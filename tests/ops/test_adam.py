"""A step of Adam in one launch: it is PyTorch's in double precision, whatever the parameters."""

import pytest
import torch
from tests.ops.forms import FORMS, GPU

from legnn.ops import select
from legnn.ops.adam import SLOTS, AdamTensors, adam_step, make_readers, triton_kernels

KERNELS = [form for form in FORMS if form.id.startswith("triton")]
BLOCK = triton_kernels.BLOCK
BETAS, EPS, DECAYS = (0.9, 0.999), 1e-8, (0.0, 0.3)
SHAPES = [(5,), (0, 3), (BLOCK + 1,), (), (2, BLOCK), (33, 70), (BLOCK - 1,), (1,)]


class Adam:
    """Parameters with what `adam_step` needs of them, and the same in double precision for PyTorch."""

    def __init__(self, shapes, device, dtype=torch.float32):
        generator = torch.Generator().manual_seed(0)
        self.device = torch.device(device)
        self.ours = [torch.randn(shape, generator=generator).to(device, dtype) for shape in shapes]
        self.theirs = [torch.nn.Parameter(one.cpu().double()) for one in self.ours]
        self.moments = [
            [torch.zeros_like(one), torch.zeros_like(one), torch.zeros((), device=device)] for one in self.ours
        ]
        self.lr, self.readers = torch.tensor(0.01, device=device), make_readers(self.device)
        groups = [{"params": self.theirs[i::2], "weight_decay": DECAYS[i]} for i in range(2)]
        self.plain = torch.optim.Adam(groups, lr=0.01, betas=BETAS, eps=EPS, foreach=False)

    def gradients(self, seed, without=()):
        """Random ones, of very different sizes; none for the parameters `without`."""
        generator = torch.Generator().manual_seed(seed)
        found = [torch.randn(one.shape, generator=generator) * 10.0 ** (i % 5 - 3) for i, one in enumerate(self.ours)]
        return [None if i in without else one.to(self.device) for i, one in enumerate(found)]

    def tensors(self, gradients):
        every = zip(self.ours, gradients, self.moments, strict=True)
        return [
            AdamTensors(one, gradient.to(one.dtype), *moments, DECAYS[i % 2])
            for i, (one, gradient, moments) in enumerate(every)
            if gradient is not None
        ]

    def step(self, gradients):
        adam_step(self.tensors(gradients), self.lr, BETAS, EPS, self.readers)

    def assert_close(self):
        for one, other, (exp_avg, exp_avg_sq, step) in zip(self.ours, self.theirs, self.moments, strict=True):
            expected = self.plain.state[other]
            for found, wanted in ((one, other), (exp_avg, expected["exp_avg"]), (exp_avg_sq, expected["exp_avg_sq"])):
                torch.testing.assert_close(found.cpu().double(), wanted.detach(), rtol=2e-6, atol=1e-6)
            assert one.numel() == 0 or step == expected["step"]


@pytest.fixture(params=KERNELS)
def device(request, monkeypatch):
    kernels, device = request.param
    monkeypatch.setattr(select, "kernels_for_device", lambda device: kernels)
    return device


@pytest.mark.parametrize("shapes", [SHAPES, [(3,)] * (2 * SLOTS) + SHAPES], ids=["one launch", "several launches"])
def test_it_is_pytorchs_adam_where_gradients_and_the_learning_rate_change(device, shapes):
    adam = Adam(shapes, device)
    for seed, (lr, without) in enumerate([(0.01, ()), (0.5, (0, 4)), (0.002, (4,)), (0.01, ())]):
        gradients = adam.gradients(seed, without)
        adam.lr.fill_(lr)
        for group in adam.plain.param_groups:
            group["lr"] = lr
        for other, gradient in zip(adam.theirs, gradients, strict=True):
            other.grad = None if gradient is None else gradient.cpu().double()
        adam.step(gradients)
        adam.plain.step()
        adam.assert_close()
        assert not adam.readers.any()


def test_other_dtypes_and_layouts_are_updated_by_pytorch_in_the_same_step(device, monkeypatch):
    adam = Adam([(40, 30)] * 3, device)
    adam.ours[1] = adam.ours[1].double()
    adam.moments[1][:2] = [torch.zeros_like(adam.ours[1]) for _ in range(2)]
    adam.ours[2] = adam.ours[2].T.contiguous().T
    adam.moments[2][:2] = [torch.zeros_like(adam.ours[2]) for _ in range(2)]
    launched, launch = [], triton_kernels.launch
    monkeypatch.setattr(triton_kernels, "launch", lambda some, *rest: launched.append(some) or launch(some, *rest))
    for seed in range(2):
        gradients = adam.gradients(seed)
        gradients[2] = gradients[2].T.contiguous().T
        for other, gradient in zip(adam.theirs, gradients, strict=True):
            other.grad = gradient.cpu().double()
        adam.step(gradients)
        adam.plain.step()
        adam.assert_close()
    assert [[one.parameter.data_ptr() for one in some] for some in launched] == [[adam.ours[0].data_ptr()]] * 2


def test_from_copies_of_its_tensors_it_goes_on_to_the_same_bits(device):
    adam, again = Adam(SHAPES, device), Adam(SHAPES, device)
    for seed in range(4):
        if seed == 2:
            again.ours = [one.clone() for one in adam.ours]
            again.moments = [[one.clone() for one in moments] for moments in adam.moments]
        adam.step(adam.gradients(seed))
        if seed >= 2:
            again.step(again.gradients(seed))
    for i, moments in enumerate(adam.moments):
        for one, other in zip([adam.ours[i], *moments], [again.ours[i], *again.moments[i]], strict=True):
            assert torch.equal(one, other)


def test_a_step_without_parameters_does_nothing(device):
    adam_step([], torch.tensor(0.01, device=device), BETAS, EPS, make_readers(torch.device(device)))


def test_no_number_makes_triton_compile_the_kernel_anew():
    """In a tuple, it does so for 1 and for multiples of 16."""
    numbers = triton_kernels._odd([0, 1, 5, 14, 16, 31, 1024, triton_kernels.NEVER])
    assert all(number > 1 and number % 16 for number in numbers)
    assert max(numbers) < 2**31


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="needs a GPU")
def test_captured_it_takes_the_same_steps_to_the_bit():
    shapes = [(700, 540), (540,), (3 * BLOCK,), (7,)] * 12
    captured, eager = Adam(shapes, "cuda"), Adam(shapes, "cuda")
    gradients = captured.gradients(0)
    captured.step(gradients)
    eager.step(gradients)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured.step(gradients)
    for seed in range(1, 30):
        for one, new in zip(gradients, captured.gradients(seed), strict=True):
            one.copy_(new)
        for one in (captured, eager):
            one.lr.fill_(0.1 / seed)
        graph.replay()
        eager.step(gradients)
    for one, other in zip(captured.ours, eager.ours, strict=True):
        assert torch.equal(one, other)
    assert {float(moments[2]) for moments in captured.moments + eager.moments} == {30.0}
