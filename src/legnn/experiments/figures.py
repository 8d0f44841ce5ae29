"""The figures of the paper as data: from finished runs to points, which `draw_points` draws."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pandas as pd

from legnn.analysis.pictures import draw_points
from legnn.experiments.experiment import Report
from legnn.experiments.plan import Cell, Plan
from legnn.experiments.scores import TEST_AND_VAL, groups, mean_table, paired_differences, run_rows
from legnn.runs import Run, RunFolder
from legnn.runs.graphs import reload_graph
from legnn.training import training_confidence as confidence_at

DELTAS = (1.0, 5.0, 10.0, 50.0, 100.0)


def _columns(cell: Cell) -> dict[str, Any]:
    """The first columns of the rows of a cell."""
    return {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name}


def _points(rows: pd.DataFrame, panel: pd.Series | str, series: pd.Series | str, x: str, y: str) -> pd.DataFrame:
    """Points of some panels of a figure, from two columns of `rows`."""
    return pd.DataFrame({"panel": panel, "series": series, "x": rows[x], "y": rows[y]})


def _panel(rows: pd.DataFrame) -> pd.Series:
    return rows["data"] + ", " + rows["backbone"]


def training_confidence(plan: Plan) -> Report:
    """Accuracy by epoch on each data set, and `TC` for several `δ`."""
    values = pd.DataFrame(
        {**_columns(cell), "epoch": log["epoch"], "train": log["train_accuracy"], "val": log["val"].get("accuracy")}
        for cell in plan.cells()
        for log in plan.runs(cell)[0].logs()
    )
    epochs = range(1, int(values["epoch"].max()) + 1)
    curves = pd.DataFrame(
        {"series": f"δ = {delta:g}", "epoch": epoch, "TC": confidence_at(epoch, delta)}
        for delta in DELTAS
        for epoch in epochs
    )
    points = [_points(values, _panel(values), name, "epoch", name) for name in ("train", "val")]
    points.append(_points(curves, "training confidence", curves["series"], "epoch", "TC"))
    reached = [
        {"δ": delta, **{f"TC at epoch {e}": confidence_at(e, delta) for e in (10, 50, 100, 500)}} for delta in DELTAS
    ]
    figure = draw_points(pd.concat(points), x="epoch", y="accuracy, TC")
    return Report(tables={"Training confidence": pd.DataFrame(reached)}, values=values, figure=figure)


def pseudo_labels(plan: Plan) -> Report:
    """Accuracy and number of pseudo labels by epoch, with and without `TC`."""
    rows: list[dict[str, Any]] = []
    table: list[dict[str, Any]] = []
    for cell in plan.cells():
        logs = [
            {"epoch": log["epoch"], "accuracy": log["pseudo_label_accuracy"], "number": log["pseudo_labels"]}
            for log in plan.runs(cell)[0].logs()
        ]
        rows += [{**_columns(cell), **log} for log in logs]
        chosen = [log for log in logs if log["number"]]
        accuracy = [log["accuracy"] for log in chosen if log["accuracy"] is not None]
        row = {"first epoch": chosen[0]["epoch"] if chosen else None, "epochs": len(logs)}
        if accuracy:
            row |= {"mean accuracy": statistics.fmean(accuracy), "last accuracy": accuracy[-1]}
            row |= {"last number": chosen[-1]["number"]}
        table.append({**_columns(cell), **row})
    values = pd.DataFrame(rows)
    shown, series = values[values["number"] > 0], values["backbone"] + ", " + values["method"]
    points = [
        _points(shown, shown["data"] + f": {name}", series[shown.index], "epoch", name)
        for name in ("accuracy", "number")
    ]
    notes = [
        "The first seed; t = 0.9, δ = 10. The accuracy is over nodes whose class is known; nothing learns from it."
    ]
    figure = draw_points(pd.concat(points), x="epoch", y="pseudo labels")
    return Report(tables={"": pd.DataFrame(table)}, values=values, figure=figure, notes=notes)


def probability_bands(plan: Plan) -> Report:
    """Accuracy of confident predictions of unlabeled nodes, by their probability."""
    from legnn.analysis.pseudo_labels import accuracy_by_band

    parts = []
    for cell in plan.cells():
        confidence, correct = zip(*(_unlabeled(run) for run in plan.runs(cell)), strict=True)
        bands = accuracy_by_band(np.concatenate(confidence), np.concatenate(correct))
        parts.append(bands.assign(**_columns(cell)))
    values = pd.concat(parts, ignore_index=True)[["data", "backbone", "low", "high", "nodes", "accuracy"]]
    named = values.assign(band=values["low"].map("{:.2f}–".format) + values["high"].map("{:.2f}".format))
    points = _points(named, _panel(named), "accuracy", "band", "accuracy")
    figure = draw_points(points, kind="bar", x="probability", y="accuracy")
    return Report(tables={"": values}, values=values, figure=figure, notes=["Validation and test nodes of every seed."])


def _unlabeled(folder: RunFolder) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and correctness of the nodes of known class that are not in training."""
    run = Run.open(folder.path)
    graph, table = reload_graph(folder), run.predictions
    rows = slice(None) if graph.target_index is None else graph.target_index
    y = graph.y[rows].numpy()
    names = np.array(run.card.classes, dtype=object)
    known = (table["split"] != "train").to_numpy() & (y >= 0)
    right = table["prediction"].to_numpy()[known] == names[y[known]]
    return table["confidence"].to_numpy()[known], right


