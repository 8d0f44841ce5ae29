"""Means, deviations and paired tests."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_rel, wilcoxon

from legnn.experiments.scores import (
    groups,
    holm,
    mean_difference,
    mean_std,
    mean_table,
    paired_differences,
    pooled_differences,
)

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def test_mean_and_unbiased_deviation():
    assert mean_std([0.5, 0.7]) == f"0.6000 ± {statistics.stdev([0.5, 0.7]):.4f}"
    assert mean_std([0.5]) == "0.5000"
    assert mean_std([math.nan, None]) == ""


@given(P_VALUES)
def test_holm_is_between_the_value_and_bonferroni_and_keeps_the_order(values):
    adjusted = holm(values)
    for p, q in zip(values, adjusted, strict=True):
        assert p <= q <= min(1.0, p * len(values)) + 1e-12
    order = np.argsort(values, kind="stable")
    assert all(np.diff(np.array(adjusted)[order]) >= 0)


def test_holm_by_hand():
    assert holm([0.01, 0.04, math.nan, 0.03]) == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        pytest.approx(math.nan, nan_ok=True),
        pytest.approx(0.06),
    ]


def _rows(gains: dict[str, list[float]]) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    rows = []
    for data, by_seed in gains.items():
        for seed, gain in enumerate(by_seed):
            base = generator.random()
            rows.append({"data": data, "backbone": "gcn", "method": "vanilla", "seed": seed, "test_accuracy": base})
            rows.append(
                {"data": data, "backbone": "gcn", "method": "LEGNN", "seed": seed, "test_accuracy": base + gain}
            )
    return pd.DataFrame(rows)


def test_differences_are_paired_over_seeds():
    """The spread between seeds is large and the gain small: only a paired test can see it."""
    gains = {"a": [0.010, 0.011, 0.012, 0.009, 0.010], "b": [-0.01, 0.01, 0.0, 0.02, -0.02]}
    rows = _rows(gains).sample(frac=1, random_state=0)
    table, sentences = paired_differences(rows, "test_accuracy", "vanilla", ["LEGNN"])
    table = table.set_index("data")
    assert table.loc["a", "difference"] == "+0.0104"
    assert table.loc["a", "seeds won"] == "5 of 5"
    assert table.loc["a", "p (Holm)"].endswith("*")
    assert not table.loc["b", "p (Holm)"].endswith("*")
    expected = ttest_rel(np.array(gains["b"]), np.zeros(5)).pvalue
    assert float(table.loc["b", "p (Holm)"]) == pytest.approx(min(1, expected), abs=6e-4)
    assert "better in " in sentences[0]
    assert "(1 with p < 0.05, and 0 worse)" in sentences[0]


def test_one_seed_has_no_p_value():
    table, _ = paired_differences(_rows({"a": [0.1]}), "test_accuracy", "vanilla", ["LEGNN"])
    assert table["p (Holm)"].tolist() == [""]


def test_a_method_that_ran_on_some_data_sets_alone_is_compared_there():
    rows = _rows({"a": [0.01, 0.03], "b": [0.02, 0.01]})
    rows = rows[(rows["data"] == "a") | (rows["method"] == "vanilla")]
    table, sentences = paired_differences(rows, "test_accuracy", "vanilla", ["LEGNN", "absent"])
    assert table["data"].tolist() == ["a"]
    assert len(sentences) == 1
    assert "better in 1 of 1 rows" in sentences[0]
    pooled = pooled_differences(rows, "test_accuracy", "vanilla", ["LEGNN", "absent"])
    assert pooled[["design", "difference", "data sets won"]].values.tolist() == [["LEGNN", "+0.0200", "1 of 1"]]


def test_pooled_differences_are_paired_over_data_sets_and_seeds_and_adjusted_for_the_designs():
    gains = {"a": [0.010, 0.020, -0.005], "b": [0.030, 0.010, 0.020]}
    rows = _rows(gains)
    twice = rows[rows["method"] == "LEGNN"].assign(method="again")
    table = pooled_differences(pd.concat([rows, twice]), "test_accuracy", "vanilla", ["LEGNN", "again"])
    pairs = [*gains["a"], *gains["b"]]
    expected = 2 * ttest_1samp(pairs, 0.0).pvalue
    for _, row in table.iterrows():
        assert row["difference"] == f"{statistics.fmean(pairs):+.4f}"
        assert (row["data sets won"], row["pairs won"]) == ("2 of 2", "5 of 6")
        assert float(row["p (Holm)"].rstrip("*")) == pytest.approx(expected, abs=6e-4)


def test_a_score_that_no_run_has_is_compared_with_nothing():
    rows = _rows({"a": [0.1, 0.2]}).assign(test_accuracy=None)
    assert len(pooled_differences(rows, "test_accuracy", "vanilla", ["LEGNN"])) == 0


def test_groups_keep_the_order_of_the_rows():
    rows = pd.DataFrame({"a": ["z", "b", "z"], "v": [1.0, 2.0, 3.0]})
    assert [key for key, _ in groups(rows, "a")] == [("z",), ("b",)]
    assert mean_table(rows, ["a"], {"V": "v"})["V"].tolist() == [mean_std([1.0, 3.0]), "2.0000"]


def test_the_interval_of_a_mean_difference_is_that_of_the_t_test():
    """It excludes zero where the t-test says p < 0.05, and only there."""
    generator = np.random.default_rng(0)
    for shift in (0.0, 0.004, 0.01):
        gains = pd.Series(generator.normal(shift, 0.01, 15))
        found = mean_difference(gains)
        low, high = map(float, found["95 % interval"].split(" to "))
        assert (low > 0 or high < 0) == (ttest_1samp(gains, 0).pvalue < 0.05)
        assert float(found["difference"]) == pytest.approx((low + high) / 2, abs=1e-4)
        assert found["p (Wilcoxon)"] == f"{wilcoxon(gains).pvalue:.3f}"
        assert found["data sets won"] == f"{(gains > 0).sum()} of 15"


def test_a_mean_difference_of_one_data_set_has_no_interval():
    assert mean_difference(pd.Series([0.01])) == {
        "difference": "+0.0100", "95 % interval": "", "data sets won": "1 of 1", "p (Wilcoxon)": "",
    }  # fmt: skip
    assert mean_difference(pd.Series([], dtype=float))["difference"] == ""
