"""The transpose of an adjacency, which an adjacency keeps."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from weakref import ref

import torch
from torch import Tensor

if TYPE_CHECKING:
    from legnn.ops.csr.adjacency import Adjacency


class Transposition:
    """The transpose of an adjacency, and where its edges are in it.

    Args:
        adjacency: `Aᵀ`.
        place: `[edges]` the position in `Aᵀ` of each edge of `A`.
        is_symmetric: whether `Aᵀ` is `A` itself, which holds this: nothing would free a cycle but a collection of
            garbage, and with it the memory of a graph.
    """

    def __init__(self, adjacency: Adjacency, place: Tensor, *, is_symmetric: bool = False) -> None:
        self.place = place
        self._own = ref(adjacency)
        self._other = None if is_symmetric else adjacency

    def __getstate__(self) -> tuple[Adjacency, Tensor, bool]:
        return self.adjacency, self.place, self._other is None

    def __setstate__(self, state: tuple[Adjacency, Tensor, bool]) -> None:
        adjacency, place, is_symmetric = state
        Transposition.__init__(self, adjacency, place, is_symmetric=is_symmetric)

    @property
    def adjacency(self) -> Adjacency:
        """`Aᵀ`."""
        found = self._own() if self._other is None else self._other
        assert found is not None, "the adjacency is gone"
        return found

    @cached_property
    def origin(self) -> Tensor:
        """`[edges]` the position in `A` of each edge of `Aᵀ`."""
        return inverse_permutation(self.place)


def inverse_permutation(order: Tensor) -> Tensor:
    """Returns the position of each number in `order` `[n]`, a permutation of the numbers below `n`."""
    positions = torch.arange(order.numel(), dtype=order.dtype, device=order.device)
    return torch.empty_like(order).index_copy(0, order.long(), positions)
