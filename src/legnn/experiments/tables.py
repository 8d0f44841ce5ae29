"""The tables of the paper: from finished runs to rows."""

from __future__ import annotations

import pandas as pd

from legnn.experiments import paper_values
from legnn.experiments.experiment import Report
from legnn.experiments.plan import Plan
from legnn.experiments.representations import measure_smoothness, score_with_own_label
from legnn.experiments.scores import (
    TEST_AND_VAL,
    groups,
    has_papers_data,
    mean_std,
    mean_table,
    paired_differences,
    run_rows,
    written,
)
from legnn.experiments.variants import cross_label_edges, graph_statistics
from legnn.training import title_of

SCORES = {title_of(name): f"test_{name}" for name in paper_values.SCORES}
OTHER_FEATURES = (
    "The paper's figure stands beside ours only where data and features are the paper's; other data and features make "
    "other figures."
)


def data_sets(plan: Plan) -> Report:
    """Statistics of the data sets, the paper's beside them."""
    rows = []
    for source in plan.request.data:
        graph, paper = graph_statistics(source), paper_values.DATA_SETS.get(source)
        parts = (graph.train_percent, graph.val_percent, graph.test_percent)
        row = {"data set": graph.name, "nodes": graph.nodes, "edges": graph.edges, "classes": graph.classes}
        row |= {"split (%)": " / ".join(f"{part:.0f}" for part in parts), "homophily": graph.homophily}
        if paper is not None:
            row["in the paper"] = (
                f"{paper.nodes:,}; {paper.edges:,}; {paper.classes}; {paper.split}; {paper.homophily:.4f}"
            )
        rows.append(row)
    table = pd.DataFrame(rows)
    return Report(tables={"": table}, values=table)


def label_usage(plan: Plan) -> Report:
    """Test accuracy and macro-F1 of each method on each data set and backbone, and differences to vanilla."""
    rows = run_rows(plan)
    methods = list(dict.fromkeys(rows["method"]))
    tables = {
        f"Test {name}": _by_method(plan, rows, column, number) for number, (name, column) in enumerate(SCORES.items())
    }
    notes = [f"Mean ± unbiased deviation over {plan.request.seeds} seeds."]
    if plan.request.trials > 1:
        notes.append(
            f"Each method tried the same {plan.request.trials} settings on each data set and backbone with seed 0; the "
            "best on validation was trained with every seed."
        )
    if plan.request.seeds > 1 and methods[0] == "vanilla":
        for name, column in SCORES.items():
            differences, sentences = paired_differences(rows, column, "vanilla", methods[1:])
            tables[f"Difference of {name} to vanilla, paired over seeds"] = differences
            notes += [f"{name}: {sentence}" for sentence in sentences]
        notes.append("p is that of the paired t-test over seeds, adjusted by Holm's rule; * marks p < 0.05.")
    return Report(tables=tables, values=rows, notes=[*notes, OTHER_FEATURES])


def _by_method(plan: Plan, rows: pd.DataFrame, column: str, number: int) -> pd.DataFrame:
    """One row a data set and backbone, one column a method; `number` is that of the score among the paper's."""
    table: list[dict[str, str]] = []
    for (data, backbone), part in groups(rows, "data", "backbone"):
        scores = {method: mean_std(list(cell[column])) for (method,), cell in groups(part, "method")}
        table.append({"data": data, "backbone": backbone, **scores})
        if has_papers_data(plan, data) and backbone in paper_values.LABEL_USAGE[data]:
            usage = paper_values.LABEL_USAGE[data][backbone]
            theirs = {method: written(usage[method][number]) for method in scores if method in usage}
            table.append({"data": f"{data} (paper)", "backbone": backbone, **theirs})
    return pd.DataFrame(table)


def scores(plan: Plan) -> Report:
    """Test and validation scores and training time of every variant."""
    rows = run_rows(plan)
    table = mean_table(rows, ["data", "backbone", "method"], {**TEST_AND_VAL, "seconds": "seconds"})
    return Report(tables={"": table}, values=rows)


def node_selection(plan: Plan) -> Report:
    """Scores of training, validation and test nodes with and without training node selection.

    The paper's column of training nodes is measured with each node's own label in the graph, which says nothing of
    what the model has learned; the other one hides the labels of a node's fold.
    """
    rows = []
    for cell in plan.cells():
        for run in plan.runs(cell):
            result, seen = run.result(), score_with_own_label(run.path)
            parts = {"train, own label shown": seen, "train, own label hidden": result.train_masked}
            parts |= {"validation": result.val, "test": result.test}
            base = {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name, "seed": result.seed}
            rows += [{**base, "nodes": name, **scores} for name, scores in parts.items() if scores is not None]
    values = pd.DataFrame(rows)
    tables = {}
    for number, score in enumerate(paper_values.SCORES):
        table: list[dict[str, str]] = []
        for (data, method), part in groups(values, "data", "method"):
            shown = {name: mean_std(list(cell[score])) for (name,), cell in groups(part, "nodes")}
            table.append({"data": data, "method": method, **shown})
            if has_papers_data(plan, data):
                paper = paper_values.NODE_SELECTION[method][number]
                theirs = dict(zip(("train, own label shown", "validation", "test"), paper, strict=True))
                table.append({"data": f"{data} (paper)", "method": method} | _four_digits(theirs))
        tables[title_of(score)] = pd.DataFrame(table).fillna("")
    return Report(tables=tables, values=values, notes=[OTHER_FEATURES])


