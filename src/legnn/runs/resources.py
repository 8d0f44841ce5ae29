"""Resources of a run: the device, how much of the graph a step takes, and where the graph is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from legnn.baselines import ARCHITECTURES
from legnn.config import ResolvedSettings, fanouts_for
from legnn.config.model import traits
from legnn.data import GraphData
from legnn.errors import InputError, OutOfMemory, in_gib
from legnn.nn.backbones import REGISTERED
from legnn.notes import Note
from legnn.runs.device import hardware, select_device, visible_gpus
from legnn.runs.memory import SINGLE, USABLE, Size
from legnn.runs.processes import under_torchrun

DEFAULT_BATCH = 1024
"""Nodes in a step where `batch = auto` takes mini-batches: enough to keep a GPU busy, few enough for a laptop."""

SMALL_EPOCH = 500_000_000
"""Multiplications of a forward pass below which threads wait for each other longer than they work; on cores that others
use as well, they wait a hundred times as long."""

RESIDENT = 0.4
"""The part of a GPU's memory that the graph and its features may take: batches and layers need the rest."""


def default_jobs(device: str) -> int:
    """Returns how many runs train at a time: one on each GPU, or one on each core."""
    return len(visible_gpus(device)) or usable_cores()


def size_of(graph: GraphData, settings: ResolvedSettings) -> Size:
    """Returns the numbers that the memory of a run on `graph` depends on."""
    model = settings.model
    of_data = graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes
    # builders that are no classes make models of operations without such matrices
    edge_matrices = getattr(ARCHITECTURES[model.architecture], "edge_matrices", 0)
    return Size(*of_data, model.hidden, model.layers, edge_matrices)


def choose_batch(
    settings: ResolvedSettings, graph: GraphData, device: torch.device
) -> tuple[ResolvedSettings, Note | None]:
    """Returns settings in which `batch = auto` is decided, and a note where mini-batches were chosen.

    Full batch where it fits: it is faster, and has no sampling noise. Several processes share mini-batches.
    """
    batch, note = settings.train.batch, None
    if batch == "full" and under_torchrun():
        raise InputError(
            "`train.batch=full` is one step of one process; several processes need a number, or `train.batch=auto`",
            setting="train.batch",
        )
    if batch == "auto":
        needed, free = size_of(graph, settings).training_bytes, hardware(device).free_bytes()
        batch = "full" if needed <= USABLE * free and not under_torchrun() else DEFAULT_BATCH
        if batch != "full":
            why = "several processes share them"
            if not under_torchrun():
                why = f"the full batch would take about {in_gib(needed)} and {in_gib(free)} are free on {device.type}"
            note = Note("batch-chosen", f"batch = auto chose mini-batches of {batch:,} nodes: {why}.")
    if batch != "full":
        fanouts_for(settings.train.fanout, settings.model.stages)
    return settings.override({"train.batch": batch}), note


def choose_precision(
    settings: ResolvedSettings, graph: GraphData, device: torch.device
) -> tuple[ResolvedSettings, Note | None]:
    """Returns settings in which `precision = auto` is bf16 where that is faster and as accurate, and a note if it is.

    It is decided before a run starts and kept with it, so that the run is continued, and predicts, in the same one.
    """
    model = settings.model
    is_compared = model.architecture == "legnn" and traits(model.backbone).bf16_compared
    if settings.train.precision != "auto" or not is_compared:
        return settings, None
    if graph.num_nodes * model.hidden**2 < hardware(device).least_bf16_product():
        return settings, None
    text = f"precision bf16 (auto); `train.precision={hardware(device).single_precision}` is slower and a little finer."
    return settings.override({"train.precision": "bf16"}), Note("precision-chosen", text)


class Storage(NamedTuple):
    """The devices on which a graph is kept."""

    graph: torch.device
    """Of edges, labels and splits: where batches are sampled."""
    features: torch.device
    hot_bytes: int = 0
    """Of features in the host's memory that are kept beside the graph as well."""


def choose_storage(settings: ResolvedSettings, graph: GraphData, device: torch.device) -> Storage:
    """Returns where the graph is kept: on the device, or on the host where it would leave too little memory.

    Features are most of it, and the first to stay on the host: a GPU reads those of a batch from there by itself, but
    for those that it reads most often, which fill the room that is left.
    """
    size, host = size_of(graph, settings), torch.device("cpu")
    if settings.train.batch == "full":
        return Storage(device, device)
    free_bytes = RESIDENT * hardware(device).free_bytes()
    if size.graph_bytes <= free_bytes:
        return Storage(device, device)
    feature_bytes_left = int(free_bytes) - (size.graph_bytes - size.feature_bytes)
    return Storage(device, host, feature_bytes_left) if feature_bytes_left >= 0 else Storage(host, host)


