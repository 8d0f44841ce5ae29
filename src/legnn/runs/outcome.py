"""What a run came to: the table of predictions, the scores, and what they were obtained with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from legnn import __version__
from legnn.config.settings import Settings
from legnn.data import GraphData
from legnn.training import Trainer, score


def predictions_table(data: GraphData, predicted: Tensor) -> pd.DataFrame:
    """id, prediction, confidence, split of every node, from the class and the confidence `[M, 2]`.

    Of several node types, only nodes of the labeled one have a row.
    """
    mine = slice(None) if data.node_types is None else data.node_types.target_mask.numpy()
    names = np.empty(len(data.class_names), dtype=object)
    names[:] = data.class_names
    return pd.DataFrame(
        {
            "id": data.node_id[mine],
            "prediction": names[predicted[:, 0].long().numpy()[mine]].tolist(),
            "confidence": predicted[:, 1].float().numpy()[mine],
            "split": split_names(data)[mine],
        }
    )


def split_names(data: GraphData) -> np.ndarray:
    """`[M]` train, val, test, or empty where a node is in no split."""
    names = np.full(data.num_nodes, "", dtype=object)
    for name in ("train", "val", "test"):
        names[getattr(data, f"{name}_mask").numpy()] = name
    return names


def result_of(
    predicted: Tensor, data: GraphData, settings: Settings, trainer: Trainer, seconds: float
) -> dict[str, Any]:
    """What `result.json` holds; `predicted` `[M, 2]` is the class and the confidence of each node of a split."""
    classes = predicted[:, 0].long()

    def of(split: str) -> dict[str, float] | None:
        mask = getattr(data, f"{split}_mask")
        scores = score(classes[mask], data.y[mask], len(data.class_names))
        return None if scores is None else scores._asdict()

    return {
        "val": of("val"),
        "test": of("test"),
        "train_out_of_fold": of("train"),
        "best_epoch": trainer.stopper.best_epoch,
        "epochs": trainer.epoch,
        "seconds": round(seconds, 3),
        "parameters": trainer.model.num_parameters(),
        "seed": settings.train.seed,
        "device": _device_name(trainer.device),
        "precision": settings.train.precision,
        "versions": versions(),
        # what a reader should know of the data travels with the scores
        "notes": list(data.notes),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine() + " CPU"


def versions() -> dict[str, str]:
    """Of Python and of the packages a result depends on."""
    # PyTorch's own word also says for which CUDA it was built
    found = {"python": platform.python_version(), "legnn": __version__, "torch": str(torch.__version__)}
    for package in ("torch-geometric", "numpy", "numba", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    return found
