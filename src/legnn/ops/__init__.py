"""What happens along edges. Every layer calls these names; this is the one place that chooses their form.

| operation | equation | form |
|---|---|---|
| `neighbor_sum` | `A x` | PyTorch's sparse product; plain where there are no edges or other types |
| `neighbor_attention` | softmax over incoming edges, weighted sum | plain |
| `project_entries` | `X P` for mostly-zero `X` | PyTorch's sparse product |
| `label_gather` | `Y H_L` | plain |
| `class_sum` | `Yᵀ H_N` | plain |
| `class_attention` | softmax over the nodes of a class, weighted sum | plain |
"""

from torch import Tensor

from legnn.graph.adjacency import Adjacency
from legnn.ops import reference, sparse
from legnn.ops.reference import class_attention, class_sum, label_gather, neighbor_attention
from legnn.ops.sparse import project_entries

__all__ = ["class_attention", "class_sum", "label_gather", "neighbor_attention", "neighbor_sum", "project_entries"]


def neighbor_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`(A x)_i = Σ_j A_ij x_j`, for `x` `[cols, D]`; gives `[rows, D]`."""
    if adjacency.num_edges == 0 or adjacency.csr.dtype != x.dtype:
        return reference.neighbor_sum(adjacency, x)
    return sparse.neighbor_sum(adjacency, x)
