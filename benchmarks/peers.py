"""What a user of PyG writes: its own convolutions, and LEGNN as `HeteroConv` over three relations.

Both have what our model has around the layers (`legnn.nn.model`): a projection of the features, after each layer
residual, norm, ReLU and dropout, and a linear classifier. Edges are plain int64 `edge_index` tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, HeteroConv, SAGEConv

from legnn.config import ModelSettings, ResolvedSettings
from legnn.data import GraphData
from legnn.graph.selection import predicted_count

NODE, FROM_LABEL, TO_LABEL = ("node", "to", "node"), ("label", "to", "node"), ("node", "to", "label")
HETERO = {"gcn": "sage", "sage": "sage", "gat": "gat"}
"""The convolution of the `HeteroConv` peer of each backbone: `GCNConv` does not go from one type of node to another."""


class Runner(NamedTuple):
    """One implementation, ready to be timed."""

    train_step: Callable[[], object]
    """Select training nodes, forward, loss, backward, optimizer."""
    inference: Callable[[], Tensor]
    """`[M, C]` in evaluation mode, every training label shown."""


def adam(parameters: Any, lr: float) -> torch.optim.Optimizer:
    """As the library makes it: fused on every device."""
    return torch.optim.Adam(parameters, lr=lr, fused=True)


class NormActDropout(nn.Module):
    """What follows each layer: residual, norm, ReLU, dropout."""

    def __init__(self, settings: ModelSettings, norm: type[nn.Module] | None) -> None:
        super().__init__()
        channels = settings.hidden
        self.residual: nn.Module | None = None
        if settings.residual == "linear":
            self.residual = nn.Linear(channels, channels, bias=False)
        elif settings.residual == "identity":
            self.residual = nn.Identity()
        self.norm = nn.Identity() if norm is None else norm(channels)
        self.dropout = settings.dropout or 0.0

    def forward(self, new: Tensor, old: Tensor) -> Tensor:
        if self.residual is not None:
            new = new + self.residual(old)
        return F.dropout(F.relu(self.norm(new)), self.dropout, self.training)


NORMS: dict[str | None, type[nn.Module] | None] = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


class VanillaPyG(nn.Module):
    """PyG's convolution of a backbone; labels do not enter."""

    def __init__(self, in_channels: int, num_classes: int, settings: ModelSettings) -> None:
        super().__init__()
        channels, layers = settings.hidden, range(settings.layers or 0)
        self.input_dropout = settings.input_dropout or 0.0
        self.project = nn.Linear(in_channels, channels, bias=False)
        self.convs = nn.ModuleList(_vanilla(settings) for _ in layers)
        self.after_convs = nn.ModuleList(NormActDropout(settings, NORMS.get(settings.norm)) for _ in layers)
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.project(F.dropout(x, self.input_dropout, self.training))
        for conv, after_conv in zip(self.convs, self.after_convs, strict=True):
            x = after_conv(conv(x, edge_index), x)
        return self.classifier(x)


def _vanilla(settings: ModelSettings) -> nn.Module:
    channels, bias = settings.hidden, _has_bias(settings)
    if settings.backbone == "gcn":
        # the graph has its self-loops, and its normalization never changes
        return GCNConv(channels, channels, cached=True, add_self_loops=False, bias=bias)
    if settings.backbone == "sage":
        return SAGEConv(channels, channels, bias=bias)
    return GATConv(
        channels, channels // settings.attention.heads, heads=settings.attention.heads, add_self_loops=False, bias=bias
    )


def _has_bias(settings: ModelSettings) -> bool:
    """As in our layers: a batch norm takes off whatever bias there was."""
    return settings.norm != "batch"


