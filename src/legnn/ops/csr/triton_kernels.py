"""The nodes that show each class, sorted on a GPU by counting: a few small kernels in the place of some fifty."""

# Kernels take many arguments, and Triton reads annotations at run time.
# mypy: disable-error-code="no-untyped-def"
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from legnn.ops.runtime.launch import fast_launch

NODES, FEWEST_NODES, CELLS = 128, 16, 2**14
"""Nodes of a program, no more than a byte can count; fewer with many classes, with which all of them are compared."""
MOST_COUNTED = 1024
"""Classes up to which nodes are counted where their labels are read."""
MOST_PROGRAMS = 4096
"""What as many programs counted is added up in registers; with more of them, sorting is faster."""


class ClassOrder(NamedTuple):
    """Label edges in the order of the nodes and in that of the classes."""

    node_rowptr: Tensor
    """`[n + 1]` how many nodes before each show a label."""
    node_y: Tensor
    """`[S]` the classes shown, in the order of the nodes."""
    shown: Tensor
    """`[S]` the nodes that show them."""
    bounds: Tensor
    """`[S + 1]` the numbers up to `S`: the first edge of each of `shown`, which has one, and one past the last."""
    class_rowptr: Tensor
    """`[C + 1]` the position of each class's first node in `col`."""
    col: Tensor
    """`[S]` the nodes by class, ascending within one."""
    order: Tensor
    """`[S]` the position in `shown` of each of `col`."""
    chunk_rows: Tensor
    """`[C]` all classes, as the next four a field of `RowChunks`."""
    chunk_pointer: Tensor
    """`[C + 1]`."""
    chunk_owner: Tensor
    chunk_first: Tensor
    chunk_last: Tensor


