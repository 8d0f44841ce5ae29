"""Functions are computed alike with and without gradients."""

from typing import ClassVar

import torch

from legnn.ops.runtime.gradients import apply_function


class Counted(torch.autograd.Function):
    contexts: ClassVar[list] = []

    @staticmethod
    def forward(ctx, x):
        Counted.contexts.append(ctx)
        ctx.save_for_backward(x)
        ctx.rest = 2.0
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.rest


def test_gradients_are_there_where_they_are_asked_for():
    x = torch.ones(3, requires_grad=True)
    apply_function(Counted, x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_without_gradients_no_node_of_a_graph_is_made():
    Counted.contexts.clear()
    with torch.no_grad():
        out = apply_function(Counted, torch.ones(3, requires_grad=True))
    assert out.tolist() == [2, 2, 2]
    assert not out.requires_grad
    assert not isinstance(Counted.contexts[0], torch.autograd.function.BackwardCFunction)
