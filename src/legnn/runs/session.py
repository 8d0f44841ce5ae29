"""Training runs: build the parts, fit, evaluate, save."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from legnn.config import ResolvedSettings, Settings
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import Interrupted
from legnn.runs.build import check_settings, make_inference, make_model, make_task, make_trainer
from legnn.runs.checkpointer import Checkpointer
from legnn.runs.folder import DataCard, RunFolder
from legnn.runs.graphs import load_new, reload_graph
from legnn.runs.resources import choose_batch, explain_out_of_memory, select_device
from legnn.runs.result import Result, device_name, versions
from legnn.runs.run import Run, predictions_table, score_splits
from legnn.training import (
    EpochLog,
    Model,
    Ranks,
    Trainer,
    is_restarted,
    join_ranks,
    matrix_products,
    training_precision,
)
from legnn.training.protocols import StagedModel, require_staged


@dataclass(frozen=True)
class Callbacks:
    """What a caller hears of a run, and how it stops one."""

    on_epoch: Callable[[EpochLog], None] = lambda log: None
    should_stop: Callable[[], bool] = lambda: False
    """Asked after every epoch."""


def train(
    data: Source = "digits",
    settings: Settings | None = None,
    *,
    out: str | Path | None = None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Run:
    """Trains one model with one seed.

    Args:
        data: name from the catalog, folder of tables, prepared folder, PyG `Data` or `HeteroData`, or `GraphData`.
        settings: all settings in one object.
        out: folder in which the run is kept; one that was interrupted continues with `resume(out)`.
        on_epoch: called after every epoch.
        should_stop: asked after every epoch; True writes a checkpoint and raises `Interrupted`.
        **overrides: settings by name: `train("cora", backbone="gat", as_train=True, epochs=200)`.

    Under `torchrun` all its processes train one model together, each on its share of every mini-batch; rank zero
    writes, and a run whose processes were is_restarted continues from its checkpoint.
    """
    callbacks = Callbacks(on_epoch, should_stop)
    if out is not None and is_restarted() and (Path(out) / "settings.yaml").is_file():
        in_memory = None if isinstance(data, str | Path) else data
        return resume(out, in_memory, on_epoch=on_epoch, should_stop=should_stop)
    graph, settings = load_new((settings or Settings()).override(**overrides), data)
    return start_run(graph, settings.resolve(graph.facts()), None if out is None else Path(out), callbacks)


def resume(
    folder: str | Path,
    data: Source | None = None,
    *,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Continues an interrupted run from its last checkpoint; on the CPU, bit for bit as if it had not stopped.

    `data` is needed only for a run on data in memory. A finished run is returned as it is.
    """
    run = RunFolder.open(Path(folder))
    if run.is_finished:
        return Run.open(run.path)
    graph = reload_graph(run.settings, run.card, run.text_features, data, name=str(run.path))
    return continue_run(run, graph, Callbacks(on_epoch, should_stop))


def start_run(graph: GraphData, settings: ResolvedSettings, out: Path | None, callbacks: Callbacks) -> Run:
    """Trains on a loaded graph, in the new or empty folder `out` if given."""
    model = check_settings(settings, graph)
    device = select_device(settings.train.device)
    settings, note = choose_batch(settings, graph, device, has_stages=isinstance(model, StagedModel))
    if settings.train.batch != "full":
        require_staged(model)
    if note is not None:
        graph = replace(graph, notes=[*graph.notes, note])
    with join_ranks(device) as ranks:
        folder = None
        if out is not None:
            folder = RunFolder.create(out, settings, graph) if ranks.is_rank_zero else RunFolder(out)
        return _execute(graph, settings, folder, None, callbacks, device, ranks)


def continue_run(run: RunFolder, graph: GraphData, callbacks: Callbacks) -> Run:
    """Continues a run on its graph."""
    settings = run.settings
    device = select_device(settings.train.device)
    with join_ranks(device) as ranks:
        if ranks.is_rank_zero:
            run.rollback_to_checkpoint()
        ranks.barrier()
        return _execute(graph, settings, run, run.load_checkpoint(), callbacks, device, ranks)


def _execute(
    graph: GraphData,
    settings: ResolvedSettings,
    folder: RunFolder | None,
    checkpoint: tuple[dict[str, Tensor], dict[str, Any]] | None,
    callbacks: Callbacks,
    device: torch.device,
    ranks: Ranks,
) -> Run:
    precision = training_precision(settings.train.precision, device)
    with explain_out_of_memory(settings), _seeded(settings.train.seed, device), matrix_products(precision.products):
        task = make_task(settings, graph, device)
        trainer = make_trainer(_build_model(graph, settings, device), task, settings, precision.dtype, ranks)
        # all processes read, rank zero writes
        checkpointer = Checkpointer(trainer, folder if ranks.is_rank_zero else None, settings.train.checkpoint_seconds)
        if checkpoint is not None:
            checkpointer.restore(*checkpoint)
        _fit(trainer, checkpointer, callbacks, ranks, folder)
        predicted = make_inference(trainer.batching, trainer.model, graph, task, settings).predict().cpu()
    result = _result(graph, settings, trainer, predicted, checkpointer.seconds)
    predictions = predictions_table(graph, predicted)
    if folder is not None and ranks.is_rank_zero:
        folder.finish(trainer.best, predictions, result)
    ranks.barrier()
    trainer.model.eval()
    path = None if folder is None else folder.path
    return Run(trainer.model, settings, DataCard.of(graph), predictions, result, path, graph)


def _build_model(graph: GraphData, settings: ResolvedSettings, device: torch.device) -> Model:
    model = make_model(settings, graph, graph.label_x)
    model.fit_inputs(graph.x, graph.node_type)
    model.to(device)
    return model


def _fit(
    trainer: Trainer, checkpointer: Checkpointer, callbacks: Callbacks, ranks: Ranks, folder: RunFolder | None
) -> None:
    """Trains to the end, and leaves the model with its best weights; raises `Interrupted` if asked to stop."""
    stopped = False

    def after_epoch(log: EpochLog) -> bool:
        nonlocal stopped
        # over all processes: one that stopped by itself would leave the others waiting
        stopped = ranks.any_rank(callbacks.should_stop())
        checkpointer.record(log, now=stopped)
        if ranks.is_rank_zero:
            callbacks.on_epoch(log)
        return stopped

    trainer.fit(after_epoch)
    if stopped:
        raise Interrupted(trainer.epoch, None if folder is None else folder.path)
    trainer.model.load_state_dict(trainer.best)


def _result(
    graph: GraphData, settings: ResolvedSettings, trainer: Trainer, predicted: Tensor, seconds: float
) -> Result:
    scores = score_splits(graph, predicted)
    return Result(
        val=scores["val"],
        test=scores["test"],
        train_out_of_fold=scores["train"],
        best_epoch=trainer.stopper.best_epoch,
        epochs=trainer.epoch,
        seconds=round(seconds, 3),
        parameters=sum(parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad),
        seed=settings.train.seed,
        device=device_name(trainer.batching.device),
        precision=settings.train.precision,
        versions=versions(),
        notes=graph.notes,
    )


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Within it PyTorch draws from the run's seed; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
