"""The course of a run as a picture: accuracies, losses and, with AS-Train, confidence and pseudo labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from legnn.analysis.pictures import FIRST, MARK, SECOND, new_figure, save_picture
from legnn.errors import InputError
from legnn.runs import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRAIN, VAL = FIRST, SECOND


def draw_curves(run: RunFolder, path: Path) -> None:
    """Draw the run's epochs to `path` (.png, .svg or .pdf)."""
    logs = run.logs()
    if not logs:
        raise InputError(f"{run.path} has no epochs to draw yet")
    with_pseudo = logs[-1]["pseudo_labels"] is not None
    figure, axes = new_figure(1, 3 if with_pseudo else 2)
    _train_and_val(axes[0], logs, "accuracy", "train_accuracy", "predicted training nodes")
    _train_and_val(axes[1], logs, "loss", "supervised_loss", "training, supervised")
    if with_pseudo:
        _pseudo_labels(axes[2], logs)
    best = run.result().best_epoch if run.is_finished else None
    for axis in axes:
        axis.set_xlabel("epoch")
        if best is not None:
            axis.axvline(best, color=MARK, linewidth=0.8, linestyle=":")
    figure.suptitle(_title(run), fontsize=11)
    save_picture(figure, path)


def _title(run: RunFolder) -> str:
    model = run.settings.model
    name = f"{model.backbone}, {model.labels}" if model.architecture == "legnn" else model.architecture
    title = f"{run.card.name}: {name}" + (", AS-Train" if run.settings.self_training.as_train else "")
    if run.is_finished and (test := run.result().test) is not None:
        title += f" (test accuracy {test['accuracy']:.4f} at the dotted epoch)"
    return title


def series(logs: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    """Returns the epochs that have a value of this name, and the values."""
    pairs = [(log["epoch"], log[name]) for log in logs if log[name] is not None]
    return [epoch for epoch, _ in pairs], [value for _, value in pairs]


def _train_and_val(axis: Axes, logs: list[dict[str, Any]], title: str, train: str, label: str) -> None:
    axis.plot(*series(logs, train), color=TRAIN, linewidth=1, label=label)
    scores = [{"loss": log["val_loss"], **log["val"]} for log in logs]
    validation = [{"epoch": log["epoch"], title: row.get(title)} for log, row in zip(logs, scores, strict=True)]
    axis.plot(*series(validation, title), color=VAL, linewidth=1.5, label="validation")
    axis.set_title(title, fontsize=10)
    axis.legend(frameon=False, fontsize=8)


def _pseudo_labels(axis: Axes, logs: list[dict[str, Any]]) -> None:
    axis.plot(*series(logs, "training_confidence"), color=MARK, linewidth=1, linestyle="--", label="TC")
    axis.plot(*series(logs, "pseudo_label_accuracy"), color=VAL, linewidth=1.5, label="accuracy of pseudo labels")
    axis.set_ylim(0, 1.02)
    axis.set_title("pseudo labels", fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    count = axis.twinx()
    count.plot(*series(logs, "pseudo_labels"), color=TRAIN, linewidth=1)
    count.set_ylabel("how many", color=TRAIN)
    count.set_ylim(bottom=0)
    count.spines["top"].set_visible(False)
