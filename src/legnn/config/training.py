"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from legnn.config.checks import check_choice, check_range
from legnn.errors import InputError


def parse_fanout(text: str) -> list[int | None]:
    """`"15,10,5"` to `[15, 10, 5]`, `"all"` to `[None]`."""
    found: list[int | None] = []
    for part in text.split(","):
        word = part.strip()
        if word != "all" and not (word.isascii() and word.isdigit() and int(word) > 0):
            raise InputError(f"fanout must be numbers from 1 up, or all, such as 15,10,5, got {text!r}")
        found.append(None if word == "all" else int(word))
    return found


def fanouts_for(text: str, layers: int) -> list[int | None]:
    """The fan-out of each layer; one number stands for all of them."""
    found = parse_fanout(text)
    if len(found) not in (1, layers):
        raise InputError(
            f"fanout = {text} has {len(found)} numbers and the model {layers} layers; give one for each layer, "
            "from the input side, or one for all"
        )
    return found * layers if len(found) == 1 else found


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The training settings. None means: chosen from the data by `legnn.config.settings`."""

    seed: int = 0
    """Of the weights, the dropout and the training node selection."""
    epochs: int | None = None
    """The most epochs."""
    patience: int | None = None
    """Epochs without a better validation accuracy after which training stops."""
    lr: float | None = None
    """Adam's learning rate at the start; it falls along a half cosine to a hundredth."""
    weight_decay: float | None = None
    """Adam's L2 penalty on the projection of the features, as the published GCN has it on its first layer."""
    alpha: float | None = None
    """Training node selection rate: the fraction of the training nodes predicted in an epoch."""
    selection: bool = True
    """Whether training nodes are selected; off, every training node shows its label and is predicted (an ablation)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; auto takes the GPU if there is one."""
    precision: Literal["auto", "fp32", "tf32", "bf16"] = "auto"
    """Of the features and of products of matrices (`training.precision`); auto is fp32 on the CPU, tf32 on a GPU."""
    batch: int | Literal["auto", "full"] = "auto"
    """Nodes predicted in a step, or the full batch; auto takes that where it fits the memory of the device."""
    fanout: str | None = None
    """In mini-batches: the neighbors a node draws in each layer, from the input side, such as 15,10,5; one number for
    all layers, or all."""
    folds: int = 10
    """Training nodes are predicted in so many folds, each with its own labels hidden and the others' shown."""
    checkpoint_seconds: float = 5.0
    """Least time between two checkpoints; 0 writes one after every epoch."""

    def __post_init__(self) -> None:
        check_range("seed", self.seed, least=0)
        check_range("epochs", self.epochs, least=1)
        check_range("patience", self.patience, least=1)
        check_range("lr", self.lr, above=0)
        check_range("weight_decay", self.weight_decay, least=0)
        check_range("alpha", self.alpha, above=0, most=1)
        check_choice("device", self.device, ("auto", "cpu", "cuda"))
        check_choice("precision", self.precision, ("auto", "fp32", "tf32", "bf16"))
        if isinstance(self.batch, str):
            check_choice("batch", self.batch, ("auto", "full"))
        check_range("batch", None if isinstance(self.batch, str) else self.batch, least=1)
        if self.fanout is not None:
            parse_fanout(self.fanout)
        check_range("folds", self.folds, least=2)
        check_range("checkpoint_seconds", self.checkpoint_seconds, least=0)


@dataclass(frozen=True, kw_only=True)
class ASTrain:
    """Adaptive self-training: pseudo labels for unlabeled nodes the model is sure of."""

    threshold: float = 0.7
    """`t`: the least `p · TC` that makes a pseudo label."""
    delta: float = 10.0
    """`δ`: the epoch at which the training confidence is one half."""
    weight: float = 0.5
    """`λ`: the weight of the pseudo labels in the loss."""
    use_tc: bool = True
    """Whether the training confidence is used; without it `TC = 1`."""
    use_ec: bool = True
    """Whether the evaluating confidence is used; without it `EC = 1`."""
    candidates: Literal["unlabeled", "unsplit"] = "unlabeled"
    """Who may get a pseudo label: every node but the training nodes, or only nodes in no split at all."""

    def __post_init__(self) -> None:
        check_range("threshold", self.threshold, above=0, below=1)
        check_range("delta", self.delta, above=0)
        check_range("weight", self.weight, least=0)
        check_choice("candidates", self.candidates, ("unlabeled", "unsplit"))
