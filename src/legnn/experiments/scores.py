"""Scores of finished runs as tables: means and deviations, and differences paired over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from legnn.errors import InputError
from legnn.experiments import paper_values
from legnn.experiments.paper_values import Score
from legnn.experiments.plan import Plan
from legnn.runs import RunFolder
from legnn.training import title_of

TEST_AND_VAL = {
    **{f"test {title_of(name)}": f"test_{name}" for name in paper_values.SCORES},
    "validation accuracy": "val_accuracy",
}
"""Headings of a table, and the columns of `run_rows` below them."""
LEVEL = 0.05
"""Below this p value a difference is marked."""


def run_rows(plan: Plan) -> pd.DataFrame:
    """Returns one row for each finished run: what was trained, and its scores."""
    rows: list[dict[str, Any]] = []
    for cell in plan.cells():
        for run in plan.runs(cell):
            result = run.result()
            row: dict[str, Any] = {"data": cell.source, "backbone": cell.backbone, "method": cell.variant.name}
            row |= {"group": cell.variant.group, "x": cell.variant.x, "seed": result.seed}
            for split in ("val", "test", "train_masked"):
                row |= {f"{split}_{name}": value for name, value in (getattr(result, split) or {}).items()}
            row |= {"best_epoch": result.best_epoch, "epochs": result.epochs, "parameters": result.parameters}
            rows.append(row | {"seconds": result.seconds, "device": result.device, "settings": run.path.parent.name})
    frame = pd.DataFrame(rows)
    empty = [name for name in ("group", "x") if name in frame and not frame[name].astype(bool).any()]
    return frame.drop(columns=empty)


def read_rows(path: Path, *columns: str) -> pd.DataFrame:
    """Returns the rows that an earlier report wrote to its CSV file; it must have `columns` besides the usual ones."""
    needed = {"data", "backbone", "method", "seed", "test_accuracy", *columns}
    try:
        rows = pd.read_csv(path)
    except (ValueError, OSError) as error:
        raise InputError(f"cannot read the report {path}: {' '.join(str(error).split())}") from None
    if missing := sorted(needed - set(rows)):
        raise InputError(f"{path} is no report of scores: it has no column {missing[0]!r}")
    return rows


def groups(rows: pd.DataFrame, *names: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yields the values of the columns `names` and the rows that have them, in the order of the first of each."""
    for key, part in rows.groupby(list(names), sort=False):
        yield tuple(key) if isinstance(key, tuple) else (key,), part


def mean_table(rows: pd.DataFrame, by: Sequence[str], columns: Mapping[str, str]) -> pd.DataFrame:
    """Returns mean ± deviation of `columns`, from heading to name, for each combination of values of `by`."""
    return pd.DataFrame(
        [
            {**dict(zip(by, key, strict=True)), **{head: mean_std(list(part[name])) for head, name in columns.items()}}
            for key, part in groups(rows, *by)
        ]
    )


def mean_std(values: Sequence[float]) -> str:
    """Returns `"0.7337 ± 0.0007"`: mean and unbiased deviation; the mean alone of one value."""
    present = [value for value in values if value is not None and not math.isnan(value)]
    if not present:
        return ""
    mean = f"{statistics.fmean(present):.4f}"
    return mean if len(present) < 2 else f"{mean} ± {statistics.stdev(present):.4f}"


def written(score: Score | None) -> str:
    """Returns a score of the paper as `mean_std` writes ours."""
    return "" if score is None else f"{score.mean:.4f} ± {score.std:.4f}"


def is_papers_data(run: RunFolder) -> bool:
    """Whether a run has the data and the features of the paper, so that its figure may stand beside the paper's."""
    card, data = run.card, run.settings.data
    same = paper_values.FEATURES.get(card.name) == card.features
    return same and data.features == "given" and not data.cross_label_edges


def has_papers_data(plan: Plan, source: str) -> bool:
    """Whether the runs on a data set have the data of the paper."""
    if source not in paper_values.FEATURES:
        return False
    runs = next((runs for cell in plan.cells() if cell.source == source and (runs := plan.runs(cell))), [])
    return bool(runs) and is_papers_data(runs[0])


