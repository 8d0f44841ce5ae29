"""The node types of another graph, brought into the order and width that a run's model knows."""

from dataclasses import replace
from pathlib import Path

import torch

from legnn.data import GraphData, NodeTypes
from legnn.errors import InputError
from legnn.runs.folder import DataCard


def fit_types(data: GraphData, card: DataCard, run: Path) -> GraphData:
    """Number the types of `data` as the run did, and give `x` its width; types and columns are known by name.

    A type of the run may be missing, and none may be new.
    """
    types = data.node_types
    if card.types is None or card.type_columns is None or types is None:
        mine, theirs = ("one node type", "several") if card.types is None else ("several node types", "one")
        raise InputError(
            f"{run} was trained on {mine} and {data.name} has {theirs}; a run of other data cannot predict it"
        )
    if data.provenance.computed_features:
        raise InputError(
            f"nodes of {', '.join(data.provenance.computed_features)} in {data.name} come without the features that "
            f"{run} was trained on; give them the same ones"
        )
    for name, columns in zip(types.names, types.columns, strict=True):
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
    node_type = torch.tensor([card.types.index(name) for name in types.names])[types.node_type]
    fitted = NodeTypes(
        names=list(card.types), node_type=node_type, target=types.target, columns=list(card.type_columns)
    )
    # without the widest type the others are laid out narrower
    x = torch.nn.functional.pad(data.x, (0, max(card.features - data.num_features, 0)))
    return replace(data, x=x, node_types=fitted)