def synthetic(plan: Plan) -> Report:
    """Test accuracy over `S`, for each method."""
    rows = run_rows(plan)
    tables = {}
    for (data, backbone), part in groups(rows, "data", "backbone"):
        long = mean_table(part, ["x", "group"], {"accuracy": "test_accuracy"}).rename(columns={"x": "S"})
        wide = long.pivot(index="S", columns="group", values="accuracy")[list(dict.fromkeys(long["group"]))]
        tables[f"{data}, {backbone}"] = wide.reset_index().astype({"S": int})
    means = rows.groupby(["data", "backbone", "group", "x"], sort=False)["test_accuracy"].mean().reset_index()
    figure = draw_points(_points(means, _panel(means), means["group"], "x", "test_accuracy"), x="S", y="test accuracy")
    return Report(tables=tables, values=rows, figure=figure)


def visualization(plan: Plan) -> Report:
    """t-SNE of 10 classes × 500 nodes for each method: test nodes, which show no label."""
    from legnn.analysis.clustering import choose_nodes
    from legnn.analysis.projection import tsne

    parts = []
    for cell in plan.cells():
        run = Run.open(plan.runs(cell)[0].path)
        states = run.representations()
        nodes = choose_nodes(states.y, (states.split == "test") & (states.y >= 0), seed=0)
        x, y = tsne(states.nodes[nodes], 0).T
        names = [run.card.classes[k] for k in states.y[nodes]]
        parts.append(
            pd.DataFrame({"id": states.node_id[nodes], "class": names, "x": x, "y": y}).assign(**_columns(cell))
        )
    values = pd.concat(parts, ignore_index=True)
    counts = values.groupby(["data", "backbone", "method"], sort=False).size().rename("nodes").reset_index()
    notes = ["Test nodes of the first seed, up to 500 of each of the 10 largest classes."]
    points = _points(values, _panel(values) + ", " + values["method"], values["class"].astype(str), "x", "y")
    return Report(tables={"": counts}, values=values, figure=draw_points(points, kind="scatter"), notes=notes)


def confidence_ablation(plan: Plan) -> Report:
    """Test accuracy of AS-Train without `TC`, without `EC` and without both, beside that of LEGNN alone."""
    rows = run_rows(plan)
    scores = (
        rows.groupby(["data", "backbone", "method"], sort=False)["test_accuracy"].agg(["mean", "std"]).reset_index()
    )
    points = _points(scores, _panel(scores), "test accuracy", "method", "mean").assign(std=scores["std"])
    tables = {"": mean_table(rows, ["data", "backbone", "method"], TEST_AND_VAL)}
    notes: list[str] = []
    if plan.request.seeds > 1:
        methods = [name for name in dict.fromkeys(rows["method"]) if name != "LEGNN"]
        tables["Difference of accuracy to LEGNN, paired over seeds"], notes = paired_differences(
            rows, "test_accuracy", "LEGNN", methods
        )
    return Report(tables=tables, values=rows, figure=draw_points(points, kind="bar", y="test accuracy"), notes=notes)


def cost(plan: Plan) -> Report:
    """Parameters and inference time of each method."""
    from legnn.analysis.cost import inference_seconds

    rows = []
    for cell in plan.cells():
        run = Run.open(plan.runs(cell)[0].path)
        measured = {"parameters": run.result.parameters, "inference (s)": inference_seconds(run)}
        tests = [result.test["accuracy"] for result in plan.results(cell) if result.test is not None]
        rows.append({**_columns(cell), **measured, "test accuracy": statistics.fmean(tests) if tests else None})
    values = pd.DataFrame(rows)
    points = [
        _points(values, _panel(values) + f": {name}", name, "method", name) for name in ("parameters", "inference (s)")
    ]
    notes = ["Inference: all nodes at once with every training label shown, median of several."]
    return Report(tables={"": values}, values=values, figure=draw_points(pd.concat(points), kind="bar"), notes=notes)


def sensitivity(plan: Plan) -> Report:
    """Test accuracy over `α`, `δ`, `λ` and `D`."""
    rows = run_rows(plan)
    scores = (
        rows.groupby(["group", "data", "backbone", "x"], sort=False)["test_accuracy"].agg(["mean", "std"]).reset_index()
    )
    # graphs differ by more than settings do: each curve is drawn about its own mean
    centered = scores["mean"] - scores.groupby(["group", "data", "backbone"], sort=False)["mean"].transform("mean")
    scores = scores.assign(mean=centered, x=scores["x"].map("{:g}".format))
    points = _points(scores, scores["group"], _panel(scores), "x", "mean").assign(std=scores["std"])
    columns = {"test accuracy": "test_accuracy", "validation accuracy": "val_accuracy"}
    table = mean_table(rows, ["data", "backbone", "method"], columns)
    figure = draw_points(points, y="test accuracy − mean of the curve")
    return Report(tables={"": table}, values=rows, figure=figure)
