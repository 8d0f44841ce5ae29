"""Long rows are split into chunks, and no edge goes missing."""

import torch

from legnn.graph import Adjacency
from legnn.ops.csr.row_chunks import LONG_ROW, RowChunks


def test_chunks_have_every_edge_of_their_rows_once_and_in_order():
    counts = torch.tensor([0, 1, LONG_ROW, LONG_ROW + 1, 0, 3 * LONG_ROW])
    rowptr = torch.cat([torch.zeros(1), counts.cumsum(0)]).int()
    rows = torch.tensor([3, 5], dtype=torch.int32)
    chunks = RowChunks.split(rowptr, rows, LONG_ROW, max_chunks=8)
    for place, row in enumerate(rows.tolist()):
        mine = range(int(chunks.pointer[place]), int(chunks.pointer[place + 1]))
        edges = [edge for chunk in mine for edge in range(int(chunks.first[chunk]), int(chunks.last[chunk]))]
        assert edges == list(range(int(rowptr[row]), int(rowptr[row + 1])))
        assert {int(chunks.owner[chunk]) for chunk in mine} == {row}
    unused = slice(int(chunks.pointer[-1]), None)
    assert torch.equal(chunks.first[unused], chunks.last[unused]), "what is not needed is empty"


def test_a_row_of_ordinary_length_is_not_split():
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 1], [1, 0, 1]]), 2)
    assert adjacency.row_chunks is None
