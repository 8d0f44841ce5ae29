"""Cross-fitting: every training node predicted by a model that never saw its label, one run for each fold of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from legnn.config import CommonSettings, ResolvedSettings, Settings, collect
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, Interrupted, plural, some_of
from legnn.files import atomic_write, empty_folder, write_text
from legnn.io.table_files import read_table
from legnn.lazy import pandas as pd
from legnn.locks import LOCK, hold_folder
from legnn.notes import Note
from legnn.runs.build import check_settings
from legnn.runs.data_card import DataCard
from legnn.runs.digests import check_digest, write_digests
from legnn.runs.folder import RunFolder, check_free
from legnn.runs.graphs import MEMORY, check_unchanged, hide_fold, load_graph, load_new
from legnn.runs.processes import under_torchrun
from legnn.runs.progress import Callbacks, follow
from legnn.runs.result import MeanScores, Result, mean_scores, versions
from legnn.runs.run import Run
from legnn.runs.session import resolve_for, start_or_continue, start_run
from legnn.training import EpochLog, Scores, assign_folds, score
from legnn.typed_json import read_json, to_json, write_json

PLAN, RESULT, PREDICTIONS = "cross_fit.json", "summary.json", "cross_fitted.parquet"


@dataclass(frozen=True, kw_only=True)
class CrossFitPlan:
    """What `cross_fit.json` holds: the settings as they were given, which each fold resolves for itself."""

    folds: int
    preset: str
    values: dict[str, str | int | float | bool]

    @property
    def settings(self) -> Settings:
        """The settings of every fold."""
        return Settings(preset=self.preset, values=self.values)


@dataclass(frozen=True, kw_only=True)
class CrossFitResult:
    """The scores of cross-fitting and what they were obtained with."""

    train_cross_fitted: Scores
    """Of the training nodes, each predicted by the model of its fold, which was trained without the fold's labels."""
    val: MeanScores | None
    test: MeanScores | None
    """Mean over the models, each of which has fewer training labels than a run on all of them."""
    folds: int
    models: int
    """A fold without training nodes needs none."""
    seconds: float
    parameters: int
    """Of one model."""
    versions: dict[str, str]
    notes: list[Note]


@dataclass(frozen=True)
class CrossFit:
    """A finished cross-fitting: its scores, and its predictions of training nodes."""

    result: CrossFitResult
    predictions: pd.DataFrame
    """id, label, prediction, confidence and fold of every training node, and `p_CLASS` of every class."""
    folder: Path | None = None
    """Where it was saved, if it was; the runs are in its folders `fold-0`, `fold-1`, …"""

    @classmethod
    def open(cls, folder: str | Path) -> CrossFit:
        """Returns the finished cross-fitting that a folder holds."""
        path = Path(folder)
        if not is_cross_fit_folder(path):
            raise InputError(f"{path} is not a folder of cross-fitted runs: it has no {PLAN}")
        if not (path / RESULT).is_file():
            raise InputError(f"{path} is not finished; continue it with `resume={path}`")
        table = read_table(path / PREDICTIONS, keys=["id", "label", "prediction"])
        columns = {name: table.columns[name].to_numpy() for name in table.names}
        return cls(read_json(path / RESULT, CrossFitResult), pd.DataFrame(columns), path)


def cross_fit(
    data: Source = "digits",
    *,
    folds: int,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    on_fold: Callable[[int], None] = lambda fold: None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **common: Unpack[CommonSettings],
) -> CrossFit:
    """Trains a model for each of `folds` without the labels of its training nodes, and predicts those nodes with it.

    A node's fold follows from its id. Its label is removed from the graph on which the model of that fold chooses its
    settings, trains, is scored and predicts: the prediction cannot depend on it. The split and the list of classes are
    taken as they are.

    With `out`, the model of fold `k` is the run `out/fold-k`, and `out/cross_fitted.parquet` the predictions.
    `resume_cross_fit(out)` finishes what is missing. The other arguments are those of `train`.
    """
    if under_torchrun():
        raise InputError("several processes train one run together; cross-fit in one process")
    if folds < 2:
        raise InputError(f"cross-fitting needs at least 2 folds, got {folds}")
    graph, loaded = load_new(collect(settings, common, preset=preset), data)
    _check_folds(graph, loaded, folds)
    plan = CrossFitPlan(folds=folds, preset=loaded.preset, values=dict(loaded.values))
    for _, part in _fold_graphs(graph, folds):
        check_settings(loaded.resolve(part.facts()), part, DataCard.of(part))
    with follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        if out is None:
            return _train_each(graph, plan, None, on_fold, callbacks)
        with hold_folder(Path(out)):
            _create(Path(out), plan)
            return _train_each(graph, plan, Path(out), on_fold, callbacks)


def _create(folder: Path, plan: CrossFitPlan) -> None:
    check_free(folder)
    empty_folder(folder, keep=LOCK)
    text = to_json(plan)
    write_digests(folder, {PLAN: text.encode()})
    write_text(folder / PLAN, text)