class HeteroLEGNN(nn.Module):
    """Labels as a second type of node: `HeteroConv` over node–node, label–node and node–label edges."""

    def __init__(self, in_channels: int, num_classes: int, settings: ModelSettings) -> None:
        super().__init__()
        channels, layers = settings.hidden, settings.layers or 0
        self.input_dropout, self.label_at_input = settings.input_dropout or 0.0, settings.label_at_input
        self.project = nn.Linear(in_channels, channels, bias=False)
        self.labels = nn.Parameter(torch.empty(num_classes, channels))
        nn.init.xavier_uniform_(self.labels)
        self.convs = nn.ModuleList(_hetero(settings, last=k + 1 == layers) for k in range(layers))
        self.after_convs = nn.ModuleList(NormActDropout(settings, NORMS.get(settings.norm)) for _ in range(layers))
        # as in our model: a handful of labels is no batch
        label_norm = None if NORMS.get(settings.norm) is None else nn.LayerNorm
        self.after_label_convs = nn.ModuleList(NormActDropout(settings, label_norm) for _ in range(layers - 1))
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x: Tensor, edges: dict[tuple[str, str, str], Tensor]) -> Tensor:
        """`edges` as `relations` makes them."""
        nodes = self.project(F.dropout(x, self.input_dropout, self.training))
        if self.label_at_input:
            y, shown = edges[FROM_LABEL]
            nodes = nodes.index_add(0, shown, self.labels.index_select(0, y).to(nodes.dtype))
        both = {"node": nodes, "label": self.labels}
        for conv, after_conv, after_label_conv in zip(
            self.convs, self.after_convs, [*self.after_label_convs, None], strict=True
        ):
            new = conv(both, edges)
            nodes = after_conv(new["node"], both["node"])
            if after_label_conv is not None:
                both = {"node": nodes, "label": after_label_conv(new["label"], both["label"])}
        return self.classifier(nodes)


def relations(edge_index: Tensor, shown: Tensor, y: Tensor) -> dict[tuple[str, str, str], Tensor]:
    """The three relations of the graph in which the nodes `shown` show the classes `y`."""
    from_label = torch.stack([y, shown])
    return {NODE: edge_index, FROM_LABEL: from_label, TO_LABEL: from_label.flip(0)}


def _hetero(settings: ModelSettings, *, last: bool) -> nn.Module:
    channels, bias = settings.hidden, _has_bias(settings)
    if HETERO[settings.backbone] == "sage":
        # one root weight for a type of node is enough, and so is one bias
        convs: dict[tuple[str, str, str], nn.Module] = {
            NODE: SAGEConv(channels, channels, bias=bias),
            FROM_LABEL: SAGEConv((channels, channels), channels, root_weight=False, bias=False),
            TO_LABEL: SAGEConv((channels, channels), channels),
        }
    else:
        options = {"heads": settings.attention.heads, "add_self_loops": False}
        head = channels // settings.attention.heads
        convs = {
            NODE: GATConv(channels, head, bias=bias, **options),
            FROM_LABEL: GATConv((channels, channels), head, bias=False, **options),
            TO_LABEL: GATConv((channels, channels), head, **options),
        }
    if last:
        # nothing reads the labels after it
        del convs[TO_LABEL]
    with warnings.catch_warnings():
        # which is what PyG warns of
        warnings.filterwarnings("ignore", message="There exist node types")
        return HeteroConv(convs, aggr="sum")


def build_peer(data: GraphData, settings: ResolvedSettings, device: torch.device, *, autocast: bool) -> Runner:
    """Full-batch training of `VanillaPyG`, or of `HeteroLEGNN` where labels are to be in the graph."""
    enhanced = settings.model.labels == "enhanced"
    alpha, lr = settings.train.alpha, settings.train.lr
    assert alpha is not None
    assert lr is not None
    kind = HeteroLEGNN if enhanced else VanillaPyG
    model = kind(data.x.size(1), len(data.class_names), settings.model).to(device)
    optimizer = adam(model.parameters(), lr)
    x, y, edge_index = data.x.to(device), data.y.to(device), data.adjacency.edge_index.to(device)
    train = data.train_mask.nonzero().flatten().to(device)
    count = predicted_count(train.numel(), alpha)
    every_label = relations(edge_index, train, y[train]) if enhanced else edge_index

    def precision() -> AbstractContextManager[object]:
        return torch.autocast(device.type, torch.bfloat16) if autocast else nullcontext()

    def train_step() -> Tensor:
        model.train()
        predicted, edges = train, edge_index
        if enhanced:
            order = train[torch.randperm(train.numel(), device=device)]
            predicted, shown = order[:count], order[count:]
            edges = relations(edge_index, shown, y[shown])
        with precision():
            loss = F.cross_entropy(model(x, edges).index_select(0, predicted), y[predicted])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def inference() -> Tensor:
        model.eval()
        with precision():
            return model(x, every_label)

    return Runner(train_step, inference)
