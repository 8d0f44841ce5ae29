"""The figures of the paper: from finished runs to pictures and the numbers in them."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from legnn.analysis.pictures import CLASS_COLORS, FIRST, MARK, SECOND, new_figure
from legnn.experiments.experiment import Report
from legnn.experiments.plan import Plan
from legnn.experiments.scores import TEST_AND_VAL, groups, mean_table, paired_differences, run_rows
from legnn.runs import Run, RunFolder
from legnn.runs.graphs import reload_graph
from legnn.training import training_confidence as confidence_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DELTAS = (1.0, 5.0, 10.0, 50.0, 100.0)
BANDS = tuple(round(0.90 + 0.01 * k, 2) for k in range(11))


def training_confidence(plan: Plan) -> Report:
    """Accuracy by epoch on each data set, and `TC` for several `δ`."""
    cells = list(plan.cells())
    figure, axes = new_figure(1, len(cells) + 1)
    rows: list[dict[str, Any]] = []
    for axis, cell in zip(axes, cells, strict=False):
        logs = plan.runs(cell)[0].logs()
        by_epoch = [
            {"epoch": log["epoch"], "train": log["train_accuracy"], "val": log["val"].get("accuracy")} for log in logs
        ]
        for name, color in (("train", FIRST), ("val", SECOND)):
            axis.plot([row["epoch"] for row in by_epoch], [row[name] for row in by_epoch], color=color, label=name)
        axis.set(title=f"{cell.source}, {cell.backbone}", xlabel="epoch", ylabel="accuracy")
        axis.legend(frameon=False, fontsize=8)
        about = {"data": cell.source, "backbone": cell.backbone}
        rows += [{**about, **row} for row in by_epoch]
    epochs = np.arange(1, max((row["epoch"] for row in rows), default=500) + 1)
    for delta, color in zip(DELTAS, CLASS_COLORS, strict=False):
        axes[-1].plot(epochs, [confidence_at(int(e), delta) for e in epochs], color=color, label=f"δ = {delta:g}")
    axes[-1].set(title="training confidence", xlabel="epoch", ylabel="TC")
    axes[-1].legend(frameon=False, fontsize=8)
    reached = [
        {"δ": delta, **{f"TC at epoch {e}": confidence_at(e, delta) for e in (10, 50, 100, 500)}} for delta in DELTAS
    ]
    return Report(tables={"Training confidence": pd.DataFrame(reached)}, values=pd.DataFrame(rows), figure=figure)


def pseudo_labels(plan: Plan) -> Report:
    """Accuracy and number of pseudo labels by epoch, with and without `TC`."""
    figure, axes = new_figure(len(plan.request.data), 2)
    rows: list[dict[str, Any]] = []
    table: list[dict[str, Any]] = []
    for cell in plan.cells():
        place = 2 * list(plan.request.data).index(cell.source)
        color = FIRST if cell.variant.name == "with TC" else SECOND
        every = plan.runs(cell)[0].logs()
        logs = [log for log in every if log["pseudo_labels"]]
        epochs = [log["epoch"] for log in logs]
        for axis, name in ((axes[place], "pseudo_label_accuracy"), (axes[place + 1], "pseudo_labels")):
            axis.plot(epochs, [log[name] for log in logs], color=color, label=f"{cell.backbone}, {cell.variant.name}")
            axis.set(title=cell.source, xlabel="epoch", ylabel=name.replace("_", " "))
            axis.legend(frameon=False, fontsize=8)
        about = {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name}
        rows += [
            {**about, "epoch": log["epoch"], "accuracy": log["pseudo_label_accuracy"], "number": log["pseudo_labels"]}
            for log in every
        ]
        first = {"first epoch": epochs[0] if epochs else None, "epochs": plan.results(cell)[0].epochs}
        accuracy = [log["pseudo_label_accuracy"] for log in logs if log["pseudo_label_accuracy"] is not None]
        mean = {"mean accuracy": statistics.fmean(accuracy)} if accuracy else {}
        last = {"last accuracy": accuracy[-1], "last number": logs[-1]["pseudo_labels"]} if accuracy else {}
        table.append({**about, **first, **mean, **last})
    return Report(
        tables={"": pd.DataFrame(table)},
        values=pd.DataFrame(rows),
        figure=figure,
        notes=[
            "The first seed; t = 0.9, δ = 10. The accuracy is over nodes whose class is known; nothing learns from it."
        ],
    )


def probability_bands(plan: Plan) -> Report:
    """Accuracy of confident predictions of unlabeled nodes, by their probability."""
    from legnn.analysis.pseudo_labels import accuracy_by_band

    cells = list(plan.cells())
    figure, axes = new_figure(1, len(cells))
    parts = []
    for axis, cell in zip(axes, cells, strict=True):
        confidence, correct = zip(*(_unlabeled(run) for run in plan.runs(cell)), strict=True)
        bands = accuracy_by_band(np.concatenate(confidence), np.concatenate(correct), BANDS)
        names = [f"{low:.2f}–{high:.2f}" for low, high in zip(bands["low"], bands["high"], strict=True)]
        axis.bar(range(len(bands)), bands["accuracy"], color=FIRST)
        axis.set_xticks(range(len(bands)), names, rotation=60, fontsize=7)
        axis.set(title=f"{cell.source}, {cell.backbone}", xlabel="probability", ylabel="accuracy")
        low = float(np.nanmin([*bands["accuracy"], 1.0]))
        axis.set_ylim(max(0.0, low - 0.05), 1.0)
        parts.append(bands.assign(data=cell.source, backbone=cell.backbone))
    values = pd.concat(parts)[["data", "backbone", "low", "high", "nodes", "accuracy"]]
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
    panels = list(groups(rows, "data", "backbone"))
    figure, axes = new_figure(1, len(panels))
    tables = {}
    for axis, ((data, backbone), part) in zip(axes, panels, strict=True):
        long = mean_table(part, ["x", "group"], {"accuracy": "test_accuracy"}).rename(columns={"x": "S"})
        wide = long.pivot(index="S", columns="group", values="accuracy")[list(dict.fromkeys(long["group"]))]
        tables[f"{data}, {backbone}"] = wide.reset_index().astype({"S": int})
        for ((name,), one), color in zip(groups(part, "group"), CLASS_COLORS[::2], strict=False):
            curve = one.groupby("x")["test_accuracy"].mean()
            axis.plot(curve.index, curve, marker="o", markersize=3, color=color, label=name)
        axis.set(title=f"{data}, {backbone}", xlabel="S", ylabel="test accuracy")
        axis.legend(frameon=False, fontsize=8)
    return Report(tables=tables, values=rows, figure=figure)


def visualization(plan: Plan) -> Report:
    """t-SNE of 10 classes × 500 nodes for each method: test nodes, which show no label."""
    from legnn.analysis.clustering import choose_nodes
    from legnn.analysis.projection import tsne

    cells = list(plan.cells())
    columns = max(len(plan.experiment.variants(cells[0].source)), 1)
    figure, axes = new_figure(-(-len(cells) // columns), columns)
    parts = []
    for axis, cell in zip(axes, cells, strict=True):
        run = Run.open(plan.runs(cell)[0].path)
        found = run.representations()
        chosen = choose_nodes(found.y, (found.split == "test") & (found.y >= 0), seed=0)
        points, y = tsne(found.nodes[chosen], 0), found.y[chosen]
        for number, kind in enumerate(np.unique(y)):
            color = CLASS_COLORS[number % len(CLASS_COLORS)]
            axis.scatter(points[y == kind, 0], points[y == kind, 1], s=2, color=color, linewidths=0)
        axis.set(title=f"{cell.source}, {cell.backbone}, {cell.variant.name}", xticks=[], yticks=[])
        about = {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name}
        names = [run.card.classes[k] for k in y]
        parts.append(
            pd.DataFrame({"id": found.node_id[chosen], "class": names, "x": points[:, 0], "y": points[:, 1]}).assign(
                **about
            )
        )
    values = pd.concat(parts)
    counts = values.groupby(["data", "backbone", "method"], sort=False).size().rename("nodes").reset_index()
    return Report(
        tables={"": counts},
        values=values,
        figure=figure,
        notes=["Test nodes of the first seed, up to 500 of each of the 10 largest classes."],
    )


def confidence_ablation(plan: Plan) -> Report:
    """Test accuracy of AS-Train without `TC`, without `EC` and without both; the dotted line is LEGNN alone."""
    rows = run_rows(plan)
    panels = list(groups(rows, "data", "backbone"))
    figure, axes = new_figure(1, len(panels))
    for axis, ((data, backbone), part) in zip(axes, panels, strict=True):
        bars = {name: one["test_accuracy"] for (name,), one in groups(part, "method")}
        alone = bars.pop("LEGNN").mean()
        deviations = [one.std() if len(one) > 1 else 0.0 for one in bars.values()]
        axis.bar(list(bars), [one.mean() for one in bars.values()], yerr=deviations, color=FIRST, capsize=3)
        axis.axhline(alone, color="black", linestyle=":", label="LEGNN")
        _zoom(axis, [*(one.mean() for one in bars.values()), alone])
        axis.tick_params(axis="x", rotation=20, labelsize=8)
        axis.set(title=f"{data}, {backbone}", ylabel="test accuracy")
        axis.legend(frameon=False, fontsize=8)
    tables = {"": mean_table(rows, ["data", "backbone", "method"], TEST_AND_VAL)}
    notes: list[str] = []
    if plan.request.seeds > 1:
        methods = [name for name in dict.fromkeys(rows["method"]) if name != "LEGNN"]
        tables["Difference of accuracy to LEGNN, paired over seeds"], notes = paired_differences(
            rows, "test_accuracy", "LEGNN", methods
        )
    return Report(tables=tables, values=rows, figure=figure, notes=notes)


def _zoom(axis: Axes, values: list[float]) -> None:
    """Shows differences that would vanish on an axis from 0."""
    span = max(max(values) - min(values), 0.005)
    axis.set_ylim(min(values) - 2 * span, max(values) + span)


def cost(plan: Plan) -> Report:
    """Parameters and inference time of each method."""
    from legnn.analysis.cost import inference_seconds

    rows = []
    for cell in plan.cells():
        run = Run.open(plan.runs(cell)[0].path)
        about = {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name}
        found = {"parameters": run.result.parameters, "inference (s)": inference_seconds(run)}
        tests = [result.test["accuracy"] for result in plan.results(cell) if result.test is not None]
        rows.append({**about, **found, "test accuracy": statistics.fmean(tests) if tests else None})
    values = pd.DataFrame(rows)
    panels = list(groups(values, "data", "backbone"))
    figure, axes = new_figure(len(panels), 2)
    for number, ((data, backbone), part) in enumerate(panels):
        for axis, name, color in (
            (axes[2 * number], "parameters", FIRST),
            (axes[2 * number + 1], "inference (s)", SECOND),
        ):
            axis.bar(part["method"], part[name], color=color)
            axis.set(title=f"{data}, {backbone}", ylabel=name)
    return Report(
        tables={"": values}, values=values, figure=figure,
        notes=["Inference: all nodes at once with every training label shown, median of several."],
    )  # fmt: skip


def sensitivity(plan: Plan) -> Report:
    """Test accuracy over `α`, `δ`, `λ` and `D`."""
    rows = run_rows(plan)
    varied = list(dict.fromkeys(rows["group"]))
    figure, axes = new_figure(1, len(varied))
    for axis, group in zip(axes, varied, strict=True):
        part = rows[rows["group"] == group]
        for (name, one), color in zip(groups(part, "data", "backbone"), CLASS_COLORS[::2], strict=False):
            by_x = one.groupby("x")["test_accuracy"]
            # graphs differ by more than settings do: each curve is drawn about its own mean
            curve = by_x.mean() - by_x.mean().mean()
            deviation = by_x.std().fillna(0.0)
            axis.errorbar(range(len(curve)), curve, yerr=deviation, marker="o", markersize=3, capsize=2, color=color,
                          label=", ".join(map(str, name)))  # fmt: skip
            axis.set_xticks(range(len(curve)), [f"{x:g}" for x in curve.index])
        axis.axhline(0.0, color=MARK, linewidth=0.6)
        axis.set(title=f"effect of {group}", xlabel=group, ylabel="test accuracy − mean of the curve")
        axis.legend(frameon=False, fontsize=8)
    columns = {"test accuracy": "test_accuracy", "validation accuracy": "val_accuracy"}
    table = mean_table(rows, ["data", "backbone", "method"], columns)
    return Report(tables={"": table}, values=rows, figure=figure)
