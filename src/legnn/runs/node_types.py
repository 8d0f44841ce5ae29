"""The node types of another graph, brought into the order and width that a run's model knows."""

from pathlib import Path

import torch
from torch_geometric.data import Data

from legnn.errors import InputError
from legnn.runs.folder import DataCard


def fit_types(data: Data, card: DataCard, run: Path) -> None:
    """Number the types of `data` as the run did, and give `x` its width; types and columns are known by name.

    A type of the run may be missing, and none may be new.
    """
    if card.types is None or card.type_columns is None or data.get("node_type") is None:
        mine, theirs = ("one node type", "several") if card.types is None else ("several node types", "one")
        raise InputError(
            f"{run} was trained on {mine} and {data.name} has {theirs}; a run of other data cannot predict it"
        )
    if data.get("computed_features"):
        raise InputError(
            f"nodes of {', '.join(data.computed_features)} in {data.name} come without the features that {run} was "
            f"trained on; give them the same ones"
        )
    for name, columns in zip(data.type_names, data.type_columns, strict=True):
        if name not in card.types:
            raise InputError(
                f"{data.name} has the node type {name!r}, which the run does not know; it knows {', '.join(card.types)}"
            )
        expected = card.type_columns[card.types.index(name)]
        if columns != expected:
            raise InputError(
                f"{name!r} of {data.name} has {len(columns)} features that are not the {len(expected)} that {run} was "
                f"trained on; they must be the same, in the same order"
            )
    data.node_type = torch.tensor([card.types.index(name) for name in data.type_names])[data.node_type]
    data.type_names, data.type_columns = list(card.types), list(card.type_columns)
    if data.x.size(1) < card.features:
        # without the widest type the others are laid out narrower
        data.x = torch.nn.functional.pad(data.x, (0, card.features - data.x.size(1)))
