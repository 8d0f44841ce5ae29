"""Frames as Markdown and CSV."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from legnn.analysis.tables import to_markdown

FRAME = pd.DataFrame(
    {"run": ["a|b", "c\nd"], "nodes": [3, 4], "value": [1 / 3, np.nan], "note": [None, "x"], "mixed": [0.5, "±"]}
)


def test_numbers_are_aligned_to_the_right_and_what_is_missing_is_empty():
    assert to_markdown(FRAME).splitlines() == [
        "| run | nodes | value | note | mixed |",
        "| --- | ---: | ---: | --- | --- |",
        r"| a\|b | 3 | 0.3333 |  | 0.5000 |",
        "| c d | 4 |  | x | ± |",
    ]


def test_single_precision_is_rounded_like_double():
    assert to_markdown(pd.DataFrame({"a": np.float32([1 / 3])}), digits=2).endswith("| 0.33 |\n")


def test_an_empty_frame_has_its_header():
    assert to_markdown(FRAME[:0]).count("\n") == 2


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"])), min_size=1), st.integers(1, 3))
def test_every_row_has_as_many_cells_as_the_header(texts, columns):
    lines = to_markdown(pd.DataFrame({f"c{k}": texts for k in range(columns)})).splitlines()
    assert {line.replace(r"\|", "").count("|") for line in lines} == {columns + 1}
    assert len(lines) == 2 + len(texts)
