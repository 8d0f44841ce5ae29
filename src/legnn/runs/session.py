"""From data and settings to a trained, scored and saved model."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from legnn.baselines import ARCHITECTURES, POSTPROCESS
from legnn.config.settings import Settings, resolve
from legnn.datasets import CATALOG, load
from legnn.errors import InputError, Interrupted
from legnn.graph.selection import check_selection
from legnn.nn import Lift
from legnn.nn.lifting import check_liftable
from legnn.runs.folder import RunFolder
from legnn.runs.outcome import predictions_table, result_of
from legnn.runs.resources import choose_batch, explain_out_of_memory, select_device, storage_device
from legnn.training import (
    ASTrain,
    Batching,
    EpochLog,
    FullBatch,
    Inference,
    MiniBatch,
    Model,
    Objective,
    Ranks,
    Task,
    Trainer,
    assign_folds,
    fanouts_for,
    is_restarted,
    join_ranks,
    make_adam,
    matrix_products,
    require_staged,
    training_precision,
)

OnEpoch = Callable[[EpochLog], None]

MEMORY = "memory"
"""The source of data that were given as an object."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    model: Model
    """With the best weights, in evaluation mode."""
    settings: ResolvedSettings
    predictions: pd.DataFrame
    """id, prediction, confidence, split of every node (of several node types, of the one that has labels); training
    nodes are predicted out of fold."""
    result: dict[str, Any]
    """What `result.json` holds."""
    folder: Path | None
    """Where it was saved, if it was."""


