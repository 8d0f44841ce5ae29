"""Training runs: build the parts, fit, evaluate, save."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from legnn.config import ResolvedSettings, Settings
from legnn.config.docstrings import lists_settings
from legnn.data import GraphData
from legnn.data.summary import missing_class_notes
from legnn.datasets import Source
from legnn.errors import InputError, Interrupted
from legnn.io import PredictionTable
from legnn.locks import hold_folder
from legnn.runs.build import check_settings, make_inference, new_trainer
from legnn.runs.checkpointer import Checkpointer
from legnn.runs.data_card import DataCard
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import load_new, reload_graph
from legnn.runs.progress import Callbacks, follow
from legnn.runs.resources import choose_batch, choose_precision, select_device, storage_note
from legnn.runs.result import Result, device_name, versions
from legnn.runs.run import Run, predictions_table, score_splits
from legnn.training import Batching, EpochLog, FullBatch, Ranks, Trainer, agent_died, join_ranks, restart_count
from legnn.training.group_predictions import GroupPredictions
from legnn.training.inference import split_folds
from legnn.training.sharing import (
    Steps,
    current_group,
    finish,
    in_thread,
    kept_by_group,
    note_begun,
    note_left,
    others_begin,
)


@lists_settings()
def train(
    data: Source = "digits",
    settings: Settings | None = None,
    *,
    out: str | Path | None = None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **overrides: Any,
) -> Run:
    """Trains one model with one seed, and returns the finished run.

    Args:
        data: name from the catalog, folder of tables, prepared folder, `GraphData`, PyG `Data`, `HeteroData` or data
            set of one graph, NetworkX graph, `(edges, x, y)`, or frames `(nodes, edges)`; see `load`.
        settings: all settings in one object.
        out: folder in which the run is kept; one that was interrupted continues with `resume(out)`.
        on_epoch: called after every epoch.
        should_stop: asked after every epoch; True writes a checkpoint and raises `Interrupted`.
        progress: whether a line shows how far it is, in a terminal or notebook; elsewhere plain lines now and then.
        **overrides: settings by name: `train("cora", backbone="gat", as_train=True, epochs=200)`.

    Under `torchrun` all processes train one model together, each on its share of every mini-batch; rank zero writes,
    and a run whose processes were restarted continues from its checkpoint.
    """
    if out is not None and restart_count() and (Path(out) / "settings.yaml").is_file():
        in_memory = None if isinstance(data, str | Path) else data
        return resume(out, in_memory, on_epoch=on_epoch, should_stop=should_stop, progress=progress)
    settings = (settings or Settings()).override(**overrides)
    with follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        callbacks.on_stage("reading the data")
        graph, settings = load_new(settings, data)
        graph, resolved = resolve_for(graph, settings)
        return start_run(graph, resolved, None if out is None else Path(out), callbacks)


def resolve_for(graph: GraphData, settings: Settings) -> tuple[GraphData, ResolvedSettings]:
    """Returns the settings with nothing left open, and the graph with a note on what was chosen for it and why."""
    facts = graph.facts()
    why = settings.explain(facts)
    notes = graph.notes if why is None else [*graph.notes, why]
    return replace(graph, notes=notes), settings.resolve(facts)


def resume(
    folder: str | Path,
    data: Source | None = None,
    *,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> Run:
    """Continues an interrupted run from its last checkpoint; on the CPU, bit for bit as if it had not stopped.

    `data` is needed only for a run on data in memory. A finished run is returned as it is.
    """
    run = RunFolder.open(Path(folder))
    if run.is_finished:
        return Run.open(run.path)
    with follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        callbacks.on_stage("reading the data")
        return continue_run(run, reload_graph(run, data), callbacks)


def start_run(
    graph: GraphData, settings: ResolvedSettings, out: Path | None, callbacks: Callbacks, *, is_held: bool = False
) -> Run:
    """Trains on a loaded graph, in the new or empty folder `out` if given, which the caller may hold for writing."""
    return finish(_start_steps(graph, settings, out, callbacks, is_held=is_held))


def _start_steps(
    graph: GraphData, settings: ResolvedSettings, out: Path | None, callbacks: Callbacks, *, is_held: bool
) -> Steps[Run]:
    device = select_device(settings.train.device)
    settings, precision_note = choose_precision(settings, graph, device)
    settings, batch_note = choose_batch(settings, graph, device)
    chosen = [note for note in (batch_note, precision_note, storage_note(settings, graph, device)) if note is not None]
    if chosen:
        graph = replace(graph, notes=[*graph.notes, *chosen])
    card = kept_by_group("card", lambda: DataCard.of(graph))
    kept_by_group("checked", lambda: check_settings(settings, graph, card))
    folder = None if out is None else RunFolder(out)
    with join_ranks(device) as ranks, _writing(out, ranks, is_held):
        if folder is not None and ranks.is_rank_zero:
            yield from in_thread(lambda: folder.create(settings, card, graph.table_features))
        ranks.barrier()
        try:
            return (yield from _execute(graph, card, settings, folder, callbacks, device, ranks))
        except InputError:
            if folder is not None and ranks.is_rank_zero:
                folder.remove_untrained()
            raise


def continue_run(folder: RunFolder, graph: GraphData, callbacks: Callbacks, *, is_held: bool = False) -> Run:
    """Continues a run on its graph, in a folder that the caller may hold for writing."""
    return finish(_continue_steps(folder, graph, callbacks, is_held=is_held))


def _continue_steps(folder: RunFolder, graph: GraphData, callbacks: Callbacks, *, is_held: bool) -> Steps[Run]:
    settings = folder.settings
    device = select_device(settings.train.device)
    with join_ranks(device) as ranks, _writing(folder.path, ranks, is_held):
        if ranks.is_rank_zero:
            if folder.is_finished:
                raise InputError(f"{folder.path} was finished meanwhile by another process; it is there to be read")
            folder.rollback_to_checkpoint()
        ranks.barrier()
        return (yield from _execute(graph, folder.card, settings, folder, callbacks, device, ranks))


def start_or_continue(graph: GraphData, settings: ResolvedSettings, out: Path | None, callbacks: Callbacks) -> Result:
    """Trains in the folder `out`, or goes on with what a process that was interrupted or killed has left there."""
    return finish(run_steps(graph, settings, out, callbacks))


def run_steps(graph: GraphData, settings: ResolvedSettings, out: Path | None, callbacks: Callbacks) -> Steps[Result]:
    """`start_or_continue`, with pauses after launches of epochs."""
    if out is None:
        return (yield from _start_steps(graph, settings, out, callbacks, is_held=False)).result
    with hold_folder(out, again=True):
        if not (out / "settings.yaml").is_file():
            return (yield from _start_steps(graph, settings, out, callbacks, is_held=True)).result
        run = RunFolder.open(out)
        if run.is_finished:
            return run.result()
        return (yield from _continue_steps(run, graph, callbacks, is_held=True)).result


@contextmanager
def _writing(folder: Path | None, ranks: Ranks, is_held: bool) -> Iterator[None]:
    """Within it the process that writes for all is the only writer to the folder."""
    if folder is None or is_held or not ranks.is_rank_zero:
        yield
        return
    with hold_folder(folder):
        yield


def _execute(
    graph: GraphData,
    card: DataCard,
    settings: ResolvedSettings,
    folder: RunFolder | None,
    callbacks: Callbacks,
    device: torch.device,
    ranks: Ranks,
) -> Steps[Run]:
    callbacks.on_stage("preparing and compiling")
    with new_trainer(settings, graph, card, device, ranks) as trainer:
        batching, model = trainer.batching, trainer.model
        every = settings.train.checkpoint_seconds
        checkpointer = Checkpointer(trainer, folder, every, is_writer=ranks.is_rank_zero)
        checkpointer.restore()
        note_begun()
        try:
            yield from _fit(trainer, checkpointer, callbacks, ranks)
            callbacks.on_stage("predicting")
            predicted = yield from _predict(batching, graph, settings)
        except BaseException:
            # what was trained is written down
            checkpointer.write_logs()
            raise
    result = _result(graph, card, settings, trainer, predicted, checkpointer.seconds)
    predictions = predictions_table(graph, predicted)
    if folder is not None and ranks.is_rank_zero:
        weights = {name: value.cpu() for name, value in trainer.best.items()}
        note_left()
        yield from in_thread(lambda: _write(folder, checkpointer, weights, predictions, result))
    ranks.barrier()
    return Run(model.eval(), settings, card, predictions, result, None if folder is None else folder.path, graph)


def _write(
    folder: RunFolder,
    checkpointer: Checkpointer,
    weights: dict[str, Tensor],
    predictions: PredictionTable,
    result: Result,
) -> None:
    checkpointer.write_logs()
    folder.finish(weights, predictions, result)


def _fit(trainer: Trainer, checkpointer: Checkpointer, callbacks: Callbacks, ranks: Ranks) -> Steps[None]:
    """Trains to the end, and leaves the model with its best weights; raises `Interrupted` if asked to stop."""
    is_asked = stopped = False

    def after_epoch(log: EpochLog) -> bool:
        nonlocal is_asked
        checkpointer.add(log)
        if ranks.is_rank_zero:
            callbacks.on_epoch(log)
        # asked last: what was learned of this epoch may end the run
        is_last = ranks.any_rank(callbacks.should_finish())
        # after every epoch: the next answer may be another, and the run may stop only when none is in flight
        is_asked = callbacks.should_stop() or agent_died() or is_asked
        # a run that is to stop can be continued, and then its state must be that of its last epoch
        return is_last and not is_asked

    def at_rest() -> bool:
        nonlocal stopped
        # over all processes: one that stopped by itself would leave the others waiting
        stopped = ranks.any_rank(is_asked)
        checkpointer.record(now=stopped)
        return stopped

    yield from trainer.steps(after_epoch, wants_rest=lambda: checkpointer.is_due or is_asked, at_rest=at_rest)
    if stopped:
        raise Interrupted(trainer.epoch, None if checkpointer.folder is None else checkpointer.folder.path)
    trainer.model.load_state_dict(trainer.best)


def _predict(batching: Batching, graph: GraphData, settings: ResolvedSettings) -> Steps[Tensor]:
    """`[M, 2]` class and confidence of every node, without its own label, on the host."""
    inference = make_inference(batching, batching.model, graph, batching.task, settings)
    group = current_group()
    # where no step was captured, a forward pass may synchronize
    is_shared = group is not None and group.is_captured and batching.device.type == "cuda"
    if not is_shared or not isinstance(batching, FullBatch) or inference.postprocess is not None:
        return inference.predict().cpu()

    def share() -> GroupPredictions:
        folds = split_folds(inference.shown, inference.fold)
        return GroupPredictions(batching.model, batching.inputs, batching.task, inference.shown, folds)

    while others_begin():
        yield
    found = kept_by_group("predictions", share).predict(batching.model)
    yield
    return found.wait()


def _result(
    graph: GraphData, card: DataCard, settings: ResolvedSettings, trainer: Trainer, predicted: Tensor, seconds: float
) -> Result:
    scores = score_splits(graph, predicted)
    return Result(
        val=scores["val"],
        test=scores["test"],
        train_own_label_hidden=scores["train"],
        best_epoch=trainer.stopper.best_epoch,
        epochs=trainer.epoch,
        seconds=round(seconds, 3),
        parameters=trainer.model.num_parameters(),
        seed=settings.train.seed,
        device=device_name(trainer.batching.device),
        precision=settings.train.precision,
        versions=versions(),
        notes=[*card.notes, *missing_class_notes(graph)],
    )