# threads call these for batches of one epoch, which show different numbers of labels: none is to compile them anew
@fast_launch
@triton.jit(do_not_specialize=["count"])
def _write_labels(shown, y, label_of, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    node = tl.load(shown + place, mask=inside, other=0)
    tl.store(label_of + node, tl.load(y + place, mask=inside, other=0).to(tl.int32), mask=inside)


@fast_launch
@triton.jit
def _show_labels(
    shown, classes, y, label_of, count_minus_one, count,
    COUNT: tl.constexpr, CLASSES: tl.constexpr, CLASSES_BLOCK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    node = tl.load(shown + place, mask=inside, other=0)
    label = tl.load(classes + node, mask=inside, other=0)
    tl.store(y + place, label, mask=inside)
    tl.store(label_of + node, label.to(tl.int32), mask=inside)
    if COUNT:
        c = tl.arange(0, CLASSES_BLOCK)
        number = tl.histogram(tl.where(inside, label, CLASSES).to(tl.int32), CLASSES_BLOCK)
        # of integers, a sum is the same in any order
        tl.atomic_add(count_minus_one + c, number, mask=(c < CLASSES) & (number > 0), sem="relaxed")


@fast_launch
@triton.jit
def _count_classes(label_of, count, num_nodes, CLASSES: tl.constexpr, CLASSES_BLOCK: tl.constexpr, NODES: tl.constexpr):
    program = tl.program_id(0)
    node = program * NODES + tl.arange(0, NODES)
    label = tl.load(label_of + node, mask=node < num_nodes, other=-1)
    c = tl.arange(0, CLASSES_BLOCK)
    number = tl.sum((label[:, None] == c[None, :]).to(tl.int32), 0)
    tl.store(count + program * CLASSES + c, number, mask=c < CLASSES)


@fast_launch
@triton.jit
def _add_up_counts(count, total, programs, CLASSES: tl.constexpr, CLASSES_BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Turns what each program counted into the sum of what those before it did."""
    c = tl.program_id(0) * CLASSES_BLOCK + tl.arange(0, CLASSES_BLOCK)
    part = tl.arange(0, PROGRAMS)
    place = count + part[:, None] * CLASSES + c[None, :]
    mask = (part < programs)[:, None] & (c < CLASSES)[None, :]
    number = tl.load(place, mask=mask, other=0)
    tl.store(place, tl.cumsum(number, 0) - number, mask=mask)
    tl.store(total + c, tl.sum(number, 0), mask=c < CLASSES)


@fast_launch
@triton.jit(do_not_specialize=["chunks"])
def _order_by_class(
    label_of, earlier, totals, node_rowptr, node_y, shown, bounds, class_rowptr, col, order, chunk_rows, chunk_pointer,
    chunk_owner, chunk_first, chunk_last, num_nodes, programs, chunks,
    CLASSES: tl.constexpr, CLASSES_BLOCK: tl.constexpr, WORDS: tl.constexpr, NODES: tl.constexpr, CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    c = tl.arange(0, CLASSES_BLOCK)
    real = c < CLASSES
    total = tl.load(totals + c, mask=real, other=0)
    before = tl.load(earlier + program * CLASSES + c, mask=real, other=0)
    begin = tl.cumsum(total, 0) - total
    node = program * NODES + tl.arange(0, NODES)
    label = tl.load(label_of + node, mask=node < num_nodes, other=-1)
    shows = label >= 0
    # the position among the nodes that show a label
    up_to = tl.sum(before, 0) + tl.cumsum(shows.to(tl.int32), 0)
    # and among those of the same class: the nodes of eight classes are counted in the bytes of one number
    byte = 8 * (label & 7).to(tl.int64)
    word = (label >> 3)[:, None] == tl.arange(0, WORDS)[None, :]
    mine = tl.where(word & shows[:, None], (tl.full([NODES], 1, tl.int64) << byte)[:, None], 0)
    counted = tl.sum(tl.where(word, tl.cumsum(mine, 0), 0), 1) >> byte
    position = tl.gather(begin + before, tl.maximum(label, 0), 0) + (counted & 255).to(tl.int32) - 1
    tl.store(node_rowptr + node + 1, up_to, mask=node < num_nodes)
    tl.store(node_y + up_to - 1, label, mask=shows)
    tl.store(shown + up_to - 1, node, mask=shows)
    tl.store(bounds + up_to, up_to, mask=shows)
    tl.store(col + position, node, mask=shows)
    tl.store(order + position, up_to - 1, mask=shows)
    pieces = tl.where(real, tl.maximum((total + CHUNK - 1) // CHUNK, 1), 0)
    chunk_end = tl.cumsum(pieces, 0)
    if program == 0:
        tl.store(node_rowptr, 0)
        tl.store(bounds, 0)
        tl.store(class_rowptr, 0)
        tl.store(class_rowptr + c + 1, begin + total, mask=real)
        tl.store(chunk_rows + c, c, mask=real)
        tl.store(chunk_pointer, 0)
        tl.store(chunk_pointer + c + 1, chunk_end, mask=real)
    for start in range(program * CHUNKS, chunks, programs * CHUNKS):
        chunk = start + tl.arange(0, CHUNKS)
        # chunks past the last one are empty chunks of the last class
        of = tl.minimum(tl.sum((chunk_end[None, :] <= chunk[:, None]).to(tl.int32) * real[None, :], 1), CLASSES - 1)
        is_of = (of[:, None] == c[None, :]).to(tl.int32)
        end = tl.sum(is_of * (begin + total)[None, :], 1)
        skipped = chunk - tl.sum(is_of * (chunk_end - pieces)[None, :], 1)
        first = tl.minimum(tl.sum(is_of * begin[None, :], 1) + skipped * CHUNK, end)
        tl.store(chunk_owner + chunk, of, mask=chunk < chunks)
        tl.store(chunk_first + chunk, first, mask=chunk < chunks)
        tl.store(chunk_last + chunk, tl.minimum(first + CHUNK, end), mask=chunk < chunks)


def write_labels(shown: Tensor, y: Tensor, num_nodes: int) -> Tensor:
    """`[n]` int32: the class `y[s]` at node `shown[s]`, -1 at all others."""
    label_of = _no_labels(num_nodes, y.device)
    if shown.numel():
        _write_labels[(triton.cdiv(shown.numel(), 256),)](shown, y, label_of, shown.numel(), BLOCK=256, num_warps=4)
    return label_of


def show_labels(shown: Tensor, classes: Tensor, num_classes: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """`y = classes[shown]` `[S]` for `classes` `[n]`, and what `write_labels` returns of it.

    With them, how many nodes show each class, minus one, `[C]` int32, or None for very many classes. Counting from -1,
    what a node without a label has, takes no other launch to fill it.
    """
    y, nodes = classes.new_empty(shown.numel()), classes.numel()
    label_of, count_minus_one = _no_labels(nodes + num_classes, classes.device).split([nodes, num_classes])
    if shown.numel():
        _show_labels[(triton.cdiv(shown.numel(), 256),)](
            shown, classes, y, label_of, count_minus_one, shown.numel(), COUNT=num_classes <= MOST_COUNTED,
            CLASSES=num_classes, CLASSES_BLOCK=triton.next_power_of_2(num_classes + 1), BLOCK=256, num_warps=4,
        )  # fmt: skip
    return y, label_of, count_minus_one if num_classes <= MOST_COUNTED else None


def _no_labels(num_nodes: int, device: torch.device) -> Tensor:
    return torch.full((num_nodes,), -1, dtype=torch.int32, device=device)


def order_by_class(label_of: Tensor, num_shown: int, num_classes: int, chunk: int, chunks: int) -> ClassOrder | None:
    """The edges of `label_of` `[n]`, `num_shown` of them, in both orders; None where sorting is faster.

    Rows of classes are cut into `chunks` pieces of at most `chunk` nodes, as `RowChunks.split` does.
    """
    nodes, device = label_of.numel(), label_of.device
    classes_block = triton.next_power_of_2(num_classes)
    block = min(max(CELLS // classes_block, FEWEST_NODES), NODES)
    programs = triton.cdiv(nodes, block)
    if classes_block * block > CELLS or not 0 < programs <= MOST_PROGRAMS:
        return None

    def numbers(size: int) -> Tensor:
        return torch.empty(size, dtype=torch.int32, device=device)

    of_nodes, of_classes = (nodes + 1, *[num_shown] * 2, num_shown + 1), (num_classes + 1, *[num_shown] * 2)
    of_chunks = num_classes, num_classes + 1, *[chunks] * 3
    found = ClassOrder(*(numbers(size) for size in (*of_nodes, *of_classes, *of_chunks)))
    count, total = numbers(programs * num_classes), numbers(num_classes)
    cut = {"CLASSES": num_classes, "CLASSES_BLOCK": classes_block, "NODES": block}
    _count_classes[(programs,)](label_of, count, nodes, **cut, num_warps=4)
    # as many numbers as fit registers: eight classes of few programs, one of many
    counted = triton.next_power_of_2(programs)
    together = min(max(1024 // counted, 1), 8)
    _add_up_counts[(triton.cdiv(num_classes, together),)](
        count, total, programs, CLASSES=num_classes, CLASSES_BLOCK=together, PROGRAMS=counted,
        num_warps=4 if counted <= 1024 else 8,
    )  # fmt: skip
    _order_by_class[(programs,)](
        label_of, count, total, *found, nodes, programs, chunks, **cut, WORDS=triton.cdiv(classes_block, 8),
        CHUNK=chunk, CHUNKS=16, num_warps=4,
    )  # fmt: skip
    return found
