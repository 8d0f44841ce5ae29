"""Operations over the kernels of a device, with gradients that are written out and can be differentiated again.

An operation is computed in three ways:

- in plain PyTorch (`Operation.reference`) where the registry has no kernels for its inputs;
- by kernels: `Operation.forward`, and `Operation.backward` for its gradient;
- where the gradient itself is differentiated (`create_graph=True`, `torch.func.grad`), the gradient is that of
  `Operation.reference`, computed once more: no operation needs a second derivative of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from legnn.errors import InputError
from legnn.ops.backend import autocast, backend

Inputs = Sequence[Any]
"""Tensors, or None."""
Outputs = tuple[Tensor | None, ...]


class Operation(ABC):
    """A function of tensors. What is not differentiated, such as a graph, is in the attributes of the object."""

    package: ClassVar[str]
    """The package of `legnn.ops` with its kernels."""
    kernels: Any
    """The module of kernels for the device and dtype of the first input."""
    reread: ClassVar[tuple[int, ...]] = ()
    """The positions of the inputs that the gradient depends on. The operation is linear in the others."""
    rereads_output: ClassVar[bool] = False
    """Whether the gradient is the same at the output as at the first input, and the output is read in its place."""
    fills_gradients: ClassVar[bool] = True
    """Whether `backward` gets zeros, and not None, for an output that nothing depends on."""
    saved: Outputs = ()
    """Tensors that `forward` leaves for `backward`, besides its inputs."""

    @abstractmethod
    def forward(self, *inputs: Any) -> Outputs:
        """Returns the outputs."""

    @abstractmethod
    def backward(self, inputs: Inputs, saved: Inputs, needed: Sequence[bool], gradients: Inputs) -> Outputs:
        """Returns the gradients of the inputs, where they are `needed`; `inputs` are those in `reread`."""

    @abstractmethod
    def reference(self, *inputs: Any) -> Outputs:
        """Returns what `forward` does, in plain PyTorch."""


def run(operation: Operation, *inputs: Tensor | None) -> Any:
    """Returns the outputs of `operation`, differentiable; the first input selects its kernels."""
    if torch.compiler.is_exporting():
        raise InputError(
            "torch.export does not support operations on graphs; save the weights and run the model in Python"
        )
    first = inputs[0]
    assert first is not None
    operation.kernels = backend(operation.package, first)
    if operation.kernels.__name__.endswith(".reference"):
        return operation.reference(*inputs)
    if not torch.is_grad_enabled():
        return operation.forward(*inputs)
    return _ApplyOperation.apply(operation, *inputs)


class _Like(NamedTuple):
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device


class _ApplyOperation(torch.autograd.Function):
    """An operation with its gradient; profiles show its name."""

    @staticmethod
    def forward(operation: Operation, *inputs: Tensor | None) -> Outputs:
        return operation.forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Outputs) -> None:
        operation, *tensors = inputs
        ctx.operation = operation
        ctx.set_materialize_grads(operation.fills_gradients)
        # of the inputs that are not read again
        ctx.inputs = [None if x is None else _Like(x.shape, x.dtype, x.device) for x in tensors]
        points = output if operation.rereads_output else tensors
        ctx.save_for_backward(*(points[position] for position in operation.reread), *operation.saved)
        operation.saved = ()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        count = len(ctx.operation.reread)
        reread, saved = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        needed = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            return None, *_differentiate(ctx, reread, needed, gradients)
        return None, *ctx.operation.backward(reread, saved, needed, gradients)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
        raise InputError("operations on graphs cannot be mapped by torch.vmap: call them once for each graph")


def _differentiate(ctx: Any, reread: Inputs, needed: Sequence[bool], gradients: Inputs) -> list[Tensor | None]:
    """The gradients of the inputs, as functions of `reread` and `gradients` that autograd can differentiate."""
    operation: Operation = ctx.operation
    inputs: list[Tensor | None] = []
    for position, like in enumerate(ctx.inputs):
        if like is None:
            inputs.append(None)
        elif position in operation.reread:
            # a tensor of its own: the same may be passed twice
            inputs.append(reread[operation.reread.index(position)].view(like.shape))
        else:
            inputs.append(torch.zeros(like.shape, dtype=like.dtype, device=like.device, requires_grad=needed[position]))
    wrt = [x for x in inputs if x is not None and x.requires_grad]
    # an autocast around the loop is not meant for the equations of an operation
    with autocast(ctx.inputs[0].device, enabled=False):
        outputs: Inputs = operation.reference(*inputs)
    used = [(out, d) for out, d in zip(outputs, gradients, strict=True) if d is not None and out.requires_grad]
    if not used:
        return [None] * len(inputs)
    outs, ups = zip(*used, strict=True)
    results = iter(torch.autograd.grad(outs, wrt, ups, create_graph=True, allow_unused=True))
    return [next(results) if x is not None and x.requires_grad else None for x in inputs]
