"""What the user may say about the data, in one validated place."""

from dataclasses import dataclass
from typing import Literal, get_args

from legnn.config.checks import check_choice
from legnn.errors import InputError

MissingFeatures = Literal["spectral", "metapath2vec"]
"""How features are made for nodes that come with none: from eigenvectors of the graph, or from random walks."""


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Which graph to load and how to prepare it; a mistake raises `InputError` at once."""

    source: str = "digits"
    """Name from the catalog, or folder of tables."""

    split: int | None = None
    """Which of the fixed splits; None is the set's default. Where no split is fixed, the seed of the drawn one."""

    undirected: bool = True
    """Add the reverse of every edge. Parallel edges are merged on the way."""

    remove_duplicates: bool = True
    """Merge parallel edges, weights averaged."""

    self_loops: bool = True
    """Give every node an edge to itself, of weight 1, unless it has one."""

    id_column: str = "id"
    """Column of the node table that names the node."""

    label_column: str = "label"
    """Column of the node table with the class; an empty cell is an unlabeled node."""

    split_column: str = "split"
    """Column of the node table with train, val or test; an empty cell is in none."""

    source_column: str = "source"
    """Column of the edge table with the id of the node a message comes from."""

    target_column: str = "target"
    """Column of the edge table with the id of the node a message goes to."""

    weight_column: str = "weight"
    """Column of the edge table with a positive weight; without the column, edges are unweighted."""

    text: str | None = None
    """Text column of the node table that becomes the features (TF-IDF and truncated SVD)."""

    text_channels: int = 128
    """Features made from the text; fewer where the texts do not have that many words."""

    type_channels: int = 128
    """Where there are several node types: most features of each, wider ones are reduced; and how many features a type
    that has none is given. The labeled type keeps its own features up to 512."""

    missing_features: MissingFeatures = "spectral"
    """How features are made for a node type that has none."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if not isinstance(self.source, str) or not self.source:
            raise InputError(f"source must be a data set's name or a folder of tables, got {self.source!r}")
        if self.split is not None and (type(self.split) is not int or self.split < 0):
            raise InputError(f"split must be a whole number from 0 up, or nothing, got {self.split!r}")
        for name in ("undirected", "remove_duplicates", "self_loops"):
            if not isinstance(value := getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, got {value!r}")
        for name in ("text_channels", "type_channels"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise InputError(f"{name} must be a whole number from 1 up, got {value!r}")
        check_choice("missing_features", self.missing_features, get_args(MissingFeatures))
        node_columns = ["id_column", "label_column", "split_column"]
        if self.text is not None:
            node_columns.append("text")  # a label read as text would be the answer among the features
        self._must_differ(node_columns)
        self._must_differ(["source_column", "target_column", "weight_column"])

    def _must_differ(self, fields: list[str]) -> None:
        columns: dict[str, str] = {}
        for field in fields:
            column = getattr(self, field)
            if not isinstance(column, str) or not column:
                raise InputError(f"{field} must be the name of a column, got {column!r}")
            if column in columns:
                raise InputError(f"{columns[column]} and {field} are both {column!r}; they must be different columns")
            columns[column] = field
