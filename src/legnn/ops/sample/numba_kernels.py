"""The kernels of a CPU, in numba.

A batch is sampled by the thread that asks for it. The kernels do not hold Python's lock, so that several threads sample
several batches at once, or one samples ahead while the others train: sharing out a single batch would make it wait for
threads that are busy with something else. For the same reason large arrays are NumPy's here: PyTorch shares out even
a copy.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from legnn.graph.sampling.walk import Found, Rows, Step
from legnn.ops.runtime.hashing import GOLDEN, LABELS
from legnn.ops.runtime.hashing_numba import mix
from legnn.ops.runtime.jit import kernel, prefetch
from legnn.ops.sample.fanout import Fanout

NO_LIMIT = 2**62
NOT_READ = 2**30
AHEAD = 24
"""Entries ahead that are fetched from memory while this one is worked on."""
WAITING = 128
"""Entries that are fetched before the first of them is read."""


@kernel
def _count(
    rowptr, targets, seeds, class_rowptr, label_of, every, read, step, fanout, first, edges_of, count
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
            drawn = read[c] < step or (every and step > 0)
            degree = np.int64(class_rowptr[c + 1]) - np.int64(class_rowptr[c]) if drawn else np.int64(0)
        edges_of[r] = degree
        count[r] = min(degree, fanout)


@kernel
def _pick(row, degree, count, low, high, into):
    """Floyd's method, as in `plain.draw`: `count` different places below `degree`."""
    if count == degree:
        for i in range(count):
            into[i] = i
        return
    key = np.uint32(mix(np.uint32(np.uint32(row) ^ low)) ^ high)
    for i in range(count):
        last = degree - count + i
        word = mix(np.uint32(key + np.uint32(np.uint32(i) * np.uint32(GOLDEN))))
        pick = np.int64((np.uint64(word) * np.uint64(last + 1)) >> np.uint64(32))
        # to the end, though the first that is equal would do: without a way out the loop goes by vectors
        again = False
        for j in range(i):
            again |= into[j] == pick
        into[i] = last if again else pick


@kernel
def _draw(targets, first, edges_of, pointer, col, class_col, gaps, low, label_low, high, source, edge):
    # several rows are drawn before any entry is read: by then it has come from memory
    longest = 0
    for r in range(edges_of.size):
        longest = max(longest, pointer[r + 1] - pointer[r])
    at = np.empty(longest + WAITING, np.int64)
    waiting, from_row = 0, 0
    for r in range(edges_of.size):
        count = pointer[r + 1] - pointer[r]
        mine = at[waiting : waiting + count]
        if r < targets.size:
            _pick(targets[r], edges_of[r], count, low, high, mine)
            for i in range(count):
                mine[i] += first[r]
                prefetch(col, mine[i])
        else:
            _pick(r - targets.size, edges_of[r], count, label_low, high, mine)
            for i in range(count):
                mine[i] += first[r]
                mine[i] += np.searchsorted(gaps, mine[i], side="right")
        waiting += count
        if waiting >= WAITING or r + 1 == edges_of.size or r + 1 == targets.size:
            to = pointer[from_row]
            if r < targets.size:
                for i in range(waiting):
                    source[to + i] = col[at[i]]
            else:
                for i in range(waiting):
                    source[to + i] = class_col[at[i]]
            if edge.size:
                for i in range(waiting):
                    edge[to + i] = at[i]
            waiting, from_row = 0, r + 1


@kernel
def _number(source, place, known, nodes, col):
    for e in range(source.size):
        prefetch(place, source[min(e + AHEAD, source.size - 1)])
        node = source[e]
        number = place[node]
        if number == 0:
            nodes[known] = node
            known += 1
            number = known
            place[node] = number
        col[e] = number - 1
    return known


@kernel
def _enter(nodes, place):
    for i in range(nodes.size):
        place[nodes[i]] = i + 1


