"""Run under torchrun: keeps the gradients of every step and what was measured, for the test to compare."""

import sys
from pathlib import Path

import torch
from tests.training.mini_batches import make, mini_batch

from legnn.config import SelfTrainingSettings
from legnn.runs.processes import join_ranks
from legnn.training import ASTrain
from legnn.training.inference import to_class_and_confidence, to_probabilities
from legnn.training.metrics import validation_metrics

AS_TRAIN = ASTrain(SelfTrainingSettings(pseudo_label_threshold=0.34, delta=0.1))
CASES = [
    (backbone, labels, 6, "joint")
    for backbone in ("gcn", "sage", "gat", "gatv2", "gin", "transformer")
    for labels in ("vanilla", "concat", "addition", "enhanced")
]
# in a step of one node one of the processes has no share of it
CASES += [("gcn", "enhanced", 6, "separate"), ("gat", "concat", 1, "separate"), ("sage", "enhanced", 1, "joint")]
CASES += [("gcn", "enhanced", 6, "padded"), ("gat", "enhanced", 1, "padded"), ("sage", "enhanced", 12, "batch norm")]


def measured(ranks) -> dict[str, torch.Tensor]:
    found = {}
    for backbone, labels, batch, kind in CASES:
        norm = "batch" if kind == "batch norm" else "layer"
        model, task = make(labels, nodes=60, backbone=backbone, norm=norm)
        # padded as on a GPU
        options = {"pad": True} if kind in ("padded", "batch norm") else {"rule": AS_TRAIN, "pseudo_steps": kind}
        parts = mini_batch(model, task, batch, [3, 2], ranks=ranks, chunk_size=40, **options)
        step = parts.train_epoch(1)
        name = f"{backbone} {labels} {batch} {kind}"
        for k, gradients in enumerate(parts.optimizer.seen):
            found |= {f"{name} step {k} {key}": value for key, value in gradients.items()}
        found |= {f"{name} {key}": torch.as_tensor(value) for key, value in step.items()}
        metrics = validation_metrics(parts.validate(task.train), task.val_y, "accuracy")
        found |= {f"{name} {key}": value for key, value in metrics.items()}
        found |= {f"{name} {key}": value for key, value in model.state_dict().items() if "running" in key}
        found[f"{name} predicted"] = parts.logits(task.train, torch.arange(60), to_class_and_confidence)
        found[f"{name} probabilities"] = parts.logits(task.train, torch.arange(60), to_probabilities)
    return found


if __name__ == "__main__":
    with join_ranks("gloo") as ranks:
        found = measured(ranks)
        torch.save(found, Path(sys.argv[1]) / f"rank-{ranks.rank}-of-{ranks.world_size}.pt")