def _four_digits(values: dict[str, float]) -> dict[str, str]:
    return {name: f"{value:.4f}" for name, value in values.items()}


def label_features(plan: Plan) -> Report:
    """Test accuracy with learned label features and with the mean features of each class."""
    rows = run_rows(plan)
    table: list[dict[str, str]] = []
    for (data, backbone), part in groups(rows, "data", "backbone"):
        scores = {name: mean_std(list(cell["test_accuracy"])) for (name,), cell in groups(part, "method")}
        table.append({"data": data, "backbone": backbone, **scores})
        if has_papers_data(plan, data) and data == "ogbn-arxiv" and backbone in paper_values.LABEL_FEATURES:
            one_hot, mean = paper_values.LABEL_FEATURES[backbone]
            theirs = _four_digits({"one-hot": one_hot, "class mean": mean})
            table.append({"data": f"{data} (paper)", "backbone": backbone, **theirs})
    return Report(tables={"Test accuracy": pd.DataFrame(table)}, values=rows, notes=[OTHER_FEATURES])


def synthetic_graphs(plan: Plan) -> Report:
    """Homophily of the graphs with `S` more edges between nodes of different classes."""
    rows = []
    for source in plan.request.data:
        for edges in (0, *cross_label_edges(source)):
            row = {"data": source, "S": edges, "homophily": graph_statistics(source, edges).homophily}
            if source == "ogbn-arxiv":
                row["in the paper"] = {0: paper_values.DATA_SETS[source].homophily, **paper_values.HOMOPHILY}[edges]
            rows.append(row)
    table = pd.DataFrame(rows)
    return Report(tables={"": table}, values=table)


def dropout_and_lr(plan: Plan) -> Report:
    """The dropout and learning rates of the paper, which the preset `paper` takes."""
    from legnn.config.paper_tables import DROPOUT_AND_LR

    rows = [
        {"data": data, "backbone": backbone, "labels": labels, "dropout": dropout, "learning rate": lr}
        for data, by_backbone in DROPOUT_AND_LR.items()
        for backbone, by_labels in by_backbone.items()
        for labels, (dropout, lr) in by_labels.items()
    ]
    table = pd.DataFrame(rows)
    return Report(tables={"": table.astype(str)}, values=table, notes=["`--preset paper` takes these."])


def hyperparameters(plan: Plan) -> Report:
    """The hyperparameters of the paper, which the preset `paper` takes."""
    from legnn.config.paper_tables import HYPERPARAMETERS

    table = pd.DataFrame([{"data": data, **values} for data, values in HYPERPARAMETERS.items()])
    return Report(tables={"": table.astype(str)}, values=table, notes=["`--preset paper` takes these."])


def smoothness(plan: Plan) -> Report:
    """GD, and NMI and ARI of k-means over 10 classes × 500 nodes, of each method's node representations."""
    rows = []
    for cell in plan.cells():
        base = {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name}
        rows += [base | measured for run in plan.runs(cell) for measured in measure_smoothness(run.path)]
    values = pd.DataFrame(rows)
    columns = ("GD", "GD, relative", "NMI", "ARI")
    tables = {}
    for (nodes,), part in groups(values, "nodes"):
        table = []
        for (data, backbone, method), runs in groups(part, "data", "backbone", "method"):
            shown = {column: mean_std(list(runs[column])) for column in columns}
            table.append({"data": data, "backbone": backbone, "method": method, **shown})
            if nodes == "all" and data == "ogbn-arxiv" and has_papers_data(plan, data):
                paper = dict(zip(("GD", "NMI", "ARI"), paper_values.SMOOTHNESS[method], strict=True))
                table.append({"data": f"{data} (paper)", "backbone": "", "method": method} | _four_digits(paper))
        tables[_HEADINGS[nodes]] = pd.DataFrame(table).fillna("")
    notes = [
        "The paper's protocol is over all nodes, of which training nodes show the model their own labels; test nodes "
        "show none. GD shrinks with the weights of the last layer; the relative GD is divided by the mean distance of "
        "all nodes from their center, and does not."
    ]
    return Report(tables=tables, values=values, notes=[*notes, OTHER_FEATURES])


_HEADINGS = {"all": "All nodes, as in the paper", "test": "Test nodes alone"}
