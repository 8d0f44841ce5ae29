"""What a model is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from legnn.config.checks import check_choice, check_range

Normalize = Literal["relation", "joint"]
"""How the weights of `A'` are normalized: over all edges at once, as in the paper's equations (`joint`), or within
each kind of edge and averaged over the kinds that a node really has (`relation`)."""

LabelUsage = Literal["vanilla", "concat", "addition", "enhanced"]
LabelFeatures = Literal["one-hot", "class-mean", "given"]


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model's settings. None means: chosen from the data by `legnn.config.settings`."""

    backbone: str = "gcn"
    """A name in `BACKBONES`: gcn, sage, gat; gatv2, transformer, gin are PyG's, lifted."""
    labels: LabelUsage = "enhanced"
    """How labels enter: not at all, concatenated or added to the features, or as nodes of the graph."""
    normalize: Normalize = "relation"
    """Over all of `A'` at once (joint, the paper's equations), or within each relation."""
    hidden: int | None = None
    """`D`, over all heads."""
    layers: int | None = None
    """`K`."""
    heads: int = 4
    """Attention heads of gat, gatv2 and transformer; `hidden` is their total."""
    target_attention: bool = True
    """gat: whether the score looks at the target, too."""
    symmetric_norm: bool = False
    """gat: whether messages are scaled by degrees as in GCN."""
    residual: Literal["none", "identity", "linear"] | None = None
    """What each layer adds to its output: nothing, its input, or its input times a matrix of its own."""
    norm: Literal["none", "batch", "layer"] | None = None
    """What follows each layer."""
    dropout: float | None = None
    """After each layer."""
    input_dropout: float | None = None
    """On the features."""
    label_features: LabelFeatures = "one-hot"
    """`E`: a learned row for each class, the mean of the features of the nodes that show it, or a matrix given."""
    label_edges: bool | None = None
    """Whether the label–label edges that come with the data are used; by default, where there are any."""
    label_at_input: bool | None = None
    """enhanced: whether a node that shows its label also receives the label's embedding at the input layer."""
    scale: Literal["none", "row", "entries", "standard"] | None = None
    """Features as they are; each row divided by its sum; all divided by one number, so that the entries that are not
    zero have mean square 1; or each column brought to mean 0 and deviation 1."""
    architecture: str = "legnn"
    """A name in `legnn.baselines.ARCHITECTURES`: legnn, pyg_gcn, label_propagation."""
    postprocess: str = "none"
    """A name in `legnn.baselines.POSTPROCESS`: none, correct_and_smooth."""
    propagation_steps: int = 50
    """Steps of label_propagation and correct_and_smooth."""
    propagation_alpha: float = 0.9
    """`α` of label_propagation and correct_and_smooth: what comes from neighbors in a step."""

    def __post_init__(self) -> None:
        from legnn.nn.backbones import BACKBONES

        check_choice("architecture", self.architecture, ("legnn", "pyg_gcn", "label_propagation"))
        check_choice("postprocess", self.postprocess, ("none", "correct_and_smooth"))
        check_range("propagation_steps", self.propagation_steps, least=1)
        check_range("propagation_alpha", self.propagation_alpha, above=0, below=1)
        check_choice("backbone", self.backbone, BACKBONES)
        check_choice("labels", self.labels, ("vanilla", "concat", "addition", "enhanced"))
        check_choice("normalize", self.normalize, ("relation", "joint"))
        check_choice("residual", self.residual, ("none", "identity", "linear"), optional=True)
        check_choice("norm", self.norm, ("none", "batch", "layer"), optional=True)
        check_choice("label_features", self.label_features, ("one-hot", "class-mean", "given"))
        check_choice("scale", self.scale, ("none", "row", "entries", "standard"), optional=True)
        check_range("hidden", self.hidden, least=1)
        check_range("layers", self.layers, least=1)
        check_range("heads", self.heads, least=1)
        check_range("dropout", self.dropout, least=0, below=1)
        check_range("input_dropout", self.input_dropout, least=0, below=1)
