"""Cross-fitting: a sweep over folds, in which every training node is predicted by a model without its label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from legnn.config import CommonSettings, Settings, collect
from legnn.data import GraphData
from legnn.datasets import Source
from legnn.errors import InputError, plural, some_of
from legnn.files import atomic_write
from legnn.lazy import pandas as pd
from legnn.locks import hold_folder
from legnn.notes import Note
from legnn.runs.build import check_settings
from legnn.runs.cross_fitting import (
    CROSS_FITTED,
    CrossFit,
    CrossFitPlan,
    CrossFitResult,
)
from legnn.runs.data_card import DataCard
from legnn.runs.digests import check_digest
from legnn.runs.folder import CROSS_FIT, SUMMARY, fold_name
from legnn.runs.graphs import hide_fold
from legnn.runs.processes import under_torchrun
from legnn.runs.result import Result, mean_scores, versions
from legnn.runs.run import Run
from legnn.sweep.executors import executor_for
from legnn.sweep.plan import Trial
from legnn.sweep.sweep import create_folder, sweep_folder, train_trials
from legnn.sweep.tasks import Event, load_data
from legnn.training import assign_folds, score
from legnn.typed_json import read_json, write_json


def cross_fit(
    data: Source = "digits",
    *,
    folds: int,
    preset: str | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
    **common: Unpack[CommonSettings],
) -> CrossFit:
    """Trains a model for each of `folds` without the labels of its training nodes, and predicts those nodes with it.

    A node's fold follows from its id. Its label is removed from the graph on which the model of that fold chooses its
    settings, trains, is scored and predicts: the prediction cannot depend on it. The split and the list of classes are
    taken as they are.

    With `out`, the model of fold `k` is the run `out/fold-k`, and `out/cross_fitted.parquet` the predictions.
    `resume(out)` finishes what is missing. `on_event` is called with every epoch of every fold; the other
    arguments are those of `train`.
    """
    if under_torchrun():
        raise InputError("several processes train one run together; cross-fit in one process")
    if folds < 2:
        raise InputError(f"cross-fitting needs at least 2 folds, got {folds}")
    graph, loaded, source = load_data(collect(settings, common, preset=preset), data)
    _check_folds(graph, loaded, folds)
    plan = CrossFitPlan(folds=folds, preset=loaded.preset, values=dict(loaded.values))
    for _, part in _fold_graphs(graph, folds):
        check_settings(loaded.resolve(part.facts()), part, DataCard.of(part, fingerprint=""))
    with sweep_folder(out) as folder:
        create_folder(folder, CROSS_FIT, plan)
        return _train(plan, source, folder, on_event, should_stop, progress=progress, is_temporary=out is None)


def resume_cross_fit(
    out: str | Path,
    data: Source | None = None,
    *,
    on_event: Callable[[Event], None] = lambda event: None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> CrossFit:
    """Finishes an interrupted cross-fitting: finished folds are read, a half-done one continues."""
    folder = Path(out)
    if not (folder / CROSS_FIT).is_file():
        raise InputError(f"{folder} is not a folder of cross-fitted runs: it has no {CROSS_FIT}")
    if (folder / SUMMARY).is_file():
        return CrossFit.open(folder)
    with hold_folder(folder):
        plan = read_json(folder / CROSS_FIT, CrossFitPlan)
        check_digest(folder / CROSS_FIT)
        return _train(plan, data, folder, on_event, should_stop, progress=progress)


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


def _train(
    plan: CrossFitPlan,
    data: Source | None,
    folder: Path,
    on_event: Callable[[Event], None],
    should_stop: Callable[[], bool],
    *,
    progress: bool,
    is_temporary: bool = False,
) -> CrossFit:
    graph, settings, source = load_data(plan.settings, data, folder)
    parts = dict(_fold_graphs(graph, plan.folds))
    trials = [
        Trial(name=fold_name(fold), data=source, settings=settings, hidden_fold=(fold, plan.folds)) for fold in parts
    ]
    executor = executor_for(graph, settings.resolve(graph.facts()), len(trials))
    train_trials(folder, trials, executor, on_event, should_stop, progress=progress)
    runs: list[Run] = []
    probabilities = torch.zeros(graph.num_nodes, graph.num_classes)
    for fold, part in parts.items():
        run = Run.open(folder / fold_name(fold))
        hidden = (graph.train_mask & ~part.train_mask).nonzero().flatten()
        probabilities[hidden] = _predict(run, part, hidden)
        runs.append(
            replace(run, graph=replace(part, notes=run.card.notes), folder=None if is_temporary else run.folder)
        )
    table = _table(graph, plan.folds, probabilities)
    result = _result(graph, plan.folds, probabilities, [run.result for run in runs])
    if not is_temporary:
        _write_table(folder / CROSS_FITTED, table)
        write_json(folder / SUMMARY, result)
    weights, stored = [1 / len(runs)] * len(runs), None if is_temporary else folder
    return CrossFit(runs, weights, folder=stored, scores=result, table=table)


def _predict(run: Run, graph: GraphData, nodes: Tensor) -> Tensor:
    """`[n, C]` probabilities of `nodes`, which have no label in `graph`, on the CPU."""
    with run.inference(graph, device=run.settings.train.device) as (_, inference):
        return inference.proba(nodes.to(inference.task.train.device)).float().cpu()


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
        seconds=round(sum(result.seconds for result in results), 3),
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