def resume_cross_fit(
    out: str | Path,
    data: Source | None = None,
    *,
    on_fold: Callable[[int], None] = lambda fold: None,
    on_epoch: Callable[[EpochLog], None] = lambda log: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> CrossFit:
    """Finishes an interrupted cross-fitting: finished folds are kept, a half-done one continues."""
    folder = Path(out)
    if not is_cross_fit_folder(folder):
        raise InputError(f"{folder} is not a folder of cross-fitted runs: it has no {PLAN}")
    if (folder / RESULT).is_file():
        return CrossFit.open(folder)
    with hold_folder(folder), follow(Callbacks(on_epoch, should_stop), visible=progress) as callbacks:
        return _resume_each(folder, data, on_fold, callbacks)


def _resume_each(folder: Path, data: Source | None, on_fold: Callable[[int], None], callbacks: Callbacks) -> CrossFit:
    plan = read_json(folder / PLAN, CrossFitPlan)
    check_digest(folder / PLAN)
    source = plan.settings.data.source
    if data is None and source == MEMORY:
        raise InputError(f"{folder} was trained on data in memory; give the same data again")
    begun = [RunFolder(path.parent) for path in sorted(folder.glob("fold-*/settings.yaml"))]
    # what was fitted to the tables for the first fold holds for all
    fitted = begun[0].table_features if begun else None
    graph = load_graph(plan.settings.data, source if data is None else data, fitted)
    for run in begun:
        hidden = run.card.hidden_fold
        check_unchanged(run, graph if hidden is None else hide_fold(graph, *hidden))
    return _train_each(graph, plan, folder, on_fold, callbacks)


def is_cross_fit_folder(path: Path) -> bool:
    """Whether a folder holds cross-fitted runs."""
    return (path / PLAN).is_file()


def _check_folds(graph: GraphData, settings: Settings, folds: int) -> None:
    """Raises `InputError` where no model could be trained without the labels of a fold."""
    if settings.data.cross_label_edges:
        raise InputError("data.cross_label_edges uses all labels to add edges, so no label can be masked; set it to 0")
    used = assign_folds(graph.node_id, folds)[graph.train_mask].unique().numel()
    if used < 2:
        raise InputError(
            f"all {plural(int(graph.train_mask.sum()), 'training node')} of {graph.name} are in one of {folds} folds, "
            "without which none is left to train on; give more folds or more labels"
        )


def _fold_graphs(graph: GraphData, folds: int) -> Iterator[tuple[int, GraphData]]:
    """The folds that have training nodes, each with the graph in which these are unlabeled."""
    for fold in assign_folds(graph.node_id, folds)[graph.train_mask].unique().tolist():
        yield fold, hide_fold(graph, fold, folds)


def _train_each(
    graph: GraphData, plan: CrossFitPlan, out: Path | None, on_fold: Callable[[int], None], callbacks: Callbacks
) -> CrossFit:
    results: list[Result] = []
    probabilities = torch.zeros(graph.num_nodes, graph.num_classes)
    for fold, part in _fold_graphs(graph, plan.folds):
        on_fold(fold)
        callbacks.on_run(f"fold {fold}")
        part, settings = resolve_for(part, plan.settings)
        held = (graph.train_mask & ~part.train_mask).nonzero().flatten()
        folder = None if out is None else out / f"fold-{fold}"
        try:
            run = _run(part, settings, folder, callbacks)
        except Interrupted as stop:
            # what continues later is all of them, not this one fold
            raise Interrupted(stop.epoch, out) from None
        results.append(run.result)
        probabilities[held] = _predict(run, part, held)
    table = _table(graph, plan.folds, probabilities)
    result = _result(graph, plan.folds, probabilities, results)
    if out is not None:
        _write_table(out / PREDICTIONS, table)
        write_json(out / RESULT, result)
    return CrossFit(result, table, out)


def _run(graph: GraphData, settings: ResolvedSettings, folder: Path | None, callbacks: Callbacks) -> Run:
    if folder is None:
        return start_run(graph, settings, None, callbacks)
    start_or_continue(graph, settings, folder, callbacks)
    return Run.open(folder)


def _predict(run: Run, graph: GraphData, held: Tensor) -> Tensor:
    """`[n, C]` probabilities of the nodes `held`, which have no label in `graph`, on the CPU."""
    with run.inference(graph, device=run.settings.train.device) as (_, inference):
        return inference.proba(held.to(inference.task.train.device)).float().cpu()


def _table(graph: GraphData, folds: int, probabilities: Tensor) -> pd.DataFrame:
    nodes = graph.train_mask.nonzero().flatten()
    p, predicted = probabilities[nodes].max(-1)
    names = graph.class_names
    columns = {
        "id": graph.node_id[nodes.numpy()],
        "label": [names[c] for c in graph.y[nodes].tolist()],
        "prediction": [names[c] for c in predicted.tolist()],
        "confidence": p.numpy(),
        "fold": assign_folds(graph.node_id, folds)[nodes].numpy(),
    }
    columns |= {f"p_{name}": probabilities[nodes, c].numpy() for c, name in enumerate(names)}
    return pd.DataFrame(columns)


def _write_table(path: Path, table: pd.DataFrame) -> None:
    with atomic_write(path) as file:
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(), file)


def _result(graph: GraphData, folds: int, probabilities: Tensor, results: list[Result]) -> CrossFitResult:
    mask = graph.train_mask
    scores = score(probabilities[mask], graph.y[mask])
    assert scores is not None, "there are training nodes"
    return CrossFitResult(
        train_cross_fitted=scores,
        val=mean_scores([result.val for result in results]),
        test=mean_scores([result.test for result in results]),
        folds=folds,
        models=len(results),
        seconds=round(sum(one.seconds for one in results), 3),
        parameters=results[0].parameters,
        versions=versions(),
        notes=[*graph.notes, *_absent_classes(graph, folds)],
    )


def _absent_classes(graph: GraphData, folds: int) -> list[Note]:
    """A note on classes whose training nodes are all in one fold, of which the model of that fold knows none."""
    fold, y = assign_folds(graph.node_id, folds)[graph.train_mask], graph.y[graph.train_mask]
    absent = [str(name) for c, name in enumerate(graph.class_names) if fold[y == c].unique().numel() == 1]
    if not absent:
        return []
    text = f"All training nodes of {some_of(absent)} are in one fold, whose model cannot predict them."
    return [Note("class-in-one-fold", text)]