def paired_differences(
    rows: pd.DataFrame, score: str, base: str, others: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Returns the difference of each method to `base`, paired over seeds, and sentences that sum it up.

    A row of the table is a data set and a backbone on which both have run; its p value is that of the paired t-test,
    multiplied for the number of rows by Holm's rule. Over all rows, Wilcoxon's signed-rank test asks whether a method
    helps more often than not.
    """
    from scipy.stats import wilcoxon

    table: list[dict[str, Any]] = []
    sentences = []
    for method in others:
        gains = _gains(rows, score, base, method)
        adjusted = holm([_paired_p_value(gain) for gain in gains.values()])
        for ((data, backbone), gain), p in zip(gains.items(), adjusted, strict=True):
            table.append(
                {"data": data, "backbone": backbone, "method": method, "difference": f"{gain.mean():+.4f}",
                 "seeds won": _won(gain), "p (Holm)": _written_p(p)}
            )  # fmt: skip
        means = np.array([gain.mean() for gain in gains.values()])
        if not means.size:
            continue
        better = int(((means > 0) & (np.array(adjusted) < LEVEL)).sum())
        worse = int(((means < 0) & (np.array(adjusted) < LEVEL)).sum())
        over_all = wilcoxon(means).pvalue if len(means) > 5 and means.any() else math.nan
        sentences.append(
            f"{method} − {base}: mean {means.mean():+.4f}, better in {int((means > 0).sum())} of {len(means)} rows "
            f"({better} with p < {LEVEL}, and {worse} worse)"
            + ("." if math.isnan(over_all) else f"; Wilcoxon's test over the rows: p = {over_all:.4f}.")
        )
    return pd.DataFrame(table), sentences


def pooled_differences(rows: pd.DataFrame, score: str, base: str, others: Sequence[str]) -> pd.DataFrame:
    """Returns the difference of each method to `base`, one row a method, paired over data sets, backbones and seeds.

    The p value is that of the paired t-test over all pairs, multiplied for the number of methods by Holm's rule.
    """
    table: list[dict[str, Any]] = []
    p_values = []
    for method in others:
        gains = _gains(rows, score, base, method)
        if not gains:
            continue
        pairs, means = np.concatenate(list(gains.values())), np.array([gain.mean() for gain in gains.values()])
        p_values.append(_paired_p_value(pairs))
        won = {"data sets won": _won(means), "pairs won": _won(pairs)}
        table.append({"design": method, "difference": f"{pairs.mean():+.4f}", **won})
    for row, p in zip(table, holm(p_values), strict=True):
        row["p (Holm)"] = _written_p(p)
    return pd.DataFrame(table)


def mean_difference(gains: pd.Series) -> dict[str, str]:
    """Returns the mean of differences, one a data set, with its 95 % interval and Wilcoxon's signed-rank test."""
    from scipy.stats import t, wilcoxon

    values = gains.to_numpy(dtype=float)
    interval = p = ""
    if len(values) > 1:
        half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
        interval = f"{values.mean() - half:+.4f} to {values.mean() + half:+.4f}"
    if len(values) > 5 and values.any():
        p = f"{wilcoxon(values).pvalue:.3f}"
    mean = f"{values.mean():+.4f}" if len(values) else ""
    return {"difference": mean, "95 % interval": interval, "data sets won": _won(values), "p (Wilcoxon)": p}


def _gains(rows: pd.DataFrame, score: str, base: str, method: str) -> dict[tuple[Any, ...], np.ndarray]:
    """By data set and backbone, the gain of `method` over `base` with each seed, where both have run."""
    by_cell = {}
    for cell, part in groups(rows, "data", "backbone"):
        both = part.pivot(index="seed", columns="method", values=score).astype(float)
        if method in both and base in both:
            gain = (both[method] - both[base]).dropna().to_numpy()
            if gain.size:
                by_cell[cell] = gain
    return by_cell


def _paired_p_value(gain: np.ndarray) -> float:
    """The p value of the paired t-test, NaN where there is nothing to test."""
    from scipy.stats import ttest_1samp

    is_constant = len(gain) < 2 or np.allclose(gain, gain[0])
    return math.nan if is_constant else float(ttest_1samp(gain, 0.0).pvalue)


def _won(gain: np.ndarray) -> str:
    return f"{int((gain > 0).sum())} of {len(gain)}"


def _written_p(p: float) -> str:
    return "" if math.isnan(p) else f"{p:.3f}{'*' if p < LEVEL else ''}"


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns the p values adjusted for their number by Holm's rule; NaN stays NaN and is not counted."""
    known = sorted((p, k) for k, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for rank, (p, k) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(known) - rank)))
        adjusted[k] = largest
    return adjusted
