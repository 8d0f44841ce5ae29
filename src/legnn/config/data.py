"""Which graph to load and how to prepare it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from legnn.config.fields import Section, setting
from legnn.errors import InputError

MissingFeatures = Literal["spectral", "metapath2vec", "published"]
"""Method for features of nodes without any: from eigenvectors of the graph, from random walks, or from random
walks exactly as the published code of LEGNN takes them on ogbn-mag."""

Features = Literal["given", "spectral", "metapath2vec"]
"""Source of the features of all nodes: the data, eigenvectors of the graph, or random walks between node types."""

COLUMN = "the name of a column"


@dataclass(frozen=True, kw_only=True)
class DataSettings(Section):
    """Settings of the data."""

    name = "data"
    title = "Data"

    source: str = setting(
        "digits", "Named data set, or folder of tables", expects="a data set's name or a folder of tables"
    )
    split: int | Literal["default"] = setting(
        "default", "Number of a fixed split, or seed of a random split", least=0, is_common=True
    )
    validation: Literal["split", "none"] = setting(
        "split", "Nodes for validation: those of the split, or none, where they train too and the last epoch is kept"
    )
    features: Features = setting("given", "Features: those of the data, or computed from the graph alone")
    text: str = setting(
        "",
        "Text column whose words become features, in addition to the other columns (TF-IDF, then SVD)",
        expects=COLUMN,
        chosen="none",
        is_common=True,
    )
    text_channels: int = setting(128, "Features computed from the text", least=1, most=100_000)
    type_channels: int = setting(
        128, "Feature width: of computed features and of every node type", least=1, most=100_000
    )
    missing_features: MissingFeatures = setting("spectral", "How features of a node type without any are computed")
    id_column: str = setting("id", "Column of node ids", expects=COLUMN)
    label_column: str = setting("label", "Column of classes; empty: unlabeled", expects=COLUMN)
    split_column: str = setting("split", "Column of train, val, test; empty: in none", expects=COLUMN)
    source_column: str = setting("source", "Column of the nodes that edges come from", expects=COLUMN)
    target_column: str = setting("target", "Column of the nodes that edges go to", expects=COLUMN)
    weight_column: str = setting("weight", "Column of edge weights, above 0; optional", expects=COLUMN)
    undirected: bool = setting(True, "Add the reverse of every edge")
    remove_duplicates: bool = setting(True, "Merge parallel edges, weights averaged")
    self_loops: bool = setting(True, "Add a self-loop of weight 1 to every node without one")
    cross_label_edges: int = setting(0, "S: edges added between nodes of different classes, as in syn-arxiv", least=0)
    cross_label_seed: int = setting(0, "Seed of these edges", least=0)

    def __post_init__(self) -> None:
        # a label read as text would be the answer among the features
        text = ["text"] if self.text else []
        self._check_distinct(["id_column", "label_column", "split_column", *text])
        self._check_distinct(["source_column", "target_column", "weight_column"])
        if self.text and self.features != "given":
            raise InputError(
                f"data.text is {self.text!r}, and data.features={self.features} does not use the features of the data; "
                f"leave one of them out",
                setting="data.features",
            )

    def _check_distinct(self, names: list[str]) -> None:
        columns: dict[str, str] = {}
        for name in names:
            column = getattr(self, name)
            if column in columns:
                raise InputError(
                    f"data.{columns[column]} and data.{name} are both {column!r}; they must be different columns"
                )
            columns[column] = name
