"""From data and settings to a trained, scored and saved model."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from legnn.config.settings import Settings, resolve
from legnn.data import GraphData
from legnn.datasets import CATALOG, load
from legnn.errors import InputError, Interrupted
from legnn.graph.selection import check_selection
from legnn.nn import LEGNN, Lift
from legnn.nn.lift import check_liftable
from legnn.runs.folder import RunFolder
from legnn.runs.outcome import predictions_table, result_of
from legnn.runs.resources import choose_batch, explain_out_of_memory, select_device, storage_device
from legnn.training import (
    Batching,
    EpochLog,
    FullBatch,
    MiniBatch,
    Ranks,
    Task,
    Trainer,
    fanouts_for,
    fold_of,
    join_ranks,
    make_adam,
    matrix_products,
    predict_without_own_label,
    restarted,
    training_precision,
)

OnEpoch = Callable[[EpochLog], None]

MEMORY = "memory"
"""The source of data that were given as an object."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    model: LEGNN
    """With the best weights, in evaluation mode."""
    settings: Settings
    """Complete: nothing left to choose."""
    predictions: pd.DataFrame
    """id, prediction, confidence, split of every node (of several node types, of the one that has labels); training
    nodes are predicted out of fold."""
    result: dict[str, Any]
    """What `result.json` holds."""
    folder: Path | None
    """Where it was saved, if it was."""


def train(
    data: GraphData | Data | HeteroData | str | Path = "digits",
    settings: Settings | None = None,
    *,
    out: str | Path | None = None,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **overrides: Any,
) -> Run:
    """Train one model with one seed.

    `data` is a catalog name, a folder of tables, or a PyG `Data` or `HeteroData`. Settings are named by themselves:
    `train("cora", backbone="gat", as_train=True, epochs=200)`. With `out`, everything is kept in that folder and a run
    that was cut off goes on with `resume(out)`. `should_stop` is asked after every epoch.

    Under `torchrun` all its processes train one model together, each on its share of every mini-batch; the first one
    writes, and a run whose processes were started again goes on from its checkpoint.
    """
    if out is not None and restarted() and (Path(out) / "settings.yaml").is_file():
        # torchrun starts all processes again when one dies: the run goes on where it was
        in_memory = None if isinstance(data, str | Path) else data
        return resume(out, in_memory, on_epoch=on_epoch, should_stop=should_stop)
    settings = (settings or Settings()).override(**overrides)
    loaded, settings = load_for(settings, data)
    return begin(loaded, settings, None if out is None else Path(out), on_epoch=on_epoch, should_stop=should_stop)