def storage_note(settings: ResolvedSettings, graph: GraphData, device: torch.device) -> Note | None:
    """Returns what a user should know of a graph that is not kept on the device it is trained on."""
    storage = choose_storage(settings, graph, device)
    if storage.features == device:
        return None
    subject = "The graph stays" if storage.graph != device else "Features stay"
    size = size_of(graph, settings)
    needed = in_gib(size.graph_bytes if storage.graph != device else size.feature_bytes)
    hot = f", but for the {in_gib(storage.hot_bytes)} that are read most" if storage.hot_bytes else ""
    free = in_gib(hardware(device).free_bytes())
    return Note("storage", f"{subject} in the host's memory ({needed}, with {free} free on {device.type}){hot}.")


COPIES = 5
"""Of the weights, while they are trained: themselves, gradients, two moments of Adam, and the best so far."""


def check_memory(settings: ResolvedSettings, graph: GraphData, parameters: int) -> None:
    """Raises `OutOfMemory` for a model that the device could not train if nothing else were there."""
    device = select_device(settings.train.device)
    needed, available = COPIES * SINGLE * parameters, hardware(device).total_bytes()
    if settings.train.batch == "full":
        needed += size_of(graph, settings).training_bytes
    if needed > available:
        raise OutOfMemory(
            f"training with hidden = {settings.model.hidden:,} and layers = {settings.model.layers:,} would take about "
            f"{in_gib(needed)} and {device.type} has {in_gib(available)}; "
            f"give a smaller `model.hidden`, or `train.batch={DEFAULT_BATCH}`"
        )


def cpu_threads(settings: ResolvedSettings, graph: GraphData) -> int:
    """Returns the threads of a run: as given, or one for a small graph and as many as PyTorch has for others.

    `auto` depends on the graph and the model alone, not on how many threads there are.
    """
    return _fixed_threads(settings, graph) or torch.get_num_threads()


def _fixed_threads(settings: ResolvedSettings, graph: GraphData) -> int | None:
    """The threads of a run that takes so many in any process; None where it takes as many as PyTorch has."""
    if settings.train.threads != "auto":
        return settings.train.threads
    layers, hidden = multiplications(settings, graph), settings.model.hidden
    # features are counted, which reads them all, only where the layers alone would not take several threads
    is_small = layers < SMALL_EPOCH and layers + int(torch.count_nonzero(graph.x)) * hidden < SMALL_EPOCH
    return 1 if is_small else None


def multiplications(settings: ResolvedSettings, graph: GraphData) -> int:
    """Returns those of the layers in a forward pass."""
    model = settings.model
    return model.layers * model.hidden * (graph.num_edges + graph.num_nodes * model.hidden)


def processes_for(settings: ResolvedSettings, graph: GraphData, device: torch.device, runs: int) -> int:
    """Returns how many processes may train `runs` runs, where one run leaves GPUs or cores idle."""
    if settings.model.backbone in REGISTERED:
        return 1
    if gpus := visible_gpus(settings.train.device):
        return min(len(gpus), runs)
    if (threads := _fixed_threads(settings, graph)) is None:
        return 1
    fitting = int(USABLE * hardware(device).free_bytes() / size_of(graph, settings).training_bytes)
    return max(min(usable_cores() // threads, runs, fitting), 1)


def usable_cores() -> int:
    """Returns the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def explain_out_of_memory(settings: ResolvedSettings) -> Iterator[None]:
    """Within it, running out of memory raises `OutOfMemory`, which says which settings to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        # PyTorch's words where the host has no more memory
        is_host = "can't allocate memory" in str(error) or "not enough memory" in str(error)
        if not is_host and not isinstance(error, torch.OutOfMemoryError | MemoryError):
            raise
        batch, fanout = settings.train.batch, settings.train.fanout
        words = f"batch = {batch}; try `train.batch={DEFAULT_BATCH}` for mini-batches"
        if isinstance(batch, int):
            words = f"batch = {batch} and fanout = {fanout}; try `train.batch={max(batch // 2, 1)}`, a smaller "
            words += "`train.fanout`"
        raise OutOfMemory(f"out of memory with {words} or a smaller `model.hidden`") from error
