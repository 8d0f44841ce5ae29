"""The parts of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from legnn.config.fields import Section, setting

Normalize = Literal["relation", "joint"]
"""Normalization of the weights of `A'`: over all edges at once, as in the paper's equations (`joint`), or within
each kind of edge and averaged over the kinds (`relation`), by default over those that a node really has."""

AbsentLabel = Literal["skip", "zero"]
LabelUsage = Literal["vanilla", "concat", "addition", "enhanced"]
LabelFeatures = Literal["one-hot", "class-mean", "given"]


class Traits(NamedTuple):
    """Facts of a backbone that presets, the search and the model need before it is built."""

    can_be_joint: bool = False
    """Whether it can be normalized over all of `A'`."""
    residual: Literal["linear", "identity", "none"] = "linear"
    """The residual that suits it: a root weight is a linear residual already."""
    maps_zeros_to_zeros: bool = False
    """Whether a channel of zeros stays zero, so that channels can be padded."""
    bf16_compared: bool = False
    """Whether its accuracy in bf16 is that in TF32, as far as fifteen graphs tell (docs/results.md)."""


BACKBONE_TRAITS = {
    "gcn": Traits(can_be_joint=True, maps_zeros_to_zeros=True, bf16_compared=True),
    "sage": Traits(can_be_joint=True, residual="identity", maps_zeros_to_zeros=True),
    "gat": Traits(can_be_joint=True, maps_zeros_to_zeros=True, bf16_compared=True),
    "gatv2": Traits(),
    "transformer": Traits(),
    "gin": Traits(),
    # it adds its first states in every layer
    "gcnii": Traits(can_be_joint=True, residual="none", maps_zeros_to_zeros=True),
    "appnp": Traits(can_be_joint=True),
    "dagnn": Traits(can_be_joint=True),
    "rgcn": Traits(),
    "hgt": Traits(),
}

# a registry may add to these three; here they are known without importing PyTorch
BACKBONES = list(BACKBONE_TRAITS)
ARCHITECTURES = [
    "legnn", "pyg_gcn", "label_propagation", "mlp", "jknet", "sign", "unimp", "deeper_gcn", "gaan",
    "gcn_lpa", "label_highway", "boosted_trees", "metapath_labels", "hgconv", "hetsann", "r_gsn", "rshn", "r_hgnn",
]  # fmt: skip
POSTPROCESSES = ["none", "correct_and_smooth"]
PROPAGATED = ("appnp", "dagnn")
"""Backbones that propagate the output of a perceptron, `hops` times and without parameters."""


def traits(backbone: str) -> Traits:
    """Returns the traits of a backbone; those of one that was registered are the defaults."""
    return BACKBONE_TRAITS.get(backbone, Traits())


def register_choice(choices: list[str], name: str) -> None:
    """Adds a name to one of the lists above, unless it is there."""
    if name not in choices:
        choices.append(name)


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(Section):
    """Settings of layers with attention."""

    name = "model.attention"
    title = "Attention"

    heads: int = setting(4, "Attention heads of gat, gatv2, transformer and of designs with attention", least=1)


@dataclass(frozen=True, kw_only=True)
class PublishedSettings(Section):
    """Variants that only the equations and the code of the authors need; presets `paper` and `published` set them."""

    name = "model.published"
    title = "Variants of the published code"

    target_attention: bool = setting(True, "gat: the score includes the target, too")
    symmetric_norm: bool = setting(False, "gat: scale messages by degrees, as in GCN")
    scaled_scores: bool = setting(False, "gat with symmetric_norm: scores are computed after the scaling by degrees")
    attention_vectors: Literal["separate", "shared"] = setting(
        "separate", "gat: nodes, and labels, have a vector as source and another as target, or one for both"
    )
    target_map: bool = setting(False, "gat: the score of the target is computed with a matrix of its own")
    node_weight: float = setting(
        1.0, "normalize = relation: weight of the neighbors in the mean with the label, whose weight is 1", above=0
    )
    absent_label: AbsentLabel = setting(
        "skip", "normalize = relation: a node that shows no label leaves it out of this mean, or counts it as zero"
    )
    label_norm: Literal["layer", "batch"] = setting("layer", "Normalization of labels, where nodes have one")
    layer_dropout: float = setting(0.0, "Dropout of the input of a layer, but not of its residual", least=0, below=1)
    drop_labels: bool = setting(False, "input_dropout drops rows of the label features, too")
    shared_projection: bool = setting(False, "Several node types: one projection of the features for all of them")
    init: Literal["glorot", "published"] = setting(
        "glorot", "Initial weights: Glorot's, or those of the published code"
    )


@dataclass(frozen=True, kw_only=True)
class AppnpSettings(Section):
    """Settings of propagation after a perceptron."""

    name = "model.appnp"
    title = "APPNP and its relatives"

    hops: int = setting(10, "Propagation steps of appnp and dagnn, and hops of sign", least=1)
    teleport: float = setting(0.1, "appnp, gcnii: weight of the initial representation in every step", least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class GcniiSettings(Section):
    """Settings of GCNII."""

    name = "model.gcnii"
    title = "GCNII"

    identity_decay: float = setting(0.5, "λ of the weight log(λ / k + 1) of the matrix of layer k", least=0)


@dataclass(frozen=True, kw_only=True)
class JknetSettings(Section):
    """Settings of JKNet."""

    name = "model.jknet"
    title = "JKNet"

    mode: Literal["concat", "max"] = setting("concat", "How the outputs of all layers are joined")


@dataclass(frozen=True, kw_only=True)
class GcnLpaSettings(Section):
    """Settings of GCN-LPA."""

    name = "model.gcn_lpa"
    title = "GCN-LPA"

    loss_weight: float = setting(1.0, "Weight of the loss of label propagation", least=0)


@dataclass(frozen=True, kw_only=True)
class BoostedTreesSettings(Section):
    """Settings of boosted trees."""

    name = "model.boosted_trees"
    title = "Boosted trees"

    trees: int = setting(200, "Trees of each class", least=1)
    learning_rate: float = setting(0.1, "Learning rate", above=0)
    leaves: int = setting(31, "Largest number of leaves of a tree", least=2)


@dataclass(frozen=True, kw_only=True)
class LabelPropagationSettings(Section):
    """Settings of label propagation."""

    name = "model.label_propagation"
    title = "Label propagation, Correct & Smooth"

    steps: int = setting(50, "Steps", least=1)
    alpha: float = setting(0.9, "Weight of the neighbors in a step", least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class ModelSettings(Section):
    """Settings of the model. Built directly, it is a plain stack of layers: no norm, no residual, no dropout."""

    name = "model"
    title = "Model"

    architecture: str = setting("legnn", "Model; settings that it does not have are ignored", choices=ARCHITECTURES)
    backbone: str = setting(
        "gcn", "Layer; gatv2, transformer and gin are lifted from PyG", choices=BACKBONES, is_common=True
    )
    labels: LabelUsage = setting(
        "enhanced",
        "Labels: not used, joined to the features (X ‖ Y), added to them, or nodes of the graph",
        is_common=True,
    )
    normalize: Normalize = setting(
        "relation", "Edge weights: within each relation, or over all of A' as in the paper's equations"
    )
    hidden: int = setting(256, "Hidden channels D, over all heads", least=1, is_common=True)
    layers: int = setting(3, "Layers K", least=1, most=1000, is_common=True)
    residual: Literal["none", "identity", "linear"] = setting(
        "none", "Added to the output of a layer: nothing, its input, or its input times a matrix"
    )
    norm: Literal["none", "batch", "layer"] = setting("none", "Normalization after each layer")
    bias: bool = setting(True, "Layers have biases")
    dropout: float = setting(0.0, "Dropout after each layer", least=0, below=1, is_common=True)
    input_dropout: float = setting(0.0, "Dropout of the features", least=0, below=1)
    label_features: LabelFeatures = setting(
        "one-hot", "E: a learned row for each class, its nodes' mean features, or the table labels"
    )
    label_edges: bool = setting(False, "Use the label–label edges of the data", chosen="yes if the data has any")
    label_at_input: bool = setting(
        False, "enhanced: a node also gets its own label's embedding at the input, if it shows it"
    )
    feature_scale: Literal["none", "row", "entries", "standard"] = setting(
        "none",
        "Features: as they are, rows of sum 1, entries of mean square 1, or standardized",
        chosen="entries for word counts, else standard",
    )
    postprocess: str = setting("none", "Post-processing of the probabilities", choices=POSTPROCESSES)

    attention: AttentionSettings = AttentionSettings()
    appnp: AppnpSettings = AppnpSettings()
    gcnii: GcniiSettings = GcniiSettings()
    jknet: JknetSettings = JknetSettings()
    gcn_lpa: GcnLpaSettings = GcnLpaSettings()
    boosted_trees: BoostedTreesSettings = BoostedTreesSettings()
    label_propagation: LabelPropagationSettings = LabelPropagationSettings()
    published: PublishedSettings = PublishedSettings()

    @property
    def stages(self) -> int:
        """Number of times that a model reads neighbors: the blocks of a sample in mini-batches."""
        if self.architecture == "mlp":
            return 0
        propagates = self.backbone in PROPAGATED if self.architecture == "legnn" else self.architecture == "sign"
        return self.appnp.hops if propagates else self.layers