def begin(
    data: GraphData,
    settings: Settings,
    out: Path | None,
    *,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Train on data that `load` returned."""
    settings = resolve(settings, data.facts())
    check_settings(settings, data)
    device = select_device(settings.train.device)
    settings, note = choose_batch(settings, data, device)
    if note is not None and note not in data.notes:
        data = replace(data, notes=[*data.notes, note])
    with join_ranks(device) as ranks:
        folder = None
        if out is not None:
            folder = RunFolder.create(out, settings, data) if ranks.is_first else RunFolder(out)
        return _run(data, settings, folder, None, on_epoch, should_stop, device, ranks)


def resume(
    folder: str | Path,
    data: GraphData | Data | HeteroData | None = None,
    *,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Go on with a run that was cut off, from its last checkpoint; on the CPU, bit for bit as if it had not been.

    `data` is needed only for a run on a `Data` from memory.
    """
    run = RunFolder.open(Path(folder))
    if run.is_finished:
        return finished(run)
    return go_on(run, reload(run, data), on_epoch=on_epoch, should_stop=should_stop)


def finished(run: RunFolder) -> Run:
    """A run that came to its end, as it was saved."""
    return Run(restore(run), run.settings, run.predictions(), run.result(), run.path)


def go_on(
    run: RunFolder,
    data: GraphData,
    *,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Go on with a run on data that `load` returned."""
    run.check_data(data, "restore the data, or begin a new run")
    settings = resolve(run.settings, data.facts())
    device = select_device(settings.train.device)
    with join_ranks(device) as ranks:
        if ranks.is_first:
            run.cut_back()
        ranks.wait()
        return _run(data, settings, run, run.load_checkpoint(), on_epoch, should_stop, device, ranks)


def load_for(settings: Settings, data: GraphData | Data | HeteroData | str | Path) -> tuple[GraphData, Settings]:
    """The loaded data, and the settings that say where they are from."""
    if not isinstance(data, str | Path):
        settings = replace(settings, data=replace(settings.data, source=MEMORY))
        options = {name: value for name, value in vars(settings.data).items() if name != "source"}
        loaded = load(data, **options)
        return loaded, _as_prepared(settings, loaded)
    # a run must find its folder again from anywhere; a name of the catalog wins over a folder that happens to bear it
    is_folder = Path(data).is_dir() and (isinstance(data, Path) or data not in CATALOG)
    source = str(Path(data).resolve()) if is_folder else str(data)
    settings = replace(settings, data=replace(settings.data, source=source))
    loaded = load(settings.data)
    return loaded, _as_prepared(settings, loaded)


def _as_prepared(settings: Settings, data: GraphData) -> Settings:
    """The settings a prepared folder was made with take the place of the run's: with them a run reads other tables."""
    made_with = data.provenance.prepared_with
    if made_with is None:
        return settings
    return replace(settings, data=replace(made_with, source=settings.data.source))


def reload(run: RunFolder, data: GraphData | Data | HeteroData | str | Path | None) -> GraphData:
    """The data a run names, with features from text made as they were then; or `data`, loaded as the run's own."""
    settings = run.settings
    if data is not None:
        return load_for(settings, data)[0]
    if settings.data.source == MEMORY:
        raise InputError(f"{run.path} was trained on data in memory; give the same Data again: resume(folder, data)")
    return load(settings.data, text_features=run.text_features)


def check_settings(settings: Settings, data: GraphData) -> None:
    """Refuse what could only fail later, before a folder is made."""
    training_precision(settings.train.precision, select_device(settings.train.device))
    if settings.model.labels != "vanilla" and settings.train.selection:
        assert settings.train.alpha is not None
        check_selection(int(data.train_mask.sum()), settings.train.alpha)
    if settings.model.label_edges and data.label_adjacency is None:
        raise InputError(f"label_edges is on, but {data.name} has no label–label edges; switch it off or give them")
    # building it once on no memory runs the model's own checks
    with torch.device("meta"):
        model = make_model(settings, data)
    if any(isinstance(module, Lift) for module in model.modules()):
        check_liftable(weighted=data.adjacency.weight is not None, label_edges=bool(settings.model.label_edges))


def make_model(settings: Settings, data: GraphData) -> LEGNN:
    """A new model for these data."""
    return LEGNN(data.num_features, data.num_classes, settings.model, data.label_x, data.num_types)


def shows_labels(settings: Settings) -> bool:
    """Whether labels enter the model at all."""
    return settings.model.labels != "vanilla"


@contextmanager
def _seeded(seed: int, device: torch.device) -> Any:
    """Draw from the run's own seed and leave the caller's random state as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _run(
    data: GraphData,
    settings: Settings,
    folder: RunFolder | None,
    checkpoint: tuple[dict[str, Tensor], dict[str, Any]] | None,
    on_epoch: OnEpoch | None,
    should_stop: Callable[[], bool],
    device: torch.device,
    ranks: Ranks,
) -> Run:
    precision = training_precision(settings.train.precision, device)
    # all processes read, the first one writes
    keeps = folder if ranks.is_first else None
    with (
        explain_out_of_memory(settings),
        _seeded(settings.train.seed, device),
        matrix_products(precision.products),
    ):
        model = make_model(settings, data)
        model.scale.fit(data.x, data.node_type)
        model.to(device)
        task = Task.from_graph(
            data,
            storage_device(settings, data, device),
            label_edges=bool(settings.model.label_edges),
            as_train=settings.as_train,
        )
        trainer = _trainer(model, task, settings, precision.dtype, ranks)
        before = 0.0
        if checkpoint is not None:
            tensors, meta = checkpoint
            try:
                trainer.load_state(tensors, meta)
            except (RuntimeError, KeyError):
                place = "" if folder is None else f" in {folder.path}"
                raise InputError(
                    f"the checkpoint{place} does not fit the settings.yaml beside it; restore both from a copy"
                ) from None
            before = meta["seconds"]
        clock = _Clock(before)
        keeper = _Keeper(trainer, keeps, clock, settings.train.checkpoint_seconds)
        stopped = False

        def after_epoch(log: EpochLog) -> bool:
            nonlocal stopped
            # asked of all processes: one that stopped by itself would leave the others waiting
            stopped = ranks.agree(should_stop())
            keeper.keep(log, now=stopped)
            if on_epoch is not None and ranks.is_first:
                on_epoch(log)
            return stopped

        trainer.fit(after_epoch)
        if stopped:
            raise Interrupted(trainer.epoch, None if folder is None else folder.path)
        model.load_state_dict(trainer.best)
        predicted = predict_without_own_label(
            trainer.batching.predict,
            trainer.shown_at_inference,
            fold_of(data.node_id, settings.train.folds),
            task.targets,
        ).cpu()
    result = result_of(predicted, data, settings, trainer, clock.seconds)
    predictions = predictions_table(data, predicted)
    if keeps is not None:
        keeps.finish(trainer.best, predictions, result)
    ranks.wait()
    return Run(model.eval(), settings, predictions, result, None if folder is None else folder.path)


def _trainer(model: LEGNN, task: Task, settings: Settings, dtype: torch.dtype, ranks: Ranks) -> Trainer:
    train = settings.train
    assert train.lr is not None
    assert train.weight_decay is not None
    assert train.alpha is not None
    assert train.epochs is not None
    assert train.patience is not None
    optimizer = make_adam(model, train.lr, train.weight_decay)
    options: dict[str, Any] = {
        "alpha": train.alpha,
        "selection": train.selection,
        "shows_labels": shows_labels(settings),
        "as_train": settings.as_train,
        "dtype": dtype,
    }
    batching: Batching
    if isinstance(train.batch, str):
        # its own generator: how many numbers dropout draws must not change who is selected
        generator = torch.Generator(task.x.device).manual_seed(train.seed)
        batching = FullBatch(model, task, optimizer, generator, **options)
    else:
        assert train.fanout is not None
        # on the host, so that all processes draw alike wherever their graph lies
        generator = torch.Generator().manual_seed(train.seed)
        fanouts = fanouts_for(train.fanout, len(model.layers))
        batching = MiniBatch(
            model, task, optimizer, generator, batch=train.batch, fanouts=fanouts, ranks=ranks, **options
        )
    return Trainer(
        model,
        task,
        batching,
        optimizer,
        generator,
        lr=train.lr,
        epochs=train.epochs,
        patience=train.patience,
        shows_labels=shows_labels(settings),
    )


class _Clock:
    """Seconds of training, over all the processes that took part in it."""

    def __init__(self, before: float) -> None:
        self._start = time.perf_counter() - before

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


class _Keeper:
    """Writes the journal after every epoch, and a checkpoint after the first and then every so many seconds."""

    def __init__(self, trainer: Trainer, folder: RunFolder | None, clock: _Clock, every: float) -> None:
        self.trainer, self.folder, self.clock, self.every = trainer, folder, clock, every
        self.last = -float("inf")

    def keep(self, log: EpochLog, now: bool) -> None:
        if self.folder is None:
            return
        self.folder.append(log)
        seconds = self.clock.seconds
        if now or seconds - self.last >= self.every:
            tensors, meta = self.trainer.state()
            self.folder.save_checkpoint(tensors, {**meta, "seconds": seconds})
            self.last = seconds


def restore(run: RunFolder) -> LEGNN:
    """The model of a finished run, on the CPU."""
    settings, card = run.settings, run.card
    weights = run.weights()
    given = weights.get("encoder.label_embedding.given")
    model = LEGNN(card.features, len(card.classes), settings.model, given, len(card.types or [""]))
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise InputError(f"the weights in {run.path} do not fit its settings.yaml; restore both from a copy") from None
    return model.eval()
