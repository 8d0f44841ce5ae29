"""Labels that look wrong, ranked, with the evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd

from legnn.config import CommonSettings, Settings, collect
from legnn.data import GraphData
from legnn.data.splits import split_words
from legnn.datasets import CATALOG, Source
from legnn.errors import InputError
from legnn.labels.confident import calibrate, estimated_errors, probability_right
from legnn.labels.cross_fitted import check_folds, cross_fitted_probabilities
from legnn.labels.evidence import combine_evidence, count_neighbor_labels
from legnn.notes import Note
from legnn.runs import Predictor, open_predictor
from legnn.runs.folder import folder_kind
from legnn.runs.graphs import load_new
from legnn.runs.opening import KINDS
from legnn.sweep import Event
from legnn.training import assign_folds

FOLDS, REPEATS = 5, 2
SHARED = tuple(f"train.{name}" for name in ("seed", "device", "threads", "precision", "batch", "epochs", "patience"))
"""Settings of the run that the perceptron shares."""


@dataclass(frozen=True)
class LabelCheck:
    """The labeled nodes, most suspicious first."""

    table: pd.DataFrame
    """A row for each labeled node: `id`, `label`, `suggested` (the most likely other class), `score` (the estimated
    probability that the label is wrong), `p_label` and `p_suggested` (of these classes, from all but the node's own
    label), `neighbors` (labeled ones), `neighbors_label` and `neighbors_suggested` (those of them with these labels),
    `split`, and `fold` (in which models judged a training node that were trained without it; −1 for other nodes)."""
    expected_errors: float
    """The estimated number of wrong labels, by confident learning."""
    notes: list[Note]


def check_labels(
    source: Predictor | Source = "digits",
    *,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    on_event: Callable[[Event], None] = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **common: Unpack[CommonSettings],
) -> LabelCheck:
    """Ranks the labels of a run's data, or of any data, by how likely they are wrong.

    No model judges a label it was trained on: for each of `folds` of the training nodes, a model and a perceptron are
    trained without their labels, and that `repeats` times with other folds. Validation and test labels are judged by
    the mean of all models, none of which was trained on them, though validation labels chose their epochs. A noise
    model fitted by EM turns the probabilities into a ranking, confident learning into the number of wrong labels.

    Args:
        source: a run or an ensemble (of which the heaviest member counts), or the folder of one, whose data and
            settings are used; or data as `legnn.train` takes them.
        preset: chooses settings that are left open, where `source` is data.
        settings: of the models, instead of those of the run.
        folds: parts of the training nodes that are judged together.
        repeats: other divisions into folds over which probabilities are averaged.
        on_event: called with the progress of every model.
        should_stop: called after every epoch; True raises `Interrupted`.
        progress: whether a line shows the progress.
        **common: common settings.
    """
    graph, chosen = _load(source, collect(settings, common, preset=preset))
    if chosen.data.cross_label_edges:
        raise InputError("data.cross_label_edges uses all labels to add edges, so no label can be masked; set it to 0")
    check_folds(graph, folds, repeats)
    probabilities = cross_fitted_probabilities(
        graph,
        {"model": chosen, "perceptron": perceptron(chosen)},
        folds=folds,
        repeats=repeats,
        on_event=on_event,
        should_stop=should_stop,
        progress=progress,
    )
    return rank_labels(graph, combine_evidence(probabilities["model"], probabilities["perceptron"]), folds)


def perceptron(settings: Settings) -> Settings:
    """Returns the settings of a perceptron on the same data."""
    shared = {n: v for n, v in settings.values.items() if n.startswith("data.") or n in SHARED}
    return Settings(preset="simple", values={**shared, "model.architecture": "mlp"})


def rank_labels(graph: GraphData, q: np.ndarray, folds: int) -> LabelCheck:
    """Returns the ranking by the probabilities `q` `[M, C]`, none of which depends on the node's own label."""
    nodes = (graph.y >= 0).nonzero().flatten().numpy()
    y, p, counts = graph.y.numpy()[nodes], q[nodes], count_neighbor_labels(graph)[nodes]
    rows = np.arange(len(nodes))
    calibrated = calibrate(p, y)
    right = probability_right(calibrated, y)
    others = p.copy()
    others[rows, y] = -1.0
    suggested = others.argmax(1)
    names = np.empty(graph.num_classes, dtype=object)
    names[:] = graph.class_names
    train = graph.train_mask.numpy()[nodes]
    table = pd.DataFrame(
        {
            "id": graph.node_id[nodes],
            "label": names[y].tolist(),
            "suggested": names[suggested].tolist(),
            "score": 1 - right,
            "p_label": p[rows, y],
            "p_suggested": p[rows, suggested],
            "neighbors": counts.sum(1),
            "neighbors_label": counts[rows, y],
            "neighbors_suggested": counts[rows, suggested],
            "split": split_words(graph.split)[nodes],
            "fold": np.where(train, assign_folds(graph.node_id, folds)[nodes], -1),
        }
    )
    # sorted by `right`: near 1, the score has no digits left
    order = np.argsort(right, kind="stable")
    return LabelCheck(table.iloc[order].reset_index(drop=True), estimated_errors(calibrated, y), list(graph.notes))


def _load(source: Predictor | Source, settings: Settings) -> tuple[GraphData, Settings]:
    """The graph, and the settings of the models that judge its labels."""
    is_folder = isinstance(source, Path) or (isinstance(source, str) and source not in CATALOG)
    if is_folder and folder_kind(Path(str(source))) in (*KINDS, "search"):
        source = open_predictor(Path(str(source)))
    if not isinstance(source, Predictor):
        return load_new(settings, source)
    run = source.heaviest
    fixed = sorted(name for name in settings.values if name.startswith("data."))
    if fixed:
        raise InputError(
            f"the labels of a run are checked in its own data; leave {fixed[0]} out, or name the data instead",
            setting=fixed[0],
        )
    of_run = Settings(preset=run.settings.preset, values=run.settings.flat())
    return run.own_graph(), of_run.override(settings.values)