@kernel
def _look_up(nodes, seeds, label_of, degree, labels_of, degrees, shown, y, place):
    showing = 0
    for i in range(nodes.size):
        ahead = nodes[min(i + AHEAD, nodes.size - 1)]
        prefetch(label_of, ahead)
        prefetch(degree, ahead)
        prefetch(place, ahead)
        node = nodes[i]
        label = label_of[node] if i >= seeds else -1
        labels_of[i] = label
        degrees[i] = degree[node]
        place[node] = 0
        if label >= 0:
            shown[showing] = i
            y[showing] = label
            showing += 1
    return showing


class _Walk:
    def __init__(self, rows: Rows, seeds: Tensor, place: Tensor) -> None:
        self._rows, self._num_seeds = rows, seeds.numel()
        self._rowptr, self._col, self._label_of = rows.rowptr.numpy(), rows.col.numpy(), rows.label_of.numpy()
        self._class_rowptr, self._class_col = rows.class_rowptr.numpy(), rows.class_col.numpy()
        self._gaps, self._place = rows.gaps.numpy(), place.numpy()
        # the step in which a label was first read
        self._read = np.full(rows.num_classes, NOT_READ, np.int32)
        self._targets: list[int] = []
        self._nodes = seeds.contiguous().numpy()
        _enter(self._nodes, self._place)

    def step(self, fanout: Fanout, key: tuple[int, int], *, edges: bool) -> Step:
        targets = self._nodes.size
        total = targets + self._rows.num_classes
        first, edges_of = np.empty(total, np.int64), np.empty(total, np.int64)
        pointer = np.zeros(total + 1, np.int64)
        _count(
            self._rowptr, self._nodes, self._num_seeds, self._class_rowptr, self._label_of, self._rows.every_label,
            self._read, len(self._targets), NO_LIMIT if fanout is None else fanout, first, edges_of, pointer[1:],
        )  # fmt: skip
        np.cumsum(pointer, out=pointer)
        drawn = int(pointer[-1])
        source = np.empty(drawn, self._col.dtype)
        edge = torch.empty(drawn if edges else 0, dtype=torch.long)
        low, high = (np.uint32(word & 0xFFFFFFFF) for word in key)
        _draw(
            self._nodes, first, edges_of, pointer, self._col, self._class_col, self._gaps, low,
            low ^ np.uint32(LABELS), high, source, edge.numpy(),
        )  # fmt: skip
        col = self._numbered(source)
        self._targets.append(targets)
        pointer = pointer.astype(np.int32) if drawn < 2**31 else pointer
        return Step(
            torch.from_numpy(pointer), col, edge if edges else None,
            torch.from_numpy(edges_of[:targets]), int(pointer[targets]), targets,
        )  # fmt: skip

    def _numbered(self, source: np.ndarray) -> Tensor:
        """The number of each of `source`, those that are new included."""
        known = self._nodes.size
        nodes = np.empty(min(known + source.size, self._place.size), np.int64)
        nodes[:known] = self._nodes
        col = np.empty(source.size, np.int32)
        self._nodes = nodes[: _number(source, self._place, known, nodes, col)]
        return torch.from_numpy(col)

    def end(self) -> Found:
        count, degree = self._nodes.size, self._rows.degree
        labels_of, degrees = np.empty(count, np.int32), torch.empty(count, dtype=degree.dtype)
        shown, y = np.empty(count, np.int64), np.empty(count, np.int64)
        number = _look_up(
            self._nodes, self._num_seeds, self._label_of, degree.numpy(), labels_of, degrees.numpy(), shown, y,
            self._place,
        )  # fmt: skip
        showing = np.searchsorted(shown[:number], self._targets).tolist()
        found = (torch.from_numpy(array) for array in (self._nodes, labels_of, shown[:number], y[:number]))
        nodes, labels, who, what = found
        return Found(nodes, labels, degrees, who, what, showing)


def start(rows: Rows, seeds: Tensor, place: Tensor) -> _Walk:
    """See `walk.Kernels`."""
    return _Walk(rows, seeds, place)
