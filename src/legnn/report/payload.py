"""Data of a page: frozen dataclasses, and `to_json`, which writes them as the scripts in `assets/` read them.

Constants that Python and the scripts share are defined here, and travel with the page.
"""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from legnn.data.splits import SPLITS
from legnn.runs import MeanStd
from legnn.runs.evaluation import ClassScores
from legnn.training.metrics import METRICS

NO_CLASS = 65535
"""Number of an unknown class in an array of classes."""
LEVELS = 65535
"""Fractions are arrays of integers from 0 to this number."""
ARRAYS = {"f4": "Float32Array", "u4": "Uint32Array", "u2": "Uint16Array", "u1": "Uint8Array"}
"""Data types of arrays, and the types of JavaScript that read them; all are little-endian."""
# the colors of Okabe and Ito and four more, which color-blind readers can tell apart; lighter on a dark background
_LIGHT = "#0072b2 #e69f00 #009e73 #d55e00 #56b4e9 #cc79a7 #882255 #999933 #6a4fb3 #8b5e3c"
_DARK = "#4aa3df #f0b43c #2fc496 #f08048 #8fd0f7 #e3a0c5 #d0608f #c9c95c #a592e8 #c79a74"
PALETTE = {"light": _LIGHT.split(), "dark": _DARK.split()}
GRAY = {"light": "#aab2be", "dark": "#5f6875"}
"""Color of classes that have none in the palette, and of unknown ones."""
CONFIDENCE = {
    "light": ["#b3400f", "#e6b86a", "#d9e3ea", "#7fb2d6", "#0b63a5"],
    "dark": ["#f08048", "#c9a063", "#59636f", "#5f9dc9", "#7cc4ff"],
}
"""Colors of confidence from 0 to 1."""


@dataclass(frozen=True)
class Constants:
    """Constants that the scripts read."""

    no_class: int = NO_CLASS
    levels: int = LEVELS
    splits: tuple[str, ...] = ("none", *SPLITS)
    """Names of the values of `GraphData.split`."""
    arrays: dict[str, str] = field(default_factory=lambda: ARRAYS)
    palette: dict[str, list[str]] = field(default_factory=lambda: PALETTE)
    gray: dict[str, str] = field(default_factory=lambda: GRAY)
    confidence: dict[str, list[str]] = field(default_factory=lambda: CONFIDENCE)


@dataclass(frozen=True)
class Array:
    """An array as text, a third as long as its numbers in JSON."""

    kind: str
    base64: str

    @classmethod
    def of(cls, values: Any, kind: str) -> Array:
        """Returns `values`, flat, as an array of a kind of `ARRAYS`."""
        array = np.ascontiguousarray(np.asarray(values).ravel(), dtype=f"<{kind}")
        return cls(kind, base64.b64encode(array.tobytes()).decode("ascii"))

    @classmethod
    def of_fractions(cls, values: Any) -> Array:
        """Returns numbers in `[0, 1]` as multiples of `1 / LEVELS`."""
        return cls.of(np.round(np.clip(np.asarray(values, dtype=np.float64), 0, 1) * LEVELS), "u2")


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """Facts of the data that a run was trained on."""

    name: str
    nodes: int
    classes: int
    edges: int | None = None
    features: int | None = None
    labeled: int | None = None
    split_percent: list[float] = field(default_factory=list)
    """Percentages of nodes in train, val and test."""
    homophily: float | None = None
    types: list[str] = field(default_factory=list)
    target_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class SplitScores:
    """Scores of one split by the name of the metric; with deviations where they are means over seeds."""

    split: str
    scores: dict[str, MeanStd]


