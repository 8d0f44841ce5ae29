"""A graph that a run was not trained on, in the terms of that run: its classes, node types and splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from legnn.config import DataSettings, ResolvedSettings
from legnn.data import GraphData
from legnn.data.splits import NO_SPLIT, TEST, TRAIN, VAL, split_words
from legnn.errors import InputError, plural, some_of
from legnn.io import TableFeatures
from legnn.io.prepared import check_columns
from legnn.lazy import pandas as pd
from legnn.notes import Note
from legnn.runs.data_card import DataCard, digest_of_edges
from legnn.runs.prediction_tables import target_rows


def align_to_run(
    graph: GraphData,
    card: DataCard,
    known: pd.DataFrame,
    settings: ResolvedSettings,
    columns: TableFeatures | None,
) -> GraphData:
    """Returns `graph` with the classes and node types numbered as in the run, and the run's splits.

    Args:
        graph: loaded for prediction.
        card: the data of the run.
        known: `id` and `split` of the run's nodes.
        settings: those of the run; if it uses label–label edges, the graph gets the run's own.
        columns: how columns of tables became features of the run, if they did.
    """
    _check_edges(graph, settings.data)
    if graph.provenance.computed_features:
        raise InputError(
            f"features of {', '.join(graph.provenance.computed_features)} in {graph.name} were computed from its own "
            "graph and are not those that the run was trained on; give it the same ones"
        )
    if card.types or graph.node_types is not None:
        graph = _align_types(graph, card)
    check_columns(graph.name, graph, columns)
    _check_features(graph, card)
    graph = _align_splits(_align_classes(graph, card), card, known)
    # label–label edges are numbered like the run's classes
    return replace(graph, label_adjacency=card.label_adjacency) if settings.model.label_edges else graph


def _check_edges(graph: GraphData, settings: DataSettings) -> None:
    for name in ("undirected", "remove_duplicates", "self_loops"):
        used, wanted = getattr(graph.provenance.prepared_with or settings, name), getattr(settings, name)
        if used != wanted:
            raise InputError(
                f"{graph.name} was prepared with {name} = {used} and the run trained with {wanted}; "
                f"prepare it with `data.{name}={str(wanted).lower()}`"
            )


def _check_features(graph: GraphData, card: DataCard) -> None:
    present, expected = graph.feature_names, card.feature_names
    if present is not None and expected is not None and present != expected:
        missing = some_of([name for name in expected if name not in present])
        extra = some_of([name for name in present if name not in expected])
        raise InputError(
            f"the feature columns of {graph.name} are not those of the run: "
            f"missing {missing or 'none'}, not known {extra or 'none'}; they must be the same, in the same order"
        )
    if graph.num_features != card.features:
        raise InputError(
            f"{graph.name} has {graph.num_features} features and the run was trained on {card.features}; "
            "a run of other data cannot predict it"
        )


def _align_classes(graph: GraphData, card: DataCard) -> GraphData:
    """Number the classes as the run does; a node of a class that the run does not know shows no label."""
    number = {str(name): index for index, name in enumerate(card.classes)}
    # one more entry, so that -1 (unlabeled) maps to itself
    table = torch.tensor([number.get(str(name), -1) for name in graph.class_names] + [-1])
    y, notes = table[graph.y], graph.notes
    lost = int(((y < 0) & (graph.y >= 0)).sum())
    if lost:
        unknown = [repr(name) for name in graph.class_names if str(name) not in number]
        text = (
            f"{plural(lost, 'node')} of {graph.name} {'is' if lost == 1 else 'are'} of a class that the run "
            f"was not trained on ({some_of(unknown)}): such labels are neither used nor scored."
        )
        notes = [*notes, Note("unknown-class", text)]
    return replace(graph, y=y, class_names=list(card.classes), notes=notes)


def _align_splits(graph: GraphData, card: DataCard, known: pd.DataFrame) -> GraphData:
    """Nodes of the run stay in their split; any other node with a label shows it unless it is marked val or test."""
    if graph.has_ids and card.has_ids:
        words = _split_by_id(graph, known)
    elif graph.num_nodes == card.nodes and digest_of_edges(graph) == card.edge_digest:
        words = np.full(graph.num_nodes, "", dtype=object)
        words[target_rows(graph)] = known["split"].to_numpy()
    else:
        return _as_new(graph)
    words = np.where(words == "", split_words(graph.split), words)
    split = np.where(words == "val", VAL, np.where(words == "test", TEST, TRAIN)).astype(np.int8)
    return replace(graph, split=torch.from_numpy(split).masked_fill(graph.y < 0, NO_SPLIT))


def _split_by_id(graph: GraphData, known: pd.DataFrame) -> np.ndarray:
    """`[M]` the split of each node that the run has, empty for the others."""
    split_of = known.set_index("id")["split"]
    ids = pd.Index(graph.node_id)
    if ids.dtype != split_of.index.dtype:
        ids, split_of.index = ids.astype(str), split_of.index.astype(str)
    position = split_of.index.get_indexer(ids)
    return np.where(position >= 0, split_of.to_numpy()[position], "")


def _as_new(graph: GraphData) -> GraphData:
    """All nodes are new: those of the graph's own training mask show their labels, or all that are not held out."""
    split = graph.split
    if not bool((split == TRAIN).any()):
        split = split.masked_fill((split == NO_SPLIT) & (graph.y >= 0), TRAIN)
    text = (
        f"{graph.name} has no node ids that the run knows, and other edges: all of its nodes are new, and its own "
        "labels and training mask decide which labels are shown."
    )
    return replace(graph, split=split.masked_fill(graph.y < 0, NO_SPLIT), notes=[*graph.notes, Note("new-graph", text)])


def _align_types(graph: GraphData, card: DataCard) -> GraphData:
    """Number the node types as the run does, and pad `x` to its width. A type of the run may be missing, none new."""
    types = graph.node_types
    if not card.types or types is None:
        present, theirs = ("several node types", "one") if card.types else ("one node type", "several")
        raise InputError(
            f"the run was trained on {present} and {graph.name} has {theirs}; a run of other data cannot predict it"
        )
    for name, columns in zip(types.names, types.columns, strict=True):
        if name not in card.types:
            raise InputError(
                f"{graph.name} has the node type {name!r}, which the run does not know; "
                f"it knows {', '.join(card.types)}"
            )
        expected = card.type_columns[card.types.index(name)]
        if columns != expected:
            raise InputError(
                f"{name!r} of {graph.name} has {len(columns)} features that are not the {len(expected)} that the run "
                "was trained on; they must be the same, in the same order"
            )
    number = torch.tensor([card.types.index(name) for name in types.names])
    types = replace(types, names=card.types, columns=card.type_columns, node_type=number[types.node_type])
    # without its widest type a graph is narrower
    missing = max(card.features - graph.num_features, 0)
    return replace(graph, node_types=types, x=torch.nn.functional.pad(graph.x, (0, missing)) if missing else graph.x)