def train(
    data: Data | HeteroData | str | Path = "digits",
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
    if out is not None and is_restarted() and (Path(out) / "settings.yaml").is_file():
        # torchrun starts all processes again when one dies: the run goes on where it was
        in_memory = data if isinstance(data, Data | HeteroData) else None
        return resume(out, in_memory, on_epoch=on_epoch, should_stop=should_stop)
    settings = (settings or Settings()).override(**overrides)
    loaded, settings = load_for(settings, data)
    resolved = settings.resolve(facts_of(loaded))
    return begin(loaded, resolved, None if out is None else Path(out), on_epoch=on_epoch, should_stop=should_stop)


def begin(
    data: Data,
    settings: ResolvedSettings,
    out: Path | None,
    *,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Train on data that `load` returned."""
    check_settings(settings, data)
    device = select_device(settings.train.device)
    settings, note = choose_batch(settings, data, device)
    if settings.train.batch != "full":
        with torch.device("meta"):
            require_staged(make_model(settings, data))
    if note is not None and note not in data.notes:
        data.notes.append(note)
    with join_ranks(device) as ranks:
        folder = None
        if out is not None:
            folder = RunFolder.create(out, settings, data) if ranks.is_rank_zero else RunFolder(out)
        return _run(data, settings, folder, None, on_epoch, should_stop, device, ranks)


def resume(
    folder: str | Path,
    data: Data | HeteroData | None = None,
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
    data: Data,
    *,
    on_epoch: OnEpoch | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Go on with a run on data that `load` returned."""
    run.check_data(data, "restore the data, or begin a new run")
    settings = run.settings
    device = select_device(settings.train.device)
    with join_ranks(device) as ranks:
        if ranks.is_rank_zero:
            run.cut_back()
        ranks.barrier()
        return _run(data, settings, run, run.load_checkpoint(), on_epoch, should_stop, device, ranks)


AnySettings = TypeVar("AnySettings", Settings, ResolvedSettings)


def load_for(settings: AnySettings, data: Data | HeteroData | str | Path) -> tuple[Data, AnySettings]:
    """The loaded data, and the settings that say where they are from."""
    if isinstance(data, Data | HeteroData):
        settings = settings.override(source=MEMORY)
        options = {name: value for name, value in vars(settings.data).items() if name != "source"}
        loaded = load(data, **options)
        return loaded, _as_prepared(settings, loaded)
    # a run must find its folder again from anywhere; a name of the catalog wins over a folder that happens to bear it
    is_folder = Path(data).is_dir() and (isinstance(data, Path) or data not in CATALOG)
    source = str(Path(data).resolve()) if is_folder else str(data)
    settings = settings.override(source=source)
    loaded = load(settings.data)
    return loaded, _as_prepared(settings, loaded)


def _as_prepared(settings: AnySettings, data: Data) -> AnySettings:
    """The settings a prepared folder was made with take the place of the run's: with them a run reads other tables."""
    made_with = data.get("prepared_with")
    if made_with is None:
        return settings
    return settings.override(**{**asdict(made_with), "source": settings.data.source})


def reload(run: RunFolder, data: Data | HeteroData | str | Path | None) -> Data:
    """The data a run names, with features from text made as they were then; or `data`, loaded as the run's own."""
    settings = run.settings
    if data is not None:
        return load_for(settings, data)[0]
    if settings.data.source == MEMORY:
        raise InputError(f"{run.path} was trained on data in memory; give the same Data again: resume(folder, data)")
    return load(settings.data, text_features=run.text_features)


def facts_of(data: Data) -> GraphFacts:
    """Returns what the presets decide by. Of several node types, the features of the labeled one count."""
    x = data.x
    if data.get("node_type") is not None:
        target = int(data.node_type[data.target_mask][0])
        x = x[data.target_mask, : len(data.type_columns[target])]
    return GraphFacts(
        num_train=int(data.train_mask.sum()),
        num_classes=len(data.class_names),
        # reductions alone: a mark for each entry would be as large as x, which may not fit into memory
        counts_features=float(x.min()) >= 0 and 2 * int(torch.count_nonzero(x)) < x.numel(),
        has_label_edges=data.get("label_adjacency") is not None,
    )


def check_settings(settings: ResolvedSettings, data: Data) -> None:
    """Refuse what could only fail later, before a folder is made."""
    training_precision(settings.train.precision, select_device(settings.train.device))
    if settings.model.label_edges and data.get("label_adjacency") is None:
        raise InputError(f"label_edges is on, but {data.name} has no label–label edges; switch it off or give them")
    # building it once on no memory runs the model's own checks
    with torch.device("meta"):
        model = make_model(settings, data)
    if model.uses_labels and settings.train.selection:
        assert settings.train.alpha is not None
        check_selection(int(data.train_mask.sum()), settings.train.alpha)
    if any(isinstance(module, Lift) for module in model.modules()):
        check_liftable(weighted=data.get("edge_weight") is not None, label_edges=bool(settings.model.label_edges))


def make_model(settings: Settings, data: Data) -> Model:
    """A new model for these data."""
    num_types = len(data.get("type_names") or [""])
    build = ARCHITECTURES[settings.model.architecture]
    return build(settings.model, data.x.size(1), len(data.class_names), data.get("label_x"), num_types)


@contextmanager
def _seeded(seed: int, device: torch.device) -> Any:
    """Draw from the run's own seed and leave the caller's random state as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _run(
    data: Data,
    settings: ResolvedSettings,
    folder: RunFolder | None,
    checkpoint: tuple[dict[str, Tensor], dict[str, Any]] | None,
    on_epoch: OnEpoch | None,
    should_stop: Callable[[], bool],
    device: torch.device,
    ranks: Ranks,
) -> Run:
    precision = training_precision(settings.train.precision, device)
    # all processes read, the first one writes
    keeps = folder if ranks.is_rank_zero else None
    with (
        explain_out_of_memory(settings),
        _seeded(settings.train.seed, device),
        matrix_products(precision.products),
    ):
        model = make_model(settings, data)
        model.fit_inputs(data.x, data.get("node_type"))
        model.to(device)
        task = Task.from_data(
            data,
            storage_device(settings, data, device),
            label_edges=bool(settings.model.label_edges),
            as_train=settings.self_training if settings.self_training.as_train else None,
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
            stopped = ranks.any_rank(should_stop())
            keeper.keep(log, now=stopped)
            if on_epoch is not None and ranks.is_rank_zero:
                on_epoch(log)
            return stopped

        trainer.fit(after_epoch)
        if stopped:
            raise Interrupted(trainer.epoch, None if folder is None else folder.path)
        model.load_state_dict(trainer.best)
        predicted = (
            Inference(
                trainer.batching,
                task,
                assign_folds(data.node_id, settings.train.folds),
                uses_labels=model.uses_labels,
                postprocess=POSTPROCESS[settings.model.postprocess](settings.model),
            )
            .predict()
            .cpu()
        )
    result = result_of(predicted, data, settings, trainer, clock.seconds)
    predictions = predictions_table(data, predicted)
    if keeps is not None:
        keeps.finish(trainer.best, predictions, result)
    ranks.barrier()
    return Run(model.eval(), settings, predictions, result, None if folder is None else folder.path)


def _trainer(model: Model, task: Task, settings: Settings, dtype: torch.dtype, ranks: Ranks) -> Trainer:
    train = settings.train
    assert train.lr is not None
    assert train.weight_decay is not None
    assert train.alpha is not None
    assert train.epochs is not None
    assert train.patience is not None
    optimizer = make_adam(model.parameter_groups(train.weight_decay), train.lr)
    chosen = settings.as_train
    rule = None
    if chosen is not None:
        names = ("threshold", "delta", "weight", "use_tc", "use_ec")
        rule = ASTrain(**{name: getattr(chosen, name) for name in names})
    objective = Objective(alpha=train.alpha, selection=train.selection, uses_labels=model.uses_labels, rule=rule)
    batching: Batching
    if isinstance(train.batch, str):
        # its own generator: how many numbers dropout draws must not change who is selected
        generator = torch.Generator(task.x.device).manual_seed(train.seed)
        batching = FullBatch(model, task, objective, optimizer, generator, dtype=dtype)
    else:
        # on the host, so that all processes draw alike wherever their graph lies
        generator = torch.Generator().manual_seed(train.seed)
        fanouts = fanouts_for(train.fanout, require_staged(model).num_stages)
        batching = MiniBatch(
            model, task, objective, optimizer, generator, batch=train.batch, fanouts=fanouts, dtype=dtype, ranks=ranks
        )
    return Trainer(
        model, task, batching, optimizer, generator, lr=train.lr, epochs=train.epochs, patience=train.patience
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


def restore(run: RunFolder) -> Model:
    """The model of a finished run, on the CPU."""
    settings, card = run.settings, run.card
    weights = run.weights()
    given = weights.get("encoder.label_embedding.given")
    build = ARCHITECTURES[settings.model.architecture]
    model = build(settings.model, card.features, len(card.classes), given, len(card.types or [""]))
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise InputError(f"the weights in {run.path} do not fit its settings.yaml; restore both from a copy") from None
    return model.eval()