@dataclass(frozen=True, kw_only=True)
class LeaderboardRow:
    """A candidate of a search, or a member of an ensemble."""

    name: str
    postprocess: str
    val: float | None
    test: float | None
    seconds: float
    parameters: int
    weight: float | None


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The first rows of a leaderboard."""

    rows: list[LeaderboardRow]
    total: int
    unit: str
    """`candidates`, `members` or `seeds`."""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Scores, costs, settings and notes of a run."""

    scores: list[SplitScores]
    best_epoch: int
    epochs: int
    seconds: float
    parameters: int
    device: str
    settings: dict[str, str]
    notes: list[str]
    leaderboard: Leaderboard | None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Metrics of one run by epoch."""

    name: str
    best: int | None
    """The epoch whose weights the run has; None before it is finished."""
    values: dict[str, list[float | None]]
    """Columns of the log, `epoch` among them."""
    val: dict[str, list[float | None]]
    """Scores of validation nodes by the name of the metric."""


@dataclass(frozen=True, kw_only=True)
class LearnedLabels:
    """Representations of the labels."""

    points: np.ndarray
    """`[C, 2]`."""
    pairs: list[tuple[int, int, float]]
    """The most similar classes, and the cosine of their labels."""
    order: list[int]
    """Classes of the rows and columns of `similarity`, similar ones next to each other."""
    similarity: np.ndarray
    """Cosines."""


@dataclass(frozen=True, kw_only=True)
class Classes:
    """Scores by class and confusion."""

    nodes: str
    """The nodes that are counted, in words."""
    scores: list[ClassScores]
    order: list[int]
    """Classes of the rows and columns of `confusion`, the largest ones if there are many."""
    confusion: np.ndarray
    """Number of nodes by true class (row) and predicted class (column)."""
    pairs: list[tuple[int, int, int]]
    """The most frequent mistakes: true class, predicted class, number of nodes."""
    labels: LearnedLabels | None


@dataclass(frozen=True, kw_only=True)
class NodeColumns:
    """Columns of the nodes of a page."""

    ids: str
    """Separated by line breaks."""
    count: int
    top: int
    """Number of classes in each row of `classes` and `p`."""
    y: Array
    split: Array
    classes: Array
    """The most probable classes, best first."""
    p: Array
    degree: Array


@dataclass(frozen=True, kw_only=True)
class MapPoints:
    """Points of nodes on the map."""

    words: str
    """The method of projection."""
    rows: Array
    """Rows of the nodes in `NodeColumns`."""
    points: Array
    """`[m, 2]` within the unit square."""


@dataclass(frozen=True, kw_only=True)
class NodeReference:
    """A node of the graph; `row` is its row in `NodeColumns`, -1 for none."""

    id: str
    row: int
    type: str | None


@dataclass(frozen=True, kw_only=True)
class NeighborView(NodeReference):
    """A neighbor, and the class of the label that it shows, -1 for none."""

    shows: int


@dataclass(frozen=True, kw_only=True)
class EffectView(NodeReference):
    """The change of a prediction when a part of the input is removed."""

    kind: str
    """`label` or `edge` of a neighbor, `features` of the node itself."""
    change: float
    becomes: int


@dataclass(frozen=True, kw_only=True)
class ExplainedNode(NodeReference):
    """An explanation of one prediction."""

    p: list[tuple[int, float]]
    """The most probable classes."""
    neighbors: list[NeighborView]
    edges: list[tuple[int, int]]
    """Positions in `neighbors` of those that are neighbors of each other."""
    num_neighbors: int
    num_removals: int
    effects: list[EffectView]


@dataclass(frozen=True, kw_only=True)
class Band:
    """Nodes that have something in common, and the share of them that is predicted right."""

    name: str
    nodes: int
    accuracy: float
    """NaN without nodes."""
    confidence: float
    """The mean; NaN without nodes."""


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Calibration, and accuracy by properties of nodes."""

    nodes: str
    """The nodes that are counted, in words; empty for none."""
    ece: float | None
    brier: float | None
    confidence: list[Band]
    high_confidence: list[Band]
    degree: list[Band]
    homophily: list[Band]
    distance: list[Band]


@dataclass(frozen=True, kw_only=True)
class SuspiciousLabel:
    """A row of the table of `check_labels`."""

    id: str
    row: int
    """Row in `NodeColumns`, -1 for none."""
    label: int
    suggested: int
    split: str
    score: float
    p_label: float
    p_suggested: float
    neighbors: float
    neighbors_label: float
    neighbors_suggested: float


@dataclass(frozen=True, kw_only=True)
class SuspiciousLabels:
    """The most suspicious labels."""

    rows: list[SuspiciousLabel]
    total: int


@dataclass(frozen=True, kw_only=True)
class RunPayload:
    """One run, ensemble or search."""

    name: str
    title: str
    kind: str
    """`run`, `ensemble`, `seeds` or `cross_fit`."""
    data: DataFacts
    classes: list[str]
    nodes: NodeColumns | None
    """None while it is in progress."""
    sections: dict[str, Any]
    """Data of each section by its name."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The newest epochs of a run."""

    curve: Curve
    is_finished: bool
    max_epochs: int


@dataclass(frozen=True, kw_only=True)
class Page:
    """All data of a page."""

    version: str
    sections: dict[str, str]
    """Titles by name, in order."""
    runs: list[RunPayload]
    metrics: dict[str, str] = field(default_factory=lambda: {m.name: m.title for m in METRICS.values()})
    """Titles by name."""
    differing: dict[str, list[str]] = field(default_factory=dict)
    """Settings in which the runs differ, with the value of each run."""
    progress: Progress | None = None
    """The newest epochs of a run that is watched; None for finished runs."""
    constants: Constants = Constants()


def to_json(value: Any) -> str:
    """Returns a dataclass as JSON that is safe inside of an HTML script element."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # no tag and no comment can begin, and no line ends at the two separators of Unicode
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _plain(value: Any) -> Any:
    """Returns a value as types of JSON; numbers that are not finite become null."""
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)
