"""The least time a step can take: bytes and operations counted, over ceilings measured in the same run.

And the least memory that training can take (`floor_gib`).

Counted is the work of the layers as their equations stand, everything that can be fused being fused and nothing being
kept in a cache from one operation to the next. Where the features of all nodes fit into a cache (Cora's size on a GPU)
such a floor can be undercut.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from benchmarks.measure import GIB, median_ms

INDEX = 4
"""Bytes of an index: int32 is enough for every graph here."""
SINGLE = 4
"""Bytes of what is always kept in single precision: attention scores, logits, the optimizer's state."""
GRADIENT = "train"
"""The phase that has a backward pass."""


@dataclass(frozen=True)
class Ceilings:
    """What the machine can do."""

    bytes_per_second: float
    """Read and written together, in a copy of a large tensor."""
    flops_per_second: float
    """In a large square product in the precision of the run."""


def measure_ceilings(device: torch.device, dtype: torch.dtype) -> Ceilings:
    """Measure both; single precision is what the TF32 setting makes of it at the moment."""
    size, side, repeats = (2**31, 8192, 10) if device.type == "cuda" else (2**28, 2048, 3)
    return Ceilings(_copied_per_second(device, size, repeats), _flops_per_second(device, dtype, side, repeats))


def _copied_per_second(device: torch.device, size: int, repeats: int) -> float:
    source = torch.ones(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * size / (median_ms(lambda: target.copy_(source), device, repeats, 2) / 1e3)


def _flops_per_second(device: torch.device, dtype: torch.dtype, side: int, repeats: int) -> float:
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    return 2 * side**3 / (median_ms(lambda: left @ right, device, repeats, 2) / 1e3)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """All that the count depends on."""

    backbone: str
    labels: str
    residual: str | None
    nodes: int
    edges: int
    features: int
    entries: int
    """Features that are not zero; where some are zero, only these need to be read and multiplied."""
    classes: int
    channels: int
    layers: int
    heads: int
    train: int
    predicted: int
    """Of the training nodes, in a training step; the others show their labels."""
    itemsize: int
    """Bytes of a number in `[n, D]`."""


@dataclass(frozen=True)
class Work:
    """One indivisible piece: it takes as long as its operations or its bytes, whichever is longer."""

    part: str
    flops: float
    bytes: float

    def milliseconds(self, ceilings: Ceilings) -> float:
        return 1e3 * max(self.flops / ceilings.flops_per_second, self.bytes / ceilings.bytes_per_second)


PARTS = ("products", "neighbor sums", "passes", "label edges", "loss, Adam")


def count(shape: Shape, phase: str) -> list[Work]:
    """The least work of one step; each part below says what it counts and why."""
    return [
        *_products(shape, phase),
        *_neighbor_sums(shape, phase),
        *_passes(shape, phase),
        *_label_edges(shape, phase),
        *_loss_and_optimizer(shape, phase),
    ]


def floor_ms(shape: Shape, phase: str, ceilings: Ceilings) -> float:
    """Piece after piece."""
    return sum(work.milliseconds(ceilings) for work in count(shape, phase))


def _matrices(shape: Shape) -> list[tuple[int, int, int]]:
    """`(rows, in, out)` of the products inside the layers."""
    n, c, d, k = shape.nodes, shape.classes, shape.channels, shape.layers
    # W_N, and the linear residual or GraphSAGE's root weight, into which an identity can be added
    per_layer = 1 + _has_second_matrix(shape)
    products = [(n, d, d)] * (per_layer * k)
    if shape.labels == "enhanced":
        # W_L in every layer; the second matrix only where labels go on, which is not after the last layer
        products += [(c, d, d)] * (k + (per_layer - 1) * (k - 1))
    return products


def _has_second_matrix(shape: Shape) -> bool:
    return shape.residual == "linear" or shape.backbone == "sage"


def _products(shape: Shape, phase: str) -> list[Work]:
    """Forward one product; backward two, for the input and for the matrix. Features have no gradient."""
    training = phase == GRADIENT
    item, d = float(shape.itemsize), shape.channels
    # a loss over the predicted nodes needs the logits of no others
    classified = shape.predicted if training else shape.nodes
    inside = [*_matrices(shape), (classified, d, shape.classes)]
    products = [
        Work(PARTS[0], 2.0 * rows * into * out, (rows * into + into * out + rows * out) * item)
        for rows, into, out in inside
    ]
    index = INDEX if shape.entries < shape.nodes * shape.features else 0
    read = shape.entries * (item + index) + (shape.features + shape.nodes) * d * item
    encoder = [Work(PARTS[0], 2.0 * shape.entries * d, read)]
    return encoder * 2 + products * 3 if training else encoder + products


def _neighbor_sums(shape: Shape, phase: str) -> list[Work]:
    """A row of `D` numbers and an index for each edge, and the sums written: once a layer forward and once backward.

    Attention gathers a score for each edge and head; backward, where the same gather serves values and scores (their
    gradient is a product of the row at hand with the row gathered), a score and its gradient.
    """
    gather = shape.edges * (shape.channels * shape.itemsize + INDEX) + shape.nodes * shape.channels * shape.itemsize
    scores = shape.edges * shape.heads * SINGLE if shape.backbone == "gat" else 0
    forward = [Work(PARTS[1], 2.0 * shape.edges * shape.channels, gather + scores)] * shape.layers
    if phase != GRADIENT:
        return forward
    return forward + [Work(PARTS[1], 2.0 * shape.edges * shape.channels, gather + 2 * scores)] * shape.layers


def _passes(shape: Shape, phase: str) -> list[Work]:
    """How often `[n, D]` is read or written between the products and the sums of a layer.

    | | train, forward | train, backward | inference |
    |---|---|---|---|
    | residual added where the sum or the product is written | 1 read | – | 1 read |
    | statistics of the norm, taken where the sum is written | 0 | – | 0, they are kept |
    | norm, ReLU, dropout | 1 read, 1 write | – | 0, where the sum is written |
    | the norm's two sums over the gradient, taken where that is written | – | 1 read | – |
    | gradient of norm, ReLU and dropout (drawn again, not kept) | – | 2 reads, 1 write | – |
    | GAT: gradient times output of each node, for the softmax | – | 1 read | – |
    """
    one = float(shape.nodes * shape.channels * shape.itemsize)
    return [Work(PARTS[2], 0.0, one)] * (passes_in_a_layer(shape, phase) * shape.layers)


def passes_in_a_layer(shape: Shape, phase: str) -> int:
    """How often `[n, D]` is read or written; `_passes` says what for."""
    residual = int(shape.residual in ("linear", "identity") or shape.backbone == "sage")
    if phase != GRADIENT:
        return residual
    return (residual + 2) + 4 + (shape.backbone == "gat")


def _label_edges(shape: Shape, phase: str) -> list[Work]:
    """The rows of the nodes that show a label are read to be summed within classes.

    Forward in every layer but the last; backward once in every layer, for the gradient of the labels' messages, and
    once at the input. Labels' rows going to nodes are few enough for a cache, and are added where the sum is written.
    """
    if shape.labels != "enhanced":
        return []
    shown = shape.train - shape.predicted if phase == GRADIENT else shape.train
    often = shape.layers - 1 + (shape.layers + 1 if phase == GRADIENT else 0)
    rows = float(shown * (shape.channels * shape.itemsize + INDEX))
    return [Work(PARTS[3], 0.0, rows)] * often


def _loss_and_optimizer(shape: Shape, phase: str) -> list[Work]:
    """Logits read and their gradient written; Adam reads weight, gradient and two means and writes three of them."""
    if phase != GRADIENT:
        return []
    parameters = _parameters(shape)
    return [
        Work(PARTS[4], 0.0, 2.0 * shape.predicted * shape.classes * SINGLE),
        Work(PARTS[4], 0.0, 7.0 * parameters * SINGLE),
    ]


def _parameters(shape: Shape) -> int:
    parameters = shape.features * shape.channels + shape.channels * shape.classes
    parameters += sum(into * out for _, into, out in _matrices(shape))
    return parameters + (shape.classes * shape.channels if shape.labels == "enhanced" else 0)


def floor_gib(shape: Shape) -> float:
    """The least memory of a training step: what backward needs, counted where most of it is kept at once.

    | | bytes |
    |---|---|
    | features, and an index for each where only those that are not zero are kept | `entries` |
    | the graph: an index for each edge, a position for each node | `E + n` indices |
    | weights, their gradients, Adam's two means | 4 numbers each, in single precision |
    | what each layer reads, for the gradients of its matrices | `[n, D]` a layer |
    | what each norm reads; what ReLU and dropout let through is computed from it | `[n, D]` a layer |
    | GAT: values and, in single precision, scores of sources and targets | `[n, D]` and `[n, 2 heads]` a layer |
    | what the classifier reads | `[n, D]` |
    | the gradient of what the classifier reads | `[n, D]` |

    This is where the backward pass begins. From there on a gradient can be written in the place of the one it is
    computed from, or in that of what is not needed any more.
    """
    index = INDEX if shape.entries < shape.nodes * shape.features else 0
    one, layers = shape.nodes * shape.channels * shape.itemsize, shape.layers
    size = shape.entries * (shape.itemsize + index) + (shape.edges + shape.nodes) * INDEX
    size += 4 * SINGLE * _parameters(shape) + (2 * layers + 2) * one
    if shape.backbone == "gat":
        size += layers * (one + shape.nodes * 2 * shape.heads * SINGLE)
    return size / GIB
