"""What the options of the commands may be, and those of the data, which several commands have."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer


class MissingFeatures(str, Enum):  # noqa: UP042 (Typer shows the values of a str Enum)
    """How features are made for a node type that has none."""

    spectral = "spectral"
    metapath2vec = "metapath2vec"


class LabelUsage(str, Enum):  # noqa: UP042
    """How labels enter."""

    vanilla = "vanilla"
    concat = "concat"
    addition = "addition"
    enhanced = "enhanced"


class Normalize(str, Enum):  # noqa: UP042
    """How the weights of the label graph are normalized."""

    relation = "relation"
    joint = "joint"


class Norm(str, Enum):  # noqa: UP042
    """What follows a layer."""

    none = "none"
    batch = "batch"
    layer = "layer"


class Residual(str, Enum):  # noqa: UP042
    """What a layer adds to its output."""

    none = "none"
    identity = "identity"
    linear = "linear"


class Device(str, Enum):  # noqa: UP042
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Precision(str, Enum):  # noqa: UP042
    """In which precision to compute."""

    auto = "auto"
    fp32 = "fp32"
    tf32 = "tf32"
    bf16 = "bf16"


DATA, MODEL, TRAINING, SELF = "Data", "Model", "Training", "AS-Train"


def option(panel: str, text: str, *names: str) -> Any:
    """An option in a panel of the help, which says its default in words."""
    return typer.Option(*names, help=plain(text), rich_help_panel=panel, show_default=False)


def plain(text: str) -> str:
    """Help whose brackets are shown, not read as markup."""
    return text.replace("[", r"\[")


# what may be said of the data, to `train` and to `prepare`
SplitOption = Annotated[int | None, option(DATA, "Which of the fixed splits, or the seed of the drawn one")]
TextOption = Annotated[str | None, option(DATA, "Text column that becomes the features")]
TextChannelsOption = Annotated[int | None, option(DATA, "Features made of the text [128]")]
TypeChannelsOption = Annotated[int | None, option(DATA, "Several node types: features of each [128]")]
MissingFeaturesOption = Annotated[
    MissingFeatures | None, option(DATA, "How a node type without features gets some [spectral]")
]
IdColumnOption = Annotated[str | None, option(DATA, "Column of node ids [id]")]
LabelColumnOption = Annotated[str | None, option(DATA, "Column of classes [label]")]
SplitColumnOption = Annotated[str | None, option(DATA, "Column of train, val, test [split]")]
SourceColumnOption = Annotated[str | None, option(DATA, "Column of edge sources [source]")]
TargetColumnOption = Annotated[str | None, option(DATA, "Column of edge targets [target]")]
WeightColumnOption = Annotated[str | None, option(DATA, "Column of edge weights [weight]")]
UndirectedOption = Annotated[bool | None, option(DATA, "Add reverse edges [yes]")]
RemoveDuplicatesOption = Annotated[bool | None, option(DATA, "Merge parallel edges [yes]")]
SelfLoopsOption = Annotated[bool | None, option(DATA, "Add self-loops [yes]")]
