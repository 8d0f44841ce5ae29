"""The comparison of precisions: each way of using labels in both, paired over seeds, and summed up over data sets."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from legnn.experiments.experiment import Report
from legnn.experiments.plan import Plan
from legnn.experiments.scores import (
    LEVEL,
    groups,
    mean_difference,
    mean_std,
    paired_differences,
    read_rows,
    run_rows,
)
from legnn.experiments.tables import SCORES

ALL = "all"
"""Stands for the mean of all ways of using labels."""


def precisions(plan: Plan) -> Report:
    """Test scores of each way of using labels in both precisions, paired differences, and their mean over data sets."""
    ours = run_rows(plan)
    rows = pd.concat([*(read_rows(path, "group") for path in plan.request.compare_with), ours], ignore_index=True)
    rows = rows.assign(data=rows["data"].map(lambda source: Path(source).name), precision=_last_words(rows["method"]))
    base, other = dict.fromkeys(rows["precision"])
    tables = {}
    for name, score in SCORES.items():
        tables[f"Test {name}"] = _by_usage(rows, score, base, other)
        tables[f"Difference of test {name} over data sets, {other} − {base}"] = _over_data(rows, score, base, other)
    notes = [
        f"Mean ± unbiased deviation over seeds; differences are paired over seeds, {other} − {base}; p is that of the "
        "paired t-test, adjusted by Holm's rule for the number of rows of a way of using labels; * marks "
        f"p < {LEVEL}.",
        "Over data sets each counts once, with the mean of its seeds; the interval is that of Student's t, and "
        f"Wilcoxon's signed-rank test asks whether {other} is worse or better more often than not. `{ALL}`: the mean "
        "of all ways of using labels on a data set.",
    ]
    if plan.request.compare_with:
        notes.append(f"With the rows of {', '.join(map(str, plan.request.compare_with))}.")
    return Report(tables=tables, values=ours, notes=notes)


def _last_words(methods: pd.Series) -> pd.Series:
    return methods.str.rsplit(", ", n=1).str[-1]


def _by_usage(rows: pd.DataFrame, score: str, base: str, other: str) -> pd.DataFrame:
    """One row a data set, backbone and way of using labels."""
    tests = {}
    for (usage,), part in groups(rows, "group"):
        paired = part.drop(columns="method").rename(columns={"precision": "method"})
        for test in paired_differences(paired, score, base, [other])[0].to_dict("records"):
            tests[test["data"], test["backbone"], usage] = {
                str(name): test[name] for name in ("difference", "seeds won", "p (Holm)")
            }
    table = []
    for (data, backbone, usage), part in groups(rows, "data", "backbone", "group"):
        means = {name: mean_std(list(cell[score])) for (name,), cell in groups(part, "precision")}
        columns = {"data": data, "backbone": backbone, "labels": usage}
        table.append({**columns, **means, **tests.get((data, backbone, usage), {})})
    return pd.DataFrame(table).fillna("")


def _over_data(rows: pd.DataFrame, score: str, base: str, other: str) -> pd.DataFrame:
    """One row a way of using labels, and one for all of them together."""
    means = rows.groupby(["data", "backbone", "group", "precision"], sort=False)[score].mean().unstack("precision")
    gains = (means[other] - means[base]).dropna()
    table = [{"labels": str(usage), **mean_difference(part)} for usage, part in gains.groupby("group", sort=False)]
    table.append({"labels": ALL, **mean_difference(gains.groupby(["data", "backbone"], sort=False).mean())})
    return pd.DataFrame(table)
