"""GraphSAGE (mean) over a label graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from legnn.graph import LabelGraph
from legnn.nn.layer import Linear, Normalize, biased, column, counted, inverse, scale_dtype, typed_linear
from legnn.nn.linear_messages import propagate_product
from legnn.nn.product import product_and_pass
from legnn.ops import Scales


class SAGE(nn.Module):
    r"""`h_i' = mean_j W_φ(j) h_j + R_φ(i) h_i + b_φ(i)`, with `φ` the type of a node: N or L.

    With `normalize="joint"` the mean is over all that come in along `A'`; with `"relation"` a mean is taken within each
    kind of edge, and the kinds a node really has are averaged. On a weighted graph the means are weighted. `bias=False`
    leaves out the nodes' bias, which a batch norm would take off again.
    """

    reads_by_products = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        enhanced: bool = True,
        update_labels: bool = True,
        normalize: Normalize = "relation",
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.enhanced, self.update_labels, self.normalize = enhanced, enhanced and update_labels, normalize
        self.node = typed_linear(in_channels, out_channels)
        self.root = Linear(in_channels, out_channels, bias=bias)
        if self.enhanced:
            self.label = typed_linear(in_channels, out_channels)
        if self.update_labels:
            self.label_root = Linear(in_channels, out_channels)

    def forward(
        self, x: Tensor, labels: Tensor | None, graph: LabelGraph, add: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Shapes: `x` `[M, in]`, `labels` `[C, in]` or None; gives `[M, out]`, `[C, out]` or None."""
        dtype = scale_dtype(x)
        from_labels = self.label(labels) if labels is not None and self.enhanced else None
        kind = "vanilla" if from_labels is None else self.normalize
        scales = graph.cached(("sage", kind, dtype), lambda: _scales(graph, kind, dtype))
        root = self.root.weight
        if add is x:
            # x + x Rᵀ = x (1 + R)ᵀ: nothing to add to [M, out]
            root, add = root + torch.eye(root.size(0), dtype=root.dtype, device=root.device), None
        add, x = product_and_pass(x, root, add, rows=graph.num_nodes)
        add = biased(add, self.root.bias)
        update = self.update_labels and kind != "vanilla"
        nodes, sums = propagate_product(graph, x, self.node.weight, from_labels, add, scales, classes=update)
        if sums is None or labels is None or from_labels is None:
            return nodes, None
        joint = kind == "joint"
        share = torch.ones_like(graph.label_count, dtype=dtype) if joint else inverse(graph.label_count, dtype)
        new_labels = sums * column(counted(share, graph.label_multiplicity), x)
        if graph.label_adjacency is not None:
            among = graph.label_adjacency.to(x.dtype)
            along = among @ from_labels
            new_labels = new_labels + (along if joint else along * column(inverse(among.sum(1), dtype), x))
        weight = graph.label_degree if joint else graph.label_relations
        new_labels = new_labels * column(inverse(weight, dtype), x) + self.label_root(labels)
        return nodes, new_labels[:, : root.size(0)]


def _scales(graph: LabelGraph, kind: str, dtype: torch.dtype) -> Scales:
    if kind == "joint":
        mean = inverse(graph.node_degree, dtype)
        return Scales(target=counted(mean, graph.multiplicity), label=mean)
    mean = counted(inverse(graph.degree, dtype), graph.multiplicity)
    if kind == "vanilla":
        return Scales(target=mean)
    share = inverse(graph.node_relations, dtype)
    return Scales(target=mean * share, label=share)
