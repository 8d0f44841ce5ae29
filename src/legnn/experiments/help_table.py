"""Where labels help: the gain of each method beside what the graph, its features and its labels are like."""

from __future__ import annotations

from typing import Any

import pandas as pd
import torch

from legnn.data import GraphData
from legnn.experiments.experiment import Report, Variant
from legnn.experiments.plan import Plan
from legnn.experiments.scores import groups, run_rows
from legnn.experiments.variants import METHODS, other_model
from legnn.runs.graphs import load_graph

LABELS_ALONE = other_model("label propagation", "label_propagation")


def variants(source: str) -> tuple[Variant, ...]:
    """The four methods, and label propagation, which knows labels and edges but no features."""
    return *METHODS, LABELS_ALONE


def where_labels_help(plan: Plan) -> Report:
    """One row a data set: properties of the graph, and the mean gain over vanilla of each method."""
    rows = run_rows(plan)
    table = []
    for (data,), part in groups(rows, "data"):
        cell = next(cell for cell in plan.cells() if cell.source == data)
        mean = part.groupby("method", sort=False)["test_accuracy"].mean()
        gains = {f"{method.name} − vanilla": mean[method.name] - mean["vanilla"] for method in METHODS[1:]}
        alone = {"labels alone": mean[LABELS_ALONE.name], "vanilla": mean["vanilla"]}
        table.append({"data": data, **properties(load_graph(plan.runs(cell)[0].settings.data, data)), **alone, **gains})
    values = pd.DataFrame(table)
    notes = [
        "Labels a class: training nodes divided by classes. Near a label: the fraction of test nodes with a training "
        "node among their neighbors. Features alone: test accuracy of a logistic regression. Labels alone: test "
        "accuracy of label propagation. The other columns are means over backbones and seeds."
    ]
    if len(values) > 4:
        notes.append(_correlations(values))
    return Report(tables={"": values}, values=rows, notes=notes)


def properties(graph: GraphData) -> dict[str, Any]:
    """Homophily, labels a class, and what features and neighborhoods tell of the classes of test nodes."""
    return {
        "homophily": graph.provenance.homophily,
        "classes": graph.num_classes,
        "labels a class": round(int(graph.train_mask.sum()) / graph.num_classes),
        "near a label": fraction_near_labels(graph),
        "features alone": accuracy_of_features(graph),
    }


def fraction_near_labels(graph: GraphData) -> float:
    """Returns the fraction of test nodes that have a training node among their neighbors."""
    source, target = graph.adjacency.edge_index
    near = torch.zeros(graph.num_nodes, dtype=torch.bool)
    near[target[graph.train_mask[source]]] = True
    return float(near[graph.test_mask].float().mean())


def accuracy_of_features(graph: GraphData) -> float:
    """Returns the test accuracy of a logistic regression on the features, standardized, without any edge."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = graph.x.numpy(), graph.y.numpy()
    train, test = graph.train_mask.numpy(), graph.test_mask.numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=100, C=0.1))
    return float(model.fit(x[train], y[train]).score(x[test], y[test]))


def _correlations(values: pd.DataFrame) -> str:
    from scipy.stats import spearmanr

    names = ("homophily", "labels a class", "near a label", "features alone", "labels alone")
    parts = []
    for name in names:
        result = spearmanr(values[name], values["LEGNN − vanilla"], nan_policy="omit")
        parts.append(f"{name} {result.statistic:+.2f} (p = {result.pvalue:.2f})")
    return f"Spearman's rank correlation with LEGNN − vanilla over {len(values)} data sets: {'; '.join(parts)}."
