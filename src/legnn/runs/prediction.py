"""Predictions from a finished run, for its own graph or for one that has grown since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data, HeteroData

from legnn.config import DataSettings
from legnn.data import GraphData
from legnn.datasets import load
from legnn.errors import InputError
from legnn.runs.folder import DataCard, RunFolder
from legnn.runs.node_types import fit_types
from legnn.runs.outcome import predictions_table
from legnn.runs.resources import explain_out_of_memory, select_device, storage_device
from legnn.runs.session import reload, restore, shows_labels
from legnn.training import LayerWise, Task, fold_of, matrix_products, predict_without_own_label, prediction_precision

EDGE_SETTINGS = ("undirected", "remove_duplicates", "self_loops")
"""Settings of the data that also hold for a graph in memory."""

TYPE_SETTINGS = ("type_channels", "missing_features")
"""The same of a graph with several node types."""


def predict(
    folder: str | Path, data: GraphData | Data | HeteroData | str | Path | None = None, *, device: str = "auto"
) -> pd.DataFrame:
    """id, prediction, confidence, split of every node; of several node types, of the one that has labels.

    Without `data` the run's own graph is predicted again. With it, any graph with the same features and classes, such
    as the run's own grown by new nodes and edges. Nodes of the run, known by their ids, keep their split; any other
    node that has a label by now and is not marked val or test shows it. No prediction depends on the node's own label.
    """
    run = RunFolder.open(Path(folder))
    model = restore(run)
    if data is None:
        loaded = reload(run, None)
        run.check_data(loaded, "give --data to predict the data as they are now")
    else:
        loaded = _load_other(run, data)
    settings = run.settings
    where = select_device(device)
    model.to(where)
    storage = storage_device(settings, loaded, where)
    task = Task.from_graph(loaded, storage, label_edges=bool(settings.model.label_edges))
    precision = prediction_precision(settings.train.precision, where)
    inference = LayerWise(model, task, where, precision.dtype)
    shown = task.train if shows_labels(settings) else task.train[:0]
    with explain_out_of_memory(settings), matrix_products(precision.products):
        predicted = predict_without_own_label(
            inference.predict, shown, fold_of(loaded.node_id, settings.train.folds), task.targets
        ).cpu()
    return predictions_table(loaded, predicted)


def _load_other(run: RunFolder, data: GraphData | Data | HeteroData | str | Path) -> GraphData:
    """Another graph for the run's model: checked to have its features, its labels numbered as in the run."""
    settings, card = run.settings, run.card
    if card.computed_features:
        return _load_same(run, data)
    if not isinstance(data, str | Path):
        options = {name: getattr(settings.data, name) for name in (*EDGE_SETTINGS, *TYPE_SETTINGS)}
        loaded = load(data, training=False, target_type=card.target_type, **options)
    else:
        source = replace(settings.data, source=str(data), split=DataSettings.split)
        loaded = load(source, text_features=run.text_features, training=False, target_type=card.target_type)
    _check_preparation(loaded, settings.data, run)
    if card.types is not None or loaded.node_types is not None:
        loaded = fit_types(loaded, card, run.path)
    _check_features(loaded, card, run)
    loaded = _with_splits(_renumber(loaded, card), run)
    # label–label edges are numbered like the classes of the run
    return replace(loaded, label_adjacency=card.label_adjacency if settings.model.label_edges else None)


def _check_preparation(data: GraphData, settings: DataSettings, run: RunFolder) -> None:
    made_with = data.provenance.prepared_with
    for name in EDGE_SETTINGS:
        if made_with is not None and getattr(made_with, name) != getattr(settings, name):
            raise InputError(
                f"{data.name} was prepared with {name} = {getattr(made_with, name)} and {run.path} trained with "
                f"{getattr(settings, name)}; prepare it as the run's own graph was"
            )


def _load_same(run: RunFolder, data: GraphData | Data | HeteroData | str | Path) -> GraphData:
    """A run whose features were computed from its graph predicts that graph alone, wherever it lies."""
    computed = ", ".join(run.card.computed_features or [])
    refusal = (
        f"features of {computed} were computed from the graph that {run.path} was trained on, and do not exist for "
        f"another; train on the new graph, or on features of your own"
    )
    try:
        loaded = reload(run, data)
    except InputError as error:
        # it may be a path with a slip in it as well as another graph: say what was found there
        raise InputError(f"{refusal} ({error})") from None
    if DataCard.of(loaded).fingerprint != run.card.fingerprint:
        raise InputError(refusal)
    return loaded


def _check_features(data: GraphData, card: DataCard, run: RunFolder) -> None:
    if card.feature_names is not None and data.feature_names is not None and data.feature_names != card.feature_names:
        # a few names are enough to see what is wrong
        missing = [name for name in card.feature_names if name not in data.feature_names][:5]
        extra = [name for name in data.feature_names if name not in card.feature_names][:5]
        raise InputError(
            f"the feature columns of {data.name} are not those of {run.path}: "
            f"missing {missing or 'none'}, not known {extra or 'none'}; they must be the same, in the same order"
        )
    if data.x.size(1) != card.features:
        raise InputError(
            f"{data.name} has {data.x.size(1)} features and {run.path} was trained on {card.features}; "
            "a run of other data cannot predict it"
        )


def _renumber(data: GraphData, card: DataCard) -> GraphData:
    """The same graph with the run's numbering of the classes."""
    number = {str(name): index for index, name in enumerate(card.classes)}
    unknown = [name for name in data.class_names if str(name) not in number]
    if unknown:
        known = ", ".join(str(name) for name in card.classes[:20])
        raise InputError(f"{data.name} has the label {unknown[0]!r}, which the run does not know; it knows {known}")
    # one more entry, so that -1 (unlabeled) maps to itself
    table = torch.tensor([number[str(name)] for name in data.class_names] + [-1])
    return replace(data, y=table[data.y], class_names=list(card.classes))


def _with_splits(data: GraphData, run: RunFolder) -> GraphData:
    """Nodes of the run keep their split; any other node with a label shows it unless it is marked val or test."""
    known = run.predictions().set_index("id")["split"]
    ids = pd.Index(data.node_id)
    if ids.dtype != known.index.dtype:
        ids, known.index = ids.astype(str), known.index.astype(str)
    place = known.index.get_indexer(ids)
    split = np.where(place >= 0, known.to_numpy()[place], "")
    labeled = data.y >= 0
    val, test = (
        torch.from_numpy((split == name) | ((split == "") & mask.numpy())) & labeled
        for name, mask in (("val", data.val_mask), ("test", data.test_mask))
    )
    return replace(data, train_mask=labeled & ~val & ~test, val_mask=val, test_mask=test)
