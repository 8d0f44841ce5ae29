"""Channels padded with zeros where parameters are created: layers know nothing of it.

On a GPU a product with 540 columns takes longer than one with 544, in bf16 several times as long: rows have to be
multiples of eight numbers. A model of such a width stores more channels than it has. The parameters of the others are
zero and stay zero, as do the channels themselves: no gradient reaches them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from legnn.config.model import ModelSettings, traits
from legnn.nn.layer import channels_per_head

MULTIPLE = 8
"""Numbers in a row are padded to a multiple of this."""
MOST_ADDED = 1 / 16
"""Most channels that are added, as a part of those there are: a narrow model would become slower."""


class ChannelPadding:
    """The layout of stored channels: in each head, those of the model come first, then zeros."""

    def __init__(self, settings: ModelSettings) -> None:
        heads = settings.attention.heads if settings.backbone == "gat" else 1
        self.live_width = self.width = channels_per_head(settings.hidden, heads)
        step = MULTIPLE // math.gcd(MULTIPLE, heads)
        stored = -(-self.live_width // step) * step
        is_padded = traits(settings.backbone).maps_zeros_to_zeros and settings.norm != "layer"
        if is_padded and stored <= (1 + MOST_ADDED) * self.live_width:
            self.width = stored
        self.settings = replace(settings, hidden=heads * self.width)
        """Settings of the stored model."""

    @property
    def is_needed(self) -> bool:
        """Whether more channels are stored than the model has."""
        return self.width != self.live_width

    def live(self, stored: int) -> Tensor:
        """The positions of the model's channels among `stored`."""
        return torch.arange(stored).view(-1, self.width)[:, : self.live_width].flatten()

    @torch.no_grad()
    def copy(self, target: nn.Module, source: nn.Module) -> int:
        """Copies the parameters of `source` to their positions in `target`; returns how many others are zero."""
        added = 0
        for stored, parameter in zip(target.parameters(), source.parameters(), strict=True):
            values = parameter.detach()
            added += stored.numel() - values.numel()
            for axis, size in enumerate(stored.shape):
                if size != values.size(axis):
                    shape = [*values.shape[:axis], size, *values.shape[axis + 1 :]]
                    values = values.new_zeros(shape).index_copy(axis, self.live(size), values)
            stored.copy_(values)
        return added


class PaddedLayerNorm(nn.LayerNorm):
    """A layer norm of the channels of a model, among those that are stored."""

    live: Tensor

    def __init__(self, live: Tensor) -> None:
        super().__init__(live.numel())
        self.register_buffer("live", live, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shapes: `x` `[n, stored]`; returns the same."""
        normed = super().forward(x.index_select(1, self.live).to(self.weight.dtype))
        return torch.zeros_like(x).index_copy(1, self.live, normed.to(x.dtype))
