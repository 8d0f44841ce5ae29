"""What a run may use: the device, how much of the graph a step takes, and where the graph lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from legnn.config.settings import Settings
from legnn.config.training import fanouts_for
from legnn.data import GraphData
from legnn.errors import InputError
from legnn.training.memory import USABLE, Size, free_bytes, in_gib
from legnn.training.ranks import under_torchrun

DEFAULT_BATCH = 1024
"""Nodes in a step where `batch = auto` takes mini-batches: enough to keep a GPU busy, few enough for a laptop."""

RESIDENT = 0.4
"""The part of a GPU's memory that the graph and its features may take: batches and layers need the rest."""


def select_device(name: str) -> torch.device:
    """The device a setting means; under `torchrun`, each process of a machine has a GPU of its own."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device = cuda, but PyTorch sees no GPU here; give device = cpu or auto")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    if not under_torchrun():
        return torch.device("cuda")
    number, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if number >= there:
        raise InputError(f"process {number} of this machine has no GPU, for there are {there}; start at most {there}")
    return torch.device("cuda", number)


def size_of(data: GraphData, settings: Settings) -> Size:
    """What the memory of a run on `data` depends on."""
    model = settings.model
    assert model.hidden is not None
    assert model.layers is not None
    return Size(data.num_nodes, data.num_edges, data.num_features, data.num_classes, model.hidden, model.layers)


def choose_batch(settings: Settings, data: GraphData, device: torch.device) -> tuple[Settings, str | None]:
    """Settings whose `batch` is chosen, and a sentence for the user where the choice was not theirs.

    Full batch where it fits: it is faster, and has no noise of sampling. Several processes share mini-batches out.
    """
    train, model = settings.train, settings.model
    assert model.layers is not None
    if train.batch == "full" and under_torchrun():
        raise InputError("batch = full is one step of one process; several processes need --batch N or auto")
    note = None
    batch = train.batch
    if batch == "auto":
        needed, free = size_of(data, settings).training_bytes, free_bytes(device)
        batch = "full" if needed <= USABLE * free and not under_torchrun() else DEFAULT_BATCH
        if batch != "full":
            why = "several processes share them out"
            if not under_torchrun():
                why = f"the full batch would take about {in_gib(needed)} and {in_gib(free)} are free on {device.type}"
            note = f"batch = auto chose mini-batches of {batch:,} nodes: {why}."
    if batch != "full":
        assert train.fanout is not None
        fanouts_for(train.fanout, model.layers)
    return replace(settings, train=replace(train, batch=batch)), note


def storage_device(settings: Settings, data: GraphData, device: torch.device) -> torch.device:
    """Where the graph lies: on the device, or in the host's memory where it would leave too little room there."""
    if device.type == "cpu" or settings.train.batch == "full":
        return device
    fits = size_of(data, settings).graph_bytes <= RESIDENT * free_bytes(device)
    return device if fits else torch.device("cpu")


@contextmanager
def explain_out_of_memory(settings: Settings) -> Iterator[None]:
    """Within it, running out of memory is one sentence that says what to try."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise InputError(_advice(settings)) from error
    except RuntimeError as error:
        # what PyTorch says where the host's memory is over
        if "can't allocate memory" not in str(error) and "not enough memory" not in str(error):
            raise
        raise InputError(_advice(settings)) from error


def _advice(settings: Settings) -> str:
    batch = settings.train.batch
    if isinstance(batch, str):
        return (
            f"out of memory with batch = {batch}; give --batch {DEFAULT_BATCH} for mini-batches, or a smaller --hidden"
        )
    smaller = f"--batch {max(batch // 2, 1)}"
    return (
        f"out of memory with batch = {batch} and fanout = {settings.train.fanout}; "
        f"give {smaller}, a smaller --fanout or a smaller --hidden"
    )
