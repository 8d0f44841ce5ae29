"""Training runs: build the parts, fit, evaluate, save."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor

from legnn.config import CommonSettings, ResolvedSettings, Settings, collect
from legnn.data import GraphData
from legnn.data.summary import missing_class_notes
from legnn.datasets import Source
from legnn.errors import InputError, Interrupted, OutOfMemory
from legnn.locks import hold_folder
from legnn.notes import Note
from legnn.runs.build import check_settings, make_inference, new_trainer
from legnn.runs.checkpointer import Checkpointer
from legnn.runs.data_card import DataCard
from legnn.runs.device import hardware, select_device
from legnn.runs.evaluation import score_splits
from legnn.runs.folder import RunFolder
from legnn.runs.graphs import load_new, reload_graph
from legnn.runs.precision import training_modes
from legnn.runs.prediction_tables import predictions_table
from legnn.runs.processes import agent_died, join_ranks, restart_count
from legnn.runs.progress import Callbacks, follow
from legnn.runs.resources import choose_batch, choose_precision, storage_note
from legnn.runs.result import Result, versions
from legnn.runs.run import Run
from legnn.training import EpochLog, Ranks, Trainer


@training_modes()
def train(
    data: Source = "digits",
    *,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **common: Unpack[CommonSettings],
) -> Run:
    """Trains one model with one seed, and returns the finished run.

    Args:
        data: name from the catalog, folder of tables, prepared folder, `GraphData`, PyG `Data`, `HeteroData` or data
            set of one graph, NetworkX graph, `(edges, x, y)`, or frames `(nodes, edges)`; see `load`.
        preset: chooses the settings that are left open; `recommended` by default.
        settings: values by dotted name, such as `{"model.appnp.teleport": 0.2}`, or an object; `legnn settings` lists
            all of them.
        out: folder in which the run is kept; one that was interrupted continues with `resume(out)`.
        on_epoch: called after every epoch.
        should_stop: asked after every epoch; True writes a checkpoint and raises `Interrupted`.
        progress: whether a line shows how far it is, in a terminal or notebook; elsewhere plain lines now and then.
        **common: common settings, which win: `train("cora", backbone="gat", as_train=True, epochs=200)`.

    Under `torchrun` all processes train one model together, each on its share of every mini-batch; rank zero writes,
    and a run whose processes were restarted continues from its checkpoint.
    """
    if out is not None and restart_count() and RunFolder(Path(out)).is_begun:
        in_memory = None if isinstance(data, str | Path) else data
        return resume_run(out, in_memory, on_epoch=on_epoch, should_stop=should_stop, progress=progress)
    collected = collect(settings, common, preset=preset)
    with follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        callbacks.on_stage("reading the data")
        graph, resolved = resolve_for(*load_new(collected, data))
        return start_run(graph, resolved, None if out is None else Path(out), callbacks)


def resolve_for(graph: GraphData, settings: Settings) -> tuple[GraphData, ResolvedSettings]:
    """Returns the settings with nothing left open, and the graph with a note on what was chosen for it and why."""
    facts = graph.facts()
    why = settings.explain(facts)
    notes = graph.notes if why is None else [*graph.notes, Note("preset", why)]
    return replace(graph, notes=notes), settings.resolve(facts)


@training_modes()
def resume_run(
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
    device = select_device(settings.train.device)
    settings, precision_note = choose_precision(settings, graph, device)
    settings, batch_note = choose_batch(settings, graph, device)
    chosen = [note for note in (batch_note, precision_note, storage_note(settings, graph, device)) if note is not None]
    if chosen:
        graph = replace(graph, notes=[*graph.notes, *chosen])
    card = DataCard.of(graph)
    check_settings(settings, graph, card)
    folder = None if out is None else RunFolder(out)
    with join_ranks(hardware(device).process_group()) as ranks, _writing(out, ranks, is_held):
        if folder is not None and ranks.is_rank_zero:
            folder.create(settings, card, graph.table_features)
        ranks.barrier()
        try:
            return _execute(graph, card, settings, folder, callbacks, device, ranks)
        except (InputError, OutOfMemory):
            if folder is not None and ranks.is_rank_zero:
                folder.remove_untrained()
            raise


def continue_run(folder: RunFolder, graph: GraphData, callbacks: Callbacks, *, is_held: bool = False) -> Run:
    """Continues a run on its graph, in a folder that the caller may hold for writing."""
    settings = folder.settings
    device = select_device(settings.train.device)
    with join_ranks(hardware(device).process_group()) as ranks, _writing(folder.path, ranks, is_held):
        if ranks.is_rank_zero:
            if folder.is_finished:
                raise InputError(f"{folder.path} was finished meanwhile by another process; it is there to be read")
            folder.rollback_to_checkpoint()
        ranks.barrier()
        return _execute(graph, folder.card, settings, folder, callbacks, device, ranks)


def start_or_continue(graph: GraphData, settings: ResolvedSettings, out: Path, callbacks: Callbacks) -> None:
    """Trains in the folder `out`, which the caller holds for writing, or continues an interrupted run in it."""
    if not RunFolder(out).is_begun:
        start_run(graph, settings, out, callbacks, is_held=True)
    elif not (run := RunFolder.open(out)).is_finished:
        continue_run(run, graph, callbacks, is_held=True)


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
) -> Run:
    callbacks.on_stage("preparing and compiling")
    with new_trainer(settings, graph, card, device, ranks) as trainer:
        batching, model = trainer.batching, trainer.model
        every = settings.train.checkpoint_seconds
        checkpointer = Checkpointer(trainer, folder, every, is_writer=ranks.is_rank_zero)
        checkpointer.restore()
        try:
            trainer.fit(_AfterEpoch(checkpointer, callbacks, ranks))
            model.load_state_dict(trainer.best)
            callbacks.on_stage("predicting")
            inference = make_inference(batching, model, graph, batching.task, settings)
            predicted, p = inference.predict_with_probabilities_of(graph.labeled_nodes.to(batching.task.train.device))
        except BaseException:
            # what was trained is written down
            checkpointer.write_logs()
            raise
    result = _result(graph, card, settings, trainer, p, checkpointer.seconds)
    predictions = predictions_table(graph, predicted)
    if folder is not None and ranks.is_rank_zero:
        weights = {name: value.cpu() for name, value in trainer.best.items()}
        checkpointer.write_logs()
        folder.finish(weights, predictions, result)
    ranks.barrier()
    return Run(model.eval(), settings, card, predictions, result, None if folder is None else folder.path, graph)


@dataclass(frozen=True)
class _AfterEpoch:
    """Logs the metrics of an epoch and writes checkpoints; raises `Interrupted` if asked to stop."""

    checkpointer: Checkpointer
    callbacks: Callbacks
    ranks: Ranks

    def __call__(self, log: EpochLog) -> bool:
        """Returns whether training ends with this epoch."""
        self.checkpointer.add(log)
        if self.ranks.is_rank_zero:
            self.callbacks.on_epoch(log)
        # asked last: what was learned of this epoch may end the run
        is_last = self.ranks.any_rank(self.callbacks.should_finish())
        # over all processes: one that stopped by itself would leave the others waiting
        is_interrupted = self.ranks.any_rank(self.callbacks.should_stop() or agent_died())
        self.checkpointer.record(now=is_interrupted)
        if is_interrupted:
            folder = self.checkpointer.folder
            raise Interrupted(log.epoch, None if folder is None else folder.path)
        return is_last


def _result(
    graph: GraphData, card: DataCard, settings: ResolvedSettings, trainer: Trainer, p: Tensor, seconds: float
) -> Result:
    scores = score_splits(graph, p)
    return Result(
        val=scores["val"],
        test=scores["test"],
        train_masked=scores["train"],
        best_epoch=trainer.stopper.best_epoch,
        epochs=trainer.epoch,
        seconds=round(seconds, 3),
        parameters=trainer.model.num_parameters(),
        seed=settings.train.seed,
        device=hardware(trainer.batching.device).name,
        precision=settings.train.precision,
        versions=versions(),
        notes=[*card.notes, *missing_class_notes(graph)],
    )
