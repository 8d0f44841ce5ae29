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
from legnn.ops.runtime.jit import kernel, mix, prefetch
from legnn.ops.sample.types import DrawnLayer, DrawnNodes, Fanout, SamplingView

NO_LIMIT = 2**62
NOT_READ = 2**30
AHEAD = 24
"""How many entries ahead of the current one are prefetched."""
PREFETCHED = 128
"""How many entries are prefetched before the first of them is read."""


@kernel
def _count(
    rowptr, targets, seeds, class_rowptr, label_of, all_labels, read, step, fanout, first, edge_count, count
):  # fmt: skip
    for r in range(count.size):
        if r < targets.size:
            ahead = targets[min(r + AHEAD, targets.size - 1)]
            prefetch(rowptr, ahead)
            prefetch(label_of, ahead)
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
    # several rows are drawn before any entry is read: by then it is in the cache
    longest = 0
    for r in range(edge_count.size):
        longest = max(longest, pointer[r + 1] - pointer[r])
    at = np.empty(longest + PREFETCHED, np.int64)
    pending, from_row = 0, 0
    for r in range(edge_count.size):
        count = pointer[r + 1] - pointer[r]
        mine = at[pending : pending + count]
        if r < targets.size:
            _pick(targets[r], edge_count[r], count, low, high, mine)
            for i in range(count):
                mine[i] += first[r]
                prefetch(col, mine[i])
        else:
            _pick(r - targets.size, edge_count[r], count, label_low, high, mine)
            for i in range(count):
                mine[i] += first[r]
                mine[i] += np.searchsorted(excluded, mine[i], side="right")
        pending += count
        if pending >= PREFETCHED or r + 1 == edge_count.size or r + 1 == targets.size:
            to = pointer[from_row]
            if r < targets.size:
                for i in range(pending):
                    source[to + i] = col[at[i]]
            else:
                for i in range(pending):
                    source[to + i] = class_col[at[i]]
            if edge.size:
                for i in range(pending):
                    edge[to + i] = at[i]
            pending, from_row = 0, r + 1


@kernel
def _number_sources(source, number, known, nodes, col):
    """Writes the number of each source to `col`, appends new ones to `nodes`, and returns how many nodes there are."""
    for e in range(source.size):
        prefetch(number, source[min(e + AHEAD, source.size - 1)])
        node = source[e]
        mine = number[node]
        if mine == 0:
            nodes[known] = node
            known += 1
            mine = known
            number[node] = mine
        col[e] = mine - 1
    return known


@kernel
def _number_seeds(nodes, number):
    for i in range(nodes.size):
        number[nodes[i]] = i + 1


@kernel
def _look_up(nodes, seeds, label_of, degree, node_labels, node_degrees, shown, y, number):
    count = 0
    for i in range(nodes.size):
        ahead = nodes[min(i + AHEAD, nodes.size - 1)]
        prefetch(label_of, ahead)
        prefetch(degree, ahead)
        prefetch(number, ahead)
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


class Sampler:
    """Draws one sample on a CPU; see the package."""

    def __init__(self, rows: SamplingView, seeds: Tensor, number: Tensor) -> None:
        self._rows, self._num_seeds = rows, seeds.numel()
        self._rowptr, self._col, self._label_of = rows.rowptr.numpy(), rows.col.numpy(), rows.label_of.numpy()
        self._class_rowptr, self._class_col = rows.class_rowptr.numpy(), rows.class_col.numpy()
        self._excluded, self._number = rows.excluded_positions.numpy(), number.numpy()
        # the layer, in the order drawn, that is the first to read a label
        self._read = np.full(rows.num_classes, NOT_READ, np.int32)
        self._targets: list[int] = []
        self._nodes = seeds.contiguous().numpy()
        _number_seeds(self._nodes, self._number)

    def draw_layer(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> DrawnLayer:
        """See the package."""
        targets = self._nodes.size
        total = targets + self._rows.num_classes
        first, edge_count = np.empty(total, np.int64), np.empty(total, np.int64)
        rowptr = np.zeros(total + 1, np.int64)
        _count(
            self._rowptr, self._nodes, self._num_seeds, self._class_rowptr, self._label_of,
            self._rows.reads_all_labels, self._read, len(self._targets), NO_LIMIT if fanout is None else fanout,
            first, edge_count, rowptr[1:],
        )  # fmt: skip
        np.cumsum(rowptr, out=rowptr)
        drawn = int(rowptr[-1])
        source = np.empty(drawn, self._col.dtype)
        edge = torch.empty(drawn if edges else 0, dtype=torch.long)
        low, high = (np.uint32(word & 0xFFFFFFFF) for word in key)
        _draw(
            self._nodes, first, edge_count, rowptr, self._col, self._class_col, self._excluded, low,
            low ^ np.uint32(LABELS), high, source, edge.numpy(),
        )  # fmt: skip
        nodes, col = np.empty(min(targets + drawn, self._number.size), np.int64), np.empty(drawn, np.int32)
        nodes[:targets] = self._nodes
        self._nodes = nodes[: _number_sources(source, self._number, targets, nodes, col)]
        self._targets.append(targets)
        rowptr = rowptr.astype(np.int32) if drawn < 2**31 else rowptr
        return DrawnLayer(
            torch.from_numpy(rowptr), torch.from_numpy(col), edge if edges else None,
            torch.from_numpy(edge_count[:targets]), int(rowptr[targets]), targets,
        )  # fmt: skip

    def finish(self) -> DrawnNodes:
        """See the package."""
        size, degree = self._nodes.size, self._rows.degree
        node_labels, node_degrees = np.empty(size, np.int32), torch.empty(size, dtype=degree.dtype)
        shown, y = np.empty(size, np.int64), np.empty(size, np.int64)
        count = _look_up(
            self._nodes, self._num_seeds, self._label_of, degree.numpy(), node_labels, node_degrees.numpy(), shown, y,
            self._number,
        )  # fmt: skip
        shown_by_targets = np.searchsorted(shown[:count], self._targets).tolist()
        arrays = (self._nodes, node_labels, shown[:count], y[:count])
        nodes, labels, shown_nodes, classes = (torch.from_numpy(array) for array in arrays)
        return DrawnNodes(nodes, labels, node_degrees, shown_nodes, classes, shown_by_targets)
