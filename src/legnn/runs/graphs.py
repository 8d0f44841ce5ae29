"""The graph a run names in its settings, loaded for the first time or again."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from legnn.config import DataSettings, Settings
from legnn.data import GraphData
from legnn.data.splits import NO_SPLIT
from legnn.datasets import CATALOG, Source, load
from legnn.datasets.loading import existing_folder
from legnn.datasets.objects import is_frames
from legnn.errors import InputError
from legnn.files import data_folder
from legnn.io.prepared_card import CARD
from legnn.runs.folder import RunFolder
from legnn.training import assign_folds

if TYPE_CHECKING:
    from legnn.io import TableFeatures

MEMORY = "memory"
"""The source of data that were given as an object."""


def load_new(settings: Settings, data: Source) -> tuple[GraphData, Settings]:
    """Returns the graph, and the settings that say where it is from.

    The settings of a prepared folder take the place of the run's: with them the run reads other tables, too.
    """
    # a preset chooses settings of the data by the name of their source
    settings = settings.override({"data.source": source_name(data)})
    # what is prepared already can only be compared with what the user gave
    wanted = DataSettings(**_given_for_data(settings)) if _is_prepared(data) else settings.data
    graph = load_graph(wanted, data)
    made_with = graph.provenance.prepared_with or wanted
    return graph, settings.override({**made_with.flat(), "data.source": settings.data.source})


def load_graph(
    settings: DataSettings, data: Source, table_features: TableFeatures | None = None, **options: Any
) -> GraphData:
    """Loads `data` with a run's settings of the data, and `options` of `legnn.load`."""
    if isinstance(data, str | Path):
        return load(replace(settings, source=source_name(data)), table_features=table_features, **options)
    # a graph in memory has no text column, unless it is frames: its features are there
    has_text = is_frames(data)
    values = {name: value for name, value in asdict(settings).items() if has_text or name != "text"}
    values.pop("source")
    return load(data, table_features=table_features if has_text else None, **values, **options)


def reload_graph(run: RunFolder, data: Source | None = None) -> GraphData:
    """Returns the graph a run was trained on; raises `InputError` if it has changed since.

    `data` is the same graph again, where the run has it from memory.
    """
    settings = run.settings.data
    if data is None and settings.source == MEMORY:
        raise InputError(f"{run.path} was trained on data in memory; give the same data again")
    graph = load_graph(settings, settings.source if data is None else data, run.table_features)
    hidden = run.card.hidden_fold
    graph = graph if hidden is None else hide_fold(graph, *hidden)
    check_unchanged(run, graph)
    return graph


def hide_fold(graph: GraphData, fold: int, folds: int) -> GraphData:
    """Returns the graph without the labels of the training nodes in one of `folds`, which are then in no split.

    From fold `folds` up, nodes are divided into folds anew: fold `k` is fold `k % folds` of division `k // folds`.
    """
    division, number = divmod(fold, folds)
    part = hide_labels(graph, graph.train_mask & (assign_folds(graph.node_id, folds, division) == number))
    provenance = replace(graph.provenance, fingerprint=graph.fingerprint(), hidden_fold=(fold, folds))
    return replace(part, provenance=provenance)


def hide_labels(graph: GraphData, held: Tensor) -> GraphData:
    """Returns the graph without the labels of the training nodes `held` `[M]` bool, which are then in no split."""
    split = graph.split.masked_fill(graph.train_mask & held, NO_SPLIT)
    return replace(graph, y=graph.y.masked_fill(held, -1), split=split)


def check_unchanged(run: RunFolder, graph: GraphData) -> None:
    """Raises `InputError` if `graph` is not the one that a run was trained on."""
    card = run.card
    if graph.fingerprint() != card.fingerprint:
        raise InputError(
            f"{run.path} is a run on other data: it was trained on {card.name!r} with {card.nodes} nodes and "
            f"{card.edges} edges, and {graph.name!r} ({graph.num_nodes} nodes, {graph.num_edges} edges) is not the "
            "same; restore the data, or train anew; to predict the data as they are now, give them as `data`"
        )


def _given_for_data(settings: Settings) -> dict[str, Any]:
    return {name.removeprefix("data."): value for name, value in settings.values.items() if name.startswith("data.")}


def _is_prepared(data: Source) -> bool:
    if isinstance(data, str | Path):
        is_named = isinstance(data, str) and data in CATALOG
        folders = (Path(data).expanduser(), data_folder() / data)
        return not is_named and any((folder / CARD).is_file() for folder in folders)
    return isinstance(data, GraphData)


def source_name(data: Source) -> str:
    """Returns the name of data in the settings of a run: one by which the run can load them again."""
    if not isinstance(data, str | Path):
        return MEMORY
    # a run must find its folder again from anywhere; a name of the catalog wins over a folder of the same name
    if not Path(data).is_dir() or (isinstance(data, str) and data in CATALOG):
        return str(data)
    folder = existing_folder(str(data))
    # one that is found under `LEGNN_DATA` is found there again by its name
    return str(folder.resolve()) if folder == Path(data) else str(data)
