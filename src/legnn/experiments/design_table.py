"""The comparison of designs: scores and costs, tests against LEGNN, and ranks over the data sets."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from legnn.analysis.cost import REPEATS, WARM_UP, training_cost
from legnn.analysis.pictures import FIRST, MARK, new_figure
from legnn.analysis.ranks import critical_difference, friedman_p_value, mean_ranks
from legnn.config import DataSettings
from legnn.errors import plural
from legnn.experiments import paper_values
from legnn.experiments.experiment import Report
from legnn.experiments.plan import Cell, Plan
from legnn.experiments.scores import (
    LEVEL,
    groups,
    has_papers_data,
    mean_std,
    pooled_differences,
    read_rows,
    run_rows,
    written,
)
from legnn.experiments.tables import OTHER_FEATURES, SCORES
from legnn.experiments.variants import AS_TRAIN, LEGNN
from legnn.runs import RunFolder
from legnn.runs.graphs import reload_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def designs(plan: Plan) -> Report:
    """Every design on every data set: scores, published figures, costs, paired tests, and ranks with their picture."""
    several = len(plan.request.backbones) > 1
    rows = _with_column(run_rows(plan), several)
    # rows of another command have their own epochs and settings: they count in tests and ranks alone
    every = pd.concat([*(_with_column(read_rows(path), several) for path in plan.request.compare_with), rows])
    tables = {f"Test {name}": _wide(rows, column) for name, column in SCORES.items()}
    if len(published := _published(plan, rows)):
        tables["Published figures"] = published
    notes = [f"Mean ± unbiased deviation over {plan.request.seeds} seeds.", OTHER_FEATURES]
    if plan.request.compare_with:
        notes.append(
            f"Tests and ranks are over these data sets and those of {', '.join(map(str, plan.request.compare_with))}."
        )
    names = list(dict.fromkeys(every["method"]))
    for base in (LEGNN.name, AS_TRAIN.name):
        others = [name for name in names if name != base]
        if base in names and len(differences := pooled_differences(every, "test_accuracy", base, others)):
            tables[f"Difference of test accuracy to {base}"] = differences
    notes.append(
        "Differences are paired over data sets and seeds; p is that of the paired t-test over all pairs, adjusted by "
        f"Holm's rule for the number of designs, and * marks p < {LEVEL}. Seeds of one data set are not independent "
        "samples of data: ranks, which count each data set once, are the stricter comparison."
    )
    ranked, figure, sentences = rank_designs(every)
    tables |= ranked | {"Cost": _cost(plan)}
    notes += [
        *sentences,
        "Cost: means over seeds; seconds an epoch are those of the run, validation and its last prediction included, "
        "divided by its epochs, while runs shared the device (`design-cost` measures each alone); setting: which of "
        "those that the design tried was best on validation, and of how many.",
    ]
    return Report(tables=tables, values=rows.drop(columns="column"), figure=figure, notes=notes)


def _with_column(rows: pd.DataFrame, several: bool) -> pd.DataFrame:
    """The rows with the `column` of their table: a data set, or a data set and a backbone where there are several."""
    columns = rows["data"].map(lambda source: Path(source).name)
    return rows.assign(column=columns + ", " + rows["backbone"] if several else columns)


def design_cost(plan: Plan) -> Report:
    """Seconds of a training epoch and peak memory of every design, measured anew and alone on the device."""
    table: list[dict[str, Any]] = []
    graph, data = None, None
    for cell in plan.cells():
        for folder in plan.runs(cell)[:1]:
            if graph is None or folder.settings.data != data:
                # the designs of a data set share its graph, which is read once
                graph, data = reload_graph(folder), folder.settings.data
            cost = training_cost(folder, graph, str(plan.request.settings.get("train.device", "auto")))
            peak = None if cost.peak_bytes is None else cost.peak_bytes / 2**30
            row = _first_columns(plan, cell) | {"parameters": folder.result().parameters}
            table.append({**row, "s an epoch": cost.seconds, "peak memory (GiB)": peak})
    values = pd.DataFrame(table)
    notes = [
        f"The run of seed 0 of each design, with new weights: the median of {REPEATS} epochs of training after "
        f"{WARM_UP} to warm up, without validation, and nothing else on the device. Peak memory is what PyTorch "
        "allocates on a GPU, graph and features included; on a CPU it is not measured.",
    ]
    return Report(tables={"": values}, values=values, notes=notes)


def _first_columns(plan: Plan, cell: Cell) -> dict[str, Any]:
    """The first columns of a table of costs."""
    columns = {"design": cell.variant.name, "data": Path(cell.source).name}
    return columns | ({"backbone": cell.backbone} if len(plan.request.backbones) > 1 else {})


def _wide(rows: pd.DataFrame, score: str) -> pd.DataFrame:
    """One row a design, one column a data set."""
    table = [
        {"design": name, **{column: mean_std(list(cell[score])) for (column,), cell in groups(part, "column")}}
        for (name,), part in groups(rows, "method")
    ]
    return pd.DataFrame(table)[["design", *dict.fromkeys(rows["column"])]].fillna("")


def _published(plan: Plan, rows: pd.DataFrame) -> pd.DataFrame:
    """Published accuracies where data, features and split are the same, ours beside them where the design has run."""
    ours = {key: mean_std(list(part["test_accuracy"])) for key, part in groups(rows, "data", "method")}
    table: list[dict[str, str]] = []
    for source in plan.request.data:
        figures: dict[str, str] = {}
        if has_papers_data(plan, source):
            figures = {name: written(score) for name, score in paper_values.DESIGNS[source].items()}
        elif source in paper_values.PUBLISHED_DESIGNS and _has_public_split(plan, source):
            published = paper_values.PUBLISHED_DESIGNS[source]
            figures = {name: f"{value:.3f}" for name, value in published.items() if (source, name) in ours}
        table += [
            {"data": source, "design": name, "ours": ours.get((source, name), ""), "published": figure}
            for name, figure in figures.items()
        ]
    return pd.DataFrame(table)


def _has_public_split(plan: Plan, source: str) -> bool:
    """Whether the runs on a Planetoid graph have its own features, its own edges and the public split."""

    def is_public(run: RunFolder) -> bool:
        data = run.settings.data
        return data.features == "given" and data.split == DataSettings.split and not data.cross_label_edges

    return all(is_public(run) for cell in plan.cells() if cell.source == source for run in plan.runs(cell))


def _cost(plan: Plan) -> pd.DataFrame:
    """Parameters, epochs, seconds an epoch and the chosen setting of each design on each data set."""
    table: list[dict[str, Any]] = []
    for cell in plan.cells():
        results, best = plan.results(cell), plan.best_candidate(cell)
        if not results or best is None:
            continue
        epochs = sum(result.epochs for result in results)
        seconds = sum(result.seconds for result in results)
        row = _first_columns(plan, cell) | {"parameters": results[0].parameters, "epochs": round(epochs / len(results))}
        table.append({**row, "s an epoch": seconds / epochs, "setting": f"{best + 1} of {plan.num_candidates(cell)}"})
    return pd.DataFrame(table)


def rank_designs(rows: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], Figure | None, list[str]]:
    """Tables of mean ranks, the picture of the first, and sentences about them.

    Designs that ran on every data set are ranked over all of them. Where some ran on a part only, such as those for
    several node types, all designs are ranked once more, over the data sets that all of them ran on.
    """
    means = rows.astype({"test_accuracy": float}).groupby(["column", "method"], sort=False)["test_accuracy"].mean()
    scores = means.unstack("method").reindex(index=rows["column"].unique(), columns=rows["method"].unique())
    scores = scores.dropna(how="all")
    parts = {"of the designs that ran on all data sets": scores.dropna(axis=1)}
    parts["on the data sets that all designs ran on"] = scores.dropna(axis=0)
    if scores.notna().all(axis=None):
        parts = {"": scores}
    tables: dict[str, pd.DataFrame] = {}
    figure, notes = None, []
    for which, part in parts.items():
        heading = f"Mean ranks {which}".rstrip()
        N, k = part.shape
        if N < 2 or k < 2:
            few = f"{plural(N, 'data set')} and {plural(k, 'design')}"
            notes.append(f"{heading}: none, for there would be {few}, and ranks need two of each.")
            continue
        ranks, difference = mean_ranks(part), critical_difference(k, N)
        behind = ranks - ranks.min()
        marks = [f"{value:.2f}{'*' if value > difference else ''}" for value in behind]
        table = pd.DataFrame({"design": part.columns, "mean rank": ranks.round(2), "behind the best": marks})
        tables[heading] = table.sort_values("mean rank", kind="stable")
        p = friedman_p_value(part)
        p_value = "p < 0.0001" if p < 1e-4 else f"p = {p:.4f}"
        friedman = "" if math.isnan(p) else f" Friedman's test that all rank alike: {p_value}."
        notes.append(
            f"{heading}: of mean test accuracy on {N} data sets, 1 is the best.{friedman} Nemenyi's critical "
            f"difference of {k} designs at {LEVEL} is {difference:.2f}; * marks what is farther behind the best."
        )
        if figure is None:
            ours = {name for name in part.columns if name.startswith(LEGNN.name)}
            figure = draw_ranks(list(part.columns), ranks.tolist(), difference, ours)
    return tables, figure, notes


def draw_ranks(designs: Sequence[str], ranks: Sequence[float], difference: float, marked: Collection[str]) -> Figure:
    """Draws mean ranks, the best first; those within the critical difference of the best do not differ from it."""
    ascending = pd.Series(list(ranks), index=list(designs)).sort_values(kind="stable")
    figure, (axis,) = new_figure(width=8.0, height=0.25 * len(designs) + 1.0)
    positions = range(len(designs))
    axis.axvspan(ascending.iloc[0], ascending.iloc[0] + difference, color=MARK, alpha=0.15, label="critical difference")
    axis.barh(positions, ascending, color=[FIRST if name in marked else MARK for name in ascending.index])
    axis.set_yticks(positions, ascending.index)
    axis.invert_yaxis()
    axis.set_xlabel("mean rank")
    axis.legend(frameon=False, fontsize=8)
    return figure
