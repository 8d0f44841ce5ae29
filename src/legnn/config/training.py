"""Settings of training, and of AS-Train, the adaptive self-training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from legnn.config.fields import Section, setting
from legnn.errors import InputError, short_repr

MOST_DIGITS = 9
"""A number of neighbors with more digits may not fit into 32 bits."""


def parse_fanout(text: str) -> list[int | None]:
    """Returns `[15, 10, 5]` for `"15,10,5"` and `[None]` for `"all"`."""
    fanouts: list[int | None] = []
    for part in text.split(","):
        word = part.strip()
        is_number = word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS and int(word) > 0
        if word != "all" and not is_number:
            raise InputError(
                f"train.fanout must be numbers from 1 up, or all, such as 15,10,5, got {short_repr(text)}",
                setting="train.fanout",
            )
        fanouts.append(None if word == "all" else int(word))
    return fanouts


def fanouts_for(text: str, layers: int) -> list[int | None]:
    """Returns the fan-out of each layer; one number holds for all of them."""
    fanouts = parse_fanout(text)
    if layers == 0:
        # a model that reads no neighbors
        return []
    if len(fanouts) not in (1, layers):
        raise InputError(
            f"train.fanout={text} has {len(fanouts)} numbers and the model {layers} layers; give one for each layer, "
            "from the input side, or one for all"
        )
    return fanouts * layers if len(fanouts) == 1 else fanouts


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Section):
    """Settings of the training."""

    name = "train"
    title = "Training"

    seed: int = setting(0, "Seed of the weights, the dropout and the training node selection", least=0, is_common=True)
    epochs: int = setting(500, "Largest number of epochs", least=1, is_common=True)
    patience: int = setting(100, "Epochs without a better one on validation before training stops", least=1)
    lr: float = setting(
        0.01, "Adam's learning rate, which falls along a half cosine to a hundredth", above=0, is_common=True
    )
    cosine_steps: int | Literal["epochs"] = setting(
        "epochs",
        "Steps of the optimizer over which the learning rate falls; epochs: over all epochs, one by one",
        least=1,
    )
    choose_by: str = setting(
        "accuracy",
        "Metric of validation by which the best epoch is chosen; any that `legnn settings train.choose_by` lists",
        expects="the name of a metric",
        is_common=True,
    )
    ties: Literal["loss", "latest"] = setting(
        "loss", "Of equally good epochs on validation, the one with the smaller loss or the latest is kept"
    )
    weight_decay: float = setting(0.0, "L2 penalty on the projection of the features", least=0)
    weight_decay_layers: float = setting(0.0, "L2 penalty on all other weights", least=0)
    alpha: float = setting(0.5, "α: fraction of the training nodes predicted in an epoch", above=0, most=1)
    class_weights: Literal["none", "balanced"] = setting(
        "none", "Loss of a training node: all count alike, or every class counts alike", is_common=True
    )
    selection: bool = setting(True, "Training node selection; off: each shows its label and is predicted")
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", "Where to train; auto: on the GPU if there is one", is_common=True
    )
    threads: int | Literal["auto"] = setting(
        "auto", "Threads of the CPU; auto: one where an epoch is too little work to share", least=1
    )
    precision: Literal["auto", "fp32", "tf32", "bf16", "fp64"] = setting(
        "auto",
        "Of features and products; auto: bf16 with gcn and gat where that is faster, else tf32 on a GPU, or fp32",
    )
    batch: int | Literal["auto", "full"] = setting(
        "auto",
        "Nodes predicted in a step, or the full batch; auto: full where it fits the memory",
        least=1,
        is_common=True,
    )
    fanout: str = setting(
        "15,10,5",
        "Mini-batches: neighbors drawn in each layer, from the input side; one for all layers, or all",
        expects="text such as '15,10,5', '5' for every layer, or 'all'",
    )
    own_label_folds: int = setting(10, "Folds in which training nodes are predicted, without their own labels", least=2)
    checkpoint_seconds: float = setting(5.0, "Least seconds between checkpoints; 0: one after every epoch", least=0)

    def __post_init__(self) -> None:
        parse_fanout(self.fanout)


@dataclass(frozen=True, kw_only=True)
class SelfTrainingSettings(Section):
    """Settings of self-training: pseudo labels for unlabeled nodes whose class the model is sure of."""

    name = "self_training"
    title = "AS-Train"

    as_train: bool = setting(False, "Adaptive self-training with pseudo labels", is_common=True)
    pseudo_label_rule: Literal["threshold", "top-k", "agreement"] = setting(
        "threshold",
        "Pseudo-label rule: threshold on p·TC, top-k per class, or threshold plus agreement with label propagation",
    )
    per_class: int = setting(50, "With top-k: most pseudo labels of each class in a step", least=1)
    pseudo_label_threshold: float = setting(0.7, "t: least p·TC of a pseudo label", above=0, below=1)
    delta: float = setting(10.0, "δ: epoch at which TC is one half", above=0)
    pseudo_label_weight: float = setting(0.5, "λ: weight of pseudo labels in the loss", least=0)
    use_tc: bool = setting(True, "Training confidence; off: TC = 1")
    use_ec: bool = setting(True, "Evaluating confidence; off: EC = 1")
    pseudo_steps: Literal["joint", "separate"] = setting(
        "joint", "Mini-batches: both losses in every step, or steps of their own for pseudo labels"
    )
    pseudo_label_nodes: Literal["unlabeled", "unsplit"] = setting(
        "unlabeled", "Nodes that may get a pseudo label: all but training nodes, or those in no split"
    )
