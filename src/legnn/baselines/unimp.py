"""UniMP (Shi et al., 2021): labels at the input of a graph transformer, trained by predicting those that are masked."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from legnn.baselines.projected import EdgeMessageModel
from legnn.config.model import ModelSettings
from legnn.graph import LabelGraph, SampledLabelGraph
from legnn.lazy import lazy_module
from legnn.nn import DataShape
from legnn.nn.block import NormActDropout
from legnn.nn.layer import Nodes, channels_per_head, glorot, targets_of
from legnn.ops import drop, label_gather

pyg_nn = lazy_module("torch_geometric.nn")


class UniMP(EdgeMessageModel):
    r"""`H⁰ = dropout(X) + Y W_c`, `H^k = dropout(relu(norm(layer(H^{k-1}))))`, and the last layer gives the logits.

    A layer is PyG's `TransformerConv` with a gated residual: for each head `a_ij = softmax_j(q_i · k_j / √d)` and
    `m_i = Σ_j a_ij v_j`, of which the heads are concatenated, or averaged in the last layer. With `r_i = W_r h_i + b_r`
    and `β_i = sigmoid(w [m_i ‖ r_i ‖ m_i - r_i])`, `h_i' = (1 - β_i) m_i + β_i r_i`.

    `Y` has the shown labels alone: training node selection is the paper's masked label prediction.
    """

    uses_labels = True
    takes_sparse = False
    decayed = ("layers.0",)

    def __init__(self, settings: ModelSettings, data: DataShape) -> None:
        super().__init__(settings, data)
        hidden, heads, self.num_stages = settings.hidden, settings.attention.heads, settings.layers
        self.widths = [self.in_channels, *[hidden] * (settings.layers - 1)]
        # all states are as wide as the widest, the features or a layer
        self.channels = max(self.widths)
        self.label_rows = glorot(data.classes, self.in_channels)  # W_c
        each = channels_per_head(hidden, heads)
        layers = [pyg_nn.TransformerConv(width, each, heads, beta=True) for width in self.widths[:-1]]
        last = pyg_nn.TransformerConv(self.widths[-1], data.classes, heads, concat=False, beta=True)
        self.layers = nn.ModuleList([*layers, last])
        self.acts = nn.ModuleList(NormActDropout(settings, hidden) for _ in layers)

    def encode(self, inputs: Tensor, graph: LabelGraph | SampledLabelGraph) -> Nodes:
        """`dropout(X) + Y W_c` `[n, channels]`."""
        x = drop(inputs, self.input_dropout, training=self.training)
        rows = label_gather(graph.at_input, self.label_rows.to(x.dtype))
        return self._pad(x.index_add(0, graph.at_input.shown, rows)), None

    def stage(self, k: int, nodes: Tensor, labels: Tensor | None, block: LabelGraph, initial: Nodes | None) -> Nodes:
        """`H^{k+1}`, or the logits."""
        x = nodes[:, : self.widths[k]]
        x = self.layers[k]((x, targets_of(x, block)), self.edges_of(block))
        return x if k + 1 == self.num_stages else self._pad(self.acts[k](x)), None

    def _pad(self, x: Tensor) -> Tensor:
        return F.pad(x, (0, self.channels - x.size(1)))
