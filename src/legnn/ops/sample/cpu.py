"""Neighbor sampling on a CPU, in numba.

A batch is sampled on the calling thread. The kernels release the GIL, so that several threads sample several batches
at once, or one samples ahead while the others train; splitting one batch over threads would make it wait for threads
that are busy with something else. For the same reason large arrays are NumPy's here: PyTorch splits even a copy.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.ops.runtime.hashing import GOLDEN, LABELS
from legnn.ops.runtime.jit import kernel, mix
from legnn.ops.sample.types import DrawnLayer, DrawnNodes, SamplingOptions, SamplingView

NO_LIMIT = 2**62
NOT_READ = 2**30


@kernel
def _count(
    rowptr, targets, seeds, class_rowptr, label_of, all_labels, read, step, fanout, first, edge_count, count
):  # fmt: skip
    for r in range(count.size):
        if r < targets.size:
            node = targets[r]
            first[r] = rowptr[node]
            degree = np.int64(rowptr[node + 1]) - np.int64(rowptr[node])
            y = label_of[node] if r >= seeds else -1
            if y >= 0 and read[y] > step:
                read[y] = step
        else:
            c = r - targets.size
            first[r] = class_rowptr[c]
            drawn = read[c] < step or (all_labels and step > 0)
            degree = np.int64(class_rowptr[c + 1]) - np.int64(class_rowptr[c]) if drawn else np.int64(0)
        edge_count[r] = degree
        count[r] = min(degree, fanout)


@kernel
def _pick(row, degree, count, low, high, into):
    """Writes `count` different numbers below `degree`, by Floyd's method as in `reference.draw_edges`."""
    if count == degree:
        for i in range(count):
            into[i] = i
        return
    key = np.uint32(mix(np.uint32(np.uint32(row) ^ low)) ^ high)
    for i in range(count):
        last = degree - count + i
        word = mix(np.uint32(key + np.uint32(np.uint32(i) * np.uint32(GOLDEN))))
        pick = np.int64((np.uint64(word) * np.uint64(last + 1)) >> np.uint64(32))
        # no early exit: without one the loop is vectorized
        again = False
        for j in range(i):
            again |= into[j] == pick
        into[i] = last if again else pick


@kernel
def _draw(targets, first, edge_count, pointer, col, class_col, excluded, low, label_low, high, source, edge):
    for r in range(edge_count.size):
        begin, end = pointer[r], pointer[r + 1]
        if r < targets.size:
            _pick(targets[r], edge_count[r], end - begin, low, high, edge[begin:end])
            for i in range(begin, end):
                edge[i] += first[r]
                source[i] = col[edge[i]]
        else:
            _pick(r - targets.size, edge_count[r], end - begin, label_low, high, edge[begin:end])
            for i in range(begin, end):
                edge[i] += first[r]
                edge[i] += np.searchsorted(excluded, edge[i], side="right")
                source[i] = class_col[edge[i]]


@kernel
def _number_sources(source, number, known, nodes, col):
    """Writes the number of each source to `col`, appends new ones to `nodes`, and returns how many nodes there are."""
    for e in range(source.size):
        node = source[e]
        position = number[node]
        if position == 0:
            nodes[known] = node
            known += 1
            position = known
            number[node] = position
        col[e] = position - 1
    return known


@kernel
def _number_seeds(nodes, number):
    for i in range(nodes.size):
        number[nodes[i]] = i + 1


@kernel
def _look_up(nodes, seeds, label_of, degree, node_labels, node_degrees, shown, y, number):
    count = 0
    for i in range(nodes.size):
        node = nodes[i]
        label = label_of[node] if i >= seeds else -1
        node_labels[i] = label
        node_degrees[i] = degree[node]
        number[node] = 0
        if label >= 0:
            shown[count] = i
            y[count] = label
            count += 1
    return count


def draw_sample(
    view: SamplingView, seeds: Tensor, options: SamplingOptions, key: tuple[int, int], number: Tensor
) -> tuple[list[DrawnLayer], DrawnNodes]:
    """Draws one sample on a CPU; see the package."""
    col, label_of, class_col, degree = (x.numpy() for x in (view.col, view.label_of, view.class_col, view.degree))
    excluded, numbers, nodes = view.excluded_positions.numpy(), number.numpy(), seeds.contiguous().numpy()
    # the layer, in the order drawn, that is the first to read a label
    read = np.full(view.num_classes, NOT_READ, np.int32)
    layers: list[DrawnLayer] = []
    _number_seeds(nodes, numbers)
    for k in reversed(range(len(options.fanouts))):
        targets, limit = nodes.size, options.fanouts[k]
        total = targets + view.num_classes
        first, edge_count = np.empty(total, np.int64), np.empty(total, np.int64)
        rowptr = np.zeros(total + 1, np.int64)
        _count(
            view.rowptr.numpy(), nodes, seeds.numel(), view.class_rowptr.numpy(), label_of, view.reads_all_labels,
            read, len(layers), NO_LIMIT if limit is None else limit, first, edge_count, rowptr[1:],
        )  # fmt: skip
        np.cumsum(rowptr, out=rowptr)
        drawn = int(rowptr[-1])
        source, edge = np.empty(drawn, col.dtype), torch.empty(drawn, dtype=torch.long)
        low, high = (np.uint32(word & 0xFFFFFFFF) for word in (key[0], key[1] ^ k))
        _draw(
            nodes, first, edge_count, rowptr, col, class_col, excluded, low, low ^ np.uint32(LABELS), high, source,
            edge.numpy(),
        )  # fmt: skip
        more, new_col = np.empty(min(targets + drawn, numbers.size), np.int64), np.empty(drawn, np.int32)
        more[:targets] = nodes
        nodes = more[: _number_sources(source, numbers, targets, more, new_col)]
        layer = DrawnLayer(
            torch.from_numpy(rowptr.astype(np.int32) if drawn < 2**31 else rowptr), torch.from_numpy(new_col),
            edge if options.edges else None, torch.from_numpy(edge_count[:targets]), int(rowptr[targets]), targets,
        )  # fmt: skip
        layers.append(layer)
    node_labels, node_degrees = np.empty(nodes.size, np.int32), np.empty(nodes.size, degree.dtype)
    shown, y = np.empty(nodes.size, np.int64), np.empty(nodes.size, np.int64)
    count = _look_up(nodes, seeds.numel(), label_of, degree, node_labels, node_degrees, shown, y, numbers)
    arrays = nodes, node_labels, node_degrees, shown[:count], y[:count]
    shown_by_targets = np.searchsorted(shown[:count], [layer.num_targets for layer in layers]).tolist()
    ids, labels, degrees, showing, classes = map(torch.from_numpy, arrays)
    return layers, DrawnNodes(ids, labels, degrees, showing, classes, shown_by_targets)
